r"""Distances of all pairs, or what is asked of them, tile by tile.

About the common mean :math:`\|x-z\|^2 = \|x\|^2 - 2x^\top z + \|z\|^2` is one matrix product, whose
error is some rounding of :math:`\|x\|^2 + \|z\|^2`; pairs so near that this would show are measured
again from their differences. A reduction looks at each tile once, and no table of all pairs is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.distances import euclidean
from groundstate.math.distances.dissimilarities import TABLES, table
from groundstate.math.neighbors.nearest import NearestRows
from groundstate.math.neighbors.nearest_device import nearest_on_device

CELLS = 2**22  # numbers of one tile
NEAR = {torch.float64: 1e-4, torch.float32: 1e-2}  # of |x|² + |z|²: below it, from differences
REDUCTIONS = ("argmin", "topk", "logsumexp", "sum")
EUCLIDEAN = ("euclidean", "sqeuclidean", "cosine", "mahalanobis")


@takes_arrays("X", "Y")
def pairwise(
    X: Any, Y: Any = None, *, metric: str | Callable[[Any, Any], float] = "euclidean",
    reduce: str | None = None, k: int = 1, T: float = 1.0, metric_params: Any = None,
) -> Any:  # fmt: skip
    r"""Distances :math:`d(x_i, z_j)` of all pairs of rows, or a reduction of each row of them.

    Parameters
    ----------
    X, Y : ``(n, d)`` and ``(m, d)``; without Y, the pairs of X. For "precomputed", X are distances
    metric : "euclidean", "sqeuclidean", "cosine", "mahalanobis" (``{"VI": inverse_covariance}``),
        "manhattan", "chebyshev", "minkowski" (``{"p": exponent}``) and others of
        `groundstate.NearestNeighbors`, "precomputed", or a function of two rows
    reduce : None gives the table ``(n, m)``; "argmin" the nearest ``(n,)``; "topk" the k smallest
        distances and their columns, ``(n, k)`` each; "logsumexp" :math:`\log\sum_j e^{-d_{ij}/T}`;
        "sum" :math:`\sum_j d_{ij}`
    k, T : of "topk" and of "logsumexp"
    metric_params : arguments of the metric

    Examples
    --------
    >>> pairwise([[0.0], [3.0]], [[1.0], [4.0]]).tolist()
    [[1.0, 4.0], [2.0, 1.0]]
    >>> pairwise([[0.0], [3.0]], [[1.0], [4.0]], reduce="argmin").tolist()
    [0, 1]
    """
    if reduce is not None and reduce not in REDUCTIONS:
        raise ValueError(f"reduce must be None or one of {', '.join(REDUCTIONS)}, got {reduce!r}")
    for name, rows in (("X", X), ("Y", Y)):
        if rows is not None and rows.ndim != 2:
            raise ValueError(f"{name} must be a table (n, d), got shape {tuple(rows.shape)}")
    if metric == "precomputed":
        if Y is not None:
            raise ValueError("metric='precomputed' takes the distances as X, and no Y")
        return _reduced(lambda lo, hi: X[lo:hi], X, X.shape[1], reduce, k, T)
    Z = X if Y is None else Y.to(X.dtype)
    if X.shape[1] != Z.shape[1]:
        raise ValueError(f"X and Y need the same columns, got {X.shape[1]} and {Z.shape[1]}")
    if reduce == "topk" and not 1 <= k <= len(Z):
        raise ValueError(f"k must be 1 to {len(Z)}, the number of rows, got {k}")
    if reduce == "logsumexp" and not T > 0:
        raise ValueError(f"T must be positive, got {T}")
    params = dict(metric_params or {})
    if metric in EUCLIDEAN:
        x, z = _placed(X, metric, params), _placed(Z, metric, params)
        if reduce in ("argmin", "topk") and not (x.requires_grad or z.requires_grad):
            distance, index = _nearest(x, z, 1 if reduce == "argmin" else k)
            if reduce == "argmin":
                return index[:, 0]
            return _named(distance.square(), metric).to(X.dtype), index
        rows = _Rows(x, z)
        return _reduced(
            lambda lo, hi: _named(rows.squared(lo, hi), metric), X, len(Z), reduce, k, T
        )
    return _reduced(_other(X, Z, metric, params), X, len(Z), reduce, k, T)


class _Rows:
    """Queries and rows about their common mean, and squared distances between them."""

    def __init__(self, x: Tensor, z: Tensor) -> None:
        self.x, self.z = x, z
        origin = (x.detach().double().sum(0) + z.detach().double().sum(0)) / (len(x) + len(z))
        self.left, self.right = (x.double() - origin).to(x), (z.double() - origin).to(x)
        self.grad = x.requires_grad or z.requires_grad
        self.norm = self.right.square().sum(1)

    def squared(self, lo: int, hi: int) -> Tensor:
        x = self.x[lo:hi]
        if self.grad or len(self.z) < 32:
            return (x[:, None] - self.z).square().sum(-1)
        left = self.left[lo:hi]
        size = left.square().sum(1, keepdim=True) + self.norm  # (q, n)
        out = torch.addmm(size, left, self.right.T, alpha=-2.0).clamp_min_(0)
        near = out < NEAR[out.dtype] * size
        i, j = near.nonzero(as_tuple=True)
        for part in torch.arange(len(i), device=i.device).split(CELLS // max(1, x.shape[1]) + 1):
            at, to = i[part], j[part]
            out[at, to] = (x[at] - self.z[to]).square().sum(-1)
        return out


def _placed(x: Tensor, metric: Any, params: dict[str, Any]) -> Tensor:
    if metric == "cosine":
        return euclidean.unit_rows(x)
    if metric == "mahalanobis":
        if "VI" not in params:
            raise ValueError("metric 'mahalanobis' needs metric_params={'VI': inverse_covariance}")
        return x @ torch.as_tensor(euclidean.inverse_root(params["VI"])).to(x)
    return x


def _named(square: Tensor, metric: Any) -> Tensor:
    if metric == "cosine":
        return 0.5 * square
    if metric == "sqeuclidean":
        return square
    if square.requires_grad:  # the root has no slope at zero
        return torch.where(square > 0, square, 1.0).sqrt() * (square > 0)
    return square.sqrt()


def _nearest(x: Tensor, z: Tensor, k: int) -> tuple[Tensor, Tensor]:
    if x.device.type != "cpu":
        return nearest_on_device(x, z, k)
    distance, index = NearestRows(z.detach().numpy()).query(x.detach().numpy(), k)
    return torch.from_numpy(distance), torch.from_numpy(index)


def _other(
    X: Tensor, Z: Tensor, metric: Any, params: dict[str, Any]
) -> Callable[[int, int], Tensor]:
    if callable(metric):
        rows = Z.detach().cpu().numpy()

        def measured(lo: int, hi: int) -> Tensor:
            part = X[lo:hi].detach().cpu().numpy()
            found = np.array([[float(metric(a, b, **params)) for b in rows] for a in part])
            return torch.from_numpy(found.reshape(len(part), len(rows))).to(X)

        return measured
    euclidean.known_metric(metric)
    if metric in TABLES:
        return lambda lo, hi: table(metric, X[lo:hi], Z).to(X.dtype)
    power = euclidean.power_of(metric, params.get("p", 2.0))
    return lambda lo, hi: euclidean.pairwise(X[lo:hi], Z, 2.0 if power is None else power)


def _reduced(
    tile: Callable[[int, int], Tensor], X: Tensor, n: int, reduce: str | None, k: int, T: float
) -> Any:
    def tiles() -> Iterator[Tensor]:
        step = max(1, CELLS // max(1, n))
        for lo in range(0, len(X), step):
            yield tile(lo, min(lo + step, len(X)))

    if reduce is None:
        return torch.cat(list(tiles()))
    if reduce == "argmin":
        return torch.cat([part.argmin(1) for part in tiles()])
    if reduce == "logsumexp":
        return torch.cat([torch.logsumexp(-part / T, 1) for part in tiles()])
    if reduce == "sum":
        return torch.cat([part.sum(1, dtype=torch.float64).to(part) for part in tiles()])
    found = [euclidean.lowest(part, k) for part in tiles()]
    return torch.cat([a for a, _ in found]), torch.cat([b for _, b in found])
