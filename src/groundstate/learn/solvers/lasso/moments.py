r"""Sums that turn rows into a Gram matrix, and the choice of a design for rows at hand.

Sums about a fixed origin add: those of a training fold are those of all rows less the held-out ones,
so all folds of a cross-validation cost two passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.learn.solvers.lasso.design import ColumnDesign, Design, GramDesign, SparseDesign

CHUNK = 2**22  # numbers of one centred block
FEW = 2**16  # numbers whose means NumPy takes sooner than torch
GRAM_COLUMNS = 5000  # beyond it the whole Gram matrix is too large
WIDE_COLUMNS = 1500  # beyond it, where there are fewer rows, most of it would never be looked at
COLUMNS_PER_PENALTY = 40  # a path so long pays for the whole Gram matrix


def use_gram(n: int, p: int, penalties: int, precompute: Any = "auto") -> bool:
    """Whether the whole Gram matrix is the cheaper way."""
    if isinstance(precompute, bool) and precompute:
        return True
    return p <= min(max(n, WIDE_COLUMNS), GRAM_COLUMNS, COLUMNS_PER_PENALTY * penalties)


def middle(X: Tensor, Y: Tensor, weight: Tensor | None, intercept: bool) -> tuple[Tensor, Tensor]:
    """Weighted means of rows and targets over all shards; zeros without an intercept."""
    if not intercept:
        return X.new_zeros(X.shape[1]).double(), Y.new_zeros(Y.shape[1]).double()
    if weight is None:
        if current().world == 1 and X.numel() <= FEW:
            means = (v.numpy().mean(0, dtype=np.float64) for v in (X, Y))
            x, y = map(torch.from_numpy, means)
            return x, y
        sums = {"x": X.sum(0, dtype=torch.float64), "y": Y.sum(0, dtype=torch.float64)}
        total = torch.tensor(float(len(X)), dtype=torch.float64)
    else:
        w = weight.double()
        sums, total = {"x": w @ X.double(), "y": w @ Y.double()}, w.sum()
    sums = current().sum_dict({**sums, "n": total})
    return sums["x"] / sums["n"], sums["y"] / sums["n"]


def designs_of(
    X: Any, Y: Tensor, weight: Tensor | None, intercept: bool, penalties: int, precompute: Any
) -> list[Design]:
    """One design per output, for dense rows (a tensor) or a CSC matrix."""
    if not isinstance(X, Tensor):
        w = None if weight is None else weight.double().numpy()
        return [SparseDesign(X, y, w, intercept) for y in Y.double().numpy().T.copy()]
    n, p = X.shape
    origin = middle(X, Y, weight, intercept)
    alone = current().world == 1
    if use_gram(n, p, penalties, precompute) or not alone:
        moments = Moments(X, Y, weight, origin)
        return [moments.design(output, intercept) for output in range(Y.shape[1])]
    x, y = X.double() - origin[0], Y.double() - origin[1]
    total = float(n)
    if weight is not None:
        root = weight.double().sqrt()[:, None]
        x, y, total = x * root, y * root, float(weight.double().sum())
    square = x.square().sum(0)
    x[:, square <= 1e-26 * n * origin[0].square()] = 0.0  # constant columns
    rows = x.numpy()
    mean = origin[0].numpy()
    return [
        ColumnDesign(rows, y[:, k].contiguous().numpy(), total, mean, float(origin[1][k]))
        for k in range(Y.shape[1])
    ]


class Moments:
    """Sums of rows about an origin, which add over chunks, shards and folds.

    Attributes
    ----------
    W : total weight
    x, y : weighted sums about the origin, ``(p,)``, ``(m,)``
    xx, xy, yy : weighted sums of products, ``(p, p)``, ``(p, m)``, ``(m,)``
    """

    def __init__(self, X: Tensor, Y: Tensor, weight: Tensor | None, origin: Any) -> None:
        self.origin: tuple[Tensor, Tensor] = origin
        p, m = X.shape[1], Y.shape[1]
        rows, targets = X.numpy(), Y.numpy()
        x0, y0 = origin[0].numpy(), origin[1].numpy()
        step = max(1, CHUNK // max(1, p))
        block = np.empty((min(step, len(X)), p + m + 1))
        total = np.zeros((p + m + 1, p + m + 1))
        for at in range(0, len(X), step):
            z = block[: len(rows[at : at + step])]
            np.subtract(rows[at : at + step], x0, out=z[:, :p])
            np.subtract(targets[at : at + step], y0, out=z[:, p:-1])
            z[:, -1] = 1.0
            if weight is not None:
                z *= weight[at : at + step].double().sqrt().numpy()[:, None]
            total += z.T @ z  # NumPy sees that it is symmetric and computes half
        sums = {
            "W": total[-1, -1:], "x": total[:p, -1], "y": total[p:-1, -1],
            "xx": total[:p, :p], "xy": total[:p, p:-1], "yy": total[p:-1, p:-1].diagonal(),
        }  # fmt: skip
        self.sums: dict[str, NDArray[np.float64]] = sums
        if current().world > 1:
            shard = {name: torch.from_numpy(v.copy()) for name, v in sums.items()}
            self.sums = {n: v.numpy() for n, v in current().sum_dict(shard).items()}

    def less(self, other: Moments) -> Moments:
        """What is left when some of the rows are taken out."""
        out = object.__new__(Moments)
        out.origin = self.origin
        out.sums = {name: value - other.sums[name] for name, value in self.sums.items()}
        return out

    def design(self, output: int, intercept: bool) -> GramDesign:
        """The regression of one output, centred where there is an intercept."""
        s = self.sums
        W = float(s["W"][0])
        G, q, yy = s["xx"].copy(), s["xy"][:, output].copy(), float(s["yy"][output])
        mean_x, mean_y = self.origin[0].numpy(), float(self.origin[1][output])
        if not intercept:
            return GramDesign(W, G, q, yy, np.zeros(len(q)), 0.0)
        dx, dy = s["x"] / W, float(s["y"][output]) / W
        before = G.diagonal().copy()
        G -= W * (dx[:, None] * dx)
        q -= W * dx * dy
        flat = G.diagonal() <= 1e-13 * before  # constant columns
        if flat.any():
            G[flat] = 0.0
            G[:, flat] = 0.0
            q[flat] = 0.0
        return GramDesign(W, G, q, max(yy - W * dy * dy, 0.0), mean_x + dx, mean_y + dy)


def path_alphas(top: float, n_alphas: int, eps: float) -> NDArray[np.float64]:
    """``n_alphas`` values from ``top`` down to ``eps * top``, evenly spaced in their logarithm."""
    if top <= np.finfo(float).resolution:
        return np.full(n_alphas, np.finfo(float).resolution)
    return np.geomspace(top, eps * top, num=n_alphas)
