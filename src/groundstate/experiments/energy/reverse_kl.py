r"""Reverse KL locks on one mode; forward KL covers both."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Categorical, Normal

from groundstate.energy import DensityEnergy, Energy, Mixture, Real, TableEnergy, mixture
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import Gradient, minimise
from groundstate.learn import LBFGS, NLL, bound, fit

F64 = torch.float64
CELL = 0.05
GRID = torch.arange(-32, 32 + CELL / 2, CELL, dtype=F64)  # sums over it are integrals to rounding
TOL = 1e-6


class ReverseKL(Energy):
    r"""A normal distribution as a variable: :math:`e(m, \log s) = E_q[e] - H(q) = \mathrm{KL}(q\|p)`,
    :math:`q = N(m, s^2)`, for a target with Z = 1 on the cells of a fine grid.
    """

    def __init__(self, target: Energy) -> None:
        super().__init__(m=Real(1), log_s=Real(1))
        with torch.no_grad():
            self.cells = TableEnergy(target(x=GRID[:, None]) - math.log(CELL))

    def forward(self, m: Tensor, log_s: Tensor) -> Tensor:
        q = Categorical(logits=Normal(m, log_s.exp()).log_prob(GRID))  # (B, cells)
        return bound(self.cells, {"x": q}, {})


def two_modes() -> Mixture:
    """½N(−3, 1) + ½N(3, 1)."""
    one = torch.ones(1, dtype=F64)
    return mixture([DensityEnergy(Normal(m * one, one)) for m in (-3.0, 3.0)])


@experiment("ENE-X-reverse-kl", theme="energy", title="Reverse KL locks on one mode", slow=True)
def reverse_kl(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The best normal distribution q for :math:`p = \tfrac12N(-3,1) + \tfrac12N(3,1)` depends on the side
    from which distance is measured.

    Reverse, :math:`\mathrm{KL}(q\|p) = E_q[e] - H(q)`: q pays for every place where p is small, so
    it takes one mode and leaves the other, at a price of about log 2; the symmetric q is a worse,
    local optimum. Forward, :math:`\mathrm{KL}(p\|q)`, is maximum likelihood: q pays for every place
    it leaves out and takes the variance of all of p, :math:`\sqrt{1 + 3^2}`. Nothing is random.
    """
    target = two_modes()
    distance = ReverseKL(target)
    start = torch.tensor([[-2.0], [2.0]], dtype=F64)
    method = Gradient(tol=1e-9)
    init = {"m": start, "log_s": torch.zeros_like(start)}
    locked = minimise(distance, ("m", "log_s"), init=init, method=method)
    middle = {"m": torch.zeros(1, 1, dtype=F64)}
    symmetric = minimise(distance, "log_s", middle, method=method)
    pull = _slope(distance, middle["m"], symmetric["log_s"])

    forward = DensityEnergy(Normal(torch.ones(1, dtype=F64), torch.ones(1, dtype=F64)), learn=True)
    with torch.no_grad():
        weight = (-target(x=GRID[:, None])).exp() * CELL
    fit(
        forward, {"x": GRID[:, None]}, NLL(), LBFGS(tol=1e-12), sample_weight=weight, random_state=0
    )
    distribution = forward.distribution
    spread, centre = float(distribution.stddev.detach()), float(distribution.mean.detach())

    m, s = locked["m"].flatten().tolist(), locked["log_s"].exp().flatten().tolist()
    wide = float(symmetric["log_s"].exp())
    claims = []
    for text, value, stated in (
        ("reverse KL from the left: mean", -m[0], 2.984306),
        ("reverse KL from the right: mean", m[1], 2.984306),
        ("reverse KL: standard deviation", s[1], 1.023369),
        ("reverse KL at the locked distribution", float(locked.energy[1]), 0.688769),
        ("symmetric point: standard deviation", wide, 2.743769),
        ("reverse KL at the symmetric point", float(symmetric.energy), 0.840621),
        ("forward KL: standard deviation", spread, 3.162278),
    ):
        claims.append(Claim.close(text, value, stated, tol=TOL))
    claims.append(Claim.at_most("symmetric point: |slope in the mean|", pull, 1e-9))
    numbers = {
        "locked mean": m,
        "locked std": s,
        "locked KL": locked.energy.tolist(),
        "symmetric": [wide, float(symmetric.energy)],
        "forward": [centre, spread],
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        shown = GRID[(GRID > -9) & (GRID < 9)]
        with torch.no_grad():
            p = (-target(x=shown[:, None])).exp()
        left.fill_between(shown.numpy(), p.numpy(), color=COLOURS[5], alpha=0.35, label="p")
        distributions = {
            "reverse, left": (m[0], s[0]),
            "reverse, right": (m[1], s[1]),
            "reverse, symmetric": (0.0, wide),
            "forward": (centre, spread),
        }
        for (name, (mean, std)), colour in zip(distributions.items(), COLOURS):
            q = Normal(torch.tensor(mean, dtype=F64), torch.tensor(std, dtype=F64))
            left.plot(shown.numpy(), q.log_prob(shown).exp().numpy(), color=colour, label=name)
        left.set(title="the best normal distributions", xlabel="x")
        left.legend()
        a = torch.linspace(-4.5, 4.5, 91, dtype=F64)
        b = torch.linspace(-0.4, 1.5, 60, dtype=F64)
        grid_b, grid_a = torch.meshgrid(b, a, indexing="ij")
        with torch.no_grad():
            e = distance(m=grid_a.reshape(-1, 1), log_s=grid_b.reshape(-1, 1))
        levels = [0.7, 0.75, 0.8, 0.85, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0]
        drawn = right.contour(a, b.exp(), e.reshape(len(b), len(a)), levels, cmap="viridis")
        right.clabel(drawn, fontsize=7)
        for (mean, std), colour in zip(distributions.values(), COLOURS):
            right.plot(mean, std, "o", color=colour)
        right.set(title="KL(q‖p)", xlabel="mean of q", ylabel="standard deviation of q")

    return Result(claims, numbers, draw, size=(9.0, 3.8))


def _slope(energy: Energy, m: Tensor, log_s: Tensor) -> float:
    at = m.clone().requires_grad_()
    (g,) = torch.autograd.grad(energy(m=at, log_s=log_s).sum(), at)
    return float(g.abs().max())
