r"""Columns of which one is never above the other, :math:`x_a \le x_b` in every training row.

A parcel is not shipped before it is ordered. Rows that a generator makes otherwise are drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.models.generative.tables.columns import NumberColumn

ROWS = 100  # with both values, from which no exception is no accident
OFTEN = 0.01  # how often columns without a tie would be the wrong way round
MOST = 60  # columns whose pairs are looked at

Order = tuple[str, str]


def learned_orders(
    columns: Sequence[Any], values: dict[str, NDArray[np.float64]], weight: NDArray[np.float64]
) -> list[Order]:
    """Pairs (a, b) of dates, or of numbers, of which a is never above b, though it would often be if they
    had nothing to do with each other."""
    numbers = [c for c in columns if isinstance(c, NumberColumn)][:MOST]
    found: list[Order] = []
    for a in numbers:
        for b in numbers:
            if a.name == b.name or a.date != b.date or a.x[-1] <= b.x[0]:
                continue
            x, y = values[a.name], values[b.name]
            both = ~np.isnan(x) & ~np.isnan(y) & (weight > 0)
            w = weight[both]
            if w.sum() < ROWS or not bool((x[both] <= y[both]).all()):
                continue
            if _apart(x[both], y[both], w) > OFTEN:
                found.append((a.name, b.name))
    # of a chain the neighbours say all, and of two equal columns one
    return [
        (a, b)
        for a, b in found
        if not any((a, c) in found and (c, b) in found for c in values if c not in (a, b))
        or (b, a) in found
    ]


def _apart(x: NDArray[np.float64], y: NDArray[np.float64], w: NDArray[np.float64]) -> float:
    """How often y would be below x if the two had nothing to do with each other."""
    order = np.argsort(y, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(w[order])])[np.searchsorted(y[order], x)]
    return float(w @ below / w.sum() ** 2)


def broken(frame: pl.DataFrame, orders: Sequence[Order]) -> NDArray[np.bool_]:
    """Rows in which some pair is the wrong way round, ``(n,)``; what is missing breaks nothing."""
    found = np.zeros(len(frame), bool)
    for a, b in orders:
        found |= (frame[a] > frame[b]).fill_null(False).to_numpy()
    return found
