r"""Flows of one layer that run from base to data: planar and radial."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.nn.flows.transform import Transform

ONE = math.log(math.e - 1)  # softplus of it is 1


class _Amortised(Transform):
    """Parameters that are numbers, or numbers plus a linear function of the context."""

    def __init__(self, features: int, context: int, start: Tensor) -> None:
        super().__init__()
        self.features, self.context = features, context
        self.parameter = nn.Parameter(start)
        if context:
            self.weight = nn.Parameter(torch.zeros(len(start), context))

    def config(self) -> dict[str, Any]:
        return {"features": self.features, "context": self.context}

    def _numbers(self, context: Tensor | None) -> Tensor:
        """``(B or 1, p)``"""
        if context is None:
            return self.parameter[None]
        return functional.linear(context, self.weight, self.parameter)


class Planar(_Amortised):
    r"""Stretch along one direction, :math:`x = z + \hat u\tanh(w^\top z + b)` with
    :math:`\hat u = u + (-1 + \mathrm{softplus}(w^\top u) - w^\top u)\,w/\|w\|^2`, which keeps it
    invertible, and log-determinant :math:`\log|1 + (1-\tanh^2)\hat u^\top w|`.

    Here ``forward`` runs from base to data, so that draws have exact densities; ``inverse`` solves one
    monotone equation along w. In a ``Flow`` stand ``Inverse(Planar(d))``, as flows map data to base.

    Parameters
    ----------
    features : d
    context : numbers that w, u and b depend on linearly
    generator : source of the first w; u starts where the map is the identity

    Examples
    --------
    >>> f = Planar.of(w=[1.0, -1.0], u=[0.5, 0.25], b=0.2)
    >>> x, ladj = f(torch.tensor([[0.3, -0.7]]))
    >>> [round(v, 4) for v in x[0].tolist()], round(ladj.item(), 4)
    ([0.5401, -0.3148], -0.0546)
    """

    def __init__(
        self, features: int, context: int = 0, *, generator: torch.Generator | None = None
    ) -> None:
        generator = generator or torch.Generator().manual_seed(0)
        w = torch.randn(features, generator=generator) / features**0.5
        u = ONE * w / w.square().sum()
        super().__init__(features, context, torch.cat((w, u, torch.zeros(1))))

    @classmethod
    def of(cls, w: Any, u: Any, b: float) -> Planar:
        """The map with these parameters."""
        made = cls(len(w))
        with torch.no_grad():
            made.parameter.copy_(torch.tensor([*w, *u, b]))
        return made

    def parts(self, context: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """w, û ``(B or 1, d)`` and b ``(B or 1,)``."""
        d = self.features
        p = self._numbers(context)
        w, u, b = p[:, :d], p[:, d : 2 * d], p[:, 2 * d]
        wu = (w * u).sum(-1, keepdim=True)
        u = u + (functional.softplus(wu) - 1 - wu) * w / w.square().sum(-1, keepdim=True)
        return w, u, b

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        w, u, b = self.parts(context)
        t = torch.tanh((w * x).sum(-1) + b)
        return x + u * t[:, None], torch.log1p((1 - t.square()) * (u * w).sum(-1))

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        w, u, b = self.parts(context)
        c, target = (u * w).sum(-1), (w * z).sum(-1) + b  # a + c tanh(a) = target, c > -1
        with torch.no_grad():
            a = _along(target, c.expand_as(target))
        # one step of Newton from the root changes nothing but carries the gradient
        t = torch.tanh(a)
        slope = 1 + c * (1 - t.square())
        a = a - (a + c * t - target) / slope.detach()
        t = torch.tanh(a)
        return z - u * t[:, None], -torch.log1p((1 - t.square()) * c)


def _along(target: Tensor, c: Tensor) -> Tensor:
    """The root a of a + c·tanh(a) = target: bisection, ended by steps of Newton that stay inside."""
    low, high = target - c.abs(), target + c.abs()
    for _ in range(25):
        a = 0.5 * (low + high)
        above = a + c * torch.tanh(a) > target
        low, high = torch.where(above, low, a), torch.where(above, a, high)
    for _ in range(3):
        t = torch.tanh(a)
        a = (a - (a + c * t - target) / (1 + c * (1 - t.square()))).clamp(low, high)
    return a


class Radial(_Amortised):
    r"""Pull towards or push away from a point, :math:`x = z + \beta\,(z - c)/(\alpha + r)` with
    :math:`r = \|z - c\|`, :math:`\alpha = \mathrm{softplus}(\cdot) > 0`, :math:`\beta > -\alpha`, and
    log-determinant :math:`(d-1)\log(1 + \beta h) + \log(1 + \beta h - \beta rh^2)`,
    :math:`h = 1/(\alpha + r)`.

    ``forward`` runs from base to data like that of ``Planar``; the inverse has a closed form.

    Parameters
    ----------
    features : d
    context : numbers that c, α and β depend on linearly
    generator : source of the first c; β starts at 0

    Examples
    --------
    >>> f = Radial(2)
    >>> x = f(torch.tensor([[0.3, -0.7]]))[0]
    >>> torch.allclose(f.inverse(x)[0], torch.tensor([[0.3, -0.7]]))
    True
    """

    def __init__(
        self, features: int, context: int = 0, *, generator: torch.Generator | None = None
    ) -> None:
        generator = generator or torch.Generator().manual_seed(0)
        c = torch.randn(features, generator=generator)
        super().__init__(features, context, torch.cat((c, torch.full((2,), ONE))))

    def parts(self, context: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """c ``(B or 1, d)``, α and β ``(B or 1, 1)``."""
        p, d = self._numbers(context), self.features
        alpha = functional.softplus(p[:, d : d + 1])
        return p[:, :d], alpha, functional.softplus(p[:, d + 1 :]) - alpha

    def _ladj(self, r: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
        h = 1 / (alpha + r)
        bh = beta * h
        return ((self.features - 1) * torch.log1p(bh) + torch.log1p(bh - bh * r * h))[:, 0]

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        c, alpha, beta = self.parts(context)
        r = _length(x - c)
        return x + beta / (alpha + r) * (x - c), self._ladj(r, alpha, beta)

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        c, alpha, beta = self.parts(context)
        rho = _length(z - c)
        # r (1 + β/(α + r)) = ρ is r² + pr − αρ = 0
        p = alpha + beta - rho
        root = (p.square() + 4 * alpha * rho).sqrt()
        r = torch.where(p > 0, 2 * alpha * rho / (root + p.abs()), 0.5 * (root - p))
        return c + (z - c) / (1 + beta / (alpha + r)), -self._ladj(r, alpha, beta)


def _length(v: Tensor) -> Tensor:
    """Norms ``(B, 1)`` whose gradient at 0 is finite."""
    return (v.square().sum(-1, keepdim=True) + torch.finfo(v.dtype).tiny).sqrt()
