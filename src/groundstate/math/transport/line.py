r"""Transport on the line: the monotone coupling, smallest to smallest, is optimal for every p ≥ 1."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.info.pmf import pmf


def power_cost(
    x: Tensor, y: Tensor, p: float, a: Tensor | None = None, b: Tensor | None = None
) -> Tensor:
    r""":math:`W_p^p` of values along the last axis; leading axes are batches."""
    for values, name in ((x, "x"), (y, "y")):
        if values.ndim == 0 or values.shape[-1] == 0:
            raise ShapeError(f"{name} must hold values (..., n), got shape {tuple(values.shape)}")
    if a is None and b is None and x.shape[-1] == y.shape[-1]:
        return _power(x.sort(-1).values - y.sort(-1).values, p).mean(-1)
    points, gaps = coupled([x, y], [a, b])
    return (gaps * _power(points[0] - points[1], p)).sum(-1)


def coupled(samples: list[Tensor], weights: list[Tensor | None]) -> tuple[list[Tensor], Tensor]:
    """Quantiles of each sample on one common partition of [0, 1], and the lengths of its pieces.

    The pieces end wherever the distribution function of a sample has a level.
    """
    batch = torch.broadcast_shapes(*(x.shape[:-1] for x in samples))
    ordered, levels = [], []
    for x, w in zip(samples, weights, strict=True):
        if w is not None and w.shape[-1] != x.shape[-1]:
            raise ShapeError(f"{x.shape[-1]} values need as many weights, got {w.shape[-1]}")
        share = pmf(torch.ones_like(x) if w is None else w.to(x.dtype).expand(x.shape), "weights").p
        values, order = x.sort(-1)
        level = share.gather(-1, order).cumsum(-1)
        level = level / level[..., -1:].detach()  # the last level is 1 to the bit
        ordered.append(values.expand(*batch, -1))
        levels.append(level.expand(*batch, -1).contiguous())
    ends = torch.cat(levels, -1).sort(-1).values
    starts = torch.cat([torch.zeros_like(ends[..., :1]), ends[..., :-1]], -1)
    middle = (0.5 * (starts + ends)).detach()
    points = []
    for values, level in zip(ordered, levels, strict=True):
        index = torch.searchsorted(level.detach(), middle).clamp_max(values.shape[-1] - 1)
        points.append(values.gather(-1, index))
    return points, ends - starts


def _power(difference: Tensor, p: float) -> Tensor:
    if p == 2:
        return difference.square()
    return difference.abs() if p == 1 else difference.abs() ** p


def root(value: Tensor, p: float) -> Tensor:
    """value^(1/p) with gradient 0 at 0."""
    if p == 1:
        return value
    some = value != 0
    return torch.where(some, torch.where(some, value, 1.0) ** (1 / p), 0.0)
