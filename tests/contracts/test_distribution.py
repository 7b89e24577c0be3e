"""What every distribution promises: normalised, drawn as it says, its mode its best value.

The distributions are those the library hands out: conditionals that energies declare, chains,
listed distributions.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from groundstate.energy import Energy
from groundstate.energy.registering import example_rows
from groundstate.errors import Unsupported
from groundstate.infer import posterior
from groundstate.math.distributions.operations import draw
from groundstate.registry import energies

ROWS = 3


def question(name: str, variable: str) -> tuple[Energy, dict[str, Tensor]]:
    make = energies[name].make
    assert make is not None
    energy = make().double()
    batch = example_rows(energy, ROWS, torch.Generator().manual_seed(0))
    given = {
        k: v.double() if v.is_floating_point() else v for k, v in batch.items() if k != variable
    }
    return energy, given


def distribution(name: str, variable: str) -> Any:
    energy, given = question(name, variable)
    return posterior(energy, variable, given)


def _offered() -> list[tuple[str, str]]:
    found = []
    for row in energies:
        assert row.make is not None
        for variable in row.make().spaces:
            try:
                distribution(row.name, variable)
            except Unsupported:
                continue
            found.append((row.name, variable))
    return found


DISTRIBUTIONS = _offered()
# a continuum is checked by quadrature in the energy contract
LISTED = [pair for pair in DISTRIBUTIONS if question(*pair)[0].spaces[pair[1]].size <= 5000]


def test_there_are_distributions_of_every_kind() -> None:
    kinds = {type(distribution(*pair)).__name__ for pair in DISTRIBUTIONS}
    assert {"Categorical", "ChainDistribution"} <= kinds and len(DISTRIBUTIONS) >= 15


@pytest.mark.parametrize(("name", "variable"), DISTRIBUTIONS)
def test_log_density_is_minus_energy_up_to_a_constant(name: str, variable: str) -> None:
    energy, given = question(name, variable)
    q = posterior(energy, variable, given)
    rows = q.batch_shape.numel()
    values = draw(q, 4, torch.Generator().manual_seed(1))  # (4, B, *event)
    gaps = []
    for value in values:
        full = {k: v.expand(rows, *v.shape[1:]) for k, v in given.items()}
        gaps.append(q.log_prob(value) + energy(**full, **{variable: value}))
    spread = torch.stack(gaps)
    torch.testing.assert_close(spread, spread[:1].expand_as(spread), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "variable"), DISTRIBUTIONS)
def test_draws_have_shape_and_repeat_with_the_seed(name: str, variable: str) -> None:
    energy, _ = question(name, variable)
    q = distribution(name, variable)
    first, second = (draw(q, 5, torch.Generator().manual_seed(2)) for _ in range(2))
    assert first.shape == (5, *q.batch_shape, *energy.spaces[variable].shape)
    assert torch.equal(first, second)
    flat = first.reshape(-1, *energy.spaces[variable].shape)
    assert bool(energy.spaces[variable].contains(flat).all())


@pytest.mark.parametrize(("name", "variable"), LISTED)
def test_finite_distributions_sum_to_one(name: str, variable: str) -> None:
    energy, _ = question(name, variable)
    space = energy.spaces[variable]
    q = distribution(name, variable)
    values = space.enumerate(dtype=torch.float64)
    total = torch.stack([q.log_prob(v.expand(*q.batch_shape, *v.shape)) for v in values])
    torch.testing.assert_close(total.logsumexp(0), torch.zeros(q.batch_shape, dtype=torch.float64))
