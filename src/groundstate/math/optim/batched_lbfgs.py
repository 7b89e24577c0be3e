r"""Batched L-BFGS: every row is its own problem, all rows advance together.

.. math:: u \leftarrow P\bigl(u - t\,H\nabla f(u)\bigr)

with :math:`H` the inverse Hessian of the last ``memory`` steps, :math:`t` found per row by
Armijo backtracking and :math:`P` the projection on the box. Rows that are done stop moving at
once and are dropped from the batch when enough of them have gathered, so that a row's answer is
the same alone or among others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

ARMIJO = 1e-4
HALVINGS = 30
DROP = 0.125  # share of finished rows at which the batch is repacked
IDLE = 5  # steps in a row that may leave a value as it is

# (points (A, D), rows (A,) or None for all) -> values (A,), gradients (A, D)
ValueAndGrad = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]


@dataclass
class Descent:
    """Where the rows ended: points ``(B, D)``, values and flags ``(B,)``, trace ``(n+1, B)``."""

    point: Tensor
    value: Tensor
    converged: Tensor
    n_iter: int
    trace: Tensor
    path: Tensor | None = None  # (n+1, B, D) the points on the way, where they were asked for


class _Memory:
    """The last steps and gradient changes of every row; a skipped pair has ``rho = 0``."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []  # s (A, D), y (A, D), rho (A,)
        self.scale: Tensor | None = None  # (A,) first guess of the inverse curvature

    def push(self, s: Tensor, y: Tensor) -> None:
        sy, yy = (s * y).sum(1), (y * y).sum(1)
        eps = torch.finfo(s.dtype).eps
        curved = sy > eps * yy.clamp_min(torch.finfo(s.dtype).tiny)
        rho = torch.where(curved, 1 / sy, 0.0)
        self.pairs = (
            [*self.pairs[-(self.size - 1) :], (s, y, rho)] if self.size > 1 else [(s, y, rho)]
        )
        old = self.scale if self.scale is not None else torch.ones_like(sy)
        self.scale = torch.where(curved, sy / yy, old)

    def direction(self, g: Tensor) -> Tensor:
        """``-H g`` by the two-loop recursion."""
        q, alphas = g, []
        for s, y, rho in reversed(self.pairs):
            alpha = (rho * (s * q).sum(1))[:, None]
            q = q - alpha * y
            alphas.append(alpha)
        if self.scale is not None:
            q = q * self.scale[:, None]
        for (s, y, rho), alpha in zip(self.pairs, reversed(alphas), strict=True):
            q = q + s * (alpha - (rho * (y * q).sum(1))[:, None])
        return -q

    def keep(self, rows: Tensor) -> None:
        self.pairs = [(s[rows], y[rows], rho[rows]) for s, y, rho in self.pairs]
        self.scale = None if self.scale is None else self.scale[rows]


def descend(
    value_and_grad: ValueAndGrad,
    start: Tensor,
    *,
    low: Tensor,
    high: Tensor,
    reach: Tensor | None = None,
    max_iter: int = 200,
    tol: float = 1e-6,
    memory: int = 10,
    path: bool = False,
) -> Descent:
    """Minimise every row of ``start`` ``(B, D)`` within ``[low, high]`` ``(D,)``.

    No coordinate moves further than ``reach`` ``(D,)`` in one step, where it is given. With ``path``
    the points of all steps are kept.

    A row has converged when the largest entry of its projected gradient is at most ``tol``, or
    when no representable step lowers its value any more, for ``IDLE`` steps in a row.
    """
    eps = torch.finfo(start.dtype).eps
    u = start.clamp(low, high)
    f, g = value_and_grad(u, None)
    final_u, final_f = u.clone(), f.clone()
    converged = torch.zeros_like(f, dtype=torch.bool)
    points = [final_u.clone()]
    trace, rows, history = [f.clone()], torch.arange(len(u), device=u.device), _Memory(memory)
    active: Tensor | None = None  # None while all rows are there: no indexing
    done = torch.zeros_like(converged)
    idle = torch.zeros_like(converged, dtype=torch.int64)
    steps = 0
    for _ in range(max_iter):
        gradient = u - (u - g).clamp(low, high)  # (A, D), projected
        flat = gradient.abs().amax(1) <= tol if u.shape[1] else torch.ones_like(done)
        converged[rows[flat & ~done]] = True
        done = done | flat
        if bool(done.all()):
            break
        if float(done.sum()) > DROP * len(done):
            keep = (~done).nonzero()[:, 0]
            u, f, g, rows = u[keep], f[keep], g[keep], rows[keep]
            history.keep(keep)
            active, done, idle = rows, done[keep], idle[keep]
        steps += 1
        at_bound = ((u <= low) & (g > 0)) | ((u >= high) & (g < 0))
        free_g = g.masked_fill(at_bound, 0.0)
        d = history.direction(free_g).masked_fill(at_bound, 0.0)
        slope = (g * d).sum(1)
        norm = free_g.norm(dim=1) * d.norm(dim=1)
        uphill = ~(slope < -eps * norm)
        d = torch.where(uphill[:, None], -free_g, d)
        if not history.pairs:  # no curvature yet: a step of length about one
            d = d / free_g.abs().sum(1, keepdim=True).clamp_min(1.0)
        if reach is not None:
            d = d / (d.abs() / reach).amax(1, keepdim=True).clamp_min(1.0)
        d = d.masked_fill(done[:, None], 0.0)
        new_u, new_f, new_g, moved = _search(value_and_grad, u, f, g, d, low, high, active)
        stuck = ~moved & ~done
        # a row without a lower neighbour is finished; it is a minimum as far as numbers tell
        tiny = (g * d).sum(1).abs() <= 64 * eps * f.abs().clamp_min(1.0)
        converged[rows[stuck & tiny]] = True
        # steps that only rounding allows lead nowhere, though the gradient is above tol
        idle = torch.where(new_f < f, 0, idle + 1)
        still = (idle >= IDLE) & ~done
        converged[rows[still]] = True
        done = done | stuck | still
        history.push(new_u - u, new_g - g)
        u, f, g = new_u, new_f, new_g
        final_u[rows], final_f[rows] = u, f
        trace.append(final_f.clone())
        if path:
            points.append(final_u.clone())
    else:
        if u.numel():
            gradient = u - (u - g).clamp(low, high)
            converged[rows] |= gradient.abs().amax(1) <= tol
    way = torch.stack(points) if path else None
    return Descent(final_u, final_f, converged, steps, torch.stack(trace), way)


def _search(
    value_and_grad: ValueAndGrad,
    u: Tensor,
    f: Tensor,
    g: Tensor,
    d: Tensor,
    low: Tensor,
    high: Tensor,
    rows: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Armijo backtracking along the projected path; rows that accept are left alone."""
    eps = torch.finfo(u.dtype).eps
    t = torch.ones_like(f)
    new_u, new_f, new_g = u.clone(), f.clone(), g.clone()
    pending: Tensor | None = None  # None: every row, without indexing
    for _ in range(HALVINGS):
        at = slice(None) if pending is None else pending
        u0, f0, g0, d0, t0 = u[at], f[at], g[at], d[at], t[at]
        trial = (u0 + t0[:, None] * d0).clamp(low, high)
        where = pending if rows is None else rows[at]
        trial_f, trial_g = value_and_grad(trial, where)
        gain = (g0 * (trial - u0)).sum(1)  # predicted change, negative
        ok = trial_f <= f0 + ARMIJO * gain
        # where the predicted change drowns in rounding, not rising is all that can be asked
        ok |= (trial_f <= f0) & (gain.abs() <= 64 * eps * f0.abs().clamp_min(1.0))
        ok &= torch.isfinite(trial_g).all(1)
        took = ok.nonzero()[:, 0] if pending is None else pending[ok]
        if pending is None and len(took) == len(ok):
            return trial, trial_f, trial_g, torch.ones_like(ok)
        new_u[took], new_f[took], new_g[took] = trial[ok], trial_f[ok], trial_g[ok]
        left = (~ok).nonzero()[:, 0] if pending is None else pending[~ok]
        if not len(left):
            pending = left
            break
        slope = (g0 * d0).sum(1)[~ok]
        step, rise = t0[~ok], (trial_f - f0)[~ok]
        fitted = -slope * step.square() / (2 * (rise - slope * step))  # minimum of a parabola
        fitted = torch.where(torch.isfinite(fitted), fitted, 0.1 * step)
        t[left] = torch.minimum(torch.maximum(fitted, 0.1 * step), 0.5 * step)
        pending = left
    moved = torch.ones_like(f, dtype=torch.bool)
    if pending is not None:
        moved[pending] = False
    return new_u, new_f, new_g, moved
