"""When to stop: one count of epochs without an improvement, for one member or for many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor


class Patience:
    r"""Done after ``patience`` epochs in a row whose value is not below the best by ``tol``.

    Parameters
    ----------
    size : number of members
    tol : what counts as an improvement; None never stops
    patience : epochs without one; infinity never stops
    relative : the improvement is :math:`tol\cdot\max(1, |v|)`
    inclusive : an improvement of exactly ``tol`` counts
    creeping : the best value follows improvements too small to count

    Attributes
    ----------
    best, stale : (P,) lowest value so far, and epochs since the last improvement
    better, improved : (P,) of the last call: below the best so far, and by enough to count

    Examples
    --------
    >>> stop = Patience(2, tol=0.1, patience=2)
    >>> [stop([1.0, v]).tolist() for v in (1.0, 0.5, 0.2)]
    [[False, False], [False, False], [True, False]]
    """

    def __init__(
        self,
        size: int = 1,
        *,
        tol: float | None = 0.0,
        patience: float = 10,
        relative: bool = False,
        inclusive: bool = False,
        creeping: bool = True,
    ) -> None:
        self.tol, self.patience = tol, patience
        self.relative, self.inclusive, self.creeping = relative, inclusive, creeping
        self.best: NDArray[np.float64] = np.full(size, math.inf)
        self.stale: NDArray[np.int64] = np.zeros(size, np.int64)
        self.better = self.improved = np.zeros(size, bool)

    def __call__(self, values: ArrayLike | Tensor, running: Any = True) -> NDArray[np.bool_]:
        """Which members are done, given this epoch's values; those not running change nothing."""
        if len(self.best) == 1 and running is True:
            return self._one(float(np.asarray(values).reshape(-1)[0]))
        v = np.asarray(values, dtype=np.float64).reshape(-1)
        running = np.asarray(running)
        enough = self.tol or 0.0
        with np.errstate(invalid="ignore"):  # an infinite value improves nothing
            mark = self.best - (enough * np.maximum(1.0, np.abs(v)) if self.relative else enough)
        self.better = (v < self.best) & running
        self.improved = ((v <= mark) if self.inclusive else (v < mark)) & running
        self.stale = np.where(self.improved, 0, self.stale + 1)
        follow = self.better if self.creeping else self.improved
        self.best = np.where(follow, v, self.best)
        return np.zeros(len(v), bool) if self.tol is None else self.stale >= self.patience

    def _one(self, v: float) -> NDArray[np.bool_]:
        """The same for a single member, whose epochs may be shorter than a few array operations."""
        best, enough = float(self.best[0]), self.tol or 0.0
        mark = best - (enough * max(1.0, abs(v)) if self.relative else enough)
        better, improved = v < best, (v <= mark if self.inclusive else v < mark)
        self.better, self.improved = np.array([better]), np.array([improved])
        self.stale = np.array([0 if improved else int(self.stale[0]) + 1])
        if better if self.creeping else improved:
            self.best = np.array([v])
        return np.array([self.tol is not None and bool(self.stale[0] >= self.patience)])

    def state(self) -> list[Any]:
        """What a checkpoint holds."""
        return [self.best.tolist(), self.stale.tolist()]

    def load(self, state: Any) -> None:
        """Go on from a state; files of one member hold numbers, early ones of many tensors."""
        best, stale = (v.tolist() if isinstance(v, Tensor) else v for v in state[:2])
        self.best = np.array(best, dtype=np.float64).reshape(-1)
        self.stale = np.array(stale, dtype=np.int64).reshape(-1)
