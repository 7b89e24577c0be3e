r"""Directions and where they lead: the exponential map of a metric and its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.math.distances.geodesics import STARTS, geodesic
from groundstate.math.distances.riemannian import RiemannianMetric


@takes_arrays("mu", "X")
def log_map(
    metric: RiemannianMetric,
    mu: Any,
    X: Any,
    n: int = 65,
    *,
    starts: Sequence[str] = STARTS,
    max_iter: int = 200,
    tol: float = 1e-6,
    polish: int = 0,
) -> Any:
    r""":math:`\operatorname{Log}_\mu(x)`: the direction in which the shortest curve from μ to x begins,
    with :math:`\sqrt{v^\top M(\mu)v}` its length; differentiable once in μ and x.

    Parameters
    ----------
    metric : where
    mu : ``(..., d)``
    X : ``(..., d)``
    n, starts, max_iter, tol : as in `geodesic`
    polish : Newton steps on :math:`\operatorname{Exp}_\mu(v) = x`; small errors of v grow along the
        way, so that far points may need them; their result has no gradient

    Returns
    -------
    ``(..., d)``

    Examples
    --------
    >>> from groundstate.math.distances import ConstantMetric
    >>> log_map(ConstantMetric([[4.0]]), [1.0], [[3.0]], 9).round(6).tolist()
    [[2.0]]
    """
    found: Tensor = _Log.apply(mu, X, metric, n, starts, max_iter, tol)
    d = found.shape[-1]
    if not polish:
        return found
    flat, start, goal = (t.detach().expand(found.shape).reshape(-1, d) for t in (found, mu, X))
    for _ in range(polish):
        flat = _shot(metric, start, flat, goal.to(flat))
    return flat.reshape(found.shape)


class _Log(torch.autograd.Function):
    """Log with its slopes in both ends, by differences along the curve that was found."""

    @staticmethod
    def forward(
        ctx: Any, mu: Tensor, X: Tensor, metric: RiemannianMetric, n: int, starts: Any,
        max_iter: int, tol: float,
    ) -> Tensor:  # fmt: skip
        found = geodesic(metric, mu, X, n, starts=starts, max_iter=max_iter, tol=tol)
        ctx.save_for_backward(mu, X, found.points)
        ctx.about = (metric, n, max_iter, tol)
        return directions(metric, found.points, found.length)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        mu, X, points = ctx.saved_tensors
        metric, n, max_iter, tol = ctx.about
        t = torch.linspace(0, 1, n).to(points)[:, None]
        size = (points[..., -1, :] - points[..., 0, :]).norm(dim=-1, keepdim=True)
        h = 1e-5 * size.clamp(min=1e-3)[..., None]
        slopes: list[Any] = []
        for given, share in ((mu, 1 - t), (X, t)):
            if not ctx.needs_input_grad[len(slopes)]:
                slopes.append(None)
                continue
            along = []
            for e in torch.eye(points.shape[-1]).to(points):
                sides = []
                for sign in (1, -1):
                    way = points + sign * h * share * e
                    found = geodesic(
                        metric, way[..., 0, :], way[..., -1, :], n, starts=way,
                        max_iter=max_iter, tol=tol,
                    )  # fmt: skip
                    sides.append(directions(metric, found.points, found.length))
                along.append(((sides[0] - sides[1]) * grads[0]).sum(-1) / (2 * h[..., 0, 0]))
            slopes.append(torch.stack(along, -1).sum_to_size(given.shape))
        return (*slopes, None, None, None, None, None)


def directions(metric: RiemannianMetric, points: Tensor, length: Tensor) -> Tensor:
    """Initial directions of curves ``(..., n, d)``, as long as the curves, ``(..., d)``."""
    n, d = points.shape[-2:]
    start, following = points[..., 0, :].reshape(-1, d), points[..., 1, :].reshape(-1, d)
    with torch.enable_grad():
        # the momentum of the discrete energy at its first point, which is right to second order
        first = start.detach().requires_grad_()
        step = following.detach() - first
        energy = metric.quadratic(0.5 * (following.detach() + first), step).sum()
        (p,) = torch.autograd.grad(-0.5 * (n - 1) * energy, first)
    with torch.no_grad():
        v = metric.raised(start, p)
        size = metric.quadratic(start, v).clamp(min=0).sqrt()
        flat = length.reshape(-1)
        ratio = torch.where(size > 0, flat / torch.where(size > 0, size, 1.0), 0.0)
        return (v * ratio[:, None]).reshape(*points.shape[:-2], d)


def _shot(metric: RiemannianMetric, start: Tensor, v: Tensor, goal: Tensor) -> Tensor:
    """One step of Newton on Exp(v) = goal, kept for the rows that it brings nearer."""
    d = v.shape[-1]
    h = 1e-5 * v.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    tried = [v, *(v + s * h * e for e in torch.eye(d).to(v) for s in (1, -1))]
    ends = path(metric, start, torch.stack(tried), 128)[..., -1, :]
    J = torch.stack([(ends[1 + 2 * k] - ends[2 + 2 * k]) / (2 * h) for k in range(d)], -1)
    gap = ends[0] - goal
    ok = torch.linalg.cond(J) < 1e12
    step = torch.zeros_like(v)
    step[ok] = torch.linalg.solve(J[ok], gap[ok])
    new = v - step
    nearer = (path(metric, start, new, 128)[..., -1, :] - goal).norm(dim=-1) < gap.norm(dim=-1)
    return torch.where(nearer[:, None], new, v)


@takes_arrays("mu", "V")
def exp_map(metric: RiemannianMetric, mu: Any, V: Any, steps: int = 128) -> Any:
    r""":math:`\operatorname{Exp}_\mu(v) = \gamma(1)` of the geodesic with :math:`\gamma(0) = \mu`,
    :math:`\dot\gamma(0) = v`.

    In momenta :math:`p = M\dot\gamma` the equation is :math:`\dot\gamma = M^{-1}p,\ \dot p =
    \tfrac12\nabla_x(\dot\gamma^\top M(x)\dot\gamma)`, integrated by Runge and Kutta's method of fourth
    order.

    Parameters
    ----------
    metric : where
    mu : ``(..., d)``
    V : ``(..., d)``
    steps : of the integration

    Examples
    --------
    >>> from groundstate.math.distances import ConstantMetric
    >>> exp_map(ConstantMetric([[4.0]]), [1.0], [[2.0]]).round(6).tolist()
    [[3.0]]
    """
    return path(metric, mu, V, steps)[..., -1, :]


def path(metric: RiemannianMetric, mu: Tensor, V: Tensor, steps: int) -> Tensor:
    """The curve behind `exp_map`, ``(..., steps + 1, d)``."""
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    d = mu.shape[-1]
    if V.shape[-1] != d:
        raise ShapeError(f"mu has {d} entries, V has {V.shape[-1]}")
    lead = torch.broadcast_shapes(mu.shape[:-1], V.shape[:-1])
    x = mu.detach().expand(*lead, d).reshape(-1, d)
    v = V.detach().to(mu.dtype).expand(*lead, d).reshape(-1, d)
    with torch.no_grad():
        p = metric.lowered(x, v)
    h = 1.0 / steps
    out = [x]
    for _ in range(steps):
        a1, b1 = metric.flow(x, p)
        a2, b2 = metric.flow(x + 0.5 * h * a1, p + 0.5 * h * b1)
        a3, b3 = metric.flow(x + 0.5 * h * a2, p + 0.5 * h * b2)
        a4, b4 = metric.flow(x + h * a3, p + h * b3)
        x = x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        p = p + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
        out.append(x)
    return torch.stack(out, 1).reshape(*lead, steps + 1, d)
