"""Descent ends where numbers end: steps that only rounding allows are not taken for ever."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from groundstate.energy import ChainRuleEnergy, DecoderEnergy
from groundstate.infer import Gradient, Quadrature, Variational, minimise, sample
from groundstate.math.optim.batched_lbfgs import IDLE, descend


def test_a_value_that_no_longer_falls_ends_the_run() -> None:
    """Far below the rounding of a value of one, a slope of 1e-6 remains: nothing to gain."""
    calls = []

    def shelf(u: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        calls.append(len(u))
        return torch.full_like(u[:, 0], 1e12), torch.full_like(u, 1e-6)

    start = torch.zeros(3, 2, dtype=torch.float64)
    edge = torch.full((2,), math.inf, dtype=torch.float64)
    found = descend(shelf, start, low=-edge, high=edge, tol=1e-8, max_iter=200)
    assert bool(found.converged.all()) and found.n_iter <= IDLE
    assert len(calls) <= 2 * IDLE


def test_nested_integrals_are_minimised_in_few_steps() -> None:
    energy = DecoderEnergy(2, 1, net=(8,), sigma=0.5).double().marginal("z", method=Quadrature(16))
    start = torch.tensor([[1.0, -0.5], [0.3, 0.8], [-1.0, 2.0]], dtype=torch.float64)
    found = minimise(energy, "x", method=Gradient(), init={"x": start})
    assert bool(found.converged.all()) and found.n_iter < 100


def test_score_function_fits_sample_without_gradients_around() -> None:
    energy = ChainRuleEnergy(5, 9, 4).double()  # 5^9 values: too many to list
    with torch.no_grad():
        drawn = sample(energy, "x", n=3, method=Variational(n=4, max_iter=2))
    assert drawn["x"].shape == (3, 1, 9) and drawn.kind == "approximate"
