"""Every fast path, broken on purpose, shows the failure: only ``NotApplicable`` is a way back.

``BREAKS`` has a row for each file that falls back; a file that begins to, or stops to, is a failure here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import groundstate as gs
from groundstate.compute.population.training import Step
from groundstate.compute.random import Key
from groundstate.energy import NetClassEnergy
from groundstate.errors import DataError
from groundstate.evaluate import cross_validate, loo, rank, retrain
from groundstate.evaluate.splits.pipeline_bootstrap import pipeline_bootstrap
from groundstate.evaluate.splits.refits import refits
from groundstate.infer.sampling.diffusion.loop import DiffusionSampler
from groundstate.learn import SoftMin, Stochastic, fit_population
from groundstate.learn.solvers.lbfgs_resident import _Objective
from groundstate.learn.train.capture import CapturedStep
from groundstate.models.shapley.values import shapley_values
from groundstate.nn.coordinate.derivatives import derivatives
from groundstate.tune import Tune

SRC = Path(gs.__file__).parent
RNG = np.random.default_rng(0)
X, y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
SPLIT = np.arange(30), np.arange(30, 40)


class Defect(ArithmeticError):
    """No reason to fall back."""


def broken(*given: Any, **more: Any) -> Any:
    raise Defect("a defect")


def population() -> None:
    energies = [NetClassEnergy(3, 2, (4,)) for _ in range(2)]
    rows = {"x": torch.from_numpy(X).float(), "y": torch.from_numpy(y > 0).long()}
    fit_population(
        energies, rows, SoftMin(), Stochastic(batch_size=8, max_epochs=1), random_state=1
    )


def recorded(cls: Any, **attributes: Any) -> Any:
    """An object whose recording on a GPU is broken, without its construction, which needs one."""
    found = cls.__new__(cls)
    found.__dict__.update({"recorder": broken, **attributes})
    return found


def recorded_members() -> None:
    kind = SimpleNamespace(masked=False, fused=False)
    recorded(Step, capture=True, optimizer=kind, _recorder=broken)(None)


def recorded_draws() -> None:
    walk = recorded(
        DiffusionSampler, steps=SimpleNamespace(t=torch.zeros(1)), rows=torch.zeros(1, 1), random=[False]
    )  # fmt: skip
    walk._worker = lambda x: broken
    walk(torch.zeros(2, 3))


def slopes() -> None:
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    derivatives(net, torch.zeros(3, 2), [(0,), (0, 1)])


def explained() -> None:
    shapley_values(gs.DecisionTreeRegressor(max_depth=2).fit(X, y), X[:2], X)


def ranked() -> None:
    rank({"one": gs.Ridge(), "two": gs.Ridge(2.0)}, X, y, task="regression", cv=3)


#: file that falls back -> what is broken there, and a call that takes the fast path
BREAKS: dict[str, tuple[str | None, Callable[[], Any]]] = {
    "compute/population/training.py": (None, recorded_members),
    "evaluate/board/ranking.py": ("fit_rows", ranked),
    "evaluate/intervals/retrain.py": ("fit_rows", lambda: retrain(gs.Ridge(), X, y, SPLIT, 3)),
    "evaluate/splits/cross_validate.py": (
        "fit_rows", lambda: cross_validate(gs.Ridge(), X, y, cv=3),
    ),
    "evaluate/splits/leave_one_out.py": ("traits_of", lambda: loo(gs.LinearRegression(), X, y)),
    "evaluate/splits/pipeline_bootstrap.py": (
        "fit_rows", lambda: pipeline_bootstrap(gs.Ridge(), X, y, 3),
    ),
    "evaluate/splits/refits.py": (
        "fit_rows", lambda: refits(gs.Ridge(), X, y, [SPLIT[0]], [Key.of(0)]),
    ),
    "infer/sampling/diffusion/loop.py": (None, recorded_draws),
    "learn/solvers/committee.py": (
        "models.ensembles.member.fit_together",
        lambda: gs.BaggingRegressor(gs.Ridge(), 3, random_state=0).fit(X, y),
    ),
    "learn/solvers/lbfgs_resident.py": (None, lambda: recorded(_Objective)._replayed()),
    "learn/train/capture.py": (
        None, lambda: recorded(CapturedStep, broken=False, theta=[], addresses=[])({}, None, 1.0),
    ),
    "learn/train/population/programs.py": ("Written", population),
    "learn/train/population/run.py": ("Steps", population),
    "models/population/many.py": (
        "fit_together", lambda: gs.fit_many(gs.Ridge(), X, y, np.ones((2, 40))),
    ),
    "models/shapley/values.py": ("_trees", explained),
    "nn/coordinate/derivatives.py": ("jet", slopes),
    "nn/coordinate/jets.py": ("dense_jet", slopes),
    "tune/trials.py": ("_population", lambda: Tune(gs.Ridge(), n_trials=4, cv=3).fit(X, y)),
}  # fmt: skip


def test_every_file_that_falls_back_has_a_row() -> None:
    found = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if re.search(r"except \(?[\w, ]*\bNotApplicable\b", path.read_text())
    }
    assert found == set(BREAKS)


@pytest.mark.parametrize("file", BREAKS)
def test_a_broken_fast_path_is_seen(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, call = BREAKS[file]
    if name is not None:
        here = file.removesuffix(".py").replace("/", ".")
        module, _, last = (name if "." in name else f"{here}.{name}").rpartition(".")
        instead: Any = broken
        if last == "traits_of":
            instead = lambda model: SimpleNamespace(leverage=broken)
        monkeypatch.setattr(import_module(f"groundstate.{module}"), last, instead)
    with pytest.raises((Defect, DataError), match="a defect"):
        call()
