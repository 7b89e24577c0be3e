"""Files that earlier versions wrote load, and answer as they did on the day they were written.

``tests/store/fixtures/v<format>`` holds what the store wrote then, byte for byte, with the answers
of that day beside it; ``fixtures/make.py`` wrote it. A class that has another name today gets a row
in ``RENAMED``; the files stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from groundstate.data import read
from groundstate.energy import NetClassEnergy
from groundstate.evaluate import Ledger
from groundstate.learn import (
    L2,
    Callback,
    Checkpoint,
    EarlyStopping,
    SoftMin,
    Stochastic,
    fit,
    learn_population,
)
from groundstate.learn.callbacks.ema import EMA
from groundstate.models.tables.table import TablePredictor
from groundstate.registry import energies, models
from groundstate.store import FORMAT, Checkpoints, RunDir, load, manifest
from groundstate.store.rundir import is_run

FIXTURES = Path(__file__).parent / "fixtures"
SETS = sorted(folder for folder in FIXTURES.glob("v*") if folder.is_dir())
METHODS = (
    "predict", "predict_proba", "decision_function", "transform", "score_samples", "kneighbors",
)  # fmt: skip
KINDS = ("blocks", "energies", "models", "parts", "streams", "tables")

#: names of classes in old files, and what they are called today
RENAMED: dict[str, str] = {}
# a question whose name means something else today (see the changelog) under its name of today
ASKED_NOW = {("BernoulliRBM", "score_samples"): "pseudo_score_samples"}

# chains that draw their bits in another order since: a step goes on from them, with other noise
OTHER_DRAWS = {"BernoulliRBM": 5e-3}

pytestmark = pytest.mark.filterwarnings("ignore::groundstate.store.StoreWarning")


def files(kind: str) -> list[Any]:
    """The stored files of one kind, of every set."""
    return [
        pytest.param(path, id=f"{folder.name}-{path.stem}")
        for folder in SETS
        for path in sorted((folder / kind).glob("*.gs"))
    ]


def sets() -> list[Any]:
    return [pytest.param(folder, id=folder.name) for folder in SETS]


@cache
def noted(folder: Path) -> dict[str, Any]:
    """What was written down about the files of a set: classes, plain attributes, rows of tables."""
    found: dict[str, Any] = json.loads((folder / "index.json").read_text())
    return found


@cache
def answers(folder: Path, kind: str) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """The answers of the day, by file and by question."""
    found: dict[str, dict[str, Any]] = {}
    with np.load(folder / f"{kind}.npz", allow_pickle=False) as stored:
        for key in stored.files:
            name, _, question = key.partition("|")
            found.setdefault(name, {})[question] = stored[key]
    return found


def expected(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    return answers(path.parent.parent, path.parent.name)[path.stem]


def opened(path: Path) -> Any:
    """The object of a file, once its class is the one of that name today."""
    value = load(path)
    name = noted(path.parent.parent)["files"][f"{path.parent.name}/{path.name}"]["class"]
    assert type(value).__name__ == RENAMED.get(name, name)
    return value


def same(found: Any, then: np.ndarray[Any, Any], noise: float = 0.0) -> None:
    """Labels and counts exactly, numbers to six digits or what float32 has."""
    now = found.detach().numpy() if isinstance(found, Tensor) else np.asarray(found)
    assert now.shape == then.shape
    if then.dtype.kind != "f":
        np.testing.assert_array_equal(now, then)
    else:
        single = then.dtype.itemsize < 8
        rtol, atol = (1e-5, 1e-6) if single else (1e-6, 1e-9)
        np.testing.assert_allclose(now, then, rtol=rtol, atol=max(atol, noise))


def said(model: Any, method: str, rows: Any) -> Any:
    """The answer of a model; of neighbours the distances."""
    method = ASKED_NOW.get((type(model).__name__, method), method)
    found = getattr(model, method)(rows)
    return found[0] if method == "kneighbors" else found


def trained(data: dict[str, Tensor], *callbacks: Callback) -> NetClassEnergy:
    """The run whose checkpoints are among the files: every part of a checkpoint is in use."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Dropout(0.3), nn.Linear(5, 3)
        )
    energy = NetClassEnergy(4, 3, net)
    held = {name: rows[:20] for name, rows in data.items()}
    solver = Stochastic(
        "adam", lr=0.01, batch_size=16, max_epochs=3, tol=None, schedule="warmup+cosine",
        clip_norm=1.0,
    )  # fmt: skip
    watching = [EMA(0.9), EarlyStopping(held, patience=6), *callbacks]
    fit(energy, data, SoftMin(), solver, penalty=L2(0.01), callbacks=watching, random_state=0)
    return energy


def determined(theta: Any) -> Tensor:
    """What the run of :func:`trained` determines of its weights, in the order of ``flat``.

    The slope of the bias before a batch norm is zero but for rounding, and Adam makes steps of that
    rounding: neither that bias nor the running mean that follows it is the same on another processor.
    """
    w = torch.as_tensor(theta).double()
    bias, mean = range(20, 25), range(35, 40)  # after (5, 4) weights; after scale and shift
    return w[[i for i in range(len(w)) if i not in bias and i not in mean]].float()


def population(data: dict[str, Tensor], folder: Path | None = None) -> Any:
    """The population whose checkpoints are among the files."""

    def make(generator: torch.Generator) -> NetClassEnergy:
        net = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(0.3 * torch.randn(p.shape, generator=generator))
        return NetClassEnergy(4, 3, net)

    grid = {"lr": [0.01, 0.05]}
    return learn_population(
        make, grid, data, SoftMin(), epochs=4, batch_size=16, folds=2, early_stopping=True,
        patience=3, schedule="cosine", seed=0, checkpoint=folder,
    )  # fmt: skip


def flat(energy: nn.Module) -> Tensor:
    return torch.cat([v.detach().double().reshape(-1) for v in energy.state_dict().values()])


def rows_of(then: dict[str, np.ndarray[Any, Any]]) -> dict[str, Tensor]:
    """The example rows that were stored with the answers."""
    start = "rows|"
    return {k.removeprefix(start): torch.from_numpy(v) for k, v in then.items() if start in k}


def test_every_format_has_its_files() -> None:
    assert FIXTURES / f"v{FORMAT}" in SETS, "a new format: run tests/store/fixtures/make.py"
    for folder in SETS:
        there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.gs")}
        assert there == set(noted(folder)["files"])
        assert all(files(kind) for kind in KINDS)
        assert all(manifest(folder / name)["format"] == int(folder.name[1:]) for name in there)
    first = sorted((FIXTURES / "v1").rglob("*.gs"))
    assert len(first) == 305, "files of the past neither come nor go"


@pytest.mark.parametrize("path", files("models"))
def test_a_model_answers_as_it_did(path: Path) -> None:
    model, then = opened(path), dict(expected(path))
    name = type(model).__name__
    assert name not in models or type(model) is models[name].obj
    X: Any = then.pop("rows|x")
    if hasattr(model, "feature_names_in_"):
        X = pd.DataFrame(X, columns=model.feature_names_in_)
    assert then, "a model without answers proves nothing"
    for method, values in then.items():
        same(said(model, method, X), values)


@pytest.mark.parametrize("path", files("streams"))
def test_a_model_learns_on_from_where_it_stopped(path: Path) -> None:
    model, then = opened(path), dict(expected(path))
    X = then.pop("rows|x")
    more, y = then.pop("more|x"), then.pop("more|y")
    name = type(model).__name__
    given = () if models[name].role == "generator" else (y,)
    model.partial_fit(more, *given)  # a generator learned without y is not given one later
    assert then
    for method, values in then.items():
        same(said(model, method, X), values, OTHER_DRAWS.get(name, 0.0))


@pytest.mark.parametrize("path", files("energies"))
def test_an_energy_has_the_same_values(path: Path) -> None:
    energy, then = opened(path), expected(path)
    name = RENAMED.get(path.stem, path.stem)
    assert name not in energies or type(energy) is energies[name].obj
    with torch.no_grad():
        same(energy(**rows_of(then)), then["energy"])


@pytest.mark.parametrize("path", files("blocks"))
def test_a_block_has_the_same_values(path: Path) -> None:
    block, then = opened(path), expected(path)
    assert not block.training
    with torch.no_grad():
        same(block(rows_of(then)["x"]), then["value"])


@pytest.mark.parametrize("path", files("parts"))
def test_a_part_has_the_same_settings(path: Path) -> None:
    part = opened(path)
    about = noted(path.parent.parent)["files"][f"parts/{path.name}"]
    assert {name: getattr(part, name) for name in about["plain"]} == about["plain"]


@pytest.mark.parametrize("path", files("tables"))
def test_a_table_predictor_answers_as_it_did(path: Path) -> None:
    model, then = opened(path), expected(path)
    assert isinstance(model, TablePredictor)
    rows = noted(path.parent.parent)["rows"]
    assert then
    for method, values in then.items():
        same(said(model, method, rows), values)


def learned_on(then: dict[str, np.ndarray[Any, Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(then[f"data|{name}"]) for name in ("x", "y")}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps whose checkpoints are written from here on."""
    steps: list[int] = []
    write = Checkpoints.write

    def noting(self: Checkpoints, step: int, state: dict[str, Any]) -> Path:
        steps.append(step)
        return write(self, step, state)

    monkeypatch.setattr(Checkpoints, "write", noting)
    return steps


@pytest.mark.parametrize("folder", sets())
def test_a_checkpoint_resumes(folder: Path, tmp_path: Path, written: list[int]) -> None:
    then = answers(folder, "runs")["checkpoint"]
    shutil.copytree(folder / "checkpoint", tmp_path / "run")
    newest = Checkpoints(tmp_path / "run").latest()
    assert newest is not None and newest.step == int(then["step"])
    energy = trained(learned_on(then), Checkpoint(tmp_path / "run", every_steps=1))
    assert written and min(written) == newest.step + 1  # it did not begin anew
    same(determined(flat(energy)), determined(then["theta"]).numpy())


@pytest.mark.parametrize("folder", sets())
def test_a_population_resumes(folder: Path, tmp_path: Path, written: list[int]) -> None:
    then = answers(folder, "runs")["population"]
    shutil.copytree(folder / "population", tmp_path / "run")
    found = population(learned_on(then), tmp_path / "run")
    assert written and min(written) > int(then["step"])
    same(torch.stack([flat(member.energy) for member in found]).float(), then["theta"])


@pytest.mark.parametrize("folder", sets())
def test_a_population_result_comes_back(folder: Path) -> None:
    then = answers(folder, "runs")["result"]
    found = opened(folder / "results" / "population.gs")
    same(found.scores, then["scores"])
    same(torch.stack([flat(member.energy) for member in found]).float(), then["theta"])
    assert [len(member.history.objective) for member in found] == then["epochs"].tolist()
    assert type(found.best().energy) is NetClassEnergy


@pytest.mark.parametrize("folder", sets())
def test_the_best_epochs_come_back(folder: Path) -> None:
    then = answers(folder, "runs")["best"]
    (path,) = sorted((folder / "best").glob("best-*.gs"))
    stored = load(path)
    energy = trained(learned_on(answers(folder, "runs")["checkpoint"]), Once())
    energy.load_state_dict(stored["energy"])
    same(flat(energy).float(), then["theta"])
    assert stored["epoch"] == int(then["epoch"]) and stored["value"] == float(then["value"])


class Once(Callback):
    """Stop after a step."""

    def __init__(self, at: int = 1) -> None:
        self.at = at

    def on_step(self, run: Any) -> bool:
        return bool(run.total_steps == self.at)


@pytest.mark.parametrize("folder", sets())
def test_a_run_folder_is_known_and_its_model_answers(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(folder / "run.zip") as zipped:
        zipped.extractall(tmp_path)
    run = tmp_path / "run"
    assert is_run(run)
    wrote = json.loads((run / "run.json").read_text())["files"]
    assert {"model.gs", "report.json", "report.html", "reproduce.py"} <= set(wrote)
    for name, digest in wrote.items():
        assert hashlib.sha256((run / name).read_bytes()).hexdigest() == digest
    model = load(run / "model.gs")
    assert isinstance(model, TablePredictor)
    rows = read("iris").features.head(5)
    for method, values in answers(folder, "runs")["run"].items():
        same(said(model, method, rows), values)
    (run / "notes.txt").write_text("mine")
    with RunDir(run) as again:  # a later run takes its place and keeps what was added
        again.write_text("report.html", "new")
    assert sorted(p.name for p in run.iterdir()) == ["notes.txt", "report.html", "run.json"]


@pytest.mark.parametrize("folder", sets())
def test_a_ledger_goes_on(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "looks.jsonl", tmp_path)
    ledger = Ledger(tmp_path / "looks.jsonl")
    X, y = np.arange(10.0)[:, None], np.arange(10) % 2
    assert ledger.verify() and ledger.count(X, y) == 2
    assert ledger.record(X, y, "ridge", scores={"accuracy": 0.9}).number == 3 and ledger.verify()


__all__ = ["METHODS", "Once", "flat", "population", "said", "trained"]
