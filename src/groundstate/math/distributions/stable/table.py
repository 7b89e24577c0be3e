r"""Functions of a standard stable variable at many values: a table of a few hundred, then polynomials.

As a function of :math:`q = \mathrm{arsinh}\,x_0`, where :math:`x_0 = x - \beta\tan\frac{\pi\alpha}2` is
Nolan's continuous parametrisation, log f is smooth for :math:`\alpha \ge 1`. Below 1 it is not analytic at
x = 0, and :math:`q = \log|x|` on each side is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

STEP = 0.025
POINTS = 8  # of the local polynomial
BLOCK = 2**14

Function = Callable[[Tensor, Tensor, Tensor], Tensor]


def tabulated(function: Function, z: Tensor, alpha: Tensor, beta: Tensor) -> Tensor | None:
    """``function(z, alpha, beta)`` for one shape, or None where a table is longer than the values."""
    flat = z.reshape(-1)
    if flat.numel() < 200:
        return None
    a = float(alpha.detach())
    if a >= 1:
        shift = beta * torch.tan(0.5 * math.pi * alpha) if a > 1 else torch.zeros_like(beta)
        q = torch.asinh(flat - shift)
        found = _interpolated(q, STEP, lambda p: function(torch.sinh(p) + shift, alpha, beta))
        return None if found is None else found.reshape(z.shape)
    step = 4 * STEP / max(1.0, a / (1 - a))
    if bool((flat.detach() == 0).any()):
        return None
    out = torch.zeros_like(flat)
    for sign in (1.0, -1.0):
        own = (flat * sign) > 0
        if not bool(own.any()):
            continue
        if float(beta.detach()) * sign == -1:  # outside the support
            edge = function(sign * torch.ones_like(flat[:1]), alpha, beta)
            out = torch.where(own, edge, out)
            continue
        q = (flat[own] * sign).log()
        found = _interpolated(q, step, lambda p, s=sign: function(s * p.exp(), alpha, beta))  # type: ignore[misc]
        if found is None:
            q_all = flat[own].split(BLOCK)
            found = torch.cat([function(part, alpha, beta) for part in q_all])
        out = out.masked_scatter(own, found)
    return out.reshape(z.shape)


def _interpolated(q: Tensor, step: float, function: Callable[[Tensor], Tensor]) -> Tensor | None:
    """The function at ``q`` by polynomials through a table of equal steps."""
    low, high = float(q.detach().min()), float(q.detach().max())
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    count = math.ceil((high - low) / step) + POINTS
    if count > q.numel():
        return None
    start = low - (POINTS // 2 - 1) * step
    at = torch.arange(count, dtype=q.dtype, device=q.device) * step + start
    table = torch.cat([function(part) for part in at.split(BLOCK)])
    place = (q - start) / step
    first = (place.detach().floor().long() - (POINTS // 2 - 1)).clamp(0, count - POINTS)
    t = place - first  # in [POINTS/2 - 1, POINTS/2)
    total = torch.zeros_like(q)
    for j in range(POINTS):
        weight = torch.ones_like(q)
        for k in range(POINTS):
            if k != j:
                weight = weight * ((t - k) / (j - k))
        total = total + weight * table[first + j]
    return total
