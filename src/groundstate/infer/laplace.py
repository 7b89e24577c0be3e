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

AT_ONCE = 2**14  # points of one call
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
        lowest = found.value[rows]
        curvature = _without_cusps(
            lambda u, at: energy(u, rows[at]) - lowest[at], centre, curvature, axes, query.T
        )
    return centre, (axes * curvature[:, None]) @ axes.mT


def _without_cusps(
    above: Callable[[Tensor, Tensor], Tensor], centre: Tensor, curvature: Tensor, axes: Tensor, T: float
) -> Tensor:  # fmt: skip
    r"""Curvatures ``(B, D)`` whose scale :math:`s = \sqrt{T/c}` is one that the energy has.

    At the tip of a cone, as of a distance, the second derivative is infinite and says nothing of the
    width. Where the energy rises by less than a hundredth of the T/2 of a parabola, s is doubled until
    it rises by that much. Only scales below 1 can be too small; all of them are tried in one call.

    Parameters
    ----------
    above : energy of points ``(N, D)`` above the mode of the rows ``(N,)`` that they belong to
    """
    row, axis = (curvature > 1.0).nonzero(as_tuple=True)  # (N,), (N,)
    bound, out = 0.01, curvature.clone()
    while len(row):
        step = axes[row, :, axis] * (T / out[row, axis]).sqrt()[:, None]
        parts = zip(step.split(AT_ONCE), row.split(AT_ONCE))
        rise = torch.cat([above(centre[r] + s, r) + above(centre[r] - s, r) for s, r in parts]) / 2
        small = rise < bound * T / 2
        row, axis = row[small], axis[small]
        out[row, axis] /= 4
        wide = out[row, axis] > 1.0
        row, axis, bound = row[wide], axis[wide], 1.0
    return out
