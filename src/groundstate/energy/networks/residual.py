r"""A function that obeys an equation, :math:`e(u) = \text{residual}^2 + \text{misfit to data}`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.errors import ShapeError

Equation = Callable[[nn.Module, Tensor], Tensor]


class Residual(nn.Module):
    """An equation that gives u and its residuals together, in one pass over the network."""

    def joint(
        self, net: Callable[[Tensor], Tensor], x: Tensor, kind: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """u ``(B, m)`` and residuals ``(B, q)`` at points x ``(B, d)``; ``kind`` tells rows apart."""
        raise TypeError(f"{type(self).__name__} must define joint(net, x, kind)")

    def forward(self, net: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        return self.joint(net, x)[1]


class SlopeIs(nn.Module):
    r"""The equation :math:`u'(x) = c` of one coordinate, as a residual of u at points."""

    def __init__(self, c: float = 1.0) -> None:
        super().__init__()
        self.c = c

    def config(self) -> dict[str, Any]:
        return {"c": self.c}

    def forward(self, u: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        with torch.enable_grad():
            at = x if x.requires_grad else x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(u(at).sum(), at, create_graph=True)
        return slope - self.c


@registered(
    r"e(x, y) = w_f\|r(u_\theta, x)\|^2 + w_u\|u_\theta(x) - y\|^2",
    lambda: ResidualEnergy(
        nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)), SlopeIs(), 1, where="all"
    ),
)
class ResidualEnergy(Energy):
    r"""A function u and its equation :math:`r(u, x) = 0`, with rows that are points:
    :math:`e(x, y) = w_f\|r(u_\theta, x)\|^2 + w_u\|u_\theta(x) - y\|^2`.

    A row with a value y is a measurement, a boundary or an initial value; a row whose y is NaN is a
    collocation point, where only the equation speaks, or with a ``kind`` k > 0 (a context value) the
    k-th condition of a ``Residual``. The mean over rows is the loss of a
    physics-informed network; :math:`w_f, w_u` or row weights balance N_f and N_u points. Inference
    over θ is fitting u.

    Parameters
    ----------
    net : u, from coordinates ``(B, d)`` to ``(B, m)``
    residual : from u and points ``(B, d)`` to residuals ``(B, q)``; a module where the equation has
        parameters to learn or is to be saved
    d : number of coordinates
    m : number of components of u
    weights : :math:`(w_u, w_f)`
    where : the equation counts at "collocation" points or at "all" rows

    Examples
    --------
    >>> u = nn.Linear(1, 1)
    >>> _ = u.weight.data.fill_(1.0), u.bias.data.fill_(0.5)
    >>> e = ResidualEnergy(u, SlopeIs(1.0), 1)
    >>> e(x=torch.tensor([[0.0], [2.0]]), y=torch.tensor([[0.0], [float("nan")]])).tolist()
    [0.25, 0.0]
    """

    missing = frozenset({"y"})
    context = ("kind",)
    bounded_below = True

    def __init__(
        self,
        net: nn.Module,
        residual: Equation,
        d: int,
        m: int = 1,
        weights: tuple[float, float] = (1.0, 1.0),
        where: str = "collocation",
    ) -> None:
        super().__init__(x=Real(d), y=Real(m))
        if where not in ("collocation", "all"):
            raise ValueError(f"where is 'collocation' or 'all', got {where!r}")
        if min(weights) < 0:
            raise ValueError(f"weights of data and equation are at least 0, got {weights}")
        self.d, self.m, self.weights, self.where = d, m, tuple(weights), where
        self.net, self.residual = net, residual

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "residual": self.residual, "d": self.d, "m": self.m,
                "weights": list(self.weights), "where": self.where}  # fmt: skip

    def residuals(self, x: Tensor, kind: Tensor | None = None) -> Tensor:
        """r at points, ``(B, q)``."""
        return self.joint(x, kind)[1]

    def joint(self, x: Tensor, kind: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """u ``(B, m)`` and r ``(B, q)`` at points, in one pass where the equation offers it."""
        if isinstance(self.residual, Residual):
            u, r = self.residual.joint(self.net, x, kind)
        else:
            u, r = self.net(x), self.residual(self.net, x)
        if r.shape[:1] != x.shape[:1]:
            raise ShapeError(
                f"the equation gives residuals of shape {tuple(r.shape)} for {len(x)} points; one "
                "row per point is needed"
            )
        return u, r.reshape(len(x), -1)

    def forward(self, x: Tensor, y: Tensor, kind: Tensor | None = None) -> Tensor:
        seen = ~torch.isnan(y)  # (B, m)
        u, residuals = self.joint(x, kind)
        gap = u - torch.where(seen, y, 0.0)
        data = torch.where(seen, gap, 0.0).square().sum(1)
        r = residuals.square().sum(1)
        if self.where == "collocation":
            r = torch.where(seen.any(1), 0.0, r)
        return self.weights[0] * data + self.weights[1] * r

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        found: Tensor = self.net(x)
        return found
