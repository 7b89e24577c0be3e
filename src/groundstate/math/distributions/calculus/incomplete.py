"""The incomplete gamma and beta functions, with derivatives in all their arguments."""

from __future__ import annotations

from typing import Any

import scipy.special
import torch
from torch import Tensor

from groundstate.math.distributions.calculus.quadrature import log_integral

FAR = 700.0  # sinh and exp of it are the largest numbers


class Known(torch.autograd.Function):
    """A value with its density as the derivative in x and a smooth twin for the parameters."""

    @staticmethod
    def forward(
        ctx: Any, value: Any, density: Any, twin: Any, x: Tensor, *params: Tensor
    ) -> Tensor:
        ctx.functions = density, twin
        ctx.save_for_backward(x, *params)
        out: Tensor = value(x, *params)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, *params = ctx.saved_tensors
        density, twin = ctx.functions
        out: list[Tensor | None] = [grad * density(x, *params) if ctx.needs_input_grad[3] else None]
        wanted = [i for i, _ in enumerate(params) if ctx.needs_input_grad[4 + i]]
        out += [None] * len(params)
        if wanted:
            with torch.enable_grad():
                leaves = [p.detach().requires_grad_(i in wanted) for i, p in enumerate(params)]
                smooth = twin(x.detach(), *leaves)
                found = torch.autograd.grad(smooth, [leaves[i] for i in wanted], grad)
            for i, g in zip(wanted, found):
                out[1 + i] = g
        return (None, None, None, *out)


def gammainc(a: Tensor, x: Tensor, upper: bool = False) -> Tensor:
    r""":math:`P(a, x) = \frac1{\Gamma(a)}\int_0^x t^{a-1}e^{-t}dt`, or the rest of it, differentiable in
    a too."""
    a, x = torch.broadcast_tensors(a, x)
    sign = -1.0 if upper else 1.0

    def value(x: Tensor, a: Tensor) -> Tensor:
        part = torch.special.gammaincc if upper else torch.special.gammainc
        return part(a, x.clamp(min=0))

    def density(x: Tensor, a: Tensor) -> Tensor:
        safe = torch.where(x > 0, x, 1.0)
        p = ((a - 1) * safe.log() - safe - torch.lgamma(a)).exp()
        return sign * torch.where(x > 0, p, torch.where((x == 0) & (a == 1), 1.0, 0.0))

    def twin(x: Tensor, a: Tensor) -> Tensor:
        t = x.clamp(min=torch.finfo(x.dtype).tiny).log()
        t = t.clamp(-600.0, 690.0)
        ends = (t, torch.full_like(t, FAR)) if upper else (torch.full_like(t, -FAR), t)
        integral = log_integral(lambda u: a.unsqueeze(-1) * u - u.exp(), *ends)
        return (integral - torch.lgamma(a)).exp()

    out: Tensor = Known.apply(value, density, twin, x, a)
    return out


def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    r""":math:`I_x(a, b) = \frac1{B(a,b)}\int_0^x t^{a-1}(1 - t)^{b-1}dt`, differentiable in all three."""
    a, b, x = torch.broadcast_tensors(a, b, x)

    def twin(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        tiny = torch.finfo(x.dtype).tiny
        t = x.clamp(min=tiny).log() - torch.log1p(-x).clamp(min=-FAR)
        inside = lambda u: (  # noqa: E731
            a.unsqueeze(-1) * torch.nn.functional.logsigmoid(u)
            + b.unsqueeze(-1) * torch.nn.functional.logsigmoid(-u)
        )
        log_beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
        low = torch.full_like(t, -FAR)
        return (log_integral(inside, low, t.clamp(-600.0, 690.0)) - log_beta).exp()

    def value(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        x = x.clamp(0, 1)
        if x.device.type != "cpu":
            return torch.where(x <= 0, 0.0, torch.where(x >= 1, 1.0, twin(x, a, b)))
        found = scipy.special.betainc(*(v.detach().double().numpy() for v in (a, b, x)))
        return torch.as_tensor(found).to(x.dtype)

    def density(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        inside = (x > 0) & (x < 1)
        safe = torch.where(inside, x, 0.5)
        log_beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
        p = ((a - 1) * safe.log() + (b - 1) * torch.log1p(-safe) - log_beta).exp()
        return torch.where(inside, p, 0.0)

    out: Tensor = Known.apply(value, density, twin, x, a, b)
    return out
