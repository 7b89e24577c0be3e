r"""Raising a bound can lower the likelihood that it bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.energy import Energy, LinearGaussianEnergy, Space
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import Watch
from groundstate.infer import Gaussian, posterior
from groundstate.infer import Variational as Fitted
from groundstate.learn import EM, NLL, Variational, elbo, fit

F64 = torch.float64
EIGENVALUES = (9.0, 4.0, 0.5, 0.3, 0.2)


@dataclass(frozen=True)
class UnitGaussian(Gaussian):
    r"""Normal distributions :math:`N(m, I)`: only the mean is free."""

    def size(self, space: Space) -> int:
        return math.prod(space.shape)

    def split(self, space: Space, params: Tensor) -> tuple[Tensor, Tensor]:
        return params, torch.ones_like(params)


@experiment("ENE-X-bound-vs-lik", theme="energy", title="Raising the bound can lower log p")
def bound_vs_lik(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With q restricted to a family, the best bound is not at the best likelihood.

    Data with covariance eigenvalues (9, 4, .5, .3, .2), the energy
    :math:`\tfrac12\|x - Wz - b\|^2 + \tfrac12\|z\|^2` with two-dimensional z, and
    :math:`q = N(m(x), I)`. Likelihood wants loadings :math:`\|w_j\|^2 = \lambda_j - 1`, where the
    posterior is narrow; the bound pays :math:`\tfrac12\|w_j\|^2` for the width of q and wants
    :math:`\sqrt{\lambda_j} - 1`. Variational EM from the maximum of the likelihood climbs the bound
    and walks downhill in :math:`\log p`. Nothing is random.
    """
    scale = torch.tensor(EIGENVALUES, dtype=F64).mul(5).sqrt().diag()
    x = torch.cat([scale, -scale])  # mean 0, covariance diag(EIGENVALUES)
    energy = LinearGaussianEnergy(5, 2, s=1.0).double()
    with torch.no_grad():
        energy.W.zero_()
        energy.W[0, 0], energy.W[1, 1] = math.sqrt(8.0), math.sqrt(3.0)
    before = _measure(energy, x)
    watch = Watch(lambda e: torch.tensor(_measure(e, x), dtype=F64))
    rule = NLL(latent=Variational(UnitGaussian()))
    solver = EM(max_iter=200, tol=1e-12)
    fit(energy, {"x": x}, rule, solver, callbacks=[watch], random_state=seed)
    after = _measure(energy, x)
    path = watch.seen  # (iterations + 1, 2)
    loadings = energy.W.detach().square().sum(0).sort(descending=True).values.tolist()
    fell = float((path[:-1, 0] - path[1:, 0]).max())

    claims = [
        Claim.close("bound at the maximum of the likelihood", before[0], -11.594693, tol=1e-6),
        Claim.close("bound after climbing it", after[0], -9.094693, tol=1e-6),
        Claim.close("log p at its maximum", before[1], -7.886452, tol=1e-6),
        Claim.close("log p after climbing the bound", after[1], -8.490572, tol=1e-6),
        Claim.at_most("largest fall of the bound in an iteration", fell, 1e-10),
    ]
    numbers = {
        "bound": [before[0], after[0]],
        "log p": [before[1], after[1]],
        "squared loadings": loadings,
        "iterations": len(path) - 1,
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        at = torch.arange(2)
        for i, (label, colour) in enumerate(zip(("bound", "log p"), COLOURS)):
            values = [before[i], after[i]]
            bars = left.bar(at + 0.4 * i - 0.2, [v + 13 for v in values], 0.38, bottom=-13)
            for bar in bars:
                bar.set_color(colour)
            bars.set_label(label)
            for j, v in enumerate(values):
                left.annotate(f"{v:.2f}", (j + 0.4 * i - 0.2, v + 0.1), ha="center", fontsize=8)
            right.plot(path[:, i].numpy(), color=colour, label=label)
        left.set_xticks(at, ["maximum of log p", "maximum of the bound"])
        left.set(ylim=(-13, -7), title="nats per row")
        left.legend(loc="upper left")
        right.set(title="on the way", xlabel="iteration of variational EM", ylim=(-13, -7))

    return Result(claims, numbers, draw)


def _measure(energy: Energy, x: Tensor) -> tuple[float, float]:
    """Mean bound at the best q of the family, and mean log p."""
    with torch.no_grad():
        q = posterior(energy, "z", {"x": x}, method=Fitted(UnitGaussian(), tol=1e-8))
        found = elbo(energy, q, {"x": x})
        assert found.gap is not None
        return float(found.value.mean()), float((found.value + found.gap).mean())
