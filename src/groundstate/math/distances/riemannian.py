r"""Metrics that change from place to place: a small step v at x is :math:`\sqrt{v^\top M(x)v}` long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor, takes_arrays


class RiemannianMetric:
    r"""A positive definite matrix M(x) at every point: lengths, volumes, shortest curves.

    A metric writes ``matrix``; diagonal ones also ``quadratic``, ``lowered`` and ``raised``.
    """

    rows: Tensor | None = None  # points that shortest curves may follow

    def matrix(self, x: Tensor) -> Tensor:
        """M(x) of rows ``(n, d)``, ``(n, d, d)``, differentiable in x."""
        raise TypeError(f"{type(self).__name__} must define matrix(x)")

    def quadratic(self, x: Tensor, v: Tensor) -> Tensor:
        r""":math:`v^\top M(x)v` of rows, ``(n,)``."""
        return (v * self.lowered(x, v)).sum(-1)

    def lowered(self, x: Tensor, v: Tensor) -> Tensor:
        """M(x)v of rows, ``(n, d)``."""
        return (self.matrix(x) @ v[..., None])[..., 0]

    def raised(self, x: Tensor, p: Tensor) -> Tensor:
        r""":math:`M(x)^{-1}p` of rows, ``(n, d)``."""
        return torch.linalg.solve(self.matrix(x), p)

    def slopes(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r""":math:`v^\top M(x)v` ``(n,)``, its slope in x and M(x)v ``(n, d)``, without a graph."""
        with torch.enable_grad():
            at, step = x.detach().requires_grad_(), v.detach().requires_grad_()
            square = self.quadratic(at, step)
            in_x, in_v = torch.autograd.grad(square.sum(), (at, step), allow_unused=True)
        none = torch.zeros_like(x)
        return square.detach(), none if in_x is None else in_x, none if in_v is None else 0.5 * in_v

    def curvatures(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""Second derivatives of :math:`v^\top M(x)v`: in x, in x (rows) and v (columns), and M(x), all
        ``(n, d, d)``, without a graph."""
        with torch.enable_grad():
            at, step = x.detach().requires_grad_(), v.detach().requires_grad_()
            square = self.quadratic(at, step).sum()
            both = (at, step)
            first = torch.autograd.grad(square, both, create_graph=True, allow_unused=True)
            rows = []
            for slope in (torch.zeros_like(x) if g is None else g for g in first):
                for column in slope.unbind(1):
                    found: tuple[Tensor | None, ...] = (None, None)
                    if column.requires_grad:
                        found = torch.autograd.grad(
                            column.sum(), both, retain_graph=True, allow_unused=True
                        )
                    rows.append([torch.zeros_like(x) if g is None else g for g in found])
        d = x.shape[1]
        in_x = torch.stack([row[0] for row in rows[:d]], 1)
        mixed = torch.stack([row[1] for row in rows[:d]], 1)
        return in_x, mixed, 0.5 * torch.stack([row[1] for row in rows[d:]], 1)

    def flow(self, x: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        r"""Velocities :math:`v = M^{-1}p` and forces :math:`\tfrac12\nabla_x(v^\top M(x)v)` of geodesics
        with momenta p, ``(n, d)`` both."""
        with torch.no_grad():
            v = self.raised(x, p)
        return v, 0.5 * self.slopes(x, v)[1]

    # --- what follows ---------------------------------------------------------------------

    @takes_arrays("X")
    def tensor(self, X: Any) -> Any:
        """M(x), ``(..., d, d)`` for points ``(..., d)``."""
        flat = X.reshape(-1, X.shape[-1])
        return self.matrix(flat).reshape(*X.shape, X.shape[-1])

    @takes_arrays("X")
    def volume(self, X: Any) -> Any:
        r"""The volume element :math:`\sqrt{\det M(x)}`, ``(...,)`` for points ``(..., d)``."""
        flat = X.reshape(-1, X.shape[-1])
        return (0.5 * self.log_det(flat)).exp().reshape(X.shape[:-1])

    def log_det(self, x: Tensor) -> Tensor:
        """log det M(x) of rows, ``(n,)``."""
        return torch.linalg.slogdet(self.matrix(x))[1]

    @takes_arrays("curve")
    def length(self, curve: Any) -> Any:
        r""":math:`\sum_i\sqrt{\Delta_i^\top M(m_i)\Delta_i}` with midpoints :math:`m_i`, ``(...,)`` for
        curves ``(..., n, d)``."""
        if curve.ndim < 2 or curve.shape[-2] < 2:
            raise ShapeError(f"a curve needs points (..., n, d), n >= 2, got {tuple(curve.shape)}")
        step, middle = curve.diff(dim=-2), 0.5 * (curve[..., 1:, :] + curve[..., :-1, :])
        d = curve.shape[-1]
        square = self.quadratic(middle.reshape(-1, d), step.reshape(-1, d))
        apart = square > 0
        root = torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)
        return root.reshape(step.shape[:-1]).sum(-1)

    def geodesic(self, a: Any, b: Any, n: int = 65, **settings: Any) -> Any:
        """Shortest curves from a to b, see `groundstate.distances.geodesic`."""
        from groundstate.math.distances.geodesics import geodesic

        return geodesic(self, a, b, n, **settings)

    def distance(self, a: Any, b: Any, n: int = 65, **settings: Any) -> Any:
        """Lengths of shortest curves, ``(...,)``."""
        return self.geodesic(a, b, n, **settings).length

    def log(self, mu: Any, X: Any, n: int = 65, **settings: Any) -> Any:
        """Initial directions from μ to X, as long as the way, see `groundstate.distances.log_map`."""
        from groundstate.math.distances.exponential import log_map

        return log_map(self, mu, X, n, **settings)

    def exp(self, mu: Any, V: Any, steps: int = 128) -> Any:
        """Where the directions V lead from μ, see `groundstate.distances.exp_map`."""
        from groundstate.math.distances.exponential import exp_map

        return exp_map(self, mu, V, steps)


class ConstantMetric(RiemannianMetric):
    """The same M everywhere: straight lines are shortest, lengths are Mahalanobis distances.

    Parameters
    ----------
    M : ``(d, d)``, positive definite

    Examples
    --------
    >>> ConstantMetric([[4.0, 0.0], [0.0, 1.0]]).length([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    3.0
    """

    def __init__(self, M: Any) -> None:
        self.M = as_tensor(M, "M")
        if self.M.ndim != 2 or self.M.shape[0] != self.M.shape[1]:
            raise ShapeError(f"M needs shape (d, d), got {tuple(self.M.shape)}")

    def matrix(self, x: Tensor) -> Tensor:
        return self.M.to(x).expand(len(x), *self.M.shape)


class PullbackMetric(RiemannianMetric):
    r""":math:`M(x) = J_f(x)^\top J_f(x)`: a curve is as long as its image under f.

    Parameters
    ----------
    f : a differentiable function of a point ``(d,)``, written in torch

    Examples
    --------
    >>> polar = PullbackMetric(lambda x: x[0] * torch.stack([x[1].cos(), x[1].sin()]))
    >>> polar.tensor([2.0, 0.3]).round(6).tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        if not callable(f):
            raise TypeError(f"f must be a function of a point, got {f!r:.60}")
        self.f = f

    def _jacobian(self, x: Tensor) -> Tensor:
        J: Tensor = torch.func.vmap(torch.func.jacrev(self.f))(x)  # (n, ..., d)
        return J.reshape(len(x), -1, x.shape[-1])

    def matrix(self, x: Tensor) -> Tensor:
        J = self._jacobian(x)
        return J.mT @ J

    def quadratic(self, x: Tensor, v: Tensor) -> Tensor:
        return (self._jacobian(x) @ v[..., None])[..., 0].square().sum(-1)


def pullback_metric(f: Callable[[Tensor], Tensor], x: Any) -> Any:
    r""":math:`M(x) = J_f(x)^\top J_f(x)` of a differentiable function, ``(..., d, d)``.

    Parameters
    ----------
    f : a differentiable function of a point ``(d,)``, written in torch
    x : ``(..., d)``

    Examples
    --------
    >>> pullback_metric(lambda x: 3 * x, [1.0]).tolist()
    [[9.0]]
    """
    return PullbackMetric(f).tensor(x)
