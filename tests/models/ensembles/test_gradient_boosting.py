"""Functional boosting: the worked steps, the peer's predictions, losses, line searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import ensemble as peer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor as ForeignTree

import groundstate
from groundstate import (
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    KernelRegressor,
    Ridge,
)
from groundstate.energy.trees.additive import AdditiveEnergy
from groundstate.energy.trees.additive_losses import (
    Absolute,
    Exponential,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Squared,
    TorchLoss,
)
from groundstate.errors import Unsupported
from groundstate.learn import Naive, fit
from groundstate.learn.solvers.boosting.functional import GradientBooster
from groundstate.models.trees.plot_sum import plot_sum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)).astype(np.float32).astype(float)
Y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * RNG.standard_t(3, 150)
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-1, 1])
W = RNG.integers(1, 4, 150).astype(float)


def test_worked_steps() -> None:
    """y = 88, 76, 56 and the third row alone: 73.33, then residuals, then two steps of ν = 0.1."""
    x, y = np.array([[0.0], [0.1], [5.0]]), np.array([88.0, 76.0, 56.0])
    model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit(x, y)
    assert float(model.energy_.b) == pytest.approx(73.333, abs=1e-3)
    F0 = torch.full((3, 1), 220 / 3, dtype=torch.float64)
    residual = Squared().residual(F0, torch.from_numpy(y))[:, 0]
    np.testing.assert_allclose(residual, [14.667, 2.667, -17.333], atol=1e-3)
    np.testing.assert_allclose(model.predict(x), [74.98, 74.98, 70.04], atol=5e-3)
    stages = list(model.staged_predict(x))
    np.testing.assert_allclose(stages[0], [74.2, 74.2, 71.6], atol=5e-3)
    np.testing.assert_allclose(stages[-1], model.predict(x))


def test_exact_line_search() -> None:
    r, h = torch.tensor([2.0, -1.0, 1.0]).double(), torch.tensor([1.0, -1.0, 1.0]).double()
    F, w = torch.zeros(3, 1).double(), torch.ones(3).double()
    gamma = Squared().step(F, r, w, 0, h)
    assert gamma == pytest.approx(4 / 3)
    assert float(Squared().value(F, r).sum()) == 3.0
    assert float(Squared().value(gamma * h[:, None], r).sum()) == pytest.approx(1 / 3)
    same = TorchLoss(lambda F, y: 0.5 * (y - F) ** 2).step(F, r, w, 0, h)
    assert same == pytest.approx(4 / 3, abs=1e-6)


def test_leaf_means_make_gamma_one() -> None:
    data = {"x": torch.from_numpy(X), "y": torch.from_numpy(Y)[:, None]}
    energy = AdditiveEnergy(4).double()
    history = fit(energy, data, Naive(), GradientBooster(n_members=5, line_search="exact"))
    np.testing.assert_allclose(history.extra["gamma"], 1.0, atol=1e-9)


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_values_like_the_peer(loss: Any, weight: Any) -> None:
    ours = GradientBoostingRegressor(loss=loss, n_estimators=25).fit(X, Y, sample_weight=weight)
    theirs = peer.GradientBoostingRegressor(loss=loss, n_estimators=25, random_state=0)
    theirs.fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)
    np.testing.assert_allclose(ours.train_score_, theirs.train_score_, atol=1e-8)


@pytest.mark.parametrize(
    ("y", "loss"), [(TWO, "log_loss"), (THREE, "log_loss"), (TWO, "exponential")]
)
def test_classes_like_the_peer(y: np.ndarray, loss: Any) -> None:
    # one cut per tree: deeper ones meet cuts that are equally good, which the peer draws lots for
    options: dict[str, Any] = {"loss": loss, "n_estimators": 30, "max_depth": 1, "random_state": 0}
    ours = GradientBoostingClassifier(**options).fit(X, y)
    theirs = peer.GradientBoostingClassifier(**options).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-8)
    for a, b in zip(ours.staged_predict_proba(X), theirs.staged_predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize(
    ("loss", "ours"),
    [("absolute_error", Absolute()), ("quantile", Quantile(0.9)), ("huber", Huber(0.9))],
)
def test_same_trees_same_leaves(loss: Any, ours: Any) -> None:
    """With the peer's first tree, the leaves of a step are the peer's."""
    theirs = peer.GradientBoostingRegressor(loss=loss, n_estimators=1, random_state=0).fit(X, Y)
    tree = theirs.estimators_[0, 0]
    y, w = torch.from_numpy(Y), torch.ones(150).double()
    F = torch.full((150, 1), theirs.init_.constant_.item(), dtype=torch.float64)
    if loss != "quantile":  # the peer interpolates between rows
        torch.testing.assert_close(ours.start(y, w, 0), F[0])
    at = torch.from_numpy(tree.apply(X))
    leaves = ours.adapted(F, y, w).leaves(F, y, w, 0, at, tree.tree_.node_count)
    np.testing.assert_allclose(leaves[at], tree.predict(X), atol=1e-8)


LOSSES = [Squared(), Absolute(), Huber(0.9, 0.7), Quantile(0.3), Poisson()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_residual_is_the_negative_gradient_and_leaf_the_best_constant(loss: Any) -> None:
    y = torch.from_numpy(np.abs(Y))
    F = torch.from_numpy(RNG.normal(size=(150, 1)))
    w = torch.from_numpy(W)
    h = 1e-6
    slope = (loss.value(F + h, y) - loss.value(F - h, y)) / (2 * h)
    torch.testing.assert_close(loss.residual(F, y)[:, 0], -slope, atol=1e-6, rtol=1e-5)
    gamma = loss.leaf(F, y, w, 0)
    if not isinstance(loss, Huber):  # whose leaf is one step from the median
        best = float(torch.dot(w, loss.value(F + gamma, y)))
        for d in (-1e-3, 1e-3):
            assert best <= float(torch.dot(w, loss.value(F + gamma + d, y))) + 1e-9
    if isinstance(loss, Squared | Poisson):
        own = TorchLoss(lambda F, y: loss.value(F[:, None], y))
        assert own.leaf(F, y, w, 0) == pytest.approx(gamma, abs=1e-5)


def test_class_residuals() -> None:
    F = torch.from_numpy(RNG.normal(size=(150, 3)))
    y = torch.from_numpy(THREE)
    expected = torch.eye(3).double()[y] - torch.softmax(F, 1)
    torch.testing.assert_close(Logistic().residual(F, y), expected)
    two = torch.from_numpy(TWO)
    torch.testing.assert_close(
        Logistic().residual(F[:, :1], two)[:, 0], two - torch.sigmoid(F[:, 0])
    )
    r = Exponential().residual(F[:, :1], two)[:, 0]
    torch.testing.assert_close(r.abs(), Exponential().value(F[:, :1], two))


@pytest.mark.parametrize("search", ["leaf", "exact", "none"])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_training_loss_falls(loss: str, search: str) -> None:
    y = np.round(np.exp(0.5 * Y).clip(0, 20)) if loss == "poisson" else Y
    model = GradientBoostingRegressor(loss=loss, n_estimators=15, line_search=search).fit(X, y)
    if search != "none" or loss == "squared_error":
        assert (np.diff(model.train_score_) <= 1e-9).all()
    assert model.train_score_[-1] < model.train_score_[0]


@pytest.mark.parametrize(
    "base", [Ridge(), KernelRegressor(), SVR(kernel="rbf"), ForeignTree(max_depth=2)]
)
def test_any_base_learner(base: Any) -> None:
    model = GradientBoostingRegressor(estimator=base, n_estimators=5, line_search="exact")
    model.fit(X, Y)
    assert (np.diff(model.train_score_) <= 1e-9).all() and len(model.estimators_) == 5
    last = list(model.staged_predict(X))[-1]
    np.testing.assert_allclose(last, model.predict(X))


def test_foreign_trees_have_leaves_and_lines_have_none() -> None:
    ours = GradientBoostingRegressor(loss="huber", n_estimators=5).fit(X, Y)
    tree = ForeignTree(max_depth=3)
    other = GradientBoostingRegressor(loss="huber", n_estimators=5, estimator=tree).fit(X, Y)
    np.testing.assert_allclose(other.predict(X), ours.predict(X), atol=1e-8)
    small = GradientBoostingRegressor(n_estimators=5, estimator=DecisionTreeRegressor(max_depth=3))
    np.testing.assert_allclose(
        small.fit(X, Y).predict(X), GradientBoostingRegressor(n_estimators=5).fit(X, Y).predict(X)
    )
    with pytest.raises(Unsupported, match="line_search='leaf' sets the leaves of trees"):
        GradientBoostingRegressor(estimator=Ridge()).fit(X, Y)


def test_a_loss_of_ones_own() -> None:
    own = GradientBoostingRegressor(loss=lambda F, y: 0.5 * (y - F) ** 2, n_estimators=5).fit(X, Y)
    named = GradientBoostingRegressor(n_estimators=5).fit(X, Y)
    np.testing.assert_allclose(own.predict(X), named.predict(X), atol=1e-6)


@pytest.mark.parametrize("limits", [{}, {"min_samples_split": 9, "min_samples_leaf": 4}])
def test_weight_is_repetition_with_subsample_and_early_stopping(limits: dict[str, Any]) -> None:
    weight = RNG.integers(0, 4, 150).astype(float)
    index = RNG.permutation(np.repeat(np.arange(150), weight.astype(int)))
    options: dict[str, Any] = {"subsample": 0.6, "n_iter_no_change": 5, "random_state": 0, **limits}
    for make, y in ((GradientBoostingRegressor, Y), (GradientBoostingClassifier, THREE)):
        a = make(n_estimators=20, **options).fit(X, y, sample_weight=weight)
        b = make(n_estimators=20, **options).fit(X[index], y[index])
        assert a.n_estimators_ == b.n_estimators_
        np.testing.assert_allclose(a.train_score_, b.train_score_, atol=1e-9)
        np.testing.assert_allclose(a.oob_improvement_, b.oob_improvement_, atol=1e-9)


def test_early_stopping_and_warm_start() -> None:
    noise = RNG.normal(size=150)
    model = GradientBoostingRegressor(n_iter_no_change=3, tol=1e-3, random_state=0).fit(X, noise)
    assert model.n_estimators_ < 100 and "no improvement" in model.history_.stop
    grown = GradientBoostingRegressor(n_estimators=4, warm_start=True).fit(X, Y)
    grown.set_params(n_estimators=9).fit(X, Y)
    whole = GradientBoostingRegressor(n_estimators=9).fit(X, Y)
    np.testing.assert_allclose(grown.predict(X), whole.predict(X))


def test_importances_missing_values_and_files(tmp_path: Path) -> None:
    A = X.copy()
    A[::7, 1] = np.nan
    model = GradientBoostingClassifier(n_estimators=8).fit(A, THREE)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[0] > model.feature_importances_[2]
    assert model.estimators_.shape == (8, 3)
    loaded = groundstate.load(model.save(tmp_path / "boost.gs"))
    np.testing.assert_array_equal(loaded.predict_proba(A), model.predict_proba(A))
    lines = GradientBoostingRegressor(estimator=Ridge(), line_search="exact", n_estimators=3)
    twin = groundstate.load(lines.fit(X, Y).save(tmp_path / "lines.gs"))
    np.testing.assert_array_equal(twin.predict(X), lines.predict(X))


def test_picture_of_the_sum() -> None:
    """A constant, plus what every tree adds for one row, is its score."""
    model = GradientBoostingRegressor(n_estimators=3, max_depth=2).fit(X, Y)
    titles = [ax.get_title() for ax in plot_sum(model, sample=X[5]).axes]
    parts = [float(t.replace("+ ", "").replace("− ", "-")) for t in titles[:-1]]
    assert sum(parts) == pytest.approx(model.predict(X[5:6]).item(), abs=5e-3)
    assert float(titles[-1].removeprefix("= ").replace("−", "-")) == pytest.approx(
        model.predict(X[5:6]).item(), rel=1e-3
    )
    with pytest.raises(Unsupported, match="no fitted sum of trees"):
        plot_sum(DecisionTreeRegressor().fit(X, Y))


def test_errors_teach() -> None:
    with pytest.raises(ValueError, match="is for two classes, got 3"):
        GradientBoostingClassifier(loss="exponential").fit(X, THREE)
    with pytest.raises(ValueError, match="non-negative y"):
        GradientBoostingRegressor(loss="poisson").fit(X, Y)


@pytest.mark.parametrize(
    ("y", "loss"),
    [
        (Y, "squared_error"),
        (Y, "huber"),
        (TWO, "log_loss"),
        (TWO, "exponential"),
        (THREE, "log_loss"),
    ],
)
def test_start_from_another_model_like_the_peer(y: Any, loss: str) -> None:
    classes = y is not Y
    first = LogisticRegression() if classes else LinearRegression()
    name = f"GradientBoosting{'Classifier' if classes else 'Regressor'}"
    options = {"init": first, "loss": loss, "n_estimators": 8}
    ours = getattr(groundstate, name)(**options).fit(X, y)
    theirs = getattr(peer, name)(**options, random_state=0).fit(X, y)
    ask = "predict_proba" if classes else "predict"
    np.testing.assert_allclose(getattr(ours, ask)(X), getattr(theirs, ask)(X), atol=1e-5)
    np.testing.assert_allclose(ours.train_score_, theirs.train_score_, rtol=1e-5)
    np.testing.assert_allclose(list(ours.staged_predict(X))[-1], ours.predict(X))
    assert type(ours.init_) is type(first)
    shape = (150, 8, 3 if y is THREE else 1) if classes else (150, 8)
    assert ours.apply(X).shape == theirs.apply(X).shape == shape


def test_start_from_another_model_is_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {"init": Ridge(), "random_state": 0}
    model = GradientBoostingRegressor(n_estimators=6, **options).fit(X, Y, W)
    repeated = np.repeat(X, W.astype(int), 0), np.repeat(Y, W.astype(int))
    again = GradientBoostingRegressor(n_estimators=6, **options).fit(*repeated)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-10)
    half = GradientBoostingRegressor(n_estimators=3, warm_start=True, **options).fit(X, Y, W)
    half.set_params(n_estimators=6).fit(X, Y, W)
    np.testing.assert_allclose(half.predict(X), model.predict(X), atol=1e-12)
    loaded = groundstate.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    parts = [ax.get_title() for ax in plot_sum(model, sample=X[0]).axes]
    assert parts[0] == f"{model.init_.predict(X[:1])[0]:.4g}"
    counts = GradientBoostingRegressor(n_estimators=5, loss="poisson", init=Ridge())
    assert counts.fit(X, np.exp(Y / 4)).train_score_[-1] < counts.train_score_[0]


def test_tolerance_is_of_the_deviance() -> None:
    kept = {}
    for tol in (0.02, 0.04):
        model = GradientBoostingRegressor(n_iter_no_change=1, tol=tol, random_state=0).fit(X, Y)
        seen = 2 * np.array(model.history_.extra["validation"])  # mean squared errors
        gain = -np.diff(seen)
        assert (gain[:-1] > tol).all() and (len(seen) == 100 or gain[-1] <= tol)
        kept[tol] = len(seen)
    assert kept[0.02] > kept[0.04]
