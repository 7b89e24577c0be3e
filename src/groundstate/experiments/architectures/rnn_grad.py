r"""Gradients through time: they shrink or grow by a factor per item, and gates near 1 keep them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.nn import Recurrent

WIDTH, LAGS, LONG = 32, (1, 10, 50, 100), 100


def norms(net: Recurrent, x: Tensor) -> list[float]:
    """Largest singular value of the Jacobian of the last state in the state before each of the last
    1, 2, …, T items."""
    with torch.no_grad():
        before = torch.cat([torch.zeros(1, WIDTH, dtype=x.dtype), net(x)[0, :-1]])  # (T, H)
    before.requires_grad_(True)
    after = net.run(x.transpose(0, 1), None, before[None])[0][:, 0]  # all steps as rows of a batch
    rows = [
        torch.autograd.grad(after[:, j].sum(), before, retain_graph=True)[0] for j in range(WIDTH)
    ]
    jacobians = torch.stack(rows, 1)  # (T, H, H)
    whole, found = torch.eye(WIDTH, dtype=x.dtype), []
    for one in jacobians.flip(0):
        whole = whole @ one
        found.append(float(torch.linalg.matrix_norm(whole, 2)))
    return found


@experiment(
    "ARC-x-rnn-grad", theme="architectures", title="Gradients in time vanish, gates keep them"
)
def rnn_grad(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The gradient of a state in an earlier one is a product of Jacobians,
    :math:`\partial h_T/\partial h_t = \prod_{s>t}\partial h_s/\partial h_{s-1}`: its logarithm falls or
    rises linearly with the distance. Where the update gate is near 1, :math:`h_t\approx h_{t-1}`, the
    factors are near the identity.

    32 units, 100 items of noise; a simple network with torch's weights, one with weights of twice the
    critical size around its resting state, and gated units with the bias 0 and 3 of the update gate.
    """
    key = Key.of(seed)
    g = key.fold("items").torch()
    x = torch.randn(1, LONG, WIDTH, generator=g, dtype=torch.float64)

    def made(cell: str, bias: float = 0.0) -> Recurrent:
        return Recurrent(
            cell, WIDTH, WIDTH, update_bias=bias, generator=key.fold(cell).torch()
        ).double()

    wild = made("rnn")
    with torch.no_grad():
        for p in wild.core.parameters():
            if p.ndim == 1:
                p.zero_()
        weight: Tensor = wild.core.weight_hh_l0  # type: ignore[assignment]
        largest = torch.linalg.eigvals(weight).abs().max()
        weight.mul_(2 / largest)
    curves = {
        "simple": norms(made("rnn"), x),
        "simple, weights too large": norms(wild, 0 * x),
        "gated, bias 0": norms(made("gru"), x),
        "gated, bias 3": norms(made("gru", 3.0), x),
    }
    lag = np.arange(1, LONG + 1)
    straight = {
        name: float(np.corrcoef(lag[9:], np.log(row[9:]))[0, 1] ** 2)
        for name, row in curves.items()
    }
    at = {name: {n: row[n - 1] for n in LAGS} for name, row in curves.items()}
    claims = [
        Claim.below("simple: norm over 100 items", at["simple"][100], 1e-4),
        Claim.above("gated, bias 3: norm over 100 items", at["gated, bias 3"][100], 1e-2),
        Claim.below("gated, bias 0: norm over 100 items", at["gated, bias 0"][100], 1e-4),
        Claim.above(
            "weights too large: norm over 100 items", at["simple, weights too large"][100], 1e10
        ),
        *(
            Claim.above(f"{name}: R² of log norm on the distance", value, 0.95)
            for name, value in straight.items()
        ),
    ]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for (name, row), colour in zip(curves.items(), COLOURS):
            ax.semilogy(lag, row, color=colour, label=name)
        ax.set(xlabel="items between", ylabel="largest singular value of ∂h_T/∂h_t")
        ax.legend()

    return Result(claims, {"norms": at, "straightness": straight}, draw, size=(6.5, 3.6))
