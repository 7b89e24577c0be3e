r"""The sums over rows that Newton needs for the squared hinge.

.. math:: \sum_i w_i\max(0, m - t_if_i)^2, \qquad -2\sum_{i\in A} w_i(m - t_if_i)\,t_i\tilde x_i,
          \qquad 2\sum_{i\in A} w_i\tilde x_i\tilde x_i^\top, \qquad A = \{i : t_if_i < m\} .

The last one changes only by the rows that enter or leave A, so it is kept and amended.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.tiles import SLICE, over_slices, tile_rows
from groundstate.learn.solvers.svm.hinge.rows_numba import F64, jit, matrix_of
from groundstate.math.linalg.conjugate_gradients import truncated


class Sums(Protocol):
    """Loss, gradient and Newton direction of one class against the rest."""

    def at(self, theta: F64) -> tuple[float, F64]:
        """Summed loss and its gradient; remembers what ``direction`` needs."""
        ...

    def direction(self, gradient: F64, ridge: F64) -> F64:
        """−(H + diag ridge)⁻¹ gradient at the last θ."""
        ...


class TileSums:
    """Dense rows on the CPU: one pass in tiles, threads over slices."""

    def __init__(self, x: NDArray[Any], t: F64, w: F64 | None, m: float, intercept: bool) -> None:
        self.x, self.t, self.m, self.intercept = x, t, m, intercept
        self.knee = np.inf  # gap beyond which the square goes on as a straight line
        self.w = np.empty(0) if w is None else w
        width = x.shape[1] + intercept
        self.tile = tile_rows(width * width)
        self.active = np.zeros(len(x), np.bool_)
        self.H = np.zeros((width, width))

    def at(self, theta: F64) -> tuple[float, F64]:
        def piece(lo: int, hi: int) -> Any:
            return _tile_sums(
                self.x, self.t, self.w, theta, self.m, self.knee, self.intercept, self.active,
                lo, hi, self.tile,
            )  # fmt: skip

        n = len(self.x)
        if n <= SLICE:
            loss, g, change = piece(0, n)
        else:
            loss, g, change = 0.0, np.zeros(len(theta)), np.zeros_like(self.H)
            for part in over_slices(piece, n):
                loss, g, change = loss + part[0], g + part[1], change + part[2]
        reduce = current()
        if reduce.world > 1:
            named = {"l": torch.tensor([loss], dtype=torch.float64)}
            named |= {"g": torch.from_numpy(g), "h": torch.from_numpy(change)}
            total = reduce.sum_dict(named)
            loss, g, change = float(total["l"]), total["g"].numpy(), total["h"].numpy()
        self.H += change
        return float(loss), g

    def direction(self, gradient: F64, ridge: F64) -> F64:
        return _solved(2.0 * self.H, gradient, ridge)


def _solved(hessian: F64, gradient: F64, ridge: F64) -> F64:
    hessian.reshape(-1)[:: len(hessian) + 1] += ridge
    _, found, failed = dposv(hessian, -gradient, lower=1)
    if failed == 0:
        answer: F64 = found
        return answer
    return np.asarray(-np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0], np.float64)


@jit
def _tile_sums(
    x: Any, t: Any, w: Any, theta: Any, m: float, knee: float, intercept: bool, active: Any,
    lo: int, hi: int, tile: int,
) -> Any:  # fmt: skip
    d, width = x.shape[1], len(theta)
    buffer = np.empty((tile, width))
    entering, leaving = np.empty((tile, width)), np.empty((tile, width))
    slope = np.empty(tile)
    g, H = np.zeros(width), np.zeros((width, width))
    loss = 0.0
    for a in range(lo, hi, tile):
        size = min(tile, hi - a)
        rows = buffer[:size]
        for i in range(size):
            for j in range(d):
                rows[i, j] = x[a + i, j]
            if intercept:
                rows[i, d] = 1.0
        score = np.dot(rows, theta)
        enter, leave = 0, 0
        for i in range(size):
            weight = w[a + i] if len(w) > 0 else 1.0
            sign = t[a + i]
            gap = m - sign * score[i]
            now = gap > 0.0 and gap < knee and weight > 0.0
            reach = min(max(gap, 0.0), knee)
            slope[i] = weight * reach * sign
            loss += weight * reach * (2.0 * gap - reach)
            if now != active[a + i]:
                active[a + i] = now
                root = np.sqrt(weight)
                if now:
                    for j in range(width):
                        entering[enter, j] = root * rows[i, j]
                    enter += 1
                else:
                    for j in range(width):
                        leaving[leave, j] = root * rows[i, j]
                    leave += 1
        g -= 2.0 * np.dot(slope[:size], rows)
        if enter > 0:
            H += np.dot(entering[:enter].T, entering[:enter])
        if leave > 0:
            H -= np.dot(leaving[:leave].T, leaving[:leave])
    return loss, g, H


class ProductSums:
    """Wide, sparse or GPU rows: two products for each gradient.

    Narrow rows form the Newton matrix; wide ones solve it by conjugate gradients.
    """

    def __init__(
        self, x: Tensor, t: F64, w: Tensor | None, m: float, intercept: bool, dense: bool
    ) -> None:
        self.m, self.intercept, self.dense = m, intercept, dense
        self.on_host = x.layout == torch.sparse_csr  # SciPy's products, wherever the rows are
        device = torch.device("cpu") if self.on_host else x.device
        self.x: Any = matrix_of(x.cpu()).astype(np.float64) if self.on_host else x.double()
        self.t = torch.from_numpy(t).to(device)
        self.w = None if w is None else w.double().to(device)
        self.curve = torch.zeros_like(self.t)  # w on the active rows, 0 elsewhere
        self.first = 0.0  # size of the first gradient

    def _times(self, v: F64) -> Tensor:
        """x̃ v of every row."""
        d = self.x.shape[1]
        if self.on_host:
            out = torch.from_numpy(self.x @ v[:d])
        else:
            out = self.x @ torch.from_numpy(v[:d]).to(self.x.device)
        return out + v[-1] if self.intercept else out

    def _back(self, u: Tensor) -> F64:
        """Σ uᵢ x̃ᵢ over all shards."""
        if self.on_host:
            out = torch.from_numpy(np.asarray(self.x.T @ u.numpy()))
        else:
            out = u @ self.x
        if self.intercept:
            out = torch.cat([out, u.sum()[None]])
        summed: F64 = current().sum(out).cpu().numpy()
        return summed

    def at(self, theta: F64) -> tuple[float, F64]:
        gap = (self.m - self.t * self._times(theta)).clamp(min=0)
        slope = gap if self.w is None else gap * self.w
        self.curve = (slope > 0).double() if self.w is None else self.w * (slope > 0)
        loss = float(current().sum(slope @ gap))
        return loss, -2.0 * self._back(slope * self.t)

    def direction(self, gradient: F64, ridge: F64) -> F64:
        if self.dense:
            active = self.curve.nonzero()[:, 0]
            xa = self.x[active]
            if self.intercept:
                xa = torch.nn.functional.pad(xa, (0, 1), value=1.0)
            hessian = current().sum(xa.T @ (xa * self.curve[active, None]))
            return _solved(2.0 * hessian.cpu().numpy(), gradient, ridge)
        return self._conjugate(gradient, ridge)

    def _conjugate(self, gradient: F64, ridge: F64) -> F64:
        """Conjugate gradients to a residual that shrinks with the gradient."""
        size = float(np.linalg.norm(gradient))
        self.first = self.first or size or 1.0
        goal = min(0.1, (size / self.first) ** 0.5) * size

        def times(way: F64) -> F64:
            return 2.0 * self._back(self.curve * self._times(way)) + ridge * way

        found: F64 = truncated(times, -gradient, goal, 2 * len(gradient))
        return found
