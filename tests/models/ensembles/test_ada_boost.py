"""AdaBoost: the worked example, the peer's scores, when it stops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression as Foreign
from sklearn.neighbors import KNeighborsClassifier

from groundstate import AdaBoostClassifier, DecisionTreeClassifier, LogisticRegression
from groundstate.errors import DataError

X, Y = np.arange(10.0)[:, None], np.array(list("+++---+++-"))


def test_worked_example() -> None:
    model = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    np.testing.assert_allclose(model.estimator_errors_, [0.3, 0.214286, 0.181818], atol=1e-6)
    np.testing.assert_allclose(model.estimator_weights_, [0.847298, 1.299283, 1.504077], atol=1e-6)
    assert [float(m.tree_.threshold[0]) for m in model.estimators_] == [2.5, 8.5, 5.5]
    assert model.score(X, Y) == 1.0
    stages = [(stage == Y).mean() for stage in model.staged_predict(X)]
    assert len(stages) == 3 and stages[0] == 0.7 and stages[-1] == 1.0


def test_energy_is_minus_the_votes() -> None:
    model = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    votes = np.zeros((10, 2))
    for a, member in zip(model.estimator_weights_, model.estimators_):
        votes[np.arange(10), member.predict(X)] += a
    np.testing.assert_allclose(model.energy(X, Y), -votes[np.arange(10), (Y == "-").astype(int)])
    np.testing.assert_allclose(model.decision_function(X), votes[:, 1] - votes[:, 0])


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_scores_like_the_peer(load: object) -> None:
    A, a = load(return_X_y=True)  # type: ignore[operator]
    ours = AdaBoostClassifier(n_estimators=20).fit(A, a).score(A, a)
    theirs = peer.AdaBoostClassifier(n_estimators=20).fit(A, a).score(A, a)
    assert ours >= theirs - 0.02


def test_exponential_loss_falls() -> None:
    A, a = load_breast_cancer(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=15).fit(A, a)
    sign = np.where(a == 1, 1, -1)
    losses = []
    for n in range(1, 16):
        score = model.energy_.scores_until(model._rows(A)[0], n).numpy()
        losses.append(np.exp(-sign * (score[:, 1] - score[:, 0]) / 2).mean())
    assert (np.diff(losses) <= 1e-12).all()


def test_stops_without_error_and_at_chance() -> None:
    model = AdaBoostClassifier(DecisionTreeClassifier()).fit(X, Y)
    assert len(model.estimators_) == 1 and model.score(X, Y) == 1.0
    with pytest.raises(ValueError, match="no better than chance"):
        AdaBoostClassifier().fit(np.zeros((4, 1)), [0, 0, 1, 1])


def test_other_members() -> None:
    A, a = load_iris(return_X_y=True)
    assert AdaBoostClassifier(LogisticRegression(), n_estimators=5).fit(A, a).score(A, a) > 0.9
    # the peer's weights sum to one, ours to the number of rows
    ours = AdaBoostClassifier(Foreign(C=1 / len(A), max_iter=2000), n_estimators=5).fit(A, a)
    theirs = peer.AdaBoostClassifier(Foreign(max_iter=2000), n_estimators=5).fit(A, a)
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, atol=1e-2)
    with pytest.raises(DataError, match="takes no sample_weight"):
        AdaBoostClassifier(KNeighborsClassifier()).fit(A, a)


def test_importances_sum_to_one() -> None:
    A, a = load_wine(return_X_y=True)
    assert AdaBoostClassifier(n_estimators=10).fit(
        A, a
    ).feature_importances_.sum() == pytest.approx(1)


def test_stages_end_at_the_whole() -> None:
    A, a = load_iris(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=6).fit(A, a)
    *_, scores = model.staged_decision_function(A)
    *_, p = model.staged_predict_proba(A)
    np.testing.assert_allclose(scores, model.decision_function(A))
    np.testing.assert_allclose(p, model.predict_proba(A))
    weight = np.arange(150.0)
    assert list(model.staged_score(A, a, weight))[-1] == model.score(A, a, weight)
    assert model.n_classes_ == 3 and model.estimator_.max_depth == 1
