r"""How far two sets of points are from each other at worst."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.spatial import KDTree
from torch import Tensor

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.arrays import takes_arrays
from groundstate.math.distances.dissimilarities import TABLES, table
from groundstate.math.distances.euclidean import known_metric, pairwise, power_of

TREE_WIDTH = 8  # features up to which a tree finds the nearest point sooner than products do
TREE_LEAST = 2**14  # pairs from which a tree pays
SMALL = 2**14  # pairs that are all looked at
CELLS = 2**20  # distances of one tile
HEAD = 16  # rows that are looked at first

Metric = str | Callable[[Any, Any], float]


class Hausdorff(NamedTuple):
    """What was found.

    Attributes
    ----------
    distance : a number, or ``(...,)`` for batches
    i, j : the rows of X and Y that attain it
    """

    distance: Any
    i: Any
    j: Any


@takes_arrays("X", "Y")
def hausdorff(
    X: Any,
    Y: Any,
    *,
    directed: bool = False,
    quantile: float | None = None,
    soft: float | None = None,
    metric: Metric = "euclidean",
) -> Hausdorff:
    r"""Hausdorff distance of two sets,
    :math:`\max\bigl(\sup_x\inf_y d(x, y),\ \sup_y\inf_x d(x, y)\bigr)`.

    It is zero exactly when the sets are equal, and one far point sets its value; ``quantile=0.95``
    (HD95) does not see few of them. The slope goes through the pair that attains it.

    Parameters
    ----------
    X : ``(..., n, d)``
    Y : ``(..., m, d)``
    directed : only :math:`\sup_x\inf_y`, how far X leaves Y
    quantile : of the distances to the nearest point, in the place of their supremum
    soft : temperature T: infimum and supremum become means weighted by
        :math:`e^{-d/T}` and :math:`e^{d/T}`, which every pair has a slope in
    metric : a name, as in `NearestNeighbors`, or a function of two rows

    Returns
    -------
    Hausdorff : distance, and the rows i of X and j of Y that attain it (with ``soft``, or between the
        rows of a quantile, the nearest such pair)

    Examples
    --------
    >>> X, Y = [[0, 0], [1, 0], [0, 1]], [[0, 0], [3, 0]]
    >>> hausdorff(X, Y, directed=True).distance, hausdorff(X, Y).distance
    (1.0, 2.0)
    """
    for name, points in (("X", X), ("Y", Y)):
        if points.ndim < 2:
            raise ShapeError(f"{name} needs points (..., n, d), got shape {tuple(points.shape)}")
        if not points.shape[-2] or not points.shape[-1]:
            raise ShapeError(f"{name} is empty; the distance to no points is not defined")
    if X.shape[-1] != Y.shape[-1]:
        raise ShapeError(f"X has {X.shape[-1]} columns, Y has {Y.shape[-1]}")
    if quantile is not None and not 0 <= quantile <= 1:
        raise ValueError(f"quantile must lie in [0, 1], got {quantile}")
    if soft is not None and not soft > 0:
        raise ValueError(f"soft is a temperature and must be positive, got {soft}")
    if soft is not None and quantile is not None:
        raise ValueError("give quantile or soft, not both")
    known_metric(metric)
    Y = Y.to(X.dtype) if Y.dtype != X.dtype else Y
    if X.ndim > 2 or Y.ndim > 2:
        return _batch(X, Y, directed, quantile, soft, metric)
    return _single(X, Y, directed, quantile, soft, metric)


def _single(
    x: Tensor, y: Tensor, directed: bool, quantile: float | None, soft: float | None, metric: Metric
) -> Hausdorff:
    plain = quantile is None and soft is None and metric in ("euclidean", "l2")
    if plain and x.device.type == "cpu":
        i, j = _attained(x.detach(), y.detach(), directed)
        return Hausdorff(_between(x[i][None], y[j][None], metric)[0], i, j)
    there = Hausdorff(*_directed(x, y, quantile, soft, metric))
    if directed:
        return there
    value, j, i = _directed(y, x, quantile, soft, metric)
    return Hausdorff(value, i, j) if bool(value > there.distance) else there


def _attained(x: Tensor, y: Tensor, directed: bool) -> tuple[Tensor, Tensor]:
    """The pair of rows at the Hausdorff distance, by searches that end early."""
    if len(x) * len(y) <= SMALL:
        D = pairwise(x, y)
        (rows, js), (columns, is_) = D.min(1), D.min(0)
        i, j = rows.argmax(), columns.argmax()
        return (i, js[i]) if directed or bool(rows[i] >= columns[j]) else (is_[j], j)
    a, b = (np.ascontiguousarray(t.numpy(), dtype=np.float64) for t in (x, y))
    worst, p, q = _farther(a, b, -1.0)
    if not directed:
        _, back, there = _farther(b, a, worst)
        p, q = (there, back) if back >= 0 else (p, q)
    return torch.tensor(p), torch.tensor(q)


def _farther(a: Any, b: Any, worst: float) -> tuple[float, int, int]:
    """The row of a that is farthest from b, if farther than ``worst``, and the row of b it is nearest to.

    Most rows are settled by a few rows of b that are near enough; the others are searched for.
    """
    from groundstate.math.distances.hausdorff_numba import farthest, unsettled

    gap = a - b.mean(0)
    away = np.einsum("ij,ij->i", gap, gap)
    head = np.argpartition(-away, HEAD)[:HEAD] if len(a) > HEAD else np.argsort(-away)
    some = b[:: 1 + len(b) // 1024]
    axis = int(np.argmax(some.max(0) - some.min(0)))
    sort = np.argsort(b[:, axis])
    rows = b[sort]
    worst, i, j = farthest(a, rows, head, axis, worst)
    left = np.empty(len(a), np.int64)
    count = unsettled(a, b, worst, left)
    if count:
        worst, p, q = farthest(a, rows, left[:count], axis, worst)
        i, j = (p, q) if p >= 0 else (i, j)
    return worst, int(i), int(sort[j])


def _batch(X: Tensor, Y: Tensor, *settings: Any) -> Hausdorff:
    lead = torch.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    xs = X.expand(*lead, *X.shape[-2:]).reshape(-1, *X.shape[-2:])
    ys = Y.expand(*lead, *Y.shape[-2:]).reshape(-1, *Y.shape[-2:])
    found = [_single(x, y, *settings) for x, y in zip(xs, ys, strict=True)]
    return Hausdorff(*(torch.stack(parts).reshape(lead) for parts in zip(*found, strict=True)))


def _directed(
    x: Tensor, y: Tensor, quantile: float | None, soft: float | None, metric: Metric
) -> tuple[Tensor, Tensor, Tensor]:
    """The directed distance and the pair behind it."""
    if soft is not None:
        return _softened(x, y, soft, metric)
    index = _nearest(x.detach(), y.detach(), metric)  # (n,)
    if quantile is not None:
        near = _between(x, y[index], metric)
        value = torch.quantile(near, quantile)
        i = (near.detach() - value.detach()).abs().argmin()
        return value, i, index[i]
    i = _between(x.detach(), y.detach()[index], metric).argmax()
    j = index[i]
    return _between(x[i][None], y[j][None], metric)[0], i, j


def _softened(x: Tensor, y: Tensor, T: float, metric: Metric) -> tuple[Tensor, Tensor, Tensor]:
    rows, index = [], []
    for part in x.split(max(1, CELLS // len(y))):
        d = _table(part, y, metric)
        rows.append((torch.softmax(-d / T, 1) * d).sum(1))
        index.append(d.argmin(1))
    near = torch.cat(rows)
    i = near.argmax()
    return (torch.softmax(near / T, 0) * near).sum(), i, torch.cat(index)[i]


def _nearest(x: Tensor, y: Tensor, metric: Metric) -> Tensor:
    """Which row of y is nearest to each row of x, ``(n,)``."""
    n, d = x.shape
    power = power_of(metric) if isinstance(metric, str) else None
    small = d <= TREE_WIDTH and n * len(y) >= TREE_LEAST and x.device.type == "cpu"
    if power is not None and small:
        _, index = KDTree(y.numpy(), leafsize=16).query(x.numpy(), p=power)
        return torch.from_numpy(index)
    if power == 2 and d > TREE_WIDTH:
        return _by_products(x, y)
    tiles = x.split(max(1, CELLS // len(y)))
    return torch.cat([_table(part, y, metric).argmin(1) for part in tiles])


def _by_products(x: Tensor, y: Tensor) -> Tensor:
    r"""The nearest rows from :math:`\|y\|^2 - 2x^\top y`; of those that rounding cannot tell apart,
    differences decide."""
    centre = y.mean(0)
    u, v = x - centre, y - centre
    square = v.square().sum(1)
    size = u.square().sum(1) + square.max()
    eps = 4 * u.shape[1] * torch.finfo(x.dtype).eps
    found = []
    for part, whole, bound in zip(*(t.split(max(1, CELLS // len(y))) for t in (u, x, size * eps))):
        d2 = torch.addmm(square, part, v.T, alpha=-2)
        value, index = d2.min(1)
        close = d2 <= (value + 2 * bound)[:, None]
        for i in (close.sum(1) > 1).nonzero()[:, 0].tolist():
            some = close[i].nonzero()[:, 0]
            index[i] = some[(y[some] - whole[i]).square().sum(1).argmin()]
        found.append(index)
    return torch.cat(found)


def _table(x: Tensor, y: Tensor, metric: Metric) -> Tensor:
    """Distances of all pairs, ``(n, m)``."""
    if callable(metric):
        a, b = (t.detach().cpu().numpy() for t in (x, y))
        values = np.array([[float(metric(u, v)) for v in b] for u in a]).reshape(len(a), len(b))
        return torch.from_numpy(values).to(x)
    power = power_of(metric)
    if power is not None:
        return pairwise(x, y, power)
    if metric in TABLES:
        return table(metric, x, y).to(x.dtype)
    raise Unsupported(f"hausdorff knows no metric {metric!r}; pass a function of two rows")


def _between(x: Tensor, y: Tensor, metric: Metric) -> Tensor:
    """Distances of pairs of rows, ``(n,)``."""
    power = power_of(metric) if isinstance(metric, str) else None
    if power is None:
        return torch.cat([_table(a[None], b[None], metric)[0] for a, b in zip(x, y, strict=True)])
    if power == 2:
        square = (x - y).square().sum(1)
        apart = square > 0
        return torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)
    return torch.linalg.vector_norm(x - y, power, dim=1)
