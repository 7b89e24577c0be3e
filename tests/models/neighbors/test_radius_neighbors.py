"""RadiusNeighborsClassifier and -Regressor: parity with scikit-learn, outliers, weights, labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.neighbors as peers
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_moons
from sklearn.preprocessing import scale

import groundstate
from groundstate import (
    KNeighborsClassifier,
    NearestNeighbors,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from groundstate.errors import Unsupported

IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)
MOONS = make_moons(200, noise=0.2, random_state=0)
DIABETES = load_diabetes(return_X_y=True, scaled=True)
NEW = np.random.default_rng(0).normal(size=(50, 2))
SETTINGS = [
    {},
    {"weights": "distance"},
    {"weights": lambda d: np.array([np.exp(-v) for v in d], dtype=object)},
    {"p": 1, "algorithm": "kd_tree"},
    {"metric": "chebyshev", "weights": "distance"},
]
rng = np.random.default_rng(1)


@pytest.mark.parametrize("rows", [(IRIS, 0.8), (WINE, 40.0), (MOONS, 0.3)])
@pytest.mark.parametrize("settings", SETTINGS)
def test_classes_equal_scikit_learn(rows, settings) -> None:
    (X, y), radius = rows
    ours = RadiusNeighborsClassifier(radius, outlier_label="most_frequent", **settings)
    peer = peers.RadiusNeighborsClassifier(radius, outlier_label="most_frequent", **settings)
    left, right = ours.fit(X[::2], y[::2]), peer.fit(X[::2], y[::2])
    np.testing.assert_allclose(left.predict_proba(X), right.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(left.predict(X), right.predict(X))
    assert left.outlier_label_ == right.outlier_label_


@pytest.mark.parametrize("settings", SETTINGS)
def test_values_equal_scikit_learn(settings) -> None:
    X, y = DIABETES
    both = np.column_stack([y, -2 * y])
    for radius in (0.1, 0.2):
        ours = RadiusNeighborsRegressor(radius, **settings).fit(X, both)
        peer = peers.RadiusNeighborsRegressor(radius, **settings).fit(X, both)
        np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-10)
    indices = ours.radius_neighbors(X[:9])[1]
    for mine, theirs in zip(indices, peer.radius_neighbors(X[:9])[1], strict=True):
        np.testing.assert_array_equal(np.sort(mine), np.sort(theirs))


def test_precomputed_sparse_and_other_metrics() -> None:
    X, y = MOONS
    D = peers.NearestNeighbors().fit(X).radius_neighbors_graph(X, 10.0, mode="distance").toarray()
    plain = RadiusNeighborsClassifier(0.3).fit(X, y).predict_proba(X)
    given = RadiusNeighborsClassifier(0.3, metric="precomputed").fit(D, y).predict_proba(D)
    np.testing.assert_allclose(given, plain)
    rows = sp.csr_matrix(X)
    found = RadiusNeighborsClassifier(0.3).fit(rows, y).predict_proba(rows)
    np.testing.assert_allclose(found, plain)
    ours = RadiusNeighborsRegressor(0.01, metric="cosine").fit(X, X[:, 0]).predict(X)
    peer = peers.RadiusNeighborsRegressor(0.01, metric="cosine").fit(X, X[:, 0]).predict(X)
    np.testing.assert_allclose(ours, peer, rtol=1e-9)


def test_several_labels() -> None:
    X, y = MOONS
    both = np.column_stack([y, (X[:, 0] > 0) + 2])
    settings = {"radius": 0.3, "outlier_label": [1, 2], "weights": "distance"}
    ours = RadiusNeighborsClassifier(**settings).fit(X, both)
    peer = peers.RadiusNeighborsClassifier(**settings).fit(X, both)
    far = np.vstack([X, [[50.0, 50.0]]])
    np.testing.assert_array_equal(ours.predict(far), peer.predict(far))
    for mine, theirs in zip(ours.predict_proba(far), peer.predict_proba(far), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_where_no_row_is_near() -> None:
    X, y = MOONS
    far = np.array([[50.0, 50.0], X[0]])
    for kind in (RadiusNeighborsClassifier, peers.RadiusNeighborsClassifier):
        model = kind(0.3).fit(X, y)
        np.testing.assert_array_equal(model.predict(X[:3]), y[:3])
        for ask in (model.predict, model.predict_proba):
            with pytest.raises(ValueError, match=r"No neighbors found for test samples .*0"):
                ask(far)
    known = RadiusNeighborsClassifier(0.3, outlier_label=1).fit(X, y)
    np.testing.assert_allclose(known.predict_proba(far)[0], [0.0, 1.0])
    assert known.infer({"x": far[:1]}, "y")[0] == 1
    with pytest.warns(UserWarning, match="not in training classes"):
        unknown = RadiusNeighborsClassifier(0.3, outlier_label=7).fit(X, y)
        assert unknown.predict(far)[0] == 7
    with pytest.warns(UserWarning, match="predicting NaN"):
        value = RadiusNeighborsRegressor(0.3).fit(X, y).predict(far)
    assert np.isnan(value[0]) and np.isfinite(value[1])


@pytest.mark.parametrize("votes", ["uniform", "distance"])
@pytest.mark.parametrize("name", ["RadiusNeighborsClassifier", "RadiusNeighborsRegressor"])
def test_weights_are_repetitions_in_any_order(name, votes) -> None:
    X, y = MOONS
    weight = rng.integers(0, 4, len(X))
    index = rng.permutation(np.repeat(np.arange(len(X)), weight))
    extra = {"outlier_label": "most_frequent"} if name.endswith("Classifier") else {}
    make = getattr(groundstate, name)
    weighted = make(1.0, weights=votes, **extra).fit(X, y, sample_weight=weight)
    repeated = make(1.0, weights=votes, **extra).fit(X[index], y[index])
    question = "predict_proba" if extra else "predict"
    np.testing.assert_allclose(
        getattr(weighted, question)(NEW * 0.5), getattr(repeated, question)(NEW * 0.5), rtol=1e-10
    )


@pytest.mark.parametrize("model", [RadiusNeighborsClassifier(3.0), KNeighborsClassifier(3)])
def test_votes_without_bound_leave_nothing_to_the_others(model) -> None:
    """1/d of a row that was seen is infinite, with a function as with "distance"."""
    X, y = np.array([[1.0], [1.5], [2.0], [2.5]]), np.array([0, 1, 1, 1])

    def inverse(distance):
        with np.errstate(divide="ignore"):
            return 1 / distance

    seen = np.array([[1.0], [1.7]])
    given = model.set_params(weights=inverse).fit(X, y).predict_proba(seen)
    np.testing.assert_allclose(given[0], [1.0, 0.0])
    np.testing.assert_allclose(
        given, model.set_params(weights="distance").fit(X, y).predict_proba(seen)
    )


def test_saved_with_its_outlier_label(tmp_path) -> None:
    X, y = scale(IRIS[0]), np.array(["a", "b", "c"])[IRIS[1]]
    model = RadiusNeighborsClassifier(0.5, outlier_label="c").fit(X, y)
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    np.testing.assert_array_equal(loaded.predict(3 * X), model.predict(3 * X))
    np.testing.assert_array_equal(loaded.energy(3 * X), model.energy(3 * X))


def test_bad_input_is_named() -> None:
    X, y = MOONS
    with pytest.raises(ValueError, match="radius"):
        RadiusNeighborsClassifier(-1.0).fit(X, y)
    with pytest.raises(TypeError, match="inconsistent with classes"):
        RadiusNeighborsClassifier(outlier_label="far").fit(X, y)
    with pytest.raises(ValueError, match="inconsistent with the output length"):
        RadiusNeighborsClassifier(outlier_label=[0, 1]).fit(X, y)
    with pytest.raises(Unsupported, match="metric"):
        RadiusNeighborsRegressor(metric="furlong").fit(X, y)


def test_a_radius_for_each_query() -> None:
    X, _ = MOONS
    ours, peer = NearestNeighbors().fit(X), peers.NearestNeighbors().fit(X)
    radius = np.linspace(0, 1, 9)
    for rows in (X[:9], X):
        r = np.resize(radius, len(rows))
        mine = ours.radius_neighbors(rows, r, sort_results=True)
        theirs = peer.radius_neighbors(rows, r, sort_results=True)
        for one, other in zip(mine[1], theirs[1], strict=True):
            np.testing.assert_array_equal(one, other)
    own = ours.radius_neighbors(radius=np.resize(radius, len(X)))[1]
    for i, near in enumerate(own):
        assert i not in near and len(near) == len(theirs[1][i]) - 1
    with pytest.raises(ValueError, match="or 9 of them, one a query"):
        ours.radius_neighbors(X[:9], radius[:3])
