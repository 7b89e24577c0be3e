"""Callbacks: order, exceptions, logs, averages, best parameters, exact resume."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import LinearEnergy, NetClassEnergy
from groundstate.errors import DataError, Unsupported
from groundstate.learn import (
    EMA,
    BestCheckpoint,
    Callback,
    Checkpoint,
    CSVLogger,
    EarlyStopping,
    History,
    HistoryTable,
    JSONLLogger,
    Metrics,
    MLflowLogger,
    PathRecorder,
    Plateau,
    Probe,
    Problem,
    Progress,
    Regret,
    Run,
    Snapshots,
    SoftMin,
    Stochastic,
    TensorBoardLogger,
    fit,
    hold_out,
)
from groundstate.learn.callbacks import Monitor
from groundstate.nn import Dropout
from groundstate.store import load


def rows(n: int = 96, seed: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=g)
    return {"x": x, "y": (x[:, 0] + 0.5 * torch.randn(n, generator=g) > 0).long()}


def net(dropout: float = 0.0) -> NetClassEnergy:
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Linear(3, 8), nn.ReLU(), Dropout(dropout, mask_per_epoch=True), nn.Linear(8, 2)
    )
    return NetClassEnergy(3, 2, layers)


def accuracy(energy: NetClassEnergy, data: dict[str, Tensor]) -> Tensor:
    return (energy.table("y", x=data["x"]).argmin(1) == data["y"]).double().mean()


SOLVER = Stochastic(lr=0.02, batch_size=16, max_epochs=6, tol=None)


def test_order_is_that_of_the_list() -> None:
    told: list[str] = []

    class Say(Callback):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_begin(self, run: Run) -> None:
            told.append(f"{self.name} begin")

        def on_step(self, run: Run) -> None:
            told.append(f"{self.name} step")

        def on_epoch(self, run: Run) -> None:
            told.append(f"{self.name} epoch")

        def on_end(self, run: Run) -> None:
            told.append(f"{self.name} end")

    solver = Stochastic(batch_size=None, max_epochs=1, tol=None)
    fit(LinearEnergy(3, 2), rows(), SoftMin(), solver, callbacks=[Say("a"), Say("b")])
    events = ("begin", "step", "epoch", "end")
    assert told == [f"{name} {event}" for event in events for name in "ab"]


@pytest.mark.parametrize("hook", ["on_begin", "on_step", "on_epoch", "on_end"])
def test_exceptions_name_the_callback(hook: str) -> None:
    def fail(self: Callback, run: Run) -> None:
        raise KeyError("lost")

    ended: list[str] = []

    class Other(Callback):
        def on_end(self, run: Run) -> None:
            ended.append("other")

    broken = type("Broken", (Callback,), {hook: fail})()
    with pytest.raises(KeyError, match="lost") as caught:
        fit(LinearEnergy(3, 2), rows(), SoftMin(), SOLVER, callbacks=[Other(), broken])
    assert caught.value.__notes__ == [f"raised in {hook} of the callback Broken"]
    assert ended == ["other"]


def test_absent_callbacks_are_not_asked() -> None:
    class Quiet(Callback):
        def on_epoch(self, run: Run) -> None:
            return None

    problem = Problem(LinearEnergy(3, 2), SoftMin(), rows())
    assert Monitor([], Run(problem, History(), 1)).steppers == ()
    assert Monitor([Quiet()], Run(problem, History(), 1)).steppers == ()


def test_history_table_csv_and_jsonl_agree(tmp_path: Path) -> None:
    table = HistoryTable()
    sheet, lines = tmp_path / "deep" / "log.csv", tmp_path / "log.jsonl"
    held = rows(40, 1)
    callbacks = [
        Metrics({"accuracy": accuracy}, held, prefix="val_"),
        table,
        CSVLogger(sheet),
        JSONLLogger(lines),
    ]
    history = fit(net(), rows(), SoftMin(), SOLVER, callbacks=callbacks, random_state=0)
    frame = table.frame()
    assert list(frame.index) == [1, 2, 3, 4, 5, 6] and list(frame["steps"]) == [
        6, 12, 18, 24, 30, 36
    ]  # fmt: skip
    assert list(frame["val_accuracy"]) == history.extra["val_accuracy"]
    assert set(frame["lr"]) == {0.02}
    with sheet.open() as file:
        read = list(csv.DictReader(file))
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    for row, text, line in zip(table.rows, read, told, strict=True):
        assert line == row and {k: float(v) for k, v in text.items()} == row


@pytest.mark.parametrize(
    ("callback", "package"),
    [(TensorBoardLogger("runs"), "tensorboard"), (MLflowLogger(), "mlflow")],
)
def test_absent_packages_are_named(
    callback: Callback, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(Unsupported, match=f"needs the package {package}.*pip install {package}"):
        fit(LinearEnergy(3, 2), rows(), SoftMin(), SOLVER, callbacks=[callback])


def test_tensorboard_reads_the_rows_also_of_a_resumed_run(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    table, files = HistoryTable(), tmp_path / "checkpoints"
    kept = [TensorBoardLogger(tmp_path / "runs"), Checkpoint(files, every_epochs=2)]
    fit(net(), rows(), SoftMin(), SOLVER, callbacks=[*kept, Stop(20)], random_state=0)
    kept = [table, TensorBoardLogger(tmp_path / "runs"), Checkpoint(files)]
    fit(net(), rows(), SoftMin(), SOLVER, callbacks=kept, random_state=0)
    events = EventAccumulator(str(tmp_path / "runs"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"objective", "seconds", "lr"}
    told = events.Scalars("objective")
    assert [event.step for event in told] == [6, 12, 18, 24, 30, 36]
    later = {row["steps"]: row["objective"] for row in table.rows}
    for event in told:
        if event.step in later:
            assert event.value == pytest.approx(later[event.step], rel=1e-6)
    assert len(later) >= 4


def test_mlflow_gets_the_rows_of_one_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys
    from types import ModuleType, SimpleNamespace

    told: list[tuple[str, object]] = []
    active: list[SimpleNamespace] = []

    def start(run_id: str | None, run_name: str | None) -> SimpleNamespace:
        told.append(("start", run_id))
        active.append(SimpleNamespace(info=SimpleNamespace(run_id=run_id or f"id of {run_name}")))
        return active[-1]

    fake = SimpleNamespace(
        active_run=lambda: active[-1] if active else None,
        start_run=start,
        log_metrics=lambda metrics, step: told.append(("row", step)),
        end_run=lambda: told.append(("end", active.pop().info.run_id)),
    )
    module = ModuleType("mlflow")
    vars(module).update(vars(fake))
    monkeypatch.setitem(sys.modules, "mlflow", module)

    kept = [MLflowLogger(run_name="one"), Checkpoint(tmp_path, every_epochs=2)]
    fit(net(), rows(), SoftMin(), SOLVER, callbacks=[*kept, Stop(20)], random_state=0)
    kept = [MLflowLogger(run_name="one"), Checkpoint(tmp_path)]
    fit(net(), rows(), SoftMin(), SOLVER, callbacks=kept, random_state=0)
    steps = [("row", 6 * (i + 1)) for i in range(6)]
    end = ("end", "id of one")
    first, again = [("start", None), *steps[:3], end], [("start", "id of one"), *steps[2:], end]
    assert told == [*first, *again]

    told.clear()
    mine = start(None, "mine")
    logger = MLflowLogger()
    fit(net(), rows(), SoftMin(), SOLVER, callbacks=[logger], random_state=0)
    assert told == [("start", None), *steps]  # who opened it closes it
    assert logger.run_id == mine.info.run_id == active[-1].info.run_id


def test_progress_speed_is_examples_per_second() -> None:
    bar = Progress()
    run = Run(Problem(LinearEnergy(3, 2), SoftMin(), rows()), History(), 3)
    bar._before = (0.0, 0)
    run.examples = 5000.0
    assert bar.speed(run, 2.0) == "2,500 examples/s"
    run.examples = 0.0
    assert bar.speed(run, 2.0) == ""


def test_ema_is_the_running_mean() -> None:
    energy, mean, way = net(), EMA(0.9, warm=False, keep=False), PathRecorder()
    fit(energy, rows(), SoftMin(), SOLVER, callbacks=[mean, way], random_state=0)
    expected = way.path[0].double()
    for theta in way.path[1:].double():
        expected = 0.9 * expected + 0.1 * theta
    flat = torch.cat([v.reshape(-1) for v in mean.values])
    torch.testing.assert_close(flat.double(), expected, rtol=1e-4, atol=1e-6)
    final = torch.cat([p.detach().reshape(-1) for p in energy.parameters()])
    assert torch.equal(final, way.path[-1])
    with mean.applied():
        inside = torch.cat([p.detach().reshape(-1) for p in energy.parameters()])
        assert torch.equal(inside, flat)
    assert torch.equal(torch.cat([p.detach().reshape(-1) for p in energy.parameters()]), final)


def test_ema_warms_up_and_stays_at_the_end() -> None:
    energy, mean = net(), EMA(0.999)
    fit(energy, rows(), SoftMin(), SOLVER, callbacks=[mean], random_state=0)
    for p, v in zip(energy.parameters(), mean.values, strict=True):
        assert torch.equal(p, v)
    start = net()
    moved = [float((p - q).abs().max().detach()) for p, q in zip(energy.parameters(), start.parameters(), strict=True)]  # noqa: E501  # fmt: skip
    assert max(moved) > 0.05  # the start is forgotten


def test_path_has_start_and_all_steps() -> None:
    energy, way = net(), PathRecorder(every=6)
    start = torch.cat([p.detach().reshape(-1) for p in energy.parameters()])
    history = fit(energy, rows(), SoftMin(), SOLVER, callbacks=[way], random_state=0)
    assert way.path.shape == (7, start.numel()) and torch.equal(way.path[0], start)
    assert way.losses.tolist() == pytest.approx(history.objective[5::6])


def test_early_stopping_restores_the_argmin_bitwise() -> None:
    held = rows(60, 5)
    energy, way = net(), PathRecorder(every=6)
    stopper = EarlyStopping(held, patience=4)
    solver = Stochastic(lr=0.1, batch_size=16, max_epochs=60, tol=None)
    history = fit(energy, rows(), SoftMin(), solver, callbacks=[way, stopper], random_state=0)
    curve = history.extra["validation"]
    assert history.n_iter < 60 and "no improvement" in history.stop
    best = min(range(len(curve)), key=curve.__getitem__)
    flat = torch.cat([p.detach().reshape(-1) for p in energy.parameters()])
    assert torch.equal(flat, way.path[best + 1]) and stopper.best_epoch == best + 1


def test_early_stopping_watches_any_criterion() -> None:
    held = rows(60, 5)
    metric = Metrics({"accuracy": accuracy}, held)
    stopper = EarlyStopping(monitor="accuracy", mode="max", patience=3)
    history = fit(net(), rows(), SoftMin(), SOLVER, callbacks=[metric, stopper], random_state=0)
    assert stopper.best == max(history.extra["accuracy"])
    own = EarlyStopping(monitor=lambda e: -float(accuracy(e, held)), patience=3)
    again = fit(net(), rows(), SoftMin(), SOLVER, callbacks=[own], random_state=0)
    assert again.extra["validation"] == [-a for a in history.extra["accuracy"][: again.n_iter]]
    with pytest.raises(ValueError, match="monitor='f1' is not among the logs.*put a Metrics"):
        fit(net(), rows(), SoftMin(), SOLVER, callbacks=[EarlyStopping(monitor="f1")])


def test_best_checkpoint_keeps_the_k_best(tmp_path: Path) -> None:
    held = rows(60, 5)
    energy, best = net(), BestCheckpoint(3, held, folder=tmp_path)
    stopper = EarlyStopping(held, patience=100, restore_best=False)
    solver = Stochastic(lr=0.1, batch_size=16, max_epochs=15, tol=None)
    history = fit(energy, rows(), SoftMin(), solver, callbacks=[stopper, best], random_state=0)
    curve = history.extra["validation"]
    wanted = sorted(range(15), key=curve.__getitem__)[:3]
    assert [epoch - 1 for _, epoch, _ in best.kept] == wanted
    names = sorted(path.name for path in tmp_path.glob("*.gs"))
    assert names == sorted(f"best-{i + 1:06d}.gs" for i in wanted)
    stored = load(tmp_path / f"best-{wanted[0] + 1:06d}.gs")
    assert stored["value"] == min(curve)
    assert best.restore(energy) == min(curve)
    for name, value in energy.state_dict().items():
        assert torch.equal(value, stored["energy"][name])
    with pytest.raises(ValueError, match="3 parameters are kept, there is no rank 3"):
        best.restore(energy, 3)


def test_masks_last_an_epoch() -> None:
    energy = net(0.5)
    seen: list[Tensor] = []

    class Look(Callback):
        def on_step(self, run: Run) -> None:
            seen.append(energy.net[2].mask.clone())

    fit(energy, rows(), SoftMin(), SOLVER, callbacks=[Look()], random_state=0)
    epochs = torch.stack(seen).view(6, 6, 8)
    assert bool((epochs == epochs[:, :1]).all())
    assert len({tuple(mask.tolist()) for mask in epochs[:, 0]}) > 1


class Stop(Callback):
    def __init__(self, at: int) -> None:
        self.at = at

    def on_step(self, run: Run) -> bool:
        return run.total_steps == self.at


def test_every_callback_resumes_exactly(tmp_path: Path) -> None:
    """Interrupted in the middle of an epoch and resumed: the same numbers to the last bit."""
    held = rows(60, 5)

    def watchers(name: str) -> list[Callback]:
        return [
            Metrics({"accuracy": accuracy}, held),
            EarlyStopping(held, patience=50),
            BestCheckpoint(2, held),
            Plateau(0.5, 0, threshold=0.05),
            EMA(0.9),
            PathRecorder(every=5),
            HistoryTable(),
            Probe(every=2),
            Regret("final"),
            Snapshots(every=4),
            CSVLogger(tmp_path / f"{name}.csv"),
            JSONLLogger(tmp_path / f"{name}.jsonl"),
        ]

    def run(name: str, *extra: Callback) -> tuple[NetClassEnergy, list[Callback], History]:
        energy, used = net(0.3), watchers(name)
        history = fit(energy, rows(), SoftMin(), SOLVER, callbacks=[*extra, *used], random_state=1)
        return energy, used, history

    whole, first, history = run("whole")
    folder = tmp_path / "checkpoints"
    run("broken", Checkpoint(folder, every_steps=4), Stop(21))
    broken, second, resumed = run("broken", Checkpoint(folder, every_steps=4))
    for a, b in zip(whole.parameters(), broken.parameters(), strict=True):
        assert torch.equal(a, b)
    assert resumed.extra == history.extra and resumed.n_iter == 6
    for one, two in zip(first, second, strict=True):
        a, b = one.state(), two.state()
        assert _plain(a) == _plain(b), type(one).__name__
    for kind in ("csv", "jsonl"):
        texts = [(tmp_path / f"{name}.{kind}").read_text() for name in ("whole", "broken")]
        assert _without_time(texts[0]) == _without_time(texts[1])


def _plain(value: object) -> object:
    """Numbers without times, tensors as lists."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if k != "seconds"}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def _without_time(text: str) -> list[object]:
    if text.startswith("{"):
        return [_plain(json.loads(line)) for line in text.splitlines()]
    return [_plain(row) for row in csv.DictReader(text.splitlines())]


def test_hold_out_is_stratified_and_leaks_nothing() -> None:
    data = {"x": torch.arange(100.0)[:, None], "y": (torch.arange(100) % 10 == 0).long()}
    parts = hold_out(data, random_state=0)
    assert len(parts.held["x"]) == 20 and parts.held["y"].sum() == 2
    assert not set(parts.held["x"].flatten().tolist()) & set(parts.train["x"].flatten().tolist())
    doubled = {k: torch.cat([v, v]) for k, v in data.items()}
    twice = hold_out(doubled, random_state=0)
    weighted = hold_out(data, sample_weight=torch.full((100,), 2.0), random_state=0)
    for side in ("train", "held"):
        seen = {
            tuple(sorted(set(getattr(p, side)["x"].flatten().tolist()))) for p in (twice, weighted)
        }
        assert len(seen) == 1  # a weight of 2 is the row twice, and copies stay together
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    moved = hold_out({k: v[order] for k, v in data.items()}, random_state=0)
    assert set(moved.held["x"].flatten().tolist()) == set(parts.held["x"].flatten().tolist())
    with pytest.raises(ValueError, match="fraction must be above 0 and below 1, got 1.5"):
        hold_out(data, 1.5)
    with pytest.raises(DataError, match="leaves one side empty"):
        hold_out({"x": torch.ones(5, 1)}, 0.2)
