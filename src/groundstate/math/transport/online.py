r"""Sinkhorn between samples, without their matrix of costs.

.. math:: f_i = -\varepsilon\log\sum_j b_je^{(g_j - c(x_i, y_j))/\varepsilon}

is a sum over the rows of a tile of costs that is made, summed and forgotten. Memory grows with n + m,
time with n · m.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from groundstate.math.transport.costs import cost
from groundstate.math.transport.sinkhorn import (
    ROUGH,
    SWEEPS,
    Pace,
    levels,
    not_converged,
    reachable,
    symmetric_potential,
)
from groundstate.math.transport.sinkhorn import potentials as dense

DENSE = 5000  # rows of the larger sample up to which the matrix of costs is held
_CELLS = {"cpu": 1 << 20, "cuda": 1 << 26}  # of one tile


def entropic(
    x: Tensor, y: Tensor, a: Tensor, b: Tensor, eps: float, p: float, tol: float, max_iter: int
) -> Tensor:
    r""":math:`OT_\varepsilon` of two weighted samples with costs :math:`\|x-y\|^p`, differentiable."""
    if x.ndim > 2:
        parts = [entropic(*one, eps, p, tol, max_iter) for one in zip(x, y, a, b, strict=True)]
        return torch.stack(parts)
    with torch.no_grad():
        if max(len(x), len(y)) <= DENSE:
            f, g, *_ = dense(a, b, cost(x, y, p), eps, tol, max_iter)
        else:
            f, g = potentials(x, y, a, b, eps, p, tol, max_iter)
    out: Tensor = _Value.apply(x, y, a, b, f, g, eps, p)
    return out


def self_entropic(x: Tensor, a: Tensor, eps: float, p: float, tol: float, max_iter: int) -> Tensor:
    r""":math:`OT_\varepsilon` of a sample with itself: one potential, averaged with its update."""
    if x.ndim > 2:
        parts = [self_entropic(*one, eps, p, tol, max_iter) for one in zip(x, a, strict=True)]
        return torch.stack(parts)
    with torch.no_grad():
        if len(x) <= DENSE:
            f = symmetric_potential(a, cost(x, x, p), eps, tol, max_iter)
        else:
            f = _symmetric(x, a, eps, p, tol, max_iter)
    out: Tensor = _Value.apply(x, x, a, a, f, f, eps, p)
    return out


def _symmetric(x: Tensor, a: Tensor, eps: float, p: float, tol: float, max_iter: int) -> Tensor:
    f, pace = torch.zeros_like(a), Pace(max(tol, reachable(x)))
    for value in levels(_reach(x, x, p), eps):
        goal, most = (pace.tol, max_iter) if value == eps else (max(tol, ROUGH), SWEEPS)
        for _ in range(most):
            log_rows = marginal(x, x, f, f, a, value, p)
            pace.last = float((a * torch.expm1(log_rows).abs()).sum())
            if pace.last <= goal:
                break
            f = f - 0.5 * value * log_rows
    if pace.last > pace.tol:
        not_converged(pace, max_iter)
    return f


def potentials(
    x: Tensor, y: Tensor, a: Tensor, b: Tensor, eps: float, p: float, tol: float, max_iter: int
) -> tuple[Tensor, Tensor]:
    """f and g by sweeps over tiles: from a large ε down, then over-relaxed to the tolerance."""
    f, g, tol = torch.zeros_like(a), torch.zeros_like(b), max(tol, reachable(x))
    pace = Pace(tol)
    for value in levels(_reach(x, y, p), eps):
        last = value == eps
        pace, most = (Pace(tol), max_iter) if last else (Pace(max(tol, ROUGH)), SWEEPS)
        for sweep in range(most):
            log_rows = marginal(x, y, f, g, b, value, p)
            omega = 1.0
            if sweep:  # before, the columns belong to another ε
                omega = pace.next(float((a * torch.expm1(log_rows).abs()).sum()))
                if omega == 0:
                    break
            f = f - omega * value * log_rows
            g = g - omega * value * marginal(y, x, g, f, a, value, p)
    if pace.error > tol:
        not_converged(pace, max_iter)
    return f, g


def marginal(x: Tensor, y: Tensor, f: Tensor, g: Tensor, b: Tensor, eps: float, p: float) -> Tensor:
    r""":math:`\log\sum_jb_je^{(f_i + g_j - c(x_i, y_j))/\varepsilon}`: by how much row i has too much.

    Potentials that nearly fit keep the exponents small, so that they need no maximum taken off
    first; where that fails, logarithms of sums do.
    """
    centre = y.mean(0)
    u, v = x - centre, y - centre
    out = torch.empty_like(f)
    if p == 2:  # the exponent is one product of longer rows
        one, other = torch.ones_like(f), torch.ones_like(g)
        left = torch.cat([2 * u / eps, ((f - u.square().sum(1)) / eps)[:, None], one[:, None]], 1)
        right = torch.cat([v, other[:, None], ((g - v.square().sum(1)) / eps)[:, None]], 1)

    def exponents(rows: slice) -> Tensor:
        if p == 2:
            return left[rows] @ right.mT
        return (f[rows, None] + g - cost(u[rows], v, p)) / eps

    for rows in _tiles(x, y):
        out[rows] = torch.mv(exponents(rows).exp_(), b).log()
    if not bool(torch.isfinite(out).all()):
        for rows in _tiles(x, y):
            out[rows] = torch.logsumexp(exponents(rows) + b.log(), 1)
    return out


def _tiles(x: Tensor, y: Tensor) -> Iterator[slice]:
    size = max(1, _CELLS.get(x.device.type, 1 << 24) // len(y))
    return (slice(at, at + size) for at in range(0, len(x), size))


def _reach(x: Tensor, y: Tensor, p: float) -> float:
    """A bound on the costs: the diagonal of the box around both samples, to the power p."""
    low = torch.minimum(x.amin(0), y.amin(0))
    high = torch.maximum(x.amax(0), y.amax(0))
    return float((high - low).norm()) ** p


class _Value(torch.autograd.Function):
    r"""The dual value; backwards :math:`\sum_jT_{ij}\nabla_xc(x_i, y_j)`, tile by tile."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, a: Tensor, b: Tensor, f: Tensor, g: Tensor, eps: float, p: float
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(x, y, a, b, f, g)
        ctx.eps, ctx.p = eps, p
        rows = a * torch.exp(marginal(x, y, f, g, b, eps, p))
        return (a * f).sum() + (b * g).sum() - eps * (rows.sum() - a.sum() * b.sum())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, y, a, b, f, g = ctx.saved_tensors
        need_x, need_y = ctx.needs_input_grad[:2]
        to_x, to_y = torch.zeros_like(x), torch.zeros_like(y)
        for rows in _tiles(x, y) if need_x or need_y else ():
            with torch.enable_grad():
                u, v = x[rows].detach().requires_grad_(), y.detach().requires_grad_()
                c = cost(u, v, ctx.p)
            plan = torch.exp((f[rows, None] + g - c.detach()) / ctx.eps) * a[rows, None] * b
            to_u, to_v = torch.autograd.grad(c, (u, v), plan)
            to_x[rows] = to_u
            to_y += to_v
        return grad * to_x, grad * to_y, grad * f, grad * g, None, None, None, None
