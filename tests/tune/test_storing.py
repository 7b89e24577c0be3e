"""Where studies are kept, and what is said when they cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy.event

import groundstate
from groundstate.errors import DataError, StoreError, Unsupported
from groundstate.tune import Tune
from groundstate.tune.storing import named, open_study, sqlite_storage

X = np.random.default_rng(0).normal(size=(30, 3))
Y = X[:, 0] + 0.1 * X[:, 1]


def test_a_full_disk_in_the_middle_of_a_search_is_one_sentence(tmp_path: Path) -> None:
    storage = sqlite_storage(tmp_path / "study.db")
    open_study(storage, "groundstate")

    def small(connection: Any, _: Any) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages + 1}")

    sqlalchemy.event.listen(storage.engine, "connect", small)
    storage.engine.dispose()
    with pytest.raises(StoreError, match="study.db cannot be used: database or disk is full"):
        Tune(groundstate.Ridge(), storage=storage, n_trials=200, sampler="random").fit(X, Y)
    again = Tune(groundstate.Ridge(), storage=tmp_path / "study.db", n_trials=4).fit(X, Y)
    assert np.isfinite(again.best_score_)  # what was finished is still there to be read


def test_what_is_no_storage(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no database " * 50)
    with pytest.raises(StoreError, match="notes.txt' cannot be used: file is not a database"):
        open_study(text, "groundstate")
    with pytest.raises(Unsupported, match=r"the storage foo://host needs a driver"):
        open_study("foo://me:secret@host", "groundstate")
    with pytest.raises(DataError, match="storage is a file or a URL such as postgresql"):
        open_study("://", "groundstate")
    assert "secret" not in named("postgresql://me:secret@host/name")


def test_networks_go_on_from_checkpoint_to_checkpoint() -> None:
    """With warm_start a network takes further epochs, trees are counted from the first."""
    from groundstate.compute.random import Key
    from groundstate.tune.learn import as_rows, step

    net: Any = groundstate.MLPClassifier((4,), max_iter=9, tol=0.0, batch_size=10)
    labels = (Y > 0).astype(int)
    for before, stop in ((0, 3), (3, 5), (5, 9)):
        net = step(net, as_rows((X, labels)), stop, Key.of(0), before)
    assert net.t_ == 9 * len(X) and net.max_iter == 9
    trees: Any = groundstate.GradientBoostingRegressor(n_estimators=9)
    for before, stop in ((0, 3), (3, 9)):
        trees = step(trees, as_rows((X, Y)), stop, Key.of(0), before)
    assert len(trees.estimators_) == 9
    boosted: Any = groundstate.HistGradientBoostingRegressor(max_iter=9)
    for before, stop in ((0, 3), (3, 9)):
        boosted = step(boosted, as_rows((X, Y)), stop, Key.of(0), before)
    assert boosted.n_iter_ == 9
