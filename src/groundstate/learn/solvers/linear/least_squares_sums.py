r"""Sums of a linear regression about a point near the mean, from one pass over the rows.

With :math:`z_i = \sqrt{w_i}\,(x_i - o_x,\; y_i - o_y,\; 1)` all of them are blocks of
:math:`\sum_i z_iz_i^\top`, a symmetric product. Moving from the origin o to the true mean costs no
digits when o is near it. Sums of chunks and shards add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, issparse
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.tiles import SLICE, over_slices
from groundstate.errors import DataError

SAMPLE = 1024  # rows whose mean is the origin
NEAR = 16.0  # squared distance of zero and mean, in variances, up to which zero is the origin
FAR = 100.0  # squared distance of origin and mean, in variances, from which the pass is repeated
NARROW = 256  # columns up to which slices run in threads, each with its own product


def scipy_rows(x: Tensor) -> csr_matrix:
    """A CSR tensor as SciPy's, sharing memory."""
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return csr_matrix(parts, shape=tuple(x.shape))


def is_sparse(x: Tensor) -> bool:
    return bool(x.layout == torch.sparse_csr)


@dataclass
class RegressionSums:
    """Weight, means and centred products of rows and targets, float64.

    Attributes
    ----------
    weight : total weight
    mean_x, mean_y : ``(p,)``, ``(m,)``; zeros without an intercept
    xx, xy, yy : sums of products about the means, ``(p, p)``, ``(p, m)``, ``(m,)``

    Examples
    --------
    >>> x, y = torch.arange(4.0).double()[:, None], torch.tensor([[1.0], [2.0], [2.0], [4.0]])
    >>> sums = RegressionSums.of(x, y.double(), None, True)
    >>> sums.xx.item(), sums.xy.item()
    (5.0, 4.5)
    """

    weight: float
    mean_x: Any
    mean_y: Any
    xx: Any
    xy: Any
    yy: Any

    @staticmethod
    def of(x: Tensor, y: Tensor, w: Tensor | None, intercept: bool) -> RegressionSums:
        """Of the rows at hand and all shards: arrays on the CPU, tensors elsewhere."""
        if x.device.type != "cpu":
            found = _on_device(x, y, w, intercept)
        elif is_sparse(x):
            found = _sparse(scipy_rows(x), y.numpy(), None if w is None else w.numpy(), intercept)
        else:
            found = _dense(x.numpy(), y.numpy(), None if w is None else w.numpy(), intercept)
        return found if current().world == 1 else found.over_shards()

    def plus(self, other: RegressionSums) -> RegressionSums:
        """Of both sets of rows together."""
        if not other.weight:
            return self
        if not self.weight:
            return other
        total = self.weight + other.weight
        dx, dy = other.mean_x - self.mean_x, other.mean_y - self.mean_y
        share, pull = other.weight / total, self.weight * other.weight / total
        return RegressionSums(
            total,
            self.mean_x + share * dx,
            self.mean_y + share * dy,
            self.xx + other.xx + pull * dx[:, None] * dx,
            self.xy + other.xy + pull * dx[:, None] * dy,
            self.yy + other.yy + pull * dy * dy,
        )

    def over_shards(self) -> RegressionSums:
        reduce, like = current(), torch.as_tensor(self.xx)
        mx, my = torch.as_tensor(self.mean_x), torch.as_tensor(self.mean_y)
        first = reduce.sum_dict(
            {"w": like.new_tensor([self.weight]), "x": self.weight * mx, "y": self.weight * my}
        )
        total = float(first["w"])
        mean_x, mean_y = first["x"] / total, first["y"] / total
        dx, dy = mx - mean_x, my - mean_y
        sums = reduce.sum_dict(
            {
                "xx": like + self.weight * dx[:, None] * dx,
                "xy": torch.as_tensor(self.xy) + self.weight * dx[:, None] * dy,
                "yy": torch.as_tensor(self.yy) + self.weight * dy * dy,
            }
        )
        values = (mean_x, mean_y, sums["xx"], sums["xy"], sums["yy"])
        if isinstance(self.xx, np.ndarray):
            return RegressionSums(total, *(v.numpy() for v in values))
        return RegressionSums(total, *values)


def _centred(total: Any, p: int, ox: Any, oy: Any, intercept: bool) -> RegressionSums:
    """From Σzzᵀ ``(p+m+1, p+m+1)`` about the origin to sums about the mean."""
    weight = float(total[-1, -1])
    if not weight > 0:
        raise DataError("the weights sum to zero; at least one row needs a positive weight")
    xx, xy, yy = total[:p, :p], total[:p, p:-1], total[p:-1, p:-1].diagonal()
    if not intercept:
        return RegressionSums(weight, ox, oy, xx, xy, yy)
    dx, dy = total[:p, -1] / weight, total[p:-1, -1] / weight
    xx = xx - weight * dx[:, None] * dx
    xy = xy - weight * dx[:, None] * dy
    yy = yy - weight * dy * dy
    mean_x = ox + dx
    flat = xx.diagonal() <= 1e-26 * weight * mean_x * mean_x  # what rounding makes of a constant
    if bool(flat.any()):
        xx[flat] = 0.0
        xx[:, flat] = 0.0
        xy[flat] = 0.0
    return RegressionSums(weight, mean_x, oy + dy, xx, xy, yy)


def _far(sums: RegressionSums, ox: Any, oy: Any) -> bool:
    shift = (sums.mean_x - ox) ** 2 * sums.weight
    return bool((shift > FAR * abs(sums.xx.diagonal()) + 1e-300).any())


def _dense(x: Any, y: Any, w: Any, intercept: bool) -> RegressionSums:
    n, p = x.shape
    ox, oy = np.zeros(p), np.zeros(y.shape[1])
    if intercept:
        step = 1 if n <= SLICE else max(1, n // SAMPLE)
        some = x if step == 1 else x[::step].astype(np.float64)
        ox = some.mean(0, dtype=np.float64)
        oy = y[::step].mean(0, dtype=np.float64)
        if step > 1:
            square = np.einsum("ij,ij->j", some, some) / len(some)
            if bool((ox * ox <= NEAR * (square - ox * ox)).all()):
                ox = np.zeros(p)  # zero is near enough: nothing to subtract
    sums = _centred(_products(x, y, w, ox, oy), p, ox, oy, intercept)
    if intercept and _far(sums, ox, oy):  # the sample, or the plain mean, was not near the mean
        ox, oy = sums.mean_x, sums.mean_y
        sums = _centred(_products(x, y, w, ox, oy), p, ox, oy, intercept)
    return sums


def _products(x: Any, y: Any, w: Any, ox: Any, oy: Any) -> Any:
    n, p = x.shape
    k = p + y.shape[1] + 1
    bare = n > SLICE and w is None and x.dtype == np.float64 and not ox.any()

    def part(lo: int, hi: int) -> Any:
        if bare:  # the rows as they are, without a copy
            rest = np.ones((hi - lo, k - p))
            np.subtract(y[lo:hi], oy, out=rest[:, :-1])
            out = np.empty((k, k))
            out[:p, :p] = x[lo:hi].T @ x[lo:hi]
            out[:p, p:] = x[lo:hi].T @ rest
            out[p:, p:] = rest.T @ rest
            return out
        z = np.empty((hi - lo, k))
        np.subtract(x[lo:hi], ox, out=z[:, :p])
        np.subtract(y[lo:hi], oy, out=z[:, p:-1])
        z[:, -1] = 1.0
        if w is not None:
            z *= np.sqrt(w[lo:hi], dtype=np.float64)[:, None]
        return z.T @ z  # NumPy sees that it is symmetric and computes half

    if n <= SLICE:
        return part(0, n)
    if k <= NARROW:
        size = max(512, min(SLICE, 2**18 // k))  # a slice stays in the cache between its two uses
        return sum(over_slices(part, n, size), np.zeros((k, k)))
    size = max(1, 2**23 // k)
    return sum((part(lo, min(lo + size, n)) for lo in range(0, n, size)), np.zeros((k, k)))


def _sparse(x: csr_matrix, y: Any, w: Any, intercept: bool) -> RegressionSums:
    n, p = x.shape
    x, y = x.astype(np.float64), y.astype(np.float64)
    oy = y.mean(0) if intercept else np.zeros(y.shape[1])
    z, ones = y - oy, np.ones(n)
    if w is not None:
        ones = np.sqrt(w, dtype=np.float64)
        x, z = x.multiply(ones[:, None]).tocsr(), z * ones[:, None]
    total = np.zeros((p + z.shape[1] + 1,) * 2)
    rest = np.column_stack([z, ones])
    product = x.T @ x
    total[:p, :p] = product.toarray() if issparse(product) else product
    total[:p, p:] = x.T @ rest
    total[p:, p:] = rest.T @ rest
    return _centred(total, p, np.zeros(p), oy, intercept)


def _on_device(x: Tensor, y: Tensor, w: Tensor | None, intercept: bool) -> RegressionSums:
    p = x.shape[1]
    x = x.to_dense() if is_sparse(x) else x
    ox = x.new_zeros(p, dtype=torch.float64)
    oy = y.new_zeros(y.shape[1], dtype=torch.float64)
    if intercept:
        ox, oy = x.mean(0, dtype=torch.float64), y.mean(0, dtype=torch.float64)
    k = p + y.shape[1] + 1
    total = ox.new_zeros(k, k)
    size = max(1, 2**27 // k)
    for lo in range(0, len(x), size):
        hi = lo + size
        ones = ox.new_ones(len(x[lo:hi]), 1)
        z = torch.cat([x[lo:hi].double() - ox, y[lo:hi].double() - oy, ones], 1)
        if w is not None:
            z *= w[lo:hi].double().sqrt()[:, None]
        total.addmm_(z.T, z)
    return _centred(total, p, ox, oy, intercept)
