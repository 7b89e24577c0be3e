"""A model of a file of its own is found everywhere by being registered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from tests.project.test_four_places import hooks

import groundstate
from groundstate import registry
from groundstate.models.tables.table import TablePredictor

SOURCE = '''
"""A regressor of one file."""

from groundstate import Ridge
from groundstate.models import settings
from groundstate.models.traits import Traits
from groundstate.registry import models

CALLS = []


def program(estimator, X, y, weights, settings):
    CALLS.append(len(settings))
    rows = [None] * len(settings) if weights is None else weights
    return [
        type(estimator)(**{**estimator.get_params(), **p}).fit(X, y, sample_weight=w)
        for p, w in zip(settings, rows)
    ]


@models.register(family="linear", task="regression", role="regressor", shortlist=9)
class NewRidge(Ridge):
    """Ridge regression under another name."""

    traits = Traits(
        space={"alpha": settings.Real(0.5, 2.0)}, program=program, scaled_target=True,
        single_columns=True,
    )
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "a_new_model.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    registry.models.names()  # all others first
    yield import_module("a_new_model")
    del registry.models._rows["NewRidge"]


def test_it_is_found_everywhere(module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from groundstate.cli.models import models
    from groundstate.study.candidates import chosen_models
    from groundstate.tune import Tune, default_space

    models(None, json=True)
    told = json.loads(capsys.readouterr().out)
    assert [row["family"] for row in told if row["name"] == "NewRidge"] == ["linear"]
    models("NewRidge", json=True)
    assert "under another name" in capsys.readouterr().out
    for menu in ("auto", "all", "NewRidge"):
        assert "NewRidge" in chosen_models(menu, "regression")
    tables = hooks()
    assert "| NewRidge | linear |" in tables.make("models")
    assert "NewRidge" in tables.family_table("linear")()

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 100.0
    y = 1e4 + X[:, 0]
    model = module.NewRidge()
    assert default_space(model).names == ["alpha"] == list(model.default_space())
    search = Tune(model, n_trials=8, cv=3).fit(X, y)
    assert 0.5 <= search.best_params_["alpha"] <= 2.0 and search.best_score_ > 0.9
    assert module.CALLS == [12, 12]  # four settings of three folds, by its own program
    groundstate.fit_many(model, X, y, np.ones((2, 60)))
    assert module.CALLS[2:] == [2]
    behind = TablePredictor(model).fit({"a": X[:, 0]}, y)
    assert behind.target_scale_ is not None and behind.preparation_.trees
    failed = [
        r for r in check_estimator(model, on_fail=None, on_skip=None) if r["status"] == "failed"
    ]
    assert not failed
