"""Quantiles of rows that count more than once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def repeated_quantile(values: NDArray[Any], weight: NDArray[Any] | None, q: Any) -> Any:
    """``np.quantile`` of values that are repeated as often as their weight says.

    Parameters
    ----------
    values : ``(n,)``
    weight : ``(n,)`` of non-negative numbers, or None for 1 each
    q : number, or ``(k,)``

    Examples
    --------
    >>> repeated_quantile(np.array([1.0, 5.0]), np.array([3.0, 1.0]), 0.5)
    1.0
    >>> repeated_quantile(np.array([1.0, 5.0]), np.array([1.0, 2.0]), [0.25, 1.0]).tolist()
    [3.0, 5.0]
    """
    if weight is None:
        found = np.quantile(values, q)
    else:
        order = np.argsort(values, kind="stable")
        values, mass = values[order], weight[order]
        values, mass = values[mass > 0], mass[mass > 0]
        end = mass.cumsum()
        at = np.asarray(q) * max(end[-1] - 1.0, 0.0)
        low, high = (
            values[np.searchsorted(end, place, side="right").clip(max=len(end) - 1)]
            for place in (np.floor(at), np.floor(at) + 1.0)
        )
        found = low + (at - np.floor(at)) * (high - low)
    return float(found) if np.ndim(q) == 0 else found
