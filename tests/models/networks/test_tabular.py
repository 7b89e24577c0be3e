"""Networks for tables: units, weights, members, the kept epoch, saving and going on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.metrics import log_loss

import groundstate
from groundstate import TabularMLPClassifier, TabularMLPRegressor
from groundstate.learn.callbacks import Callback
from groundstate.learn.rules.members import MemberLoss
from groundstate.learn.train.checkpoint import Checkpoint

QUICK: dict[str, Any] = {
    "hidden_layer_sizes": (16,), "n_members": 3, "max_iter": 12, "random_state": 0,
}  # fmt: skip


def friedman(n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_friedman1(n, noise=0.5, random_state=0)
    return X, y


def test_units_of_columns_and_target_do_not_matter() -> None:
    X, y = friedman()
    # steps of all rows: batches are cut by the content of the rows, which other units change
    whole = {**QUICK, "batch_size": 999, "early_stopping": False, "dropout": 0.0}
    model = TabularMLPRegressor(**whole).fit(X, y)
    moved = TabularMLPRegressor(**whole).fit(1024 * X + 1e6, 8 * y + 1e5)
    assert np.allclose(moved.predict(1024 * X + 1e6), 8 * model.predict(X) + 1e5, atol=1e-2)


def test_answers_are_means_of_members() -> None:
    X, y = load_iris(return_X_y=True)
    model = TabularMLPClassifier(**QUICK).fit(X, y)
    net: Any = model.energy_.net
    with torch.no_grad():
        each = net.each(torch.tensor(X)).softmax(-1)
    assert each.shape == (150, 3, 3)
    assert np.allclose(model.predict_proba(X), each.mean(1))
    assert np.allclose(model.energy(X, y), -np.log(model.predict_proba(X)[range(150), y]))
    assert float((each[:, 0] - each[:, 1]).abs().max()) > 0.01  # members differ
    rows = {"x": torch.tensor(X), "y": torch.tensor(y)}
    loss = MemberLoss()(model.energy_, rows).loss
    assert bool((loss >= model.energy_(**rows) - 1e-9).all())  # Jensen


def test_the_epoch_with_the_best_held_out_log_loss_is_kept() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = TabularMLPClassifier(**{**QUICK, "max_iter": 30}).fit(X[:400], y[:400])
    assert model.best_validation_score_ == max(model.validation_scores_)
    assert log_loss(y[400:], model.predict_proba(X[400:])) < 0.2


def test_columns_of_two_values_are_not_embedded() -> None:
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, y == 1, np.ones(150)])
    net: Any = TabularMLPClassifier(**QUICK).fit(X, y).energy_.net
    assert net.numbers == (0, 1, 2, 3) and net.others == (4, 5)


def test_a_file_holds_all_of_it(tmp_path: Path) -> None:
    X, y = friedman()
    model = TabularMLPRegressor(**QUICK).fit(X, y)
    model.save(tmp_path / "net")
    assert np.array_equal(groundstate.load(tmp_path / "net").predict(X), model.predict(X))


def test_interrupted_and_resumed_is_the_same(tmp_path: Path) -> None:
    X, y = friedman()
    whole = TabularMLPRegressor(**QUICK).fit(X, y)
    half = {**QUICK, "callbacks": [Checkpoint(tmp_path / "run"), _StopAt(5)]}
    TabularMLPRegressor(**half).fit(X, y)
    rest = {**QUICK, "callbacks": [Checkpoint(tmp_path / "run")]}
    assert np.array_equal(TabularMLPRegressor(**rest).fit(X, y).predict(X), whole.predict(X))


class _StopAt(Callback):
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_epoch(self, run: Any) -> bool:
        return bool(run.epoch == self.epoch)


def test_rows_in_instalments() -> None:
    X, y = friedman()
    model = TabularMLPRegressor(**{**QUICK, "early_stopping": False})
    for _ in range(3):
        model.partial_fit(X, y)
    assert len(model.loss_curve_) == 3 and model.loss_curve_[-1] < model.loss_curve_[0]
    assert not hasattr(TabularMLPRegressor(), "partial_fit")


def test_losses() -> None:
    X, y = friedman(120)
    y = y + np.where(np.arange(120) % 10 == 0, 100.0, 0.0)
    q: dict[str, Any] = {**QUICK, "max_iter": 30}
    middle = TabularMLPRegressor(loss="absolute_error", **q).fit(X, y)
    assert np.median(np.abs(y - middle.predict(X))) < np.std(y)
    with pytest.raises(ValueError, match="members average values"):
        TabularMLPRegressor(loss="normal", **q).fit(X, y)


def test_one_label_per_row() -> None:
    X, _ = friedman(60)
    with pytest.raises(ValueError, match="one label per row; use MLPClassifier"):
        TabularMLPClassifier(**QUICK).fit(X, X[:, :2] > 0.5)


def test_few_rows_hold_none_out() -> None:
    X, y = friedman(20)
    model = TabularMLPRegressor(**QUICK).fit(X, y)
    assert model.validation_scores_ is None
