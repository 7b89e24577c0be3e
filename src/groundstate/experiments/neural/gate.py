r"""Additive paths carry gradients through many layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn.gradients import jacobian
from groundstate.nn import Residual, init_

WIDTH = 32
DEPTHS = (20, 40, 60, 80, 100)


class Gated(nn.Module):
    r""":math:`h \mapsto g\odot h + (1-g)\odot\tanh(Wh)` with :math:`g = \sigma(Vh + b)`."""

    def __init__(self, width: int, bias: float) -> None:
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(width, width, bias=False), nn.Tanh())
        self.gate = nn.Sequential(nn.Linear(width, width, bias=False))
        self.bias = bias

    def forward(self, h: Tensor) -> Tensor:
        g = torch.sigmoid(self.gate(h) + self.bias)
        kept: Tensor = g * h + (1 - g) * self.branch(h)
        return kept


def dense() -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.Tanh())


def layer(kind: str) -> nn.Module:
    if kind == "plain tanh":
        return dense()
    if kind == "residual":
        return Residual(dense())
    return Gated(WIDTH, float(kind.rsplit(" ", 1)[1]))


KINDS = ("plain tanh", "residual", "gated, bias 3", "gated, bias 0")


@torch.no_grad()
def norms(kind: str, key: Key, shared: bool) -> list[float]:
    r"""Largest singular value of :math:`\partial h_t/\partial h_0` for t = 1 … 100."""
    g = key.fold("weights").torch()
    with torch.random.fork_rng(devices=[]):  # weights of torch's own are drawn over, draws undone
        cell = layer(kind)
    cell = init_(cell, "torch", g).double()
    h = torch.randn(WIDTH, generator=key.fold("start").torch(), dtype=torch.float64)
    J = torch.eye(WIDTH, dtype=torch.float64)
    found = []
    for _ in range(max(DEPTHS)):
        if not shared:
            cell = init_(cell, "torch", g)
        J = jacobian(cell, h) @ J
        h = cell(h)
        found.append(float(torch.linalg.matrix_norm(J, 2)))
    return found


@experiment("NEU-X-gate", theme="neural", title="Additive paths keep gradients")
def gate(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The gradient through T layers is the product :math:`\prod_t\partial h_t/\partial h_{t-1}`. Through
    :math:`h_t = \tanh(W_th_{t-1})` it vanishes; with an additive path, :math:`h + \tanh(Wh)` or
    :math:`g\odot h + (1-g)\odot\tanh(Wh)` with :math:`g = \sigma(Vh + b)`, every factor holds a part
    of the identity. How much is kept depends on the gate: :math:`\sigma(3)^{100} \approx 0.008`, but
    :math:`\sigma(0)^{100} \approx 10^{-30}`.

    Width 32, up to 100 layers, weights uniform on :math:`\pm1/\sqrt{32}`; the norm is the largest
    singular value of :math:`\partial h_T/\partial h_0`. The same with one layer repeated, a recurrent
    net, is drawn dashed.
    A run takes about a second; quick ones are the same.
    """
    key = Key.of(seed)
    deep = {kind: norms(kind, key, shared=False) for kind in KINDS}
    repeated = {kind: norms(kind, key, shared=True) for kind in KINDS}
    last = {kind: values[-1] for kind, values in deep.items()}
    claims = [
        Claim.below("100 layers, plain tanh", last["plain tanh"], 1e-5),
        Claim.above("100 layers, residual", last["residual"], 1.0),
        Claim.above("100 layers, gated with bias 3", last["gated, bias 3"], 1e-2),
        Claim.below("100 layers, gated with bias 0", last["gated, bias 0"], 1e-10),
        Claim.below("100 steps of one layer, plain tanh", repeated["plain tanh"][-1], 1e-5),
        Claim.above("100 steps of one layer, gated with bias 3",
                    repeated["gated, bias 3"][-1], 1e-2),
    ]  # fmt: skip
    numbers = {"depths": list(DEPTHS),
               "layers": {k: [v[T - 1] for T in DEPTHS] for k, v in deep.items()},
               "steps": {k: [v[T - 1] for T in DEPTHS] for k, v in repeated.items()}}  # fmt: skip

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for kind, colour in zip(KINDS, COLOURS):
            ax.semilogy(range(1, 101), deep[kind], color=colour, label=kind)
            ax.semilogy(range(1, 101), repeated[kind], color=colour, linestyle="--", linewidth=0.8)
        ax.axhline(1, color="black", linewidth=0.5)
        ax.set(title="largest singular value of ∂h_T/∂h_0 (dashed: one layer repeated)",
               xlabel="T", ylim=(1e-26, 1e6))  # fmt: skip
        ax.legend(loc="lower left")

    return Result(claims, numbers, draw, size=(7.0, 3.6))
