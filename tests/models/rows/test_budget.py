"""How long networks learn where nobody says how many passes."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate import ImageClassifier, SequenceClassifier
from groundstate.errors import DataError
from groundstate.models.rows.budget import Budget
from groundstate.tune.learn import schedule

SMALL = {"network": "cnn", "network_params": {"channels": (4,)}, "random_state": 0, "device": "cpu"}


@pytest.mark.parametrize("rows", [1, 7, 60, 1000, 10**6])
@pytest.mark.parametrize("size", [1, 8, 64])
def test_passes_make_the_steps_between_two_bounds(rows: int, size: int) -> None:
    budget = Budget(500, least=3, most=200)
    epochs = budget.epochs(rows, size)
    assert 3 <= epochs <= 200
    if 3 < epochs < 200:
        per_epoch = rows / min(size, rows)
        assert (epochs - 1) * per_epoch < 500 <= epochs * per_epoch
    assert budget.epochs(2 * rows, size) <= epochs


def test_rows_are_held_out_where_patience_asks() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 1, 8, 8)), np.arange(40) % 2
    alone = ImageClassifier(**SMALL, max_epochs=2).fit(X, y)
    assert "validation" not in alone.history_.extra and alone.n_iter_ == 2
    watched = ImageClassifier(**SMALL, max_epochs=2, patience=5).fit(X, y)
    assert len(watched.history_.extra["validation"]) == 2
    given = ImageClassifier(**SMALL, max_epochs=2, val_fraction=0.2).fit(X, y)
    assert len(given.history_.extra["validation"]) == 2


def test_any_network_takes_none() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6, 2)), np.arange(30) % 2
    model = SequenceClassifier(max_epochs=None, patience=None, val_fraction=None, random_state=0)
    assert model.fit(X, y).n_iter_ == model.budget.epochs(30, model.batch_size)


def test_checkpoints_need_a_number() -> None:
    with pytest.raises(DataError, match="give max_epochs a number"):
        schedule(ImageClassifier(**SMALL), 3)
