"""Grids of members learned at once: each equals its solo run, and none disturbs another."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from groundstate.compute import Adam, AdamW
from groundstate.compute.population.dense import Dense
from groundstate.compute.random import Key
from groundstate.energy import NetClassEnergy, SquaredEnergy
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.learn import (
    L1,
    L2,
    Naive,
    SoftMin,
    Stochastic,
    fit,
    fit_population,
    learn_population,
)
from groundstate.learn.train.learn import learn
from groundstate.learn.train.optimizers import OPTIMIZERS
from groundstate.learn.train.population.programs import Written
from groundstate.learn.train.population.run import PopulationRun
from groundstate.learn.train.schedules import Cosine

N = 96
g = torch.Generator().manual_seed(0)
X = torch.randn(N, 5, generator=g, dtype=torch.float64)
DATA = {"x": X, "y": (X[:, 0] + X[:, 1] > 0).long() + (X[:, 2] > 1).long()}


def make(generator: torch.Generator, width: int = 7) -> NetClassEnergy:
    return NetClassEnergy(5, 3, (width,), generator=generator).double()


def flat(energy: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in energy.parameters()])


def solo(own: dict[str, Any], epochs: int = 4, **settings: Any) -> tuple[NetClassEnergy, Any]:
    key = Key.of(own.get("seed", 0))
    energy = make(key.fold("init").torch(), own.get("width", 7))
    solver = Stochastic(
        lr=own.get("lr", 1e-3), batch_size=32, max_epochs=epochs, tol=None,
        clip_norm=own.get("clip"), **settings,
    )  # fmt: skip
    penalty = (
        L1(own["l1"]) if own.get("l1") else L2(own["strength"]) if own.get("strength") else None
    )
    return energy, fit(energy, DATA, SoftMin(), solver, penalty=penalty, random_state=key)


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_members_of_a_grid_equal_their_solo_runs(backend: str) -> None:
    grid = {"lr": [0.01, 0.1], "strength": [0.0, 3.0], "seed": [0, 1], "width": [4, 7]}
    result = learn_population(make, grid, DATA, SoftMin(), epochs=4, batch_size=32, backend=backend)
    assert len(result) == 16
    for member in result:
        energy, history = solo(member.settings)
        torch.testing.assert_close(flat(member.energy), flat(energy), rtol=0, atol=1e-9)
        assert member.reason == "max_epochs" == history.stop


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize(
    "own", [{"clip": 0.05}, {"l1": 4.0}, {"l1": 4.0, "lr": 0.05, "clip": 0.3}, {"strength": 5.0}]
)
def test_clipping_and_penalties_as_alone(own: dict[str, Any], backend: str) -> None:
    rows = [{"lr": 0.02, **own, "seed": 3}, {"lr": 0.02, "seed": 4}]
    result = learn_population(make, rows, DATA, SoftMin(), epochs=5, batch_size=32, backend=backend)
    for member in result:
        energy, history = solo(member.settings, 5)
        torch.testing.assert_close(flat(member.energy), flat(energy), rtol=0, atol=1e-8)
        epoch = np.mean(history.objective[-3:])
        assert member.history.objective[-1] == pytest.approx(epoch, rel=1e-9)
    if own.get("l1"):
        assert (flat(result[0].energy) == 0).any() and not (flat(result[1].energy) == 0).any()


OWN_SETTINGS: dict[str, dict[str, Any]] = {
    "adam": {"betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1},
    "adamw": {"betas": (0.8, 0.95), "weight_decay": 0.3},
    "sgd": {"momentum": 0.5, "weight_decay": 0.1},
    "momentum": {"momentum": 0.7, "weight_decay": 0.1},
    "nesterov": {"momentum": 0.7, "weight_decay": 0.1},
    "rmsprop": {"alpha": 0.9, "eps": 1e-6, "weight_decay": 0.1},
    "adagrad": {"eps": 1e-6, "weight_decay": 0.1},
    "adadelta": {"rho": 0.8, "eps": 1e-5, "weight_decay": 0.1},
}


@pytest.mark.parametrize("settings", [False, True], ids=["plain", "settings"])
@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_a_member_takes_the_steps_of_a_single_fit(name: str, settings: bool) -> None:
    wish: Any = partial(OPTIMIZERS[name], **OWN_SETTINGS[name]) if settings else name
    for backend in ("auto", "reference"):
        result = learn_population(
            make, {"lr": [0.01, 0.03]}, DATA, SoftMin(), optimizer=wish, epochs=3, batch_size=32,
            backend=backend,
        )  # fmt: skip
        for member in result:
            energy, _ = solo(member.settings, 3, optimizer=wish)
            torch.testing.assert_close(flat(member.energy), flat(energy), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_lasso_steps_in_the_metric_of_each_optimiser(name: str) -> None:
    rows = [{"lr": 0.02, "l1": 20.0}, {"lr": 0.02, "l1": 0.5}]
    result = learn_population(
        make, rows, DATA, SoftMin(), optimizer=name, epochs=3, batch_size=32, backend="reference"
    )
    for member in result:
        energy, _ = solo(member.settings, 3, optimizer=name)
        torch.testing.assert_close(flat(member.energy), flat(energy), rtol=0, atol=1e-7)


def test_settings_that_a_population_lacks_get_one_sentence() -> None:
    for wish, sentence in (
        (partial(OPTIMIZERS["adam"], amsgrad=True), "'adam' has no amsgrad=True in a population"),
        (partial(torch.optim.RMSprop, centered=True), "'rmsprop' has no centered=True"),
        (torch.optim.NAdam, "'NAdam' is not there for populations; use adam, adamw"),
    ):
        with pytest.raises(Unsupported, match=sentence):
            learn_population(make, 2, DATA, optimizer=wish, epochs=1)
    plain = partial(torch.optim.SGD, momentum=0.9, dampening=0, foreach=True)
    (one,) = learn_population(make, [{"lr": 0.1}], DATA, SoftMin(), optimizer=plain, epochs=2)
    (other,) = learn_population(
        make, [{"lr": 0.1}], DATA, SoftMin(), optimizer="momentum", epochs=2
    )
    assert torch.equal(flat(one.energy), flat(other.energy))


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_schedules_of_their_own(backend: str) -> None:
    grid = {"schedule": ["cosine", "warmup+linear", None, Cosine(final=0.5)], "lr": [0.05]}
    result = learn_population(make, grid, DATA, SoftMin(), epochs=3, batch_size=32, backend=backend)
    for member in result:
        energy, _ = solo(member.settings, 3, schedule=member.settings["schedule"])
        torch.testing.assert_close(flat(member.energy), flat(energy), rtol=0, atol=1e-9)


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_members_with_fewer_rows_end_their_schedule_with_their_own_steps(backend: str) -> None:
    weights = torch.ones(2, N, dtype=torch.float64)
    weights[1, ::2] = 0  # two steps of an epoch instead of three
    energies = [make(Key.of(0).fold("init").torch()) for _ in range(2)]
    solver = Stochastic("adam", 0.05, 32, max_epochs=3, tol=None, schedule="onecycle")
    fit_population(energies, DATA, SoftMin(), solver, sample_weight=weights,
                   random_state=[Key.of(0)] * 2, backend=backend)  # fmt: skip
    for energy, weight in zip(energies, weights, strict=True):
        alone = make(Key.of(0).fold("init").torch())
        fit(alone, DATA, SoftMin(), solver, sample_weight=weight, random_state=Key.of(0))
        torch.testing.assert_close(flat(energy), flat(alone), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_one_member_is_learn_after_two_hundred_steps_in_single_precision() -> None:
    data = {"x": X.float(), "y": DATA["y"]}
    small = lambda generator: NetClassEnergy(5, 3, (32, 32), generator=generator)
    together = learn_population(small, {"seed": [0, 1, 2]}, data, epochs=67, batch_size=32)
    for m in together:
        key = Key.of(m.settings["seed"])
        energy = small(key.fold("init").torch())
        alone = learn(energy, data, epochs=67, batch_size=32, seed=key)
        assert len(alone.history.objective) == 201
        torch.testing.assert_close(flat(m.energy), flat(energy), rtol=0, atol=1e-5)
        (one,) = learn_population(small, [{"seed": key}], data, epochs=67, batch_size=32)
        torch.testing.assert_close(flat(one.energy), flat(energy), rtol=0, atol=1e-5)


def test_betas_of_their_own() -> None:
    result = learn_population(
        make, {"beta1": [0.5, 0.9], "beta2": [0.9, 0.99]}, DATA, SoftMin(), epochs=3, batch_size=32
    )
    for m in result:
        betas = m.settings["beta1"], m.settings["beta2"]
        energy, _ = solo(m.settings, 3, optimizer=partial(OPTIMIZERS["adam"], betas=betas))
        torch.testing.assert_close(flat(m.energy), flat(energy), rtol=0, atol=1e-9)


def dropping(generator: torch.Generator, p: float = 0.5) -> NetClassEnergy:
    base = make(generator)
    inner: Any = base.net.layers if hasattr(base.net, "layers") else base.net
    net = nn.Sequential(*list(inner)[:2], nn.Dropout(p), *list(inner)[2:])
    return NetClassEnergy(5, 3, net).double()


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_dropout_masks_are_those_of_the_solo_run(backend: str) -> None:
    result = learn_population(
        dropping, {"p": [0.2, 0.5], "seed": [0, 1]}, DATA, SoftMin(), lr=0.02, epochs=3,
        batch_size=32, backend=backend,
    )  # fmt: skip
    for member in result:
        key = Key.of(member.settings["seed"])
        energy = dropping(key.fold("init").torch(), member.settings["p"])
        solver = Stochastic(lr=0.02, batch_size=32, max_epochs=3, tol=None)
        fit(energy, DATA, SoftMin(), solver, random_state=key)
        torch.testing.assert_close(flat(member.energy), flat(energy), rtol=0, atol=1e-9)
        assert type(next(m for m in member.energy.modules() if "Dropout" in type(m).__name__)) is (
            nn.Dropout
        )


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
def test_widths_share_a_program_where_padding_is_exact(
    activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wide(generator: torch.Generator, widths: tuple[int, ...] = (4,)) -> NetClassEnergy:
        return NetClassEnergy(5, 3, widths, activation, generator=generator).double()

    sizes: list[int] = []
    once = PopulationRun.__init__

    def spy(self: Any, energies: Any, *given: Any) -> None:
        sizes.append(len(energies))
        once(self, energies, *given)

    monkeypatch.setattr(PopulationRun, "__init__", spy)
    pulls = [{"strength": 0.3, "l1": 0.0}, {"strength": 0.0, "l1": 0.2}]
    grid = [{"widths": w, "clip": 0.5, **pull} for w in ((3, 7), (9, 4), (6,)) for pull in pulls]
    result = learn_population(wide, grid, DATA, SoftMin(), lr=0.02, epochs=4, batch_size=32)
    assert sizes == ([2, 2, 2] if activation == "sigmoid" else [4, 2])
    for m in result:
        energy = wide(Key.of(0).fold("init").torch(), m.settings["widths"])
        assert [p.shape for p in m.energy.parameters()] == [p.shape for p in energy.parameters()]
        l1 = m.settings["l1"]
        penalty = L1(l1) if l1 else L2(m.settings["strength"])
        solver = Stochastic(lr=0.02, batch_size=32, max_epochs=4, tol=None, clip_norm=0.5)
        fit(energy, DATA, SoftMin(), solver, penalty=penalty, random_state=Key.of(0))
        torch.testing.assert_close(flat(m.energy), flat(energy), rtol=0, atol=1e-9)


def test_padding_is_left_where_it_costs_more_than_a_program() -> None:
    from groundstate.learn.train.population.learn import _PLAIN
    from groundstate.learn.train.population.widths import joined

    members = [NetClassEnergy(5, 3, (n,)) for n in (8, 9, 900)]
    assert joined([[0], [1], [2]], members, 256, _PLAIN) == [[0, 1], [2]]
    assert joined([[0], [1], [2]], members, 1, _PLAIN) == [[0, 1, 2]]


def normed(generator: torch.Generator) -> NetClassEnergy:
    net = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))
    with torch.no_grad():
        for p in net.parameters():
            if p.ndim > 1:
                p.copy_(torch.randn(p.shape, generator=generator) / 2)
            else:
                p.fill_(0.5)
    return NetClassEnergy(5, 3, net).double()


def test_batch_norm_buffers_travel_with_their_member() -> None:
    result = learn_population(
        normed, {"seed": [0, 1]}, DATA, SoftMin(), lr=0.02, epochs=3, batch_size=20
    )
    for member in result:
        key = Key.of(member.settings["seed"])
        energy = normed(key.fold("init").torch())
        solver = Stochastic(lr=0.02, batch_size=20, max_epochs=3, tol=None)
        fit(energy, DATA, SoftMin(), solver, random_state=key)
        for (name, a), (_, b) in zip(
            member.energy.state_dict().items(), energy.state_dict().items(), strict=True
        ):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9, msg=name)
    uneven = torch.ones(2, N, dtype=torch.float64)
    uneven[0, :10] = 0
    with pytest.raises(Unsupported, match="batches of one size"):
        fit_population(
            [m.energy for m in result], DATA, SoftMin(), Stochastic(batch_size=20),
            sample_weight=uneven,
        )  # fmt: skip


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_a_member_that_breaks_stops_alone(backend: str) -> None:
    grid = [{"lr": 0.01, "seed": 0}, {"lr": 1e308, "seed": 1}, {"lr": 0.01, "seed": 2}]
    settings: dict[str, Any] = {"epochs": 4, "batch_size": 32, "optimizer": "sgd"}
    result = learn_population(make, grid, DATA, SoftMin(), backend=backend, **settings)
    bad = result[1]
    assert bad.failed and "the loss became" in bad.reason and "lower lr=1e+308" in bad.reason
    assert flat(bad.energy).isfinite().all()  # the last good parameters
    assert [m.failed for m in result] == [False, True, False]
    for m in (0, 2):
        alone = learn_population(make, [grid[m]], DATA, SoftMin(), backend=backend, **settings)
        torch.testing.assert_close(
            flat(result[m].energy), flat(alone[0].energy), rtol=0, atol=1e-12
        )
    assert result.best() is not bad and len(result.as_ensemble().members) == 2
    with pytest.raises(DataError, match="every member failed"):
        learn_population(make, [grid[1]], DATA, SoftMin(), backend=backend, **settings).best()


def test_best_and_the_committee() -> None:
    result = learn_population(make, 4, DATA, SoftMin(), lr=0.05, epochs=10, folds=3, seed=1)
    assert len(result) == 12 and {m.settings["fold"] for m in result} == {0, 1, 2}
    assert result.best().score == result.scores.min()
    committee = result.as_ensemble(range(3))
    distribution = torch.stack([(-m.energy.table("y", x=X)).softmax(1) for m in result[:3]]).mean(0)
    torch.testing.assert_close(
        (-committee.table("y", x=X)).exp(), distribution.detach(), rtol=0, atol=1e-9
    )
    assert [set(row) >= {"seed", "score", "epochs", "stop"} for row in result.table()] == [
        True
    ] * 12


def test_held_out_scores_and_early_stops() -> None:
    result = learn_population(
        make, {"lr": [0.05, 0.3]}, DATA, SoftMin(), folds=4, epochs=60, batch_size=16, patience=3,
        early_stopping=True,
    )  # fmt: skip
    assert any(m.history.n_iter < 60 for m in result)
    for m in result:
        assert m.score == pytest.approx(min(m.history.extra["validation"]), rel=1e-9)
    curve = result.mean_by("lr")
    assert [row["n"] for row in curve] == [4, 4] and curve[0]["score"] <= curve[1]["score"]


def test_values_too() -> None:
    data = {"x": X, "y": X[:, :2] * 2 - 1}
    energies = [
        SquaredEnergy(5, 2, (6,), generator=torch.Generator().manual_seed(s)).double()
        for s in (0, 1)
    ]
    alone = [
        SquaredEnergy(5, 2, (6,), generator=torch.Generator().manual_seed(s)).double()
        for s in (0, 1)
    ]
    for rule in (Naive(), SoftMin()):
        solver = Stochastic(lr=0.02, batch_size=32, max_epochs=2, tol=None)
        histories = fit_population(energies, data, rule, solver, random_state=[0, 1])
        for p in (0, 1):
            history = fit(alone[p], data, rule, solver, random_state=p)
            torch.testing.assert_close(flat(energies[p]), flat(alone[p]), rtol=0, atol=1e-9)
            assert histories[p].objective[-1] == pytest.approx(np.mean(history.objective[-3:]))
    result = learn_population(
        lambda generator: SquaredEnergy(5, 2, (6,), generator=generator).double(), 3, data, epochs=2
    )
    mean = torch.stack([m.energy.predict(X) for m in result]).mean(0)
    torch.testing.assert_close(result.as_ensemble().ability("argmin", "y")(x=X), mean)  # type: ignore[misc]


def test_the_written_program_is_found_where_it_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    run = PopulationRun.run

    def spy(self: PopulationRun, *args: Any) -> Any:
        found.append(isinstance(self.program, Written))
        return run(self, *args)

    monkeypatch.setattr(PopulationRun, "run", spy)

    class Skip(nn.Module):  # looks like two layers in a row, and is not
        def __init__(self) -> None:
            super().__init__()
            self.a, self.s, self.b = nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.b(x + self.s(self.a(x)))
            return out

    for energy, rule in (
        (make(torch.Generator()), SoftMin()),
        (make(torch.Generator()), SoftMin(T=2.0)),
        (NetClassEnergy(5, 3, Skip()).double(), SoftMin()),
        (normed(torch.Generator()), SoftMin()),
    ):
        fit_population([energy], DATA, rule, Stochastic(max_epochs=1, tol=None), random_state=0)
    assert found == [True, False, False, False]


@pytest.mark.parametrize("name", ["adam", "nesterov"])
def test_the_program_of_a_device_is_the_compiled_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs on a GPU, the passes in torch and the stacked optimiser, tried on the CPU."""
    grid = {"lr": [0.01, 0.05], "strength": [0.0, 2.0], "l1": [0.0, 1.0], "clip": [None, 0.5]}
    settings: dict[str, Any] = {
        "optimizer": name, "epochs": 3, "batch_size": 32, "folds": 2, "early_stopping": True,
    }  # fmt: skip
    compiled = learn_population(make, grid, DATA, SoftMin(), **settings)
    begin = Dense.__init__

    def plain(self: Dense, *args: Any) -> None:
        begin(self, *args)
        self.compiled = False

    monkeypatch.setattr(Dense, "__init__", plain)
    other = learn_population(make, grid, DATA, SoftMin(), **settings)
    for a, b in zip(compiled, other, strict=True):
        torch.testing.assert_close(flat(a.energy), flat(b.energy), rtol=0, atol=1e-9)
        np.testing.assert_allclose(a.history.objective, b.history.objective, rtol=1e-9)


def test_a_step_size_each_with_one_kernel_for_the_direction() -> None:
    """The step of a GPU for members that differ in nothing but the step size."""
    g = torch.Generator().manual_seed(0)
    start = torch.randn(3, 40, generator=g, dtype=torch.float64)
    for kind in (Adam, AdamW):
        plain = kind(start.clone(), lr=[0.1, 0.01, 0.02], weight_decay=[0.0, 0.1, 0.3])
        paced = kind(start.clone(), lr=[0.1, 0.01, 0.02], weight_decay=[0.0, 0.1, 0.3])
        paced.paced = True
        for _ in range(5):
            grad = torch.randn(3, 40, generator=g, dtype=torch.float64)
            plain.step(grad)
            paced.step(grad)
        torch.testing.assert_close(plain.flat, paced.flat, rtol=0, atol=1e-9)


def test_chunks_and_groups_change_nothing() -> None:
    grid = {"seed": range(5), "width": [3, 4]}
    whole = learn_population(make, grid, DATA, SoftMin(), epochs=2, batch_size=32)
    parts = learn_population(make, grid, DATA, SoftMin(), epochs=2, batch_size=32, max_members=2)
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(flat(a.energy), flat(b.energy), rtol=0, atol=1e-12)


class Killed(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_resumed_runs_end_in_the_same_bits(
    tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {
        "lr": 0.05, "epochs": 6, "batch_size": 16, "folds": 3, "early_stopping": True, "patience": 2,
        "schedule": "cosine", "backend": backend,
    }  # fmt: skip
    grid = {"p": [0.2, 0.4]}
    expected = learn_population(dropping, grid, DATA, SoftMin(), **settings)
    from groundstate.store import Checkpoints

    write = Checkpoints.write
    left = [0]

    def dies(self: Checkpoints, step: int, state: Any) -> Path:
        path = write(self, step, state)
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return path

    monkeypatch.setattr(Checkpoints, "write", dies)
    for left[0] in (1, 3, 6):
        with pytest.raises(Killed):
            learn_population(
                dropping, grid, DATA, SoftMin(), **settings, checkpoint=tmp_path, checkpoint_every=3
            )
    monkeypatch.setattr(Checkpoints, "write", write)
    resumed = learn_population(
        dropping, grid, DATA, SoftMin(), **settings, checkpoint=tmp_path, checkpoint_every=3
    )
    for a, b in zip(resumed, expected, strict=True):
        assert torch.equal(flat(a.energy), flat(b.energy))
        assert a.history.objective == b.history.objective and a.reason == b.reason
    with pytest.raises(ShapeError, match="the checkpoint holds 6 members"):
        learn_population(dropping, {"p": [0.1]}, DATA, SoftMin(), **settings, checkpoint=tmp_path)


def test_wrong_grids_get_one_sentence() -> None:
    with pytest.raises(ShapeError, match="at least one member, got 0"):
        learn_population(make, 0, DATA)
    with pytest.raises(ShapeError, match="give every name at least one value"):
        learn_population(make, {"lr": []}, DATA)
    with pytest.raises(ShapeError, match="members 0 and 1 must both set beta1"):
        learn_population(make, [{"beta1": 0.9}, {}], DATA)
    with pytest.raises(DataError, match="early_stopping needs held-out rows"):
        learn_population(make, 1, DATA, early_stopping=True)
    with pytest.raises(ShapeError, match="pass folds or weights, not both"):
        learn_population(make, 1, DATA, folds=2, validation_weight=torch.ones(N))
    with pytest.raises(Unsupported, match="clip_norm is not there .* pass clip= here"):
        fit_population([make(torch.Generator())], DATA, SoftMin(), Stochastic(clip_norm=1.0))
    with pytest.raises(Unsupported, match="use 'auto' or 'reference'"):
        learn_population(make, 1, DATA, backend="fast")
    with pytest.raises(Unsupported, match="'plateau' is not there"):
        learn_population(make, 1, DATA, schedule="plateau")


def test_checkpoints_of_early_versions_load(tmp_path: Path) -> None:
    from groundstate.store import Checkpoints

    settings: dict[str, Any] = {"lr": 0.05, "batch_size": 16, "folds": 3, "early_stopping": True}
    grid = {"p": [0.2, 0.4]}
    expected = learn_population(dropping, grid, DATA, SoftMin(), epochs=5, **settings)
    learn_population(dropping, grid, DATA, SoftMin(), epochs=3, **settings, checkpoint=tmp_path)
    files = Checkpoints(tmp_path / "group-0")
    found = files.latest()
    assert found is not None
    state, energy = found.state, dict(found.state["energy"])
    best, stale, kept = state["plateau"]
    old = {
        "members": energy.pop("members"), "good": energy.pop("good"), "buffers": energy,
        "active": state["optimizer"][0], "optimizer": state["optimizer"][1:],
        "losses": None, "parts": None, "place": state["place"][:2], "histories": state["history"],
        "plateaus": [torch.zeros(6), torch.zeros(6)],
        "validation": {"best": torch.tensor(best, dtype=torch.float64), "age": torch.tensor(stale), **kept},
    }  # fmt: skip
    files.write(found.step + 1, old)
    resumed = learn_population(
        dropping, grid, DATA, SoftMin(), epochs=5, **settings, checkpoint=tmp_path
    )
    for a, b in zip(resumed, expected, strict=True):
        assert torch.equal(flat(a.energy), flat(b.energy))
        assert a.history.objective == b.history.objective
