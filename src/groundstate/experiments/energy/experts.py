r"""Experts that must all agree are sharper than any of them; experts that take turns are not."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor
from torch.distributions import Normal

from groundstate.compute.random import Key
from groundstate.energy import DensityEnergy, Energy, TableEnergy, mixture
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.infer import expect, posterior
from groundstate.math.info.entropy import entropy

F64 = torch.float64
CELLS, REACH = 4800, 6.0
WIDE = 2 * REACH / CELLS  # of a cell
GRID = (torch.arange(CELLS, dtype=F64) + 0.5) * WIDE - REACH  # middles of the cells
LOW, HIGH = -0.5, 1.0  # the veto box


@experiment("ENE-X-experts", theme="energy", title="Products are sharper than mixtures")
def experts(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A sum of energies is a product of distributions, :math:`p \propto e^{-e_1 - e_2}`; a mixture is
    :math:`p = \sum_k w_k\,e^{-e_k}/Z_k`.

    The product of N(0, 1) and N(1, 1) is N(½, ½): entropy 1.072365 against 1.418939 of each. A
    mixture is never less uncertain than its parts on average: uniform on four points mixed half and
    half with a point mass has 1.073543 ≥ ½ log 4. An expert that knows only a box (energy 0 inside,
    +inf outside) vetoes in a product and is outvoted in a mixture.
    """
    one = torch.ones(1, dtype=F64)
    gaussians = [DensityEnergy(Normal(m * one, one)) for m in (0.0, 1.0)]
    product, turns = gaussians[0] + gaussians[1], mixture(gaussians)
    distribution = posterior(product, "x")
    sharp, each = (
        float(distribution.entropy()),
        [float(posterior(e, "x").entropy()) for e in gaussians],
    )
    n = 50_000 if quick else 200_000
    drawn = expect(
        lambda v: turns(x=v.reshape(-1, 1)).detach(),  # −log p: its mean is the entropy
        posterior(turns, "x"),
        n,
        generator=Key.of(seed).fold("turns").torch(),
    )
    flat = TableEnergy(torch.zeros(4, dtype=F64))
    point = TableEnergy(torch.tensor([0.0, math.inf, math.inf, math.inf], dtype=F64))
    points = _entropy(mixture([flat, point]))

    normal = TableEnergy(gaussians[0](x=GRID[:, None]))
    inside = (GRID > LOW) & (GRID < HIGH)
    box = TableEnergy(torch.where(inside, 0.0, math.inf).to(F64))
    vetoed, voted = normal + box, mixture([normal, box])
    p_vetoed, p_voted = _probs(vetoed), _probs(voted)
    differential = {
        name: _entropy(e) + math.log(WIDE)
        for name, e in (("normal", normal), ("box", box), ("product", vetoed), ("mixture", voted))
    }

    claims = [
        Claim.close("product: mean", float(distribution.mean), 0.5, tol=1e-12),
        Claim.close("product: variance", float(distribution.variance), 0.5, tol=1e-12),
        Claim.close("product: entropy", sharp, 1.072365, tol=1e-6),
        Claim.close("each Gaussian: entropy", each[0], 1.418939, tol=1e-6),
        Claim.below("product less the sharper Gaussian: entropy", sharp - min(each), 0.0),
        Claim.above("mixture less the mean of the Gaussians: entropy, in standard errors",
                    float((drawn.mean - sum(each) / 2) / drawn.stderr), 4.0),
        Claim.close("uniform on 4 points and a point mass: entropy", points, 1.073543, tol=1e-6),
        Claim.at_least("the same less the mean of its parts", points - 0.5 * math.log(4), 0.0),
        Claim.equal("veto box: probability outside, product", float(p_vetoed[~inside].sum()), 0.0),
        Claim.close("veto box: probability outside, mixture", float(p_voted[~inside].sum()),
                    0.5 * _outside(), tol=1e-6),
        Claim.close("veto box: entropy of the product", differential["product"], _cut(), tol=1e-5),
        Claim.below("veto box: product less the sharper expert: entropy",
                    differential["product"] - min(differential["normal"], differential["box"]), 0.0),
        Claim.at_least("veto box: mixture less the mean of its parts: entropy",
                       differential["mixture"] - (differential["normal"] + differential["box"]) / 2,
                       0.0),
    ]  # fmt: skip
    numbers = {
        "product": sharp, "each": each[0], "mixture": float(drawn.mean), "points": points,
        "veto": differential,
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for e, label in ((gaussians[0], f"experts: {each[0]:.3f} nats each"), (gaussians[1], None)):
            _density(left, _on_grid(e), label, COLOURS[5], linestyle="--")
        _density(
            left, distribution.log_prob(GRID[:, None]).exp(), f"product: {sharp:.3f}", COLOURS[0]
        )
        _density(left, _on_grid(turns), f"mixture: {float(drawn.mean):.3f}", COLOURS[1])
        left.set(title="two Gaussians", xlim=(-3.5, 4.5))
        for probs, name, colour in (
            (_probs(normal), "normal", COLOURS[5]),
            (p_vetoed, "product", COLOURS[0]),
            (p_voted, "mixture", COLOURS[1]),
        ):
            style = {"linestyle": "--"} if name == "normal" else {}
            _density(right, probs / WIDE, f"{name}: {differential[name]:.3f}", colour, **style)
        right.axvspan(LOW, HIGH, color=COLOURS[2], alpha=0.12, linewidth=0)
        right.set(title="a normal and a veto box", xlim=(-3.5, 3.5))
        for ax in (left, right):
            ax.set(yticks=[], xlabel="x")
            ax.legend()

    return Result(claims, numbers, draw)


def _probs(energy: Energy) -> Tensor:
    with torch.no_grad():
        probs: Tensor = posterior(energy, "x").probs  # type: ignore[attr-defined]
    return probs.reshape(-1)


def _entropy(energy: Energy) -> float:
    return float(cast(Tensor, entropy(_probs(energy))))


def _on_grid(energy: Energy) -> Tensor:
    with torch.no_grad():
        return (-energy(x=GRID[:, None])).exp()


def _outside() -> float:
    """Probability of N(0, 1) outside the box."""
    return 1 - 0.5 * (math.erf(HIGH / math.sqrt(2)) - math.erf(LOW / math.sqrt(2)))


def _cut() -> float:
    """Entropy of N(0, 1) cut off at the sides of the box."""
    mass = 1 - _outside()
    at_low, at_high = (math.exp(-0.5 * v * v) / math.sqrt(2 * math.pi) for v in (LOW, HIGH))
    size = math.log(math.sqrt(2 * math.pi * math.e) * mass)
    return size + (LOW * at_low - HIGH * at_high) / (2 * mass)


def _density(ax: Axes, p: Tensor, label: str | None, colour: str, **style: Any) -> None:
    ax.plot(GRID.numpy(), p.detach().reshape(-1).numpy(), color=colour, label=label, **style)
