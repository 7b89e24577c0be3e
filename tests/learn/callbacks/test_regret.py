"""Regret on convex streams: its sum, its comparator and its rate."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import Energy, LinearEnergy, Real
from groundstate.learn import L2, NLL, Regret, SoftMin, Stochastic, fit, sgd


class Bell(Energy):
    normalised = frozenset({"x"})

    def __init__(self, d: int = 1, start: float = 3.0) -> None:
        super().__init__(x=Real(d))
        self.mean = nn.Parameter(torch.full((d,), start, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x - self.mean).square().sum(-1) + 0.5 * math.log(2 * math.pi)


def stream(n: int) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(1)
    return {"x": torch.randn(n, 20, generator=g, dtype=torch.float64)}


def adagrad(parameters: object, lr: float) -> torch.optim.Optimizer:
    return torch.optim.Adagrad(parameters, lr=lr)  # type: ignore[arg-type]


def adam(parameters: object, lr: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=lr, betas=(0.9, 0.99))  # type: ignore[arg-type]


def run(
    optimizer: object, lr: float, schedule: object, start: float = 0.1, **kwargs: object
) -> Regret:
    regret = Regret(**kwargs)  # type: ignore[arg-type]
    solver = Stochastic(optimizer, lr=lr, batch_size=1, max_epochs=1, tol=None, schedule=schedule)  # type: ignore[arg-type]
    fit(Bell(20, start), stream(1500), NLL(), solver, callbacks=[regret], random_state=0)
    return regret


@pytest.mark.parametrize(
    ("optimizer", "lr", "schedule"),
    [(sgd, 0.5, "inverse_sqrt"), (adagrad, 1.0, None), (adam, 0.5, "inverse_sqrt")],
    ids=["sgd", "adagrad", "adam"],
)
def test_slope_is_a_half_on_convex_streams(optimizer: object, lr: float, schedule: object) -> None:
    assert run(optimizer, lr, schedule).slope() == pytest.approx(0.5, abs=0.15)


def test_slope_of_a_constant_bad_predictor_is_one() -> None:
    assert run(sgd, 1e-12, None, start=1.0).slope() == pytest.approx(1.0, abs=0.05)


def test_comparator_is_the_best_in_hindsight() -> None:
    regret = run(sgd, 0.5, "inverse_sqrt")
    rows = stream(1500)["x"]
    torch.testing.assert_close(regret.comparator["mean"], rows.mean(0), atol=1e-8, rtol=0)
    final = run(sgd, 0.5, "inverse_sqrt", hindsight="final")
    assert float(final.values[-1]) < float(regret.values[-1])  # no fixed θ beats the best


def test_regret_is_the_sum_of_losses_before_the_update() -> None:
    """Two rows, one at a time: f_t(θ_{t−1}) − f_t(θ*) by hand."""
    energy, regret = Bell(), Regret()
    rows = {"x": torch.tensor([[2.0], [2.0]], dtype=torch.float64)}
    solver = Stochastic(sgd, lr=0.5, batch_size=1, max_epochs=1, tol=None)
    fit(energy, rows, NLL(), solver, callbacks=[regret], random_state=0)
    # θ: 3 → 2.5 → 2.25, θ* = 2
    assert regret.values.tolist() == pytest.approx([0.5, 0.5 + 0.125])
    assert float(energy.mean.detach()) == 2.25  # the search leaves θ as it was


def test_penalty_is_not_part_of_the_regret() -> None:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(64, 2, generator=g)
    data = {"x": x, "y": (x[:, 0] > 0).long()}
    solver = Stochastic(sgd, lr=1e-9, batch_size=8, max_epochs=1, tol=None)
    plain, held = Regret("final"), Regret("final")
    fit(LinearEnergy(2, 2), data, SoftMin(), solver, callbacks=[plain], random_state=0)
    fit(
        LinearEnergy(2, 2), data, SoftMin(), solver, callbacks=[held], random_state=0,
        penalty=L2(100.0),
    )  # fmt: skip
    torch.testing.assert_close(plain.values, held.values, atol=1e-5, rtol=0)
    with pytest.raises(ValueError, match="hindsight must be 'best' or 'final'"):
        Regret("worst")  # type: ignore[arg-type]
