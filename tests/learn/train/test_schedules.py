"""Schedules: factor tables, parity with torch, names, and what falling rates do to noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import Energy, LinearEnergy, Real
from groundstate.errors import Unsupported
from groundstate.learn import NLL, Callback, Plateau, Run, SoftMin, Stochastic, fit, sgd
from groundstate.learn.train import schedules

N = 40
scheduler = torch.optim.lr_scheduler


class Bell(Energy):
    """Unit Gaussian with a learned mean."""

    normalised = frozenset({"x"})

    def __init__(self) -> None:
        super().__init__(x=Real(1))
        self.mean = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x - self.mean).square().sum(-1) + 0.5 * math.log(2 * math.pi)


def rates_of_torch(make: Callable[[torch.optim.Optimizer], object]) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    plan = make(optimizer)
    rates = []
    for _ in range(N):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        plan.step()  # type: ignore[attr-defined]
    return rates


@pytest.mark.parametrize(
    ("ours", "peer"),
    [
        (schedules.Step(7, 0.3), lambda o: scheduler.StepLR(o, 7, 0.3)),
        (schedules.Exponential(0.9), lambda o: scheduler.ExponentialLR(o, 0.9)),
        (schedules.Cosine(0.1), lambda o: scheduler.CosineAnnealingLR(o, N, 0.1)),
        (schedules.Linear(0.2), lambda o: scheduler.LinearLR(o, 1.0, 0.2, N)),
        (schedules.OneCycle(), lambda o: scheduler.OneCycleLR(o, 1.0, N, cycle_momentum=False)),
        (
            schedules.Cosine(restarts=4),
            lambda o: scheduler.CosineAnnealingWarmRestarts(o, N // 4),
        ),
        (schedules.Warmup(8), lambda o: scheduler.LinearLR(o, 1 / 8, 1.0, 7)),
        (schedules.InverseTime(3.0), lambda o: scheduler.LambdaLR(o, lambda t: 1 / (1 + t / 3))),
        (
            schedules.InverseSqrt(3.0),
            lambda o: scheduler.LambdaLR(o, lambda t: (1 + t / 3) ** -0.5),
        ),
    ],
    ids=lambda s: type(s).__name__ if isinstance(s, schedules.Schedule) else "",
)
def test_factors_are_those_of_torch(
    ours: schedules.Schedule, peer: Callable[[torch.optim.Optimizer], object]
) -> None:
    assert ours.table(N) == pytest.approx(rates_of_torch(peer), rel=1e-9, abs=1e-12)


def test_factor_tables() -> None:
    assert schedules.Constant().table(3) == [1.0, 1.0, 1.0]
    assert schedules.InverseTime(1).table(3) == pytest.approx([1, 1 / 2, 1 / 3])
    assert schedules.InverseSqrt(1).table(4)[3] == 0.5
    assert schedules.Step(gamma=0.1).table(9) == pytest.approx([1] * 3 + [0.1] * 3 + [0.01] * 3)
    assert schedules.Exponential(final=0.01).table(11)[-1] == pytest.approx(0.01)


def test_ramp_of_pseudo_labels() -> None:
    ramp = schedules.Ramp(3.0, 100, 600)
    assert [ramp.factor(t, 0) for t in (0, 99, 100, 350, 600, 9000)] == [0, 0, 0, 1.5, 3.0, 3.0]


def test_warm_up_goes_before_anything() -> None:
    s = schedules.resolve("warmup+cosine", 100)
    assert [s(t) for t in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    cosine = schedules.Cosine().table(95)
    assert [s(t) for t in range(5, 100)] == pytest.approx(cosine)
    own = schedules.resolve(schedules.Warmup(2, then=lambda step: 0.5**step), 10)
    assert [own(t) for t in range(5)] == [0.5, 1.0, 1.0, 0.5, 0.25]


def test_functions_of_steps_and_of_the_fraction() -> None:
    assert schedules.resolve(lambda step: 1 / (1 + step), 10)(4) == 0.2
    assert schedules.resolve(lambda done: 1 - done, 10)(4) == 0.6
    assert schedules.resolve(None, 10)(4) == 1.0


def test_unknown_names_are_told() -> None:
    with pytest.raises(Unsupported, match="schedule 'cosin' is not known; did you mean 'cosine'"):
        schedules.resolve("cosin", 10)
    with pytest.raises(Unsupported, match="schedule must be a name, a Schedule or a function"):
        schedules.resolve(3, 10)


class Rates(Callback):
    def on_begin(self, run: Run) -> None:
        self.rates: list[float] = []

    def on_step(self, run: Run) -> None:
        self.rates.append(run.lr)


def data(n: int = 40) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    return {"x": 1 + torch.randn(n, 1, generator=g, dtype=torch.float64)}


@pytest.mark.parametrize("name", ["cosine", "onecycle", "inverse_sqrt", "step", "warmup+linear"])
def test_the_trainer_follows_per_step(name: str) -> None:
    seen = Rates()
    solver = Stochastic(sgd, lr=0.5, batch_size=10, max_epochs=5, tol=None, schedule=name)
    fit(Bell(), data(), NLL(), solver, callbacks=[seen], random_state=0)
    plan = schedules.resolve(name, 20)
    assert seen.rates == pytest.approx([0.5 * plan(t) for t in range(20)])


def test_noise_floor_vanishes_under_inverse_time() -> None:
    """With η_t = 1/(1+t) on ½(x−θ)², θ is the running mean, so one pass ends in the mean."""
    rows = data(200)
    goal = float(rows["x"].mean())

    def last(schedule: object, lr: float) -> float:
        energy = Bell()
        solver = Stochastic(sgd, lr=lr, batch_size=1, max_epochs=1, tol=None, schedule=schedule)
        fit(energy, rows, NLL(), solver, random_state=0)
        return abs(float(energy.mean.detach()) - goal)

    assert last(schedules.InverseTime(1.0), 1.0) < 1e-12
    assert last("constant", 0.5) > 0.05


def test_plateau_is_that_of_torch() -> None:
    values = [1.0, 0.9, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.5, 0.49999, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3]
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    peer = scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1)
    wanted = []
    for value in values:
        peer.step(value)
        wanted.append(optimizer.param_groups[0]["lr"])
    told = iter(values)
    plateau = Plateau(0.5, 1, cooldown=1, monitor=lambda energy: next(told))
    solver = Stochastic(lr=1e-3, max_epochs=len(values), tol=None)
    history = fit(
        LinearEnergy(1, 2),
        {"x": torch.ones(4, 1), "y": torch.tensor([0, 1, 1, 1])},
        SoftMin(),
        solver,
        callbacks=[plateau],
    )
    assert history.extra["factor"] == wanted


def test_plateau_by_name_lowers_the_rate() -> None:
    seen = Rates()
    still = {"x": torch.zeros(4, 1), "y": torch.tensor([0, 1, 0, 1])}
    solver = Stochastic(lr=1.0, max_epochs=14, tol=None, schedule="plateau")
    fit(LinearEnergy(1, 2), still, SoftMin(), solver, callbacks=[seen])
    assert seen.rates == pytest.approx([1.0] * 12 + [0.1] * 2)
    seen = Rates()
    solver = Stochastic(lr=1.0, max_epochs=5, tol=None, schedule=Plateau(0.5, 0, minimum=0.25))
    fit(LinearEnergy(1, 2), still, SoftMin(), solver, callbacks=[seen])
    assert seen.rates == pytest.approx([1.0, 1.0, 0.5, 0.25, 0.25])
