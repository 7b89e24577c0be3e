r"""Fisher divergence: how far apart two scores :math:`\nabla_x\log p` are where p lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.random import Key, RandomState
from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor, to_numpy
from groundstate.math.info.entropy import draws, log_prob
from groundstate.math.info.pmf import average

Score = Distribution | Callable[[Tensor], Tensor]


def fisher(
    p: Score,
    q: Score,
    x: Any = None,
    *,
    n: int = 10_000,
    slices: int | None = None,
    random_state: RandomState = None,
    stderr: bool = False,
) -> Any:
    r""":math:`F(p\|q) = E_p\|\nabla\log p(x) - s(x)\|^2`, zero where the scores agree p-almost
    everywhere. It needs no normaliser.

    Parameters
    ----------
    p : torch distribution, or its score as a function of rows ``(n, d)`` or values ``(n,)``
    q : torch distribution, or the score s as such a function
    x : draws from p; drawn unless given
    n, random_state : draws
    slices : instead of the squared norm, the mean of :math:`(v^\top(\nabla\log p - s))^2` over this
        many random directions v for each row, for large d
    stderr : return an ``Estimate(value, stderr)``

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> round(fisher(Normal(0.0, 2.0), Normal(3.0, 2.0), random_state=0).item(), 4)  # (a − b)²/σ⁴
    0.5625
    """
    key = Key.of(random_state)
    if x is None:
        if not isinstance(p, Distribution):
            raise ValueError("p is given by its score alone; pass draws from it as x")
        rows, is_tensor = draws(p, n, key.fold("draws")).detach(), True
    else:
        rows, is_tensor = as_tensor(x, "x"), isinstance(x, Tensor)
    apart = score(p, rows) - score(q, rows)
    if apart.shape != rows.shape:
        raise ShapeError(
            f"a score has the shape of its rows, got {tuple(apart.shape)} for {tuple(rows.shape)}"
        )
    if slices is None:
        each = apart.square().flatten(1).sum(1) if apart.ndim > 1 else apart.square()
    else:
        flat = apart.reshape(len(apart), -1)
        noise = torch.randn((slices, *flat.shape), generator=key.fold("slices").torch())
        each = (noise.to(flat) * flat).sum(-1).square().mean(0)
    out = average(each, None, stderr)
    return out if is_tensor else to_numpy(out)


def score(p: Score, x: Tensor) -> Tensor:
    r""":math:`\nabla_x\log p(x)` of each row, by differentiation where p is a distribution.

    >>> from torch.distributions import Normal
    >>> score(Normal(1.0, 2.0), torch.tensor([3.0])).tolist()
    [-0.5]
    """
    if not isinstance(p, Distribution):
        return p(x)
    keep = log_prob(p, x).requires_grad
    with torch.enable_grad():
        at = x if x.requires_grad else x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(log_prob(p, at).sum(), at, create_graph=keep)
    if not bool(torch.isfinite(slope.detach()).all()):
        raise ValueError("a score is infinite or NaN at some row of x; are they in the support?")
    return slope
