"""What passes over rows need on the host: sums by NumPy, places in symmetric matrices, arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

F64 = NDArray[np.float64]


def scatter(x: Any, w: Any, origin: F64, lo: int, hi: int) -> F64:
    """Weighted second moments ``(d, d)`` of rows lo..hi about ``origin``."""
    diff = x[lo:hi] - origin
    out: F64 = (diff if not len(w) else diff * w[lo:hi, None]).T @ diff
    return out


def reach(x: Any, origin: F64, turn: F64, lo: int, hi: int) -> float:
    """The largest ‖turn (x − origin)‖² of rows lo..hi."""
    return float(np.square((x[lo:hi] - origin) @ turn.T).sum(1).max())


@cache
def pairs_of(d: int) -> tuple[Any, Any, F64]:
    """Places of the entries i ≤ j and of their mirror images, and −½ or −1 for each."""
    i, j = np.triu_indices(d)
    return i * d + j, j * d + i, np.where(i == j, -0.5, -1.0)


def wide(values: Tensor) -> F64:
    return values.detach().cpu().numpy().astype(np.float64, copy=False)


def array(values: Tensor) -> Any:
    return values.detach().contiguous().numpy()
