r"""Integrals over (0, 1) and the real line by the double exponential rule.

:math:`\int_0^1 h(t)\,dt` with :math:`t = \tfrac12(1+\tanh(\tfrac\pi2\sinh u))` and equal steps in u:
the ends, where quantile functions are infinite, get weights that vanish doubly exponentially.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def unit_interval(n: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes in (0, 1) and their weights, n or a few less.

    >>> t, w = unit_interval(200, torch.zeros(1, dtype=torch.float64))
    >>> round(float((w / t.sqrt()).sum()), 7)
    2.0
    """
    u = torch.linspace(-3.1, 3.1, n, dtype=torch.float64, device=like.device)
    s = 0.5 * math.pi * u.sinh()
    t = torch.sigmoid(2 * s)
    w = 0.5 * math.pi * u.cosh() / (2 * s.cosh().square())
    w = w / w.sum()
    edge = torch.finfo(like.dtype).eps  # nearer to an end the quantile of a rounded t is infinite
    inside = (t > edge) & (t < 1 - edge)
    return t[inside].to(like.dtype), w[inside].to(like.dtype)


def real_line(n: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes on the real line, fine near 0 and reaching 10^4, and their weights.  # (n,), (n,)

    >>> x, w = real_line(400, torch.zeros(1, dtype=torch.float64))
    >>> round(float((w * (-0.5 * x**2).exp()).sum() / math.sqrt(2 * math.pi)), 7)
    1.0
    """
    u = torch.linspace(-9.9, 9.9, n, dtype=torch.float64, device=like.device)
    step = 19.8 / (n - 1)
    return u.sinh().to(like.dtype), (step * u.cosh()).to(like.dtype)
