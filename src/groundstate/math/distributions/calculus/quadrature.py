r"""Integrals of densities: :math:`\log\int e^{\ell(t)}\,dt` for a log-integrand with one mode.

The window in which :math:`\ell` is within 40 of its largest value is found by searches that carry no
gradient; panels of Gauss and Legendre's nodes on each side of the mode integrate to rounding, and
gradients with respect to whatever :math:`\ell` depends on pass through the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

NODES = 20  # of each panel
DROPS = (40.0, 14.0, 4.0)  # nats below the mode where panels end; e^-40 is below rounding
GOLDEN = 0.6180339887498949


@lru_cache(maxsize=8)
def _gauss(n: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Nodes and log weights of Gauss and Legendre on [0, 1].  # (n,), (n,)"""
    x, w = np.polynomial.legendre.leggauss(n)
    nodes, weights = torch.from_numpy(0.5 * (x + 1)), torch.from_numpy(np.log(0.5 * w))
    return nodes.to(device, dtype), weights.to(device, dtype)


def log_integral(
    log_f: Callable[[Tensor], Tensor],
    low: Tensor,
    high: Tensor,
    *,
    nodes: int = NODES,
    steps: int = 50,
) -> Tensor:
    r""":math:`\log\int_{low}^{high} e^{\ell(t)}\,dt`, elementwise, for an :math:`\ell` with one mode.

    Parameters
    ----------
    log_f : maps points ``(*S, k)`` to :math:`\ell`, ``(*S, k)``
    low, high : ``(*S)``, finite; gradients pass through a limit where the window ends there
    nodes : in each of the six panels
    steps : of the searches for mode and window; each gains a factor of .62

    Examples
    --------
    >>> wide = torch.full((), 50.0, dtype=torch.float64)
    >>> round(float(log_integral(lambda t: -0.5 * t**2, -wide, wide).exp() ** 2 / torch.pi), 12)
    2.0
    """
    with torch.no_grad():
        mode, top = _mode(log_f, low.detach(), high.detach(), steps)
        sides = [_edges(log_f, end.detach(), mode, top, steps) for end in (low, high)]
    edges = [*sides[0], mode, *reversed(sides[1])]
    # a window that ends at a limit moves with it
    edges = [torch.where(edge == low.detach(), low, edge) for edge in edges]
    edges = [torch.where(edge == high.detach(), high, edge) for edge in edges]
    x, log_w = _gauss(nodes, low.dtype, low.device)
    parts = []
    for one, other in pairwise(edges):
        width = (other - one).clamp(min=torch.finfo(low.dtype).tiny)
        t = one.unsqueeze(-1) + width.unsqueeze(-1) * x  # (*S, nodes)
        parts.append((log_f(t) + log_w).logsumexp(-1) + width.log())
    return torch.stack(parts).logsumexp(0)


def _mode(
    log_f: Callable[[Tensor], Tensor], low: Tensor, high: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """Where the log-integrand is largest, by golden sections, and its value."""

    def at(t: Tensor) -> Tensor:
        return log_f(t.unsqueeze(-1)).squeeze(-1)

    a, b = low.clone(), high.clone()
    c, d = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    fc, fd = at(c), at(d)
    for _ in range(steps):
        left = fc >= fd  # the mode lies left of d
        a, b = torch.where(left, a, c), torch.where(left, d, b)
        new = torch.where(left, b - GOLDEN * (b - a), a + GOLDEN * (b - a))
        value = at(new)
        c, d = torch.where(left, new, d), torch.where(left, c, new)
        fc, fd = torch.where(left, value, fd), torch.where(left, fc, value)
    ends = torch.stack([a, 0.5 * (a + b), b, low, high])
    values = torch.stack([at(t) for t in ends])
    top, best = values.max(0)
    return ends.gather(0, best.unsqueeze(0)).squeeze(0), top


def _edges(
    log_f: Callable[[Tensor], Tensor], end: Tensor, mode: Tensor, top: Tensor, steps: int
) -> list[Tensor]:
    """Between ``end`` and the mode, where the log-integrand has dropped by each of ``DROPS``.

    ``end`` itself where it drops less. Several panels, because it may fall steeply and then slowly.
    """
    found = []
    for drop, halvings in zip(DROPS, (int(0.7 * steps), steps // 4, steps // 4)):

        def dropped(t: Tensor, least: Tensor = top - drop) -> Tensor:
            return log_f(t.unsqueeze(-1)).squeeze(-1) < least

        outside, inside = end, mode
        for _ in range(halvings):
            middle = 0.5 * (outside + inside)
            out = dropped(middle)
            outside, inside = torch.where(out, middle, outside), torch.where(out, inside, middle)
        end = torch.where(dropped(end), outside, end)
        found.append(end)
    return found
