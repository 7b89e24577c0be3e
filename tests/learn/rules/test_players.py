"""Several players in one loop: rhythm, order, followers, nested steps, resume."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import Energy, LinearEnergy, Real
from groundstate.learn import (
    NLL,
    Callback,
    Checkpoint,
    Follow,
    LossTerms,
    Move,
    Nested,
    Player,
    Players,
    Run,
    SoftMin,
    Stochastic,
    adapt,
    fit,
    sgd,
)
from groundstate.learn.train.turns import Turns

F64 = torch.float64


class Bell(Energy):
    normalised = frozenset({"x"})

    def __init__(self) -> None:
        super().__init__(x=Real(1))
        self.mean = nn.Parameter(torch.zeros(1, dtype=F64))

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * (x - self.mean).square().sum(-1) + 0.5 * math.log(2 * math.pi)


class Knob(nn.Module):
    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.full((1,), value, dtype=F64))


ONES = {"x": torch.ones(8, 1, dtype=F64)}


class Log(Callback):
    def __init__(self, *modules: nn.Module) -> None:
        self.modules = modules
        self.seen: list[list[float]] = []

    def on_step(self, run: Run) -> None:
        self.seen.append([float(p.detach()) for m in self.modules for p in m.parameters()])


def toward(knob: Knob, goal: float):
    def loss(energy: Energy, batch: object, generator: object = None) -> Tensor:
        return 0.5 * (knob.value - goal).square().sum()

    return loss


def test_steps_and_every_set_the_rhythm() -> None:
    often, rare = Knob(), Knob()
    players = {
        "often": Player(toward(often, 1.0), often, steps=3, lr=0.5),
        "rare": Player(toward(rare, 1.0), rare, every=2, lr=0.5),
    }
    log = Log(often, rare)
    solver = Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=4, tol=None)
    fit(Bell(), ONES, Players(NLL(), players), solver, callbacks=[log])
    assert [s[0] for s in log.seen] == pytest.approx([1 - 0.5 ** (3 * t) for t in (1, 2, 3, 4)])
    assert [s[1] for s in log.seen] == pytest.approx([0.5, 0.5, 0.75, 0.75])


@pytest.mark.parametrize("before", [True, False])
def test_order_of_turns(before: bool) -> None:
    """The knob goes half way to the mean, as it is before or after the main step."""
    knob = Knob()

    def chase(energy: Bell, batch: object, generator: object = None) -> Tensor:
        return 0.5 * (knob.value - energy.mean).square().sum()

    rule = Players(NLL(), {"knob": Player(chase, knob, lr=0.5, before=before)})
    solver = Stochastic(sgd, lr=1.0, batch_size=None, max_epochs=1, tol=None)
    energy = Bell()
    fit(energy, ONES, rule, solver)
    assert float(energy.mean.detach()) == 1.0  # the loss of the other moves nothing here
    assert float(knob.value.detach()) == (0.0 if before else 0.5)


def test_a_zero_sum_game_finds_its_saddle() -> None:
    """min over θ, max over φ of θφ + ½·.2θ² − ½·.2φ², from (1, 1) to (0, 0)."""

    class Theta(Energy):
        normalised = frozenset({"x"})

        def __init__(self) -> None:
            super().__init__(x=Real(1))
            self.theta = nn.Parameter(torch.ones(1, dtype=F64))

        def forward(self, x: Tensor) -> Tensor:
            pull = self.theta * phi.value + 0.1 * self.theta.square() - 0.1 * phi.value.square()
            return pull.expand(len(x))

    phi = Knob(1.0)

    def up(energy: Theta, batch: object, generator: object = None) -> Tensor:
        return -(energy.theta * phi.value - 0.1 * phi.value.square()).sum()

    energy = Theta()
    rule = Players(NLL(), {"phi": Player(up, phi)})
    fit(energy, ONES, rule, Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=600, tol=None))
    assert abs(float(energy.theta.detach())) < 1e-3 and abs(float(phi.value.detach())) < 1e-3


def test_followers_follow_and_are_not_trained() -> None:
    source, target = Knob(), Knob()
    rule = Players(
        NLL(),
        {"source": Player(toward(source, 1.0), source, lr=1.0)},
        [Follow(target, source, 0.5)],
    )
    log = Log(source, target)
    solver = Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=3, tol=None)
    fit(Bell(), ONES, rule, solver, callbacks=[log])
    assert log.seen == [[1.0, 0.5], [1.0, 0.75], [1.0, 0.875]]


def test_schedules_reach_all_players() -> None:
    knob = Knob()
    rule = Players(NLL(), {"knob": Player(toward(knob, 1.0), knob, lr=0.5)})
    log = Log(knob)
    solver = Stochastic(
        sgd, lr=0.1, batch_size=None, max_epochs=3, tol=None, schedule=lambda step: 0.0 if step else 1.0
    )  # fmt: skip
    fit(Bell(), ONES, rule, solver, callbacks=[log])
    assert log.seen == [[0.5], [0.5], [0.5]]


def test_a_player_may_use_a_rule_and_own_optimiser() -> None:
    other = LinearEnergy(2, 2)
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    data = {"x": x, "y": (x[:, 0] > 0).long()}

    class On(SoftMin):
        def forward(self, energy: Energy, batch: object, *, generator: object = None):
            return super().forward(other, batch)

        def mean(self, energy: Energy, *args: object, **kwargs: object):
            return super().mean(other, *args, **kwargs)

    made: list[float] = []

    def own(parameters: object, lr: float) -> torch.optim.Optimizer:
        made.append(lr)
        return torch.optim.Adam(parameters, lr=lr)

    rule = Players(SoftMin(), {"other": Player(On(), other, lr=0.1, optimizer=own)})
    energy = LinearEnergy(2, 2)
    fit(energy, data, rule, Stochastic(lr=0.1, max_epochs=60, tol=None), random_state=0)
    assert made == [0.1]
    for e in (energy, other):
        assert float((e.table("y", x=x).argmin(1) == data["y"]).double().mean()) > 0.95


def test_players_inside_loss_terms_keep_their_moves() -> None:
    knob = Knob()
    inner = Players(NLL(), {"knob": Player(toward(knob, 1.0), knob, lr=0.5)})
    solver = Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=2, tol=None)
    fit(Bell(), ONES, LossTerms({"data": inner}), solver)
    assert float(knob.value.detach()) == 0.75


def test_main_player_has_everything_else() -> None:
    knob, target, energy = Knob(), Knob(), Bell()
    rule = Players(NLL(), {"knob": Player(toward(knob, 1.0), knob)}, [Follow(target, knob)])
    turns = Turns(rule, energy, sgd, 0.1)
    assert [id(p) for p in turns.main()] == [id(energy.mean)]
    assert not Turns(NLL(), energy, sgd, 0.1)


def test_wrong_moves_are_told() -> None:
    with pytest.raises(ValueError, match="a player needs parameters to move"):
        Move(toward(Knob(), 0.0), ())
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        Move(toward(Knob(), 0.0), (torch.zeros(1),), steps=0)
    with pytest.raises(ValueError, match=r"tau must be in \(0, 1\], got 0"):
        Follow(Knob(), Knob(), 0.0)


def test_players_resume_to_the_same_bits(tmp_path: Path) -> None:
    class Stop(Callback):
        def on_step(self, run: Run) -> bool:
            return run.total_steps == 7

    def play(*callbacks: Callback) -> list[float]:
        energy, knob, target = Bell(), Knob(), Knob()

        def chase(energy: Bell, batch: object, generator: torch.Generator | None = None) -> Tensor:
            noise = torch.randn(1, generator=generator, dtype=F64)
            return 0.5 * (knob.value - energy.mean + 0.1 * noise).square().sum()

        rule = Players(
            NLL(), {"knob": Player(chase, knob, steps=2, every=2)}, [Follow(target, knob, 0.1)]
        )
        solver = Stochastic(lr=0.05, batch_size=2, max_epochs=4, tol=None)
        fit(energy, ONES, rule, solver, callbacks=list(callbacks), random_state=0)
        return [float(p.detach()) for p in (energy.mean, knob.value, target.value)]

    whole = play()
    play(Checkpoint(tmp_path, every_steps=3), Stop())
    assert play(Checkpoint(tmp_path, every_steps=3)) == whole


# --- nested ------------------------------------------------------------------------------------


class Bowl(Energy):
    r"""½a(θ − t)² of the task x = (a, t)."""

    def __init__(self) -> None:
        super().__init__(x=Real(2))
        self.theta = nn.Parameter(torch.full((), 0.3, dtype=F64))

    normalised = frozenset({"x"})

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x[:, 0] * (self.theta - x[:, 1]).square()


TASKS = {"x": torch.tensor([[[1.0, 0.0]] * 2, [[9.0, 1.0]] * 2], dtype=F64)}  # (2, 1 + 1, 2)


@pytest.mark.parametrize(
    ("settings", "rate", "start"),
    [
        ({"steps": 1}, 1.0, 0.1),
        ({"steps": 1, "first_order": True}, 1.0, 0.5),
        ({"steps": 0}, 0.1, 0.9),
    ],
)
def test_nested_quadratics(settings: dict[str, object], rate: float, start: float) -> None:
    energy, rule = Bowl(), Nested(NLL(), support=1, lr=0.1, **settings)  # type: ignore[arg-type]
    solver = Stochastic(sgd, lr=rate, batch_size=None, max_epochs=60, tol=None)
    fit(energy, TASKS, rule, solver)
    assert float(energy.theta.detach()) == pytest.approx(start, abs=1e-6)


def test_adapt_is_gradient_descent_with_a_graph() -> None:
    energy = Bowl()
    batch = {"x": torch.tensor([[2.0, 1.0]], dtype=F64)}
    found = adapt(energy, NLL(), batch, steps=3, lr=0.1)["theta"]
    wanted = 1 + (0.3 - 1) * (1 - 0.2) ** 3
    assert float(found.detach()) == pytest.approx(wanted)
    slope = torch.autograd.grad(found, energy.theta)[0]
    assert float(slope) == pytest.approx(0.8**3)
    first = adapt(energy, NLL(), batch, steps=3, lr=0.1, first_order=True)["theta"]
    assert float(torch.autograd.grad(first, energy.theta)[0]) == 1.0


def test_inner_rate_can_be_learned() -> None:
    energy = Bowl()
    rule = Nested(NLL(), support=1, lr=0.05, learn_lr=True)
    task = {"x": torch.tensor([[[4.0, 1.0]] * 2], dtype=F64)}
    solver = Stochastic(lr=0.05, batch_size=None, max_epochs=100, tol=None)
    before = float(rule(energy, task).loss.detach())
    fit(energy, task, rule, solver)
    assert float(rule.lr.detach()) > 0.06 and float(rule(energy, task).loss.detach()) < before


def test_nested_needs_query_rows() -> None:
    rule = Nested(NLL(), support=2)
    assert "more than support=2 rows" in str(rule.reason_against(Bowl(), TASKS))
