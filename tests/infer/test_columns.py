"""Sampling and sums over columns with different numbers of levels, and over mixed columns."""

from __future__ import annotations

import math

import pytest
import torch

from groundstate.energy import Levels
from groundstate.energy.undirected.restricted import RestrictedEnergy
from groundstate.infer import Annealed, Importance, Metropolis, marginalise, sample
from groundstate.infer.sampling.annealed import base_distribution

COLUMNS = [(2, 3), (4, 3, 2), (0, 3), (0, 2, 3)]


def machine(levels: tuple[int, ...]) -> RestrictedEnergy:
    seeded = torch.Generator().manual_seed(0)
    return RestrictedEnergy(levels, 2, scale=0.5, generator=seeded).double()


def base(energy: RestrictedEnergy, name: str) -> torch.distributions.Distribution:
    return base_distribution(energy.spaces[name], torch.device("cpu"), torch.float64)


@pytest.mark.parametrize("levels", COLUMNS)
@pytest.mark.parametrize("annealed", [True, False])
def test_weighted_draws_find_the_sum_over_columns(levels: tuple[int, ...], annealed: bool) -> None:
    energy = machine(levels)
    proposal = {name: base(energy, name) for name in ("x", "z")}
    method = Annealed(n=200) if annealed else Importance(proposal, n=2000)
    found = marginalise(energy, ("x", "z"), method=method, generator=torch.Generator())
    assert found.stderr is not None and torch.isfinite(found.value).all()
    gap = abs(float((found.value + energy.total()).detach()))
    assert gap < 5 * float(found.stderr) + 1e-3


def test_a_walk_over_mixed_columns_has_their_distribution() -> None:
    energy = machine((0, 3))
    draws = sample(energy, ("x", "z"), n=4000, method=Metropolis(), generator=torch.Generator())
    x = draws.values["x"].reshape(-1, 2)
    assert bool(energy.spaces["x"].contains(x).all())
    hidden = energy.spaces["z"].enumerate().double()
    levels = torch.arange(3.0, dtype=torch.float64)
    # the number is N(a_z, 1) given z, so that each (level, z) weighs e^{-e} at its mean
    mass = torch.zeros(3, 4, dtype=torch.float64)
    for i, z in enumerate(hidden):
        mean = energy.b[0] + energy.W[0] @ z
        rows = torch.stack([mean.expand(3), levels], 1)
        mass[:, i] = -energy(x=rows, z=z.expand(3, -1))
    share = mass.flatten().softmax(0).view(3, 4).sum(1)
    counted = torch.bincount(x[:, 1].long(), minlength=3) / len(x)
    assert float((share - counted).abs().max().detach()) < 0.06


def test_the_base_of_mixed_columns_is_normalised() -> None:
    p = base_distribution(Levels((0, 1, 3)), torch.device("cpu"), torch.float64)
    drawn = p.sample(torch.Size([50]))
    assert bool(Levels((0, 1, 3)).contains(drawn).all())
    expected = -0.5 * (drawn[:, 0].square() + math.log(2 * math.pi)) - math.log(3)
    torch.testing.assert_close(p.log_prob(drawn), expected)
