r"""Products of experts veto, mixtures cannot; a machine is a product with a cheap sum."""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from torch.distributions import Normal

from groundstate.compute.random import Key
from groundstate.energy import BilinearEnergy, MixtureOfExperts, ProductOfExperts, TableEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import posterior

F64 = torch.float64
GRID = torch.linspace(-6, 6, 2401, dtype=F64)
VISIBLE, LISTED, MANY = 8, (6, 8, 10, 12), (256, 512, 1024, 2048)


@experiment("GENX-poe", theme="generative", title="Products veto, mixtures cannot")
def poe(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A product of experts has :math:`\log\tilde p = \sum_j\log\varphi_j`, a mixture
    :math:`p = \sum_k\pi_k p_k`.

    N(0, 1) times N(1, 1) is N(½, ½), with entropy 1.072365 below 1.418939 of each; a mixture is at
    least as uncertain as its parts. A box gives nothing outside it in a product and half a vote in a
    mixture. In a restricted Boltzmann machine the sum over 2^k hidden states is the product
    :math:`e^{b^\top x}\prod_j(1 + e^{w_j^\top x + c_j})`: equal to the last digits, and linear in k.
    """
    one = torch.ones(1, dtype=F64)
    experts = [Normal(0 * one, one), Normal(one, one)]
    product = ProductOfExperts(experts).distribution()
    sharp, each = float(product.entropy()), float(experts[0].entropy())
    flat = TableEnergy(torch.zeros(4, dtype=F64))
    point = TableEnergy(torch.tensor([0.0, math.inf, math.inf, math.inf], dtype=F64))
    mixed = posterior(MixtureOfExperts([flat, point]), "x").probs.detach()  # type: ignore[attr-defined]
    entropy = float(torch.special.entr(mixed).sum())

    inside = (GRID > -0.5) & (GRID < 1.0)
    normal = TableEnergy(0.5 * GRID.square())
    box = TableEnergy(torch.where(inside, 0.0, math.inf).to(F64))
    vetoed, voted = (
        posterior(e, "x").probs.detach().reshape(-1)  # type: ignore[attr-defined]
        for e in (ProductOfExperts([normal, box]), MixtureOfExperts([normal, box]))
    )

    generator = Key.of(seed).fold("machine").torch()
    gap, listed, summed = 0.0, [], []
    x = torch.randint(2, (50, VISIBLE), generator=generator).to(F64)
    for k in LISTED:
        energy = BilinearEnergy(VISIBLE, k, scale=1.0, generator=generator).double()
        states = energy.spaces["z"].enumerate(dtype=F64)
        with torch.no_grad():
            rows = [torch.logsumexp(-energy(x=r.expand(len(states), -1), z=states), 0) for r in x]
            gap = max(gap, float((torch.stack(rows) - energy.log_experts(x).sum(1)).abs().max()))
            listed.append(_seconds(lambda e=energy, s=states: e(x=x[:1].expand(len(s), -1), z=s)))
    for k in MANY:
        energy = BilinearEnergy(VISIBLE, k, scale=1.0, generator=generator).double()
        with torch.no_grad():
            summed.append(_seconds(lambda e=energy: e.over_z(x)))
    claims = [
        Claim.close("product: entropy", sharp, 1.072365, tol=1e-6),
        Claim.close("each Gaussian: entropy", each, 1.418939, tol=1e-6),
        Claim.close("uniform on 4 points and a point mass: entropy", entropy, 1.073543, tol=1e-6),
        Claim.at_least("the same less the mean of its parts", entropy - 0.5 * math.log(4), 0.0),
        Claim.equal("box: probability outside, product", float(vetoed[~inside].sum()), 0.0),
        Claim.above("box: probability outside, mixture", float(voted[~inside].sum()), 0.2),
        Claim.at_most("machine: product less the sum over 2^k, largest", gap, 1e-10),
        Claim.below("machine: time of eight times as many experts, over once",
                    summed[-1] / summed[0], 30.0).on_the_clock(),
        Claim.above("machine: time of the sum over 2^12 states, over that over 2^6",
                    listed[-1] / listed[0], 2.0).on_the_clock(),
    ]  # fmt: skip
    numbers = {"entropy": [sharp, each, entropy]}  # seconds are never the same twice

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        at = GRID.numpy()
        for p, name, colour in (
            (experts[0].log_prob(GRID).exp(), "experts", COLOURS[5]),
            (experts[1].log_prob(GRID).exp(), None, COLOURS[5]),
            (product.log_prob(GRID[:, None]).exp().reshape(-1), "product", COLOURS[0]),
            ((experts[0].log_prob(GRID).exp() + experts[1].log_prob(GRID).exp()) / 2, "mixture",
             COLOURS[1]),
        ):  # fmt: skip
            left.plot(at, p.numpy(), color=colour, label=name)
        left.set(title="two Gaussians", xlim=(-3.5, 4.5), yticks=[])
        step = float(GRID[1] - GRID[0])
        middle.plot(at, vetoed.numpy() / step, color=COLOURS[0], label="product")
        middle.plot(at, voted.numpy() / step, color=COLOURS[1], label="mixture")
        middle.set(title="a normal and a box", xlim=(-3.5, 3.5), yticks=[])
        right.loglog(LISTED, 1e6 * np.array(listed), "o-", color=COLOURS[1], label="listed")
        right.loglog(MANY, 1e6 * np.array(summed), "s-", color=COLOURS[0], label="product")
        right.set(title="µs for one sum over z", xlabel="hidden bits")
        for ax in (left, middle, right):
            ax.legend()

    return Result(claims, numbers, draw, size=(10.0, 3.2))


def _seconds(call: object) -> float:
    """The fastest of many calls."""
    assert callable(call)
    best = math.inf
    for _ in range(50):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
