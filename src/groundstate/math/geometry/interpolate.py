r"""Ways between two points: straight lines, and arcs that keep the norm."""

from __future__ import annotations

import torch
from torch import Tensor

NEAR = 1e-6  # angle below which an arc is a line


def lerp(a: Tensor, b: Tensor, t: Tensor) -> Tensor:
    """:math:`(1-t)\\,a + t\\,b` for points ``(d,)`` and times ``(n,)``, ``(n, d)``.

    >>> lerp(torch.zeros(1), torch.ones(1), torch.tensor([0.0, 0.25, 1.0])).flatten().tolist()
    [0.0, 0.25, 1.0]
    """
    return (1 - t)[:, None] * a + t[:, None] * b


def slerp(a: Tensor, b: Tensor, t: Tensor) -> Tensor:
    r""":math:`\frac{\sin((1-t)\omega)\,a + \sin(t\omega)\,b}{\sin\omega}` with the angle ω between a and b,
    ``(n, d)``; points of equal norm keep it. Points in one or in opposite directions are joined by a line.

    >>> way = slerp(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 3.0]), torch.linspace(0, 1, 4))
    >>> way.norm(dim=1).round(decimals=4).tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    cosine = (a @ b) / (a.norm() * b.norm()).clamp_min(torch.finfo(a.dtype).tiny)
    omega = torch.arccos(cosine.clamp(-1, 1))
    sine = torch.sin(omega)
    if float(sine) < NEAR:
        return lerp(a, b, t)
    first, second = torch.sin((1 - t) * omega) / sine, torch.sin(t * omega) / sine
    return first[:, None] * a + second[:, None] * b
