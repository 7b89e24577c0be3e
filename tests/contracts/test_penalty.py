"""What every penalty promises; a registered one is tested by being there."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from groundstate.learn.penalties.norms import SeparablePenalty
from groundstate.registry import penalties

F64 = torch.float64


def vector(seed: int = 0) -> Tensor:
    return torch.randn(20, generator=torch.Generator().manual_seed(seed), dtype=F64)


ALL: dict[str, SeparablePenalty] = {row.name: row.make(None) for row in penalties}


@pytest.mark.parametrize("name", ALL)
def test_prox_is_the_minimiser(name: str) -> None:
    penalty, theta = ALL[name], vector()
    for step in (0.1, 1.0, 3.0):
        best = penalty.prox_of(theta, step)

        def cost(u: Tensor, step: float = step) -> Tensor:
            return 0.5 * (u - theta).square() + step * torch.stack(
                [penalty.value_of(v[None]) for v in u]
            )

        lowest = cost(best)
        for shift in (-0.3, -1e-3, 1e-3, 0.3):
            assert bool((cost(best + shift) >= lowest - 1e-12).all())
        distance = penalty.distance_of(best, best - theta, step)
        assert float(distance.max()) < 1e-12


@pytest.mark.parametrize("name", ALL)
def test_distance_grows_away_from_the_optimum(name: str) -> None:
    penalty, theta = ALL[name], vector()
    best = penalty.prox_of(theta, 1.0)
    moved = best + 0.1
    assert float(penalty.distance_of(moved, moved - theta, 1.0).min()) > 1e-3


@pytest.mark.parametrize("name", ALL)
def test_gradient(name: str) -> None:
    theta = vector().requires_grad_()
    (g,) = torch.autograd.grad(ALL[name].value_of(theta), theta)
    h = 1e-6
    for i in range(3):
        shift = torch.zeros(20, dtype=F64)
        shift[i] = h
        up, down = ALL[name].value_of(theta + shift), ALL[name].value_of(theta - shift)
        assert math.isclose(float((up - down).detach()) / (2 * h), float(g[i]), abs_tol=1e-6)
