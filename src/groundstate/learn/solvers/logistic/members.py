r"""Gradients of many members of softmax regression on the same rows, a weight vector each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.tiles import over_slices
from groundstate.learn.solvers.logistic.objective import SoftmaxObjective
from groundstate.learn.solvers.logistic.softmax import members_slope

F64 = NDArray[np.float64]
CELLS = 2**17  # scores of a slice of rows: they stay in the cache


class Members:
    """Rows shared by all members; θ of a member is ``(R, D)``, its weights a row of ``weights``."""

    def __init__(self, rows: SoftmaxObjective, weights: Any) -> None:
        self.rows = rows
        self.weights = np.concatenate([weights, weights.mean(0, keepdims=True)])  # the mean last
        self.dtype = weights.dtype
        self.totals = self.weights.sum(1, dtype=np.float64)
        if rows.sparse or rows.x.shape[1] == rows.shape[1]:
            self.x = rows.x if rows.sparse else rows.x.astype(self.dtype, copy=False)
        else:
            self.x = np.empty((rows.n, rows.p + 1), self.dtype)
            self.x[:, : rows.p], self.x[:, rows.p] = rows.x, 1.0
        self.y, self.scale = rows.y, self.weights
        if rows.binary:  # p − y = (tanh(s/2) + 1 − 2y)/2
            self.y, self.scale = (1 - 2 * rows.y).astype(self.dtype), 0.5 * self.weights

    def gradient(self, theta: F64, fold: NDArray[np.int64], ridge: F64) -> F64:
        """∇ of the mean objective of members ``(M, R, D)`` with weights ``fold``, ridge ``(M, D)``.

        Members may be the same for all folds: with fewer θ than folds given, ``(L, R, D)``, members
        are all θ of the first fold, then all of the second, and so on.
        """
        rows, (m, r, d), many = self.rows, theta.shape, len(fold)
        flat = theta.reshape(m * r, d)
        flat = (0.5 * flat if rows.binary else flat).astype(self.dtype)
        each = fold if m == many else fold[::m]

        def part(lo: int, hi: int) -> F64:
            x, y = self.x[lo:hi], self.y[lo:hi]
            s = rows.scores(flat, x) if rows.sparse else flat @ x.T
            w = self.scale[:, lo:hi][each]
            s = members_slope(s.reshape(m, r, hi - lo), y)
            if m == many:
                s *= w[:, None]
            else:
                s = s * w[:, None, None]
            s = s.reshape(many * r, hi - lo)
            if not rows.sparse:
                out: F64 = (s @ x).astype(np.float64)
                return out
            return np.asarray(rows.back(s, x))

        size = max(256, CELLS // (many * r))
        if rows.sparse or rows.n <= size:
            total = part(0, rows.n)
        else:
            total = sum(over_slices(part, rows.n, size), np.zeros((many * r, d)))
        own = theta if m == many else np.tile(theta, (many // m, 1, 1))
        found: F64 = total.reshape(many, r, d) + own * ridge[:, None, :]
        found /= self.totals[fold][:, None, None]
        return found
