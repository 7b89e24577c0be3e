r"""Expectations under a distribution of one variable, :math:`E f = \int f(x)\,p(x)\,dx` or a sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.errors import Unsupported
from groundstate.math.distributions.calculus.cumulative import ends, icdf, is_discrete

NODES = 4001
MOST = 10_000_000  # terms of a sum


def expectation(
    distribution: Distribution, f: Callable[[Tensor], Tensor], *, split: Tensor | None = None
) -> Tensor:
    r"""E f(X) by sums or quadrature; infinite where the integral does not settle.

    Each side of ``split`` is integrated over the logarithm of the distance from it, so that f may have a
    corner there and tails may fall slowly.

    Parameters
    ----------
    distribution : of one variable, without batch
    f : elementwise
    split : where f has a corner; the median if None

    Examples
    --------
    >>> from torch.distributions import Exponential
    >>> round(float(expectation(Exponential(torch.tensor(1.0).double()), lambda x: x**3)), 9)
    6.0
    """
    if distribution.batch_shape or distribution.event_shape:
        raise Unsupported(
            f"expectations are taken under one distribution of one number, got batch "
            f"{tuple(distribution.batch_shape)} and event {tuple(distribution.event_shape)}"
        )
    if is_discrete(distribution):
        return _summed(distribution, f)
    quartiles = icdf(distribution, torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64))
    middle = quartiles[1] if split is None else torch.as_tensor(split).to(quartiles)
    width = (quartiles[2] - quartiles[0]).detach()
    low, high = ends(distribution)
    sides = [_side(distribution, f, middle, sign, end, width)
             for sign, end in ((1.0, high), (-1.0, low))]  # fmt: skip
    return sides[0] + sides[1]


def _side(
    distribution: Distribution, f: Any, middle: Tensor, sign: float, end: float, width: Tensor
) -> Tensor:
    """The integral from ``middle`` to one end of the support."""
    room = sign * (end - float(middle.detach()))
    if room <= 0:
        return torch.zeros_like(middle)
    if math.isinf(room):
        t = torch.linspace(-45, 80, 3 * NODES, dtype=middle.dtype, device=middle.device)
        slope = width * t.exp()
        x = middle + sign * slope
    else:
        t = torch.linspace(-45, 45, NODES, dtype=middle.dtype, device=middle.device)
        slope = room * torch.sigmoid(t) * torch.sigmoid(-t)
        x = end - sign * room * torch.sigmoid(-t)  # to all digits near the end
        last_inside = math.nextafter(end, -sign * math.inf)
        x = x.clamp(max=last_inside) if sign > 0 else x.clamp(min=last_inside)
    density = distribution.log_prob(x).exp()
    density = torch.where(torch.isfinite(density), density, 0.0)
    inner = torch.where(density > 0, f(x) * density * slope, 0.0)
    total = torch.trapezoid(inner, t)
    last = inner[-20:].detach().abs().max() if math.isinf(room) else torch.zeros(())
    diverges = float(last) > 1e-6 * max(float(inner.detach().abs().max()), 1e-300)
    return total.sign() * math.inf if diverges else total


def _summed(distribution: Distribution, f: Any) -> Tensor:
    low, high = ends(distribution)
    if distribution.has_enumerate_support:
        k = distribution.enumerate_support(expand=False).double()
    else:
        if math.isinf(high):
            high = 10 + 3 * float(icdf(distribution, torch.tensor(1 - 1e-13, dtype=torch.float64)))
        if high > MOST:
            raise Unsupported(
                f"a sum of {high:g} terms is too long; estimate it with stats.expect_mc"
            )
        k = torch.arange(low, high + 1, dtype=torch.float64)
    return (distribution.log_prob(k).exp() * f(k)).sum()
