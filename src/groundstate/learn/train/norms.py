r"""Batch normalisation over the batch of all processes: :math:`(n, \sum x, \sum x^2)` is summed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import BatchNorm
from groundstate.compute.reduce import current


@contextmanager
def synchronised(module: nn.Module, wish: bool) -> Iterator[None]:
    """Inside the block the batch norms of a module use the moments of all processes' rows."""
    norms = [m for m in module.modules() if isinstance(m, BatchNorm)]
    if not wish or current().world == 1 or not norms:
        yield
        return
    for norm in norms:
        setattr(norm, "forward", _joint(norm))  # noqa: B010  an instance shadows its class
    try:
        yield
    finally:
        for norm in norms:
            delattr(norm, "forward")


def _joint(norm: BatchNorm) -> Callable[[Tensor], Tensor]:
    alone = norm.forward

    def forward(x: Tensor) -> Tensor:
        if not norm.training:
            return alone(x)
        from torch.distributed.nn.functional import all_reduce

        axes = [i for i in range(x.ndim) if i != 1]
        wide = x.double()
        count = wide.new_full((1,), x.numel() / x.shape[1])
        moments = torch.cat([count, wide.sum(axes), wide.square().sum(axes)])
        moments = all_reduce(moments)  # differentiable: rows here move means there
        n, (first, second) = moments[0], moments[1:].view(2, -1)
        mean = first / n
        var = (second / n - mean.square()).clamp_min(0)
        _remember(norm, mean.detach(), (var * n / (n - 1)).detach())
        shape = [1, -1, *(1 for _ in axes[1:])]
        scaled = (wide - mean.view(shape)) * torch.rsqrt(var + norm.eps).view(shape)
        y = scaled.to(x.dtype)
        if norm.weight is not None:
            y = y * norm.weight.view(shape) + norm.bias.view(shape)
        return y

    return forward


@torch.no_grad()
def _remember(norm: BatchNorm, mean: Tensor, var: Tensor) -> None:
    if not norm.track_running_stats or norm.running_mean is None or norm.running_var is None:
        return
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    rate = norm.momentum
    if rate is None:
        rate = 1.0 / float(norm.num_batches_tracked)
    norm.running_mean.lerp_(mean.to(norm.running_mean), rate)
    norm.running_var.lerp_(var.to(norm.running_var), rate)
