r"""Flows that are solutions of a differential equation, :math:`\dot x = v(t, x)`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.math.ode import METHODS, integrate
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.initialise import init_, linear
from groundstate.nn.flows.transform import Transform

GRADIENTS = ("backprop", "adjoint", "checkpoint")
EXACT = 10  # features up to which the trace is exact unless asked otherwise


class Velocity(nn.Module):
    r"""A network :math:`v(t, x, c)` of time, state and context, with the derivative along directions
    in the same pass.

    Time enters as itself and as cosines and sines of its multiples.

    Parameters
    ----------
    features : d
    hidden_layer_sizes : widths
    activation : of hidden layers, smooth for densities to be smooth
    context : q, numbers that v depends on
    frequencies : of time
    generator : source of the initial weights; the last layer starts at zero

    Examples
    --------
    >>> v = Velocity(2, (8,))
    >>> v(torch.tensor(0.5), torch.zeros(3, 2)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        features: int,
        hidden_layer_sizes: Sequence[int] = (64, 64),
        activation: str = "silu",
        context: int = 0,
        frequencies: int = 3,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.features, self.context, self.activation = features, context, activation
        self.hidden_layer_sizes, self.frequencies = tuple(hidden_layer_sizes), frequencies
        self.act = make_activation(activation)
        width, layers = features + context + 1 + 2 * frequencies, []
        for size in (*self.hidden_layer_sizes, features):
            layers.append(linear(width, size))
            width = size
        self.layers = nn.ModuleList(layers)
        init_(self.layers, "he", generator)
        nn.init.zeros_(layers[-1].weight)
        nn.init.zeros_(layers[-1].bias)

    def config(self) -> dict[str, Any]:
        return {
            "features": self.features, "hidden_layer_sizes": list(self.hidden_layer_sizes),
            "activation": self.activation, "context": self.context,
            "frequencies": self.frequencies,
        }  # fmt: skip

    def _inputs(self, t: Tensor, x: Tensor, context: Tensor | None) -> Tensor:
        time = torch.as_tensor(t).to(x).expand(*x.shape[:-1], 1)
        angle = time * (
            math.pi * torch.arange(1, self.frequencies + 1, device=x.device, dtype=x.dtype)
        )
        parts = [x, time, angle.cos(), angle.sin()]
        return torch.cat(parts if context is None else [*parts, context], -1)

    def forward(self, t: Tensor, x: Tensor, context: Tensor | None = None) -> Tensor:
        h = self._inputs(t, x, context)
        *hidden, last = self.layers
        for layer in hidden:
            h = self.act(layer(h))
        v: Tensor = last(h)
        return v

    def push(
        self, t: Tensor, x: Tensor, context: Tensor | None, along: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""v ``(B, d)`` and :math:`(\partial v/\partial x)\,u` ``(m, B, d)`` for directions u ``(m, 1, d)``."""
        h, moved = self._inputs(t, x, context), None
        *hidden, last = self.layers
        for layer in hidden:
            W: Tensor = layer.weight  # type: ignore[assignment]
            pre = layer(h)
            turned = along @ W[:, : self.features].T if moved is None else moved @ W.T
            h, slope = _with_slope(self.activation, self.act, pre)
            moved = turned * slope
        W = last.weight  # type: ignore[assignment]
        out = along @ W[:, : self.features].T if moved is None else moved @ W.T
        v: Tensor = last(h)
        return v, out.expand(len(along), *v.shape)


def _with_slope(name: str, act: Callable[[Tensor], Tensor], z: Tensor) -> tuple[Tensor, Tensor]:
    """An activation and its derivative, entry by entry."""
    if name == "tanh":
        a = torch.tanh(z)
        return a, 1 - a.square()
    if name in ("silu", "swish"):
        s = torch.sigmoid(z)
        a = z * s
        return a, torch.addcmul(s, a, 1 - s)
    if name == "softplus":
        return functional.softplus(z), torch.sigmoid(z)
    keep = torch.is_grad_enabled()
    with torch.enable_grad():
        at = z if z.requires_grad else z.detach().requires_grad_()
        a = act(at)
        (slope,) = torch.autograd.grad(a.sum(), at, create_graph=keep, retain_graph=True)
    return (a, slope) if keep else (a.detach(), slope)


class Continuous(Transform):
    r"""The way of points along a field, from base at t = 0 to data at t = 1:
    :math:`\dot x = v(t, x)`, :math:`\frac{d}{dt}\log p(x_t) = -\mathrm{tr}\,\partial v/\partial x`.

    The trace is exact for at most 10 features, else Hutchinson's estimate
    :math:`u^\top(\partial v/\partial x)\,u` with fixed signs u, new ones for each call while training.

    Parameters
    ----------
    velocity : module of (t, x, context); one with a method ``push`` gives its derivatives itself
    features : d
    context : numbers that v depends on
    trace : "auto", "exact" or "hutchinson"
    method : of ``groundstate.ode.integrate``
    n_steps : for methods with fixed steps
    rtol, atol : of dopri5
    gradient : "backprop" through the solver, "checkpoint" or "adjoint"
    n_probes : directions of the estimate

    Examples
    --------
    >>> class Grow(nn.Module):
    ...     def forward(self, t, x, context=None):
    ...         return 0.5 * x
    >>> f = Continuous(Grow(), 2)
    >>> x, ladj = f.inverse(torch.ones(1, 2))  # from base to data: e^(1/2), and t tr A = 1
    >>> [round(v, 4) for v in x[0].tolist()], round(ladj.item(), 4)
    ([1.6487, 1.6487], 1.0)
    """

    probe: Tensor
    calls: Tensor

    def __init__(
        self,
        velocity: nn.Module,
        features: int,
        context: int = 0,
        trace: str = "auto",
        method: str = "dopri5",
        n_steps: int = 20,
        rtol: float = 1e-5,
        atol: float = 1e-5,
        gradient: str = "backprop",
        n_probes: int = 1,
    ) -> None:
        super().__init__()
        if trace not in ("auto", "exact", "hutchinson"):
            raise ValueError(f"trace must be 'auto', 'exact' or 'hutchinson', got {trace!r}")
        if method not in METHODS or method == "radau":
            known = ", ".join(m for m in METHODS if m != "radau")
            raise ValueError(f"method must be one of {known}, got {method!r}")
        if gradient not in GRADIENTS:
            raise ValueError(f"gradient must be one of {', '.join(GRADIENTS)}, got {gradient!r}")
        self.velocity, self.features, self.context = velocity, features, context
        self.trace, self.method, self.n_steps = trace, method, n_steps
        self.rtol, self.atol, self.gradient, self.n_probes = rtol, atol, gradient, n_probes
        self.register_buffer("probe", self._signs(0), persistent=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def config(self) -> dict[str, Any]:
        return {
            "velocity": self.velocity, "features": self.features, "context": self.context,
            "trace": self.trace, "method": self.method, "n_steps": self.n_steps,
            "rtol": self.rtol, "atol": self.atol, "gradient": self.gradient,
            "n_probes": self.n_probes,
        }  # fmt: skip

    @property
    def exact(self) -> bool:
        """Whether log-determinants are exact up to the solver."""
        return self.trace == "exact" or (self.trace == "auto" and self.features <= EXACT)

    def _signs(self, seed: int) -> Tensor:
        if self.exact:
            return torch.eye(self.features)[:, None]  # (d, 1, d)
        g = torch.Generator(device="cpu").manual_seed(seed)
        size = (self.n_probes, 1, self.features)
        bits = torch.randint(2, size, generator=g, device="cpu")
        return (2 * bits - 1).to(torch.get_default_dtype())

    def _directions(self, like: Tensor) -> Tensor:
        if self.exact or not self.training:
            return self.probe.to(like)
        self.calls += 1
        return self._signs(int(self.calls)).to(like)

    def divergence(
        self, t: Tensor, x: Tensor, context: Tensor | None, along: Tensor
    ) -> tuple[Tensor, Tensor]:
        """v ``(B, d)`` and the trace of its Jacobian ``(B,)`` from these directions."""
        push = getattr(self.velocity, "push", None)
        if push is None:
            v, moved = self._pulled(t, x, context, along)
        else:
            v, moved = push(t, x, context, along)
        found = (moved * along).sum(-1)  # (m, B)
        return v, found.sum(0) if self.exact else found.mean(0)

    def _pulled(
        self, t: Tensor, x: Tensor, context: Tensor | None, along: Tensor
    ) -> tuple[Tensor, Tensor]:
        """v and :math:`(\\partial v/\\partial x)^\\top u`, which has the same product with u, of any module."""
        keep = torch.is_grad_enabled()
        with torch.enable_grad():
            at = x if keep and x.requires_grad else x.detach().requires_grad_()
            v: Tensor = self.velocity(t, at, *((context,) if self.context else ()))
            moved = [
                torch.autograd.grad(v, at, u.expand_as(v), create_graph=keep, retain_graph=True)[0]
                for u in along
            ]
        return v if keep else v.detach(), torch.stack(moved)

    def _solver(self) -> dict[str, Any]:
        kind: dict[str, Any] = {"gradient": self.gradient}
        if self.method == "dopri5":
            return kind | {"rtol": self.rtol, "atol": self.atol, "rows": True}
        return kind | {"steps": self.n_steps}

    def _carry(self, x: Tensor, context: Tensor | None, start: float) -> tuple[Tensor, Tensor]:
        along = self._directions(x)

        def field(t: Tensor, state: Tensor) -> Tensor:
            v, trace = self.divergence(t, state[:, :-1], context, along)
            return torch.cat((v, trace[:, None]), 1)

        state = torch.cat((x, x.new_zeros(len(x), 1)), 1)
        times = torch.tensor([start, 1 - start], dtype=x.dtype, device=x.device)
        theta = tuple(p for p in self.velocity.parameters() if p.requires_grad)
        end = integrate(field, state, times, self.method, params=theta, **self._solver())[-1]
        return end[:, :-1], end[:, -1]

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._carry(x, context, 1.0)

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._carry(z, context, 0.0)

    def path(
        self,
        z: Tensor,
        context: Tensor | None = None,
        *,
        method: str | None = None,
        n_steps: int | None = None,
        times: Tensor | None = None,
        guidance: float = 1.0,
    ) -> Tensor:
        """States on the way from base points to data, ``(m, B, d)``, without log-determinants.

        Parameters
        ----------
        z : ``(B, d)``
        context : ``(B, q)``
        method, n_steps : unlike those of the map
        times : from 0 to 1, just these two unless given
        guidance : w of :math:`v_\\varnothing + w\\,(v_c - v_\\varnothing)`, where the empty context is zero
        """
        method, n_steps = method or self.method, n_steps or self.n_steps

        def field(t: Tensor, x: Tensor) -> Tensor:
            if context is None:
                v: Tensor = self.velocity(t, x)
                return v
            if guidance == 1.0:
                given: Tensor = self.velocity(t, x, context)
                return given
            t = torch.as_tensor(t).to(x).expand(len(x), 1)
            both = torch.cat((context, torch.zeros_like(context)))
            with_c, without = self.velocity(t.repeat(2, 1), x.repeat(2, 1), both).chunk(2)
            guided: Tensor = without + guidance * (with_c - without)
            return guided

        at = torch.tensor([0.0, 1.0]) if times is None else times
        at = at.to(z)
        if method == "dopri5":
            kind: dict[str, Any] = {"rtol": self.rtol, "atol": self.atol, "rows": True}
        else:
            kind = {"steps": n_steps if times is None else max(1, round(n_steps / (len(at) - 1)))}
        states: Tensor = integrate(field, z, at, method, **kind)
        return states
