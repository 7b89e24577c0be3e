r"""The mode of real variables and the curvature there, on the line.

.. math:: e(v) \approx e(m) + \tfrac12 (v - m)^\top H (v - m)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from groundstate.infer.base import Query
from groundstate.infer.pack import Pack, squash, unsquash
from groundstate.math.optim.batched_lbfgs import descend

MOST = 80  # steps: a mode takes a dozen; an energy without one takes all there are


def laplace(query: Query, pack: Pack, restarts: int = 4) -> tuple[Tensor, Tensor]:
    """Mode ``(B, D)`` and positive definite curvature ``(B, D, D)`` of the free variables.

    Bounded coordinates are those of the line that ``squash`` maps into the space, and the energy
    is that of the line, which includes the Jacobian: :math:`e - T\\log|dv/du|`.
    """
    b, n = query.rows, restarts
    fixed = {k: v.detach().repeat(n, *(1,) * (v.ndim - 1)) for k, v in query.fixed.items()}

    def energy(u: Tensor, rows: Tensor | None) -> Tensor:
        given = fixed if rows is None else {k: v[rows] for k, v in fixed.items()}
        v, log_jacobian = squash(u, pack.low, pack.high)
        e: Tensor = query.energy(**given, **pack.unpack(v)) - query.T * log_jacobian.sum(1)
        return e

    def value_and_grad(u: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            v = u.detach().requires_grad_()
            e = energy(v, rows)
            (g,) = torch.autograd.grad(e.sum(), v)
        return e.detach(), g

    everywhere = torch.full_like(pack.low, math.inf)
    start = unsquash(pack.starts(n).reshape(n * b, pack.dim), pack.low, pack.high)
    tol = max(1e-8, 100 * torch.finfo(start.dtype).eps)
    found = descend(value_and_grad, start, low=-everywhere, high=everywhere, tol=tol, max_iter=MOST)
    best = found.value.reshape(n, b).argmin(0)
    rows = best * b + torch.arange(b, device=best.device)
    centre = found.point[rows]
    with torch.enable_grad():
        u = centre.detach().requires_grad_()
        (g,) = torch.autograd.grad(energy(u, rows).sum(), u, create_graph=True)
        columns = [
            torch.autograd.grad(g[:, i].sum(), u, retain_graph=True, allow_unused=True)[0]
            if g.requires_grad
            else None
            for i in range(pack.dim)
        ]
    H = torch.stack([torch.zeros_like(centre) if c is None else c for c in columns], 1).detach()
    curvature, axes = torch.linalg.eigh((H + H.mT) / 2)
    # a flat or saddle direction has no scale of its own: it gets the unit scale
    flat = curvature <= 1e-8 * curvature.abs().amax(1, keepdim=True).clamp_min(1.0)
    curvature = torch.where(flat, torch.ones_like(curvature), curvature)
    with torch.no_grad():
        curvature = _without_cusps(lambda u: energy(u, rows), centre, curvature, axes, query.T)
    return centre, (axes * curvature[:, None]) @ axes.mT


def _without_cusps(
    energy: Callable[[Tensor], Tensor], centre: Tensor, curvature: Tensor, axes: Tensor, T: float
) -> Tensor:
    r"""Curvatures ``(B, D)`` whose scale :math:`s = \sqrt{T/c}` is one that the energy has.

    At the tip of a cone, as of a distance, the second derivative is infinite and says nothing of the
    width. Where the energy rises by less than a hundredth of the T/2 of a parabola, s is doubled until
    it rises by that much.
    """
    lowest, columns = energy(centre), []

    def rise(c: Tensor, axis: Tensor) -> Tensor:
        step = axis * (T / c).sqrt()[:, None]
        return (energy(centre + step) + energy(centre - step)) / 2 - lowest

    for c, axis in zip(curvature.unbind(1), axes.unbind(2), strict=True):
        cusp = (c > 1.0) & (rise(c, axis) < 0.01 * T / 2)
        while bool(cusp.any()):
            c = torch.where(cusp, c / 4, c)
            cusp &= (c > 1.0) & (rise(c, axis) < T / 2)
        columns.append(c)
    return torch.stack(columns, 1)
