r"""Taylor-mode derivatives: value, first and second derivatives of a network in one pass.

A jet is a stack of tensors ``(1 + k + p, N, w)``: the value :math:`h`, its derivatives
:math:`h_i` in k coordinates and p second derivatives :math:`h_{ij}`. A linear layer acts on all of
them with one product of matrices, an elementwise function by

.. math:: \sigma(z),\qquad \sigma'(z)z_i,\qquad \sigma''(z)z_iz_j + \sigma'(z)z_{ij}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import NotApplicable
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.coordinate.dense import dense, dense_jet
from groundstate.nn.coordinate.net import CoordinateNet, FourierFeatures, Rescale, Sine

Index = tuple[int, ...]  # coordinates differentiated in: () value, (0,) first, (0, 1) mixed
Pair = tuple[int, int]  # places of the two first derivatives in the stack
Curve = Callable[[Tensor], tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]]


def jet(net: nn.Module, x: Tensor, wanted: Sequence[Index]) -> dict[Index, Tensor]:
    """Derivatives of ``net`` at points x ``(N, d)``, each ``(N, m)``, by what they are taken in.

    Raises ``NotApplicable`` for orders above two and for modules whose jets are not written.
    """
    asked = {tuple(sorted(index)) for index in wanted}
    if any(len(index) > 2 for index in asked):
        raise NotApplicable("jets hold derivatives up to order two")
    second = sorted(index for index in asked if len(index) == 2)
    first = sorted({i for index in asked for i in index})
    place = {i: 1 + at for at, i in enumerate(first)}
    pairs = tuple((place[i], place[j]) for i, j in second)
    names: list[Index] = [(), *((i,) for i in first), *second]
    try:
        return dict(zip(names, dense_jet(dense(net, x), x, first, pairs)))
    except NotApplicable:
        pass
    seeds = torch.zeros(len(first), 1, x.shape[1], dtype=x.dtype, device=x.device)
    for at, i in enumerate(first):
        seeds[at, 0, i].fill_(1.0)  # a written number would be copied to a GPU
    zeros = seeds.new_zeros(len(second), 1, 1)
    h = torch.cat([
        x[None], seeds.expand(-1, *x.shape), zeros.expand(-1, *x.shape),
    ])  # fmt: skip
    out = push(net, h, pairs)
    return dict(zip(names, out))


@singledispatch
def push(module: nn.Module, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    """The jet behind a module, of the jet before it."""
    raise NotApplicable(f"jets through {type(module).__name__} are not written")


@push.register
def _(module: nn.Sequential, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    for part in module:
        h = push(part, h, pairs)
    return h


@push.register
def _(module: CoordinateNet, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    return push(module.layers, h, pairs)


@push.register
def _(module: MLP, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    return push(module.layers, h, pairs)


@push.register
def _(module: nn.Identity, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    return h


@push.register
def _(module: nn.Linear, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    return _linear(h, module.weight, module.bias)


@push.register
def _(module: Rescale, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    scaled = h * module.scale
    return torch.cat([scaled[:1] + module.shift, scaled[1:]])


@push.register
def _(module: FourierFeatures, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    z = _linear(h, 2 * math.pi * module.B, None)
    return torch.cat([Elementwise.apply(z, pairs, f) for f in (_sine, _cosine)], -1)


def _linear(h: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
    if b is None:
        return h @ W.T
    # one product for all; the bias belongs to the value alone
    K, N, d = h.shape
    out = (h.reshape(K * N, d) @ W.T).view(K, N, -1)
    return torch.cat([out[:1] + b, out[1:]]) if K > 1 else out + b


class Elementwise(torch.autograd.Function):
    """An elementwise function on a jet, with its gradient written out."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, pairs: tuple[Pair, ...], curve: Curve) -> Tensor:
        f, d1, d2, d3 = curve(z[0])
        k = len(z) - 1 - len(pairs)
        out = torch.empty_like(z)
        out[0] = f
        torch.mul(z[1:], d1, out=out[1:])
        for at, (i, j) in enumerate(pairs, 1 + k):
            out[at].addcmul_(d2 * z[i], z[j])
        ctx.save_for_backward(z, d1, d2)
        ctx.pairs, ctx.k, ctx.third = pairs, k, d3
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (g,) = grads
        z, d1, d2 = ctx.saved_tensors
        back = g * d1
        if ctx.k:
            inner = (g[1:] * z[1:]).sum(0)  # all terms with σ''
            back[0].addcmul_(d2, inner)
        if ctx.pairs:
            third = None
            for at, (i, j) in enumerate(ctx.pairs, 1 + ctx.k):
                w = d2 * g[at]
                back[i].addcmul_(w, z[j])
                back[j].addcmul_(w, z[i])
                bent = g[at] * z[i] * z[j]
                third = bent if third is None else third.add_(bent)
            back[0].addcmul_(ctx.third(), third)
        return back, None, None


def _tanh(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]:
    s = torch.tanh(z)
    square = s * s
    d1 = 1 - square
    return s, d1, -2 * s * d1, lambda: d1 * (6 * square - 2)


def _sigmoid(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]:
    s = torch.sigmoid(z)
    d1 = s * (1 - s)
    return s, d1, d1 * (1 - 2 * s), lambda: d1 * (1 - 6 * d1)


def _sine(z: Tensor, omega: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]:
    s, c = torch.sin(omega * z), torch.cos(omega * z)
    return s, omega * c, -(omega**2) * s, lambda: -(omega**3) * c


def _cosine(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]:
    s, c = torch.sin(z), torch.cos(z)
    return c, -s, -c, lambda: s


def _gelu(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]:
    cdf = torch.special.ndtr(z)
    pdf = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return z * cdf, cdf + z * pdf, pdf * (2 - z * z), lambda: pdf * z * (z * z - 4)


def _silu(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]:
    s, a, b, c = _sigmoid(z)
    return z * s, s + z * a, 2 * a + z * b, lambda: 3 * b + z * c()


def _softplus(z: Tensor) -> tuple[Tensor, Tensor, Tensor, Callable[[], Tensor]]:
    s, a, b, _ = _sigmoid(z)
    return nn.functional.softplus(z), s, a, lambda: b


@push.register(nn.Tanh)
@push.register(nn.Sigmoid)
@push.register(nn.SiLU)
@push.register(nn.GELU)
@push.register(nn.Softplus)
def _(module: nn.Module, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    if getattr(module, "approximate", "none") != "none":
        raise NotApplicable("jets through the approximate GELU are not written")
    if isinstance(module, nn.Softplus) and module.beta != 1:
        raise NotApplicable(f"jets through Softplus(beta={module.beta}) are not written")
    curves: dict[type, Curve] = {
        nn.Tanh: _tanh, nn.Sigmoid: _sigmoid, nn.SiLU: _silu, nn.GELU: _gelu, nn.Softplus: _softplus,
    }  # fmt: skip
    out: Tensor = Elementwise.apply(h, pairs, curves[type(module)])
    return out


@push.register
def _(module: Sine, h: Tensor, pairs: tuple[Pair, ...]) -> Tensor:
    omega = module.omega
    out: Tensor = Elementwise.apply(h, pairs, lambda z: _sine(z, omega))
    return out
