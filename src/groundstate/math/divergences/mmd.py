r"""Maximum mean discrepancy: the distance of two samples' means in a kernel's feature space.

.. math:: \mathrm{MMD}^2 = E\,k(x,x') + E\,k(y,y') - 2E\,k(x,y)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from groundstate.compute.random import Key, RandomState
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.arrays import takes_arrays
from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.stationary import RBF

_CELLS = 1 << 22  # kernel values held at a time
_MEDIAN_ROWS = 2000  # rows of each sample that the median looks at


@takes_arrays("X", "Y")
def mmd(
    X: Any,
    Y: Any,
    kernel: Kernel | Sequence[Kernel] | None = None,
    unbiased: bool = True,
    *,
    method: Literal["full", "linear", "features"] = "full",
    n_features: int = 1024,
    random_state: RandomState = None,
) -> Any:
    r"""Squared maximum mean discrepancy of two samples, differentiable in their rows.

    The U-statistic leaves out the diagonals :math:`k(x_i, x_i)`: unbiased, and below 0 at times.
    The V-statistic keeps them: never negative, 0 for equal samples, too large by O(1/n).

    Parameters
    ----------
    X, Y : rows ``(..., n, d)`` and ``(..., m, d)``, or values ``(n,)`` and ``(m,)``
    kernel : a kernel, or several to be added; unless given, `RBF` with `median_length_scale`
    unbiased : U-statistic or V-statistic
    method : ``"full"`` sums all pairs, in blocks of rows; ``"linear"`` averages independent pairs
        in O(n), with more variance; ``"features"`` uses random Fourier features of an RBF
    n_features : number of ``"features"``, cosines and sines together
    random_state : of the features

    Examples
    --------
    >>> k = RBF(gamma=1.0)
    >>> round(mmd([0, 1], [2, 4], k), 6), round(mmd([0, 1], [2, 4], k, unbiased=False), 6)
    (0.193036, 0.999938)
    """
    x, y = _rows(X, "X"), _rows(Y, "Y").to(X.dtype)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"X and Y need the same columns, got {x.shape[-1]} and {y.shape[-1]}")
    if unbiased and min(x.shape[-2], y.shape[-2]) < 2:
        raise ShapeError("the unbiased estimate needs two rows of each sample; set unbiased=False")
    k = _kernel(kernel, x, y)
    if method == "full":
        return _full(x, y, k, unbiased)
    if method == "linear":
        return _linear(x, y, k)
    if method == "features":
        return _features(x, y, k, unbiased, n_features, Key.of(random_state))
    raise ValueError(f"method must be 'full', 'linear' or 'features', got {method!r}")


def median_length_scale(X: Any, Y: Any = None, *, max_rows: int | None = _MEDIAN_ROWS) -> float:
    r"""The median heuristic: the median distance between different rows of both samples.

    Parameters
    ----------
    X, Y : rows
    max_rows : rows of each sample that are looked at, evenly spaced; None: all

    Examples
    --------
    >>> median_length_scale([0.0, 1.0], [3.0])
    2.0
    """
    return float(_median(X, Y, max_rows))


@takes_arrays("X", "Y")
def _median(X: Any, Y: Any, max_rows: int | None) -> Any:
    parts = []
    for rows in (X, Y):
        if rows is None:
            continue
        rows = rows.detach()
        rows = (rows[:, None] if rows.ndim == 1 else rows).flatten(0, -2)
        step = 1 if max_rows is None else math.ceil(len(rows) / max_rows)
        parts.append(rows[::step])
    off = torch.pdist(torch.cat(parts))
    if not len(off):
        return X.new_tensor(1.0)
    middle, even = len(off) // 2, len(off) % 2 == 0
    if off.device.type == "cpu":  # one selection finds both sides of the middle
        found = np.partition(off.numpy(), middle)
        value = torch.from_numpy(found[middle : middle + 1])[0]
        below = torch.from_numpy(found[:middle]).max() if even else value
    else:
        value = off.kthvalue(middle + 1).values
        below = off.kthvalue(middle).values if even else value
    value = 0.5 * (value + below)
    mean = off.mean()
    return torch.where(value > 0, value, torch.where(mean > 0, mean, torch.ones_like(mean)))


def mmd_of_labels(K: Tensor, labels: Tensor, unbiased: bool) -> Tensor:
    r"""The statistic for each of B ways to split N rows in two, by one product ``(B, N) @ (N, N)``.

    Parameters
    ----------
    K : kernel values of all pairs of rows ``(N, N)``
    labels : 1 for rows of the first sample, 0 for the others, ``(B, N)``; as many 1 in every row
    """
    n = float(labels[0].sum())
    m = len(K) - n
    inside = torch.einsum("bi,bi->b", labels @ K, labels)
    reach = labels @ K.sum(1)
    diagonal = K.diagonal()
    own = labels @ diagonal
    xx, xy, yy = inside, reach - inside, K.sum() - 2 * reach + inside
    if unbiased:
        xx, yy = xx - own, yy - (diagonal.sum() - own)
    return _combine(xx, yy, xy, n, m, unbiased)


def _combine(xx: Tensor, yy: Tensor, xy: Tensor, n: float, m: float, unbiased: bool) -> Tensor:
    nn, mm = (n * (n - 1), m * (m - 1)) if unbiased else (n * n, m * m)
    return xx / nn + yy / mm - 2 * xy / (n * m)


def _full(x: Tensor, y: Tensor, k: Kernel, unbiased: bool) -> Tensor:
    n, m = x.shape[-2], y.shape[-2]
    xx, yy, xy = _sum(x, x, k), _sum(y, y, k), _sum(x, y, k)
    if unbiased:
        xx, yy = xx - _diagonal(x, k, noise=False), yy - _diagonal(y, k, noise=False)
    else:  # a row meets itself: noise counts
        xx = xx + _diagonal(x, k, noise=True) - _diagonal(x, k, noise=False)
        yy = yy + _diagonal(y, k, noise=True) - _diagonal(y, k, noise=False)
    return _combine(xx, yy, xy, n, m, unbiased)


def _sum(x: Tensor, z: Tensor, k: Kernel) -> Tensor:
    """All kernel values, added block by block; with gradients a block is computed twice, not kept."""

    def block(part: Tensor, z: Tensor) -> Tensor:
        return k.of(Geometry(part, z)).sum((-2, -1), dtype=torch.float64)

    parts = x.split(max(1, _CELLS // max(1, z.shape[-2])), -2)
    if len(parts) > 1 and torch.is_grad_enabled() and (x.requires_grad or z.requires_grad):
        sums = [checkpoint(block, part, z, use_reentrant=False) for part in parts]
    else:
        sums = [block(part, z) for part in parts]
    total: Tensor = torch.stack(sums).sum(0).to(x.dtype)
    return total


def _diagonal(x: Tensor, k: Kernel, *, noise: bool) -> Tensor:
    each = k.diagonal(x.reshape(-1, x.shape[-1]), noise=noise)
    return each.reshape(x.shape[:-1]).sum(-1)


def _linear(x: Tensor, y: Tensor, k: Kernel) -> Tensor:
    pairs = min(x.shape[-2], y.shape[-2]) // 2
    if pairs < 1:
        raise ShapeError("the linear-time estimate needs two rows of each sample")
    a, b = x[..., : 2 * pairs : 2, :], x[..., 1 : 2 * pairs : 2, :]
    c, d = y[..., : 2 * pairs : 2, :], y[..., 1 : 2 * pairs : 2, :]

    def each(u: Tensor, v: Tensor) -> Tensor:
        return k.of(Geometry(u.unsqueeze(-2), v.unsqueeze(-2))).squeeze((-2, -1))

    return (each(a, b) + each(c, d) - each(a, d) - each(b, c)).mean(-1)


def _features(x: Tensor, y: Tensor, k: Kernel, unbiased: bool, count: int, key: Key) -> Tensor:
    if type(k) is not RBF:
        raise Unsupported(f"random Fourier features are for one RBF kernel, got {k!r}")
    half = max(1, count // 2)
    noise = torch.randn(x.shape[-1], half, generator=key.torch(), dtype=torch.float64)
    scale = torch.as_tensor(k.length_scale, dtype=torch.float64)
    W = (noise / scale.reshape(-1, 1)).to(x)

    def mean(rows: Tensor) -> Tensor:
        angle = rows @ W
        return torch.cat([angle.cos().mean(-2), angle.sin().mean(-2)], -1) / math.sqrt(half)

    a, b = mean(x), mean(y)
    n, m = x.shape[-2], y.shape[-2]
    aa, bb, ab = (a * a).sum(-1), (b * b).sum(-1), (a * b).sum(-1)
    if unbiased:  # k(x, x) = 1
        aa, bb = (n * aa - 1) / (n - 1), (m * bb - 1) / (m - 1)
    return aa + bb - 2 * ab


def _kernel(kernel: Kernel | Sequence[Kernel] | None, x: Tensor, y: Tensor) -> Kernel:
    if kernel is None:
        return RBF(median_length_scale(x, y))
    if isinstance(kernel, Kernel):
        return kernel
    parts = list(kernel)
    if not parts or not all(isinstance(part, Kernel) for part in parts):
        raise ValueError(
            f"kernel must be a kernel of groundstate.kernels or several, got {kernel!r}"
        )
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _rows(X: Tensor, name: str) -> Tensor:
    rows = X[:, None] if X.ndim == 1 else X
    if rows.ndim < 2 or rows.shape[-2] < 1:
        raise ShapeError(f"{name} must be rows (n, d), got shape {tuple(X.shape)}")
    return rows
