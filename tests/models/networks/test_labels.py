"""Rows without a label: pseudo-labels and self-training."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.semi_supervised import SelfTrainingClassifier

from groundstate import LogisticRegression, MLPClassifier, PseudoLabelClassifier
from groundstate.errors import DataError
from groundstate.learn.rules.pseudo_label import PseudoLabel
from groundstate.models.networks.self_training import SelfTraining

X, Y = load_iris(return_X_y=True)
SOME = np.where(np.arange(150) % 10 == 0, Y, -1)


def test_share_of_the_unlabelled() -> None:
    rule = PseudoLabel(3.0, 100, 600)
    told = [rule.alpha(t) for t in (0, 100, 350, 600, 900)]
    assert told == [0.0, 0.0, 1.5, 3.0, 3.0]
    with pytest.raises(ValueError, match="0 <= T1 <= T2"):
        PseudoLabel(3.0, 10, 5)


def test_no_share_is_supervised_learning() -> None:
    kw = {"hidden_layer_sizes": (6,), "batch_size": 1000, "max_iter": 40, "random_state": 0,
          "n_iter_no_change": float("inf"), "alpha": 0.0}  # fmt: skip
    alone = MLPClassifier(**kw).fit(X[SOME >= 0], Y[SOME >= 0])
    both = PseudoLabelClassifier(0.0, **kw).fit(X, SOME)
    for a, b in zip(alone.coefs_, both.coefs_):
        np.testing.assert_allclose(a, b, atol=1e-10)
    assert both.classes_.tolist() == [0, 1, 2]


def test_rows_without_labels_help_and_their_order_does_not_matter() -> None:
    x, y = make_moons(300, noise=0.08, random_state=0)
    some = np.full(300, -1)
    for k in (0, 1):
        some[np.random.default_rng(2).choice(np.flatnonzero(y == k), 4, replace=False)] = k
    kw = {"hidden_layer_sizes": (30,), "learning_rate_init": 0.01, "max_iter": 200,
          "random_state": 0}  # fmt: skip
    score = [PseudoLabelClassifier(a, 50, 150, **kw).fit(x, some).score(x, y) for a in (0.0, 3.0)]
    assert score[1] > score[0]
    order = np.random.default_rng(0).permutation(300)
    one = PseudoLabelClassifier(3.0, 5, 10, **kw | {"max_iter": 15}).fit(x, some)
    two = PseudoLabelClassifier(3.0, 5, 10, **kw | {"max_iter": 15}).fit(x[order], some[order])
    np.testing.assert_array_equal(one.predict_proba(x), two.predict_proba(x))


def test_minus_one_is_a_class_where_there_is_only_one_other() -> None:
    model = PseudoLabelClassifier(T1=1, T2=2, max_iter=3).fit(
        X[:100], np.where(Y[:100] == 0, -1, 1)
    )
    assert model.classes_.tolist() == [-1, 1]


def test_self_training_grows_and_agrees_with_scikit_learn() -> None:
    ours = SelfTraining(LogisticRegression(), 0.8, 50).fit(X, SOME)
    theirs = SelfTrainingClassifier(LogisticRegression(), threshold=0.8, max_iter=50).fit(X, SOME)
    np.testing.assert_array_equal(ours.transduction_, theirs.transduction_)
    np.testing.assert_array_equal(ours.labeled_iter_, theirs.labeled_iter_)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.termination_condition_ == theirs.termination_condition_
    sizes = [
        (SelfTraining(LogisticRegression(), max_iter=n).fit(X, SOME).labeled_iter_ >= 0).sum()
        for n in range(5)
    ]
    assert sizes == sorted(sizes) and sizes[0] == 15
    assert (ours.transduction_[SOME >= 0] == SOME[SOME >= 0]).all()
    assert ours.energy(X[:3]).shape == (3,)


def test_threshold_one_adds_nothing() -> None:
    model = SelfTraining(LogisticRegression(), threshold=1.0).fit(X, SOME)
    assert (model.labeled_iter_ >= 0).sum() == 15 and model.termination_condition_ == "no_change"
    with pytest.raises(DataError, match="at least 2 classes"):
        SelfTraining(LogisticRegression()).fit(X, np.where(SOME == 0, 0, -1))


def test_with_all_labels_it_is_the_perceptron() -> None:
    x, y = make_moons(80, noise=0.2, random_state=0)
    kw = {"hidden_layer_sizes": (8,), "learning_rate_init": 0.05, "random_state": 0}
    ours = PseudoLabelClassifier(**kw).fit(x, y)
    theirs = MLPClassifier(max_iter=700, **kw).fit(x, y)
    assert ours.n_iter_ == theirs.n_iter_ < 700
    for a, b in zip(ours.coefs_, theirs.coefs_, strict=True):
        np.testing.assert_array_equal(a, b)
    some = np.where(np.arange(80) < 40, y, -1)
    assert PseudoLabelClassifier(1.0, 2, 4, max_iter=30, **kw).fit(x, some).n_iter_ == 30
