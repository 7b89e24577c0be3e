r"""A distribution fitted by cross-entropy to one it cannot reach takes over what it can: here the mean."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor
from torch.distributions import Geometric, Poisson

from groundstate.compute.random import Key
from groundstate.energy import DensityEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import LBFGS, NLL, fit
from groundstate.math.distributions.operations import draw
from groundstate.math.divergences import kl
from groundstate.math.info import cross_entropy, entropy

F64 = torch.float64
COUNTS = torch.arange(64, dtype=F64)  # p(64 or more) = 2^-64: below the rounding of the sums


@experiment("ENE-X-fit-kl", theme="energy", title="Cross-entropy fit matches the mean")
def fit_kl(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Fit :math:`q = \mathrm{Poisson}(\lambda)` to :math:`p = \mathrm{geometric}(\tfrac12)` on
    {0, 1, …} by lowering :math:`H(p, q_\lambda) = -E_p\log q_\lambda = H(p) + KL(p\|q_\lambda)`.

    :math:`\partial_\lambda H(p, q_\lambda) = 1 - E_p[x]/\lambda` is zero where the means agree,
    λ = 1. There H(p, q) = 1.507834, of which H(p) = 2 log 2 cannot be saved and KL = .121540 is the
    price of the wrong family: the variances stay 2 and 1. On a sample the fit is the sample's mean.
    """
    p_distribution = Geometric(torch.tensor(0.5, dtype=F64))
    p = p_distribution.log_prob(COUNTS).exp()
    rates = [_fit(COUNTS, p, start) for start in (0.2, 1.0, 5.0)]
    rate = rates[0]
    q = _poisson(rate)
    cross, price = float(cast(Tensor, cross_entropy(p, q))), float(cast(Tensor, kl(p, q)))
    kept = float(cast(Tensor, entropy(p)))
    worse = min(float(cast(Tensor, kl(p, _poisson(rate + d)))) - price for d in (-0.01, 0.01))

    rows = draw(p_distribution, 2_000 if quick else 20_000, Key.of(seed).fold("rows").torch())
    sampled = _fit(rows, None, 3.0)
    claims = [
        Claim.close("λ of the fit", rate, 1.0, tol=1e-6),
        Claim.at_most("spread of λ over three starts", max(rates) - min(rates), 1e-6),
        Claim.close("H(p, q)", cross, 1.507834, tol=1e-6),
        Claim.close("KL(p‖q)", price, 0.121540, tol=1e-6),
        Claim.close("H(p, q) − KL(p‖q), the entropy of p", cross - price, 2 * math.log(2), tol=1e-9),
        Claim.above("growth of KL when λ moves by ± .01", worse, 0.0),
        Claim.close("on a sample: λ less the sample's mean", sampled - float(rows.mean()), 0, tol=1e-6),
    ]  # fmt: skip
    numbers = {
        "rate": rate, "cross entropy": cross, "KL": price, "entropy": kept, "sampled": sampled,
    }  # fmt: skip

    def draw_bars(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        shown = COUNTS[:9].numpy()
        for name, distribution, at, colour in (
            ("geometric(½)", p, -0.2, 0),
            (f"Poisson({rate:.3g})", q, 0.2, 1),
        ):
            left.bar(shown + at, distribution[:9].numpy(), 0.4, color=COLOURS[colour], label=name)
        left.set(xlabel="x", title="the distribution and its fit: same mean, other spread")
        left.legend()
        grid = torch.linspace(0.2, 4, 200, dtype=F64)
        curve = [float(cast(Tensor, cross_entropy(p, _poisson(float(v))))) for v in grid]
        right.plot(grid.numpy(), curve, color=COLOURS[0], label="H(p, q)")
        right.axhline(kept, color=COLOURS[5], linestyle="--", label="H(p)")
        right.plot([rate], [cross], "o", color=COLOURS[1], label=f"KL = {price:.4f} above H(p)")
        right.set(xlabel="λ", title="cross-entropy in nats", ylim=(1.2, 3.2))
        right.legend()

    return Result(claims, numbers, draw_bars)


def _poisson(rate: float) -> Tensor:
    """Probabilities of the counts; what lies beyond them is less than 1e-30 for λ < 6."""
    return Poisson(torch.tensor(rate, dtype=F64)).log_prob(COUNTS).exp()


def _fit(x: Tensor, weight: Tensor | None, start: float) -> float:
    """λ of the Poisson energy that learned from (weighted) counts."""
    energy = DensityEnergy(Poisson(torch.tensor(start, dtype=F64)), learn=True)
    fit(energy, {"x": x}, NLL(), LBFGS(tol=1e-9), sample_weight=weight, random_state=0)
    return float(energy.distribution.mean.detach())
