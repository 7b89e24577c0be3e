r"""The rows of a sparse regression, seen by coordinate descent.

All rows are weighted and centred: :math:`\tilde x_i = \sqrt{w_i}(x_i - \bar x)`, so the intercept is
solved for throughout. Three views: the whole Gram matrix, columns of dense rows with a Gram matrix
that grows with the working set, and sparse columns whose centring is implicit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.learn.solvers.lasso import working_set_numba as kernels

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


class Design(ABC):
    """What coordinate descent asks of the rows of one regression.

    Attributes
    ----------
    W : total weight
    q : Xᵀy, ``(p,)``
    yy : ‖y‖²
    norms : ‖xⱼ‖², ``(p,)``
    mean_x, mean_y : weighted means
    """

    W: float
    q: F64
    yy: float
    norms: F64
    mean_x: F64
    mean_y: float

    @abstractmethod
    def start(self, w: F64) -> None:
        """Begin at w."""

    @abstractmethod
    def correlations(self, w: F64, alive: I64) -> tuple[F64, float, float]:
        """Xᵀr (of the columns alive at least), yᵀr and ‖r‖²."""

    @abstractmethod
    def descend(
        self, w: F64, ws: I64, lam: float, mu: float, positive: bool, tol: float, most: int
    ) -> int:
        """Solve for the columns ``ws`` of w, in place; the others are zero. Epochs."""


class GramDesign(Design):
    """Everything from the Gram matrix G ``(p, p)``, q and ‖y‖²: right where p is below n."""

    def __init__(self, W: float, G: F64, q: F64, yy: float, mean_x: F64, mean_y: float) -> None:
        self.W, self.G, self.q, self.yy = W, G, q, yy
        self.mean_x, self.mean_y = mean_x, mean_y
        self.norms = np.ascontiguousarray(np.maximum(G.diagonal(), 0.0))

    def start(self, w: F64) -> None:
        pass

    def correlations(self, w: F64, alive: I64) -> tuple[F64, float, float]:
        g = self.q - self.G @ w
        wq = float(w @ self.q)
        return g, self.yy - wq, max(self.yy - wq - float(w @ g), 0.0)

    def descend(
        self, w: F64, ws: I64, lam: float, mu: float, positive: bool, tol: float, most: int
    ) -> int:
        part = w[ws]
        H = np.ascontiguousarray(self.G[np.ix_(ws, ws)])
        epochs = kernels.gram_descent(H, self.q[ws], self.yy, part, lam, mu, positive, tol, most)
        w[ws] = part
        return int(epochs)


class ColumnDesign(Design):
    """Dense centred rows ``(n, p)`` in memory; Gram entries of columns are computed when needed."""

    def __init__(self, X: F64, y: F64, W: float, mean_x: F64, mean_y: float) -> None:
        self.X, self.y, self.W = torch.from_numpy(X), torch.from_numpy(y), W
        self.mean_x, self.mean_y = mean_x, mean_y
        self.q = (self.X.T @ self.y).numpy()
        self.yy = float(self.y @ self.y)
        self.norms = np.einsum("ij,ij->j", X, X)
        self.place = np.full(X.shape[1], -1)  # of a column in the growing Gram matrix
        self.seen = np.empty(0, np.int64)
        self.H = np.empty((0, 0))
        self.columns = torch.empty(0, len(X), dtype=torch.float64)

    def start(self, w: F64) -> None:
        pass

    def correlations(self, w: F64, alive: I64) -> tuple[F64, float, float]:
        support = torch.from_numpy(np.flatnonzero(w))
        r = self.y
        if len(support):
            r = r - self.X[:, support] @ torch.from_numpy(w)[support]
        return (self.X.T @ r).numpy(), float(self.y @ r), float(r @ r)

    def _grow(self, ws: I64) -> None:
        new = ws[self.place[ws] < 0]
        if not len(new):
            return
        old = len(self.seen)
        self.place[new] = old + np.arange(len(new))
        self.seen = np.concatenate([self.seen, new])
        fresh = self.X[:, torch.from_numpy(new)].T.contiguous()  # (new, n)
        columns = torch.cat([self.columns, fresh])
        H = np.empty((len(self.seen), len(self.seen)))
        H[:old, :old] = self.H
        cross = (fresh @ columns.T).numpy()
        H[old:], H[:, old:] = cross, cross.T
        self.columns, self.H = columns, H

    def descend(
        self, w: F64, ws: I64, lam: float, mu: float, positive: bool, tol: float, most: int
    ) -> int:
        self._grow(ws)
        at, part = self.place[ws], w[ws]
        epochs = kernels.gram_descent(
            np.ascontiguousarray(self.H[np.ix_(at, at)]), self.q[ws], self.yy, part, lam, mu,
            positive, tol, most,
        )  # fmt: skip
        w[ws] = part
        return int(epochs)


class SparseDesign(Design):
    """Columns of a CSC matrix, centred implicitly."""

    def __init__(self, X: Any, y: F64, weight: F64 | None, intercept: bool) -> None:
        n, p = X.shape
        self.root = np.ones(n) if weight is None else np.sqrt(weight)
        self.W = float(self.root @ self.root)
        square = self.root**2
        self.mean_x = np.asarray(X.T @ square).ravel() / self.W if intercept else np.zeros(p)
        self.mean_y = float(square @ y) / self.W if intercept else 0.0
        self.rows = X.indices.astype(np.int64)
        self.starts = X.indptr.astype(np.int64)
        data = X.data.astype(np.float64)
        self.data = data if weight is None else data * self.root[self.rows]
        self.y = self.root * (y - self.mean_y)
        self.yy = float(self.y @ self.y)
        each = np.bincount(np.repeat(np.arange(p), np.diff(self.starts)), self.data**2, minlength=p)
        self.norms = np.maximum(each - self.W * self.mean_x**2, 0.0)
        constant = self.norms <= 1e-14 * each
        self.norms[constant] = 0.0
        self.r, self.total = self.y.copy(), 0.0
        self.q = np.zeros(p)
        self._correlate(np.arange(p), self.q)

    def _correlate(self, columns: I64, out: F64) -> None:
        total = self.total if self.mean_x.any() else 0.0
        kernels.sparse_correlations(
            self.data, self.rows, self.starts, self.mean_x, self.r, total, columns, out
        )
        out[self.norms == 0] = 0.0

    def start(self, w: F64) -> None:
        """The residual at w, from scratch."""
        self.r = self.y.copy()
        for j in np.flatnonzero(w):
            lo, hi = self.starts[j], self.starts[j + 1]
            self.r[self.rows[lo:hi]] -= w[j] * self.data[lo:hi]
        self.total = float(self.root @ self.r) if self.mean_x.any() else 0.0

    def _sums(self) -> tuple[float, float]:
        shift = self.total / self.W
        yr = float(self.y @ self.r - self.y @ self.root * shift)
        return yr, max(float(self.r @ self.r) - self.total * shift, 0.0)

    def correlations(self, w: F64, alive: I64) -> tuple[F64, float, float]:
        g = np.zeros(len(w))
        self._correlate(alive, g)
        return g, *self._sums()

    def descend(
        self, w: F64, ws: I64, lam: float, mu: float, positive: bool, tol: float, most: int
    ) -> int:
        epochs, total = kernels.sparse_descent(
            self.data, self.rows, self.starts, self.mean_x, self.root, self.W, self.norms, self.yy,
            self.y, self.r, self.total, w, ws, lam, mu, positive, tol, most,
        )  # fmt: skip
        self.total = float(total)
        return int(epochs)
