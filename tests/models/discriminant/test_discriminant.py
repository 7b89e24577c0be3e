"""Linear and quadratic discriminants: worked example, parity, singular classes, shrinkage."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.discriminant_analysis as peers
import torch
from sklearn import config_context
from sklearn.covariance import OAS, LedoitWolf
from sklearn.datasets import load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import groundstate
from groundstate import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from groundstate.energy.classes import discriminant
from groundstate.energy.classes.discriminant import GaussianClassEnergy
from groundstate.errors import Unsupported

TOY = np.array([(0, 0), (2, 0), (1, 1), (1, -1), (4, 2), (6, 2), (5, 3), (5, 1)], float)
SIDE = np.array([0] * 4 + [1] * 4)
X, y = load_iris(return_X_y=True)
W, v = load_wine(return_X_y=True)
PRIORS = [0.2, 0.3, 0.5]


def test_worked_example() -> None:
    linear = LinearDiscriminantAnalysis().fit(TOY, SIDE)
    np.testing.assert_allclose(linear.coef_, [[8, 4]], rtol=1e-12)
    np.testing.assert_allclose(linear.intercept_, [-28], rtol=1e-12)
    quadratic = QuadraticDiscriminantAnalysis().fit(TOY, SIDE)
    for model in (linear, quadratic):  # equal covariances: the same classifier
        np.testing.assert_allclose(model.predict_proba([[2, 1]])[0, 0], 0.999665, atol=5e-7)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"solver": "lsqr"},
        {"solver": "eigen"},
        {"solver": "lsqr", "shrinkage": 0.3},
        {"solver": "eigen", "shrinkage": "auto"},
        {"priors": PRIORS},
        {"solver": "lsqr", "priors": PRIORS},
        {"solver": "lsqr", "priors": PRIORS, "shrinkage": "auto"},
    ],
)
@pytest.mark.parametrize(("rows", "labels"), [(X, y), (W, v)])
def test_linear_equals_scikit_learn(settings, rows, labels) -> None:
    ours = LinearDiscriminantAnalysis(**settings).fit(rows, labels)
    peer = peers.LinearDiscriminantAnalysis(**settings).fit(rows, labels)
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=1e-8)
    np.testing.assert_allclose(ours.means_, peer.means_, rtol=1e-10)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-6, atol=1e-6)
    if hasattr(peer, "covariance_"):
        np.testing.assert_allclose(ours.covariance_, peer.covariance_, rtol=1e-6, atol=1e-9)
    if settings in ({}, {"solver": "eigen"}):
        mine, theirs = ours.transform(rows), peer.transform(rows)
        signs = np.sign((mine * theirs).sum(0))
        np.testing.assert_allclose(mine * signs, theirs, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(
            ours.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-8
        )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"reg_param": 0.2},
        {"priors": PRIORS},
        {"solver": "eigen", "shrinkage": 0.2},
        {"solver": "eigen", "shrinkage": "auto"},
    ],
)
@pytest.mark.parametrize(("rows", "labels"), [(X, y), (W, v)])
def test_quadratic_equals_scikit_learn(settings, rows, labels) -> None:
    tol = {"tol": 1e-12}  # the peer's is absolute, in squared units of the features
    ours = QuadraticDiscriminantAnalysis(**settings).fit(rows, labels)
    peer = peers.QuadraticDiscriminantAnalysis(**settings, **tol).fit(rows, labels)
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), atol=1e-8)
    for mine, theirs in zip(ours.scalings_, peer.scalings_):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7)


def test_mahalanobis_distance_decides_between_equal_priors() -> None:
    model = LinearDiscriminantAnalysis(solver="lsqr", priors=[1 / 3] * 3).fit(X, y)
    gap = X[:, None] - model.means_
    inverse = np.linalg.inv(model.covariance_)
    nearest = np.einsum("nkd,de,nke->nk", gap, inverse, gap).argmin(1)
    assert (model.predict(X) == nearest).all()


def test_two_classes_point_along_the_whitened_difference_of_means() -> None:
    rows, labels = X[y > 0], y[y > 0]
    model = LinearDiscriminantAnalysis(solver="lsqr").fit(rows, labels)
    w = np.linalg.solve(model.covariance_, model.means_[1] - model.means_[0])
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-9)


def test_a_singular_direction_is_left_out() -> None:
    wide = np.column_stack([X, X[:, 0] - X[:, 2], np.ones(len(X))])
    model = LinearDiscriminantAnalysis().fit(wide, y)
    assert int(model.energy_.rank) == 4
    peer = peers.LinearDiscriminantAnalysis().fit(wide, y)
    np.testing.assert_allclose(model.predict_proba(wide), peer.predict_proba(wide), atol=1e-7)
    drawn, _ = model.sample(4000, random_state=0)
    np.testing.assert_allclose(drawn[:, 5], 1.0, atol=1e-6)
    np.testing.assert_allclose(drawn[:, 4], drawn[:, 0] - drawn[:, 2], atol=1e-6)


def test_a_singular_class_is_named() -> None:
    wide = np.column_stack([X, X[:, 0]])
    with pytest.raises(np.linalg.LinAlgError, match="class setosa is not full rank"):
        QuadraticDiscriminantAnalysis().fit(wide, load_iris().target_names[y])
    assert QuadraticDiscriminantAnalysis(reg_param=0.1).fit(wide, y).score(wide, y) > 0.9


def test_scale_of_features_does_not_matter() -> None:
    scale = np.array([1e-12, 1e12, 1e-3, 1.0])
    for cls in (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
        plain, scaled = cls().fit(X, y), cls().fit(X * scale, y)
        np.testing.assert_allclose(
            scaled.predict_proba(X * scale), plain.predict_proba(X), atol=1e-7
        )


def test_weight_is_repetition_and_streams_add() -> None:
    w = np.arange(len(X)) % 3
    twice = np.repeat(np.arange(len(X)), w)
    for cls in (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
        a = cls().fit(X, y, sample_weight=w).predict_proba(X)
        np.testing.assert_allclose(a, cls().fit(X[twice], y[twice]).predict_proba(X), rtol=1e-8)
    order = np.random.default_rng(0).permutation(len(X))
    stream = LinearDiscriminantAnalysis()
    for piece in np.array_split(order, 3):
        stream.partial_fit(X[piece], y[piece], classes=[0, 1, 2])
    whole = LinearDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(stream.coef_, whole.coef_, rtol=1e-9)


def test_refusals_say_why() -> None:
    with pytest.raises(Unsupported, match="shrinkage needs solver='lsqr' or 'eigen'"):
        LinearDiscriminantAnalysis(shrinkage=0.1).fit(X, y)
    with pytest.raises(ValueError, match="n_components cannot be larger than .* 2, got 3"):
        LinearDiscriminantAnalysis(n_components=3).fit(X, y)
    with pytest.raises(ValueError, match="only 1 sample in class 2"):
        QuadraticDiscriminantAnalysis().fit(X[:101], y[:101])
    with pytest.warns(UserWarning, match="do not sum to 1"):
        LinearDiscriminantAnalysis(priors=[1, 1, 1]).fit(X, y)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("covariance", ["tied", "full"])
def test_compiled_moments_are_the_same_moments(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, covariance: str
) -> None:
    generator = torch.Generator().manual_seed(0)
    x = (
        torch.randn(60, 5, generator=generator, dtype=dtype) * torch.logspace(-1, 1, 5, dtype=dtype)
        + 7
    )
    x = x @ torch.randn(5, 5, generator=generator, dtype=dtype)
    y = torch.arange(60) % 3
    w = torch.rand(60, generator=generator, dtype=dtype)
    found = []
    for few in (discriminant.FEW, 0):
        monkeypatch.setattr(discriminant, "FEW", few)
        for weights in (None, w):
            energy = GaussianClassEnergy(3, 5, covariance, tol=1e-8, dtype=dtype)
            energy.centre(x, y, weights)
            energy.balance.copy_(torch.tensor([1.0, 0.5, 2.0]))
            energy.from_stats(energy.stats(weights, x=x, y=y))
            found.append((energy.mu, energy.U, energy.logits, *energy.sums.values()))
    for small, large in zip(found[:2], found[2:], strict=True):
        for a, b in zip(small, large, strict=True):
            torch.testing.assert_close(
                a, b, rtol=1e-7 if dtype == torch.float64 else 1e-3, atol=1e-9
            )


def test_compiled_moments_find_the_singular_class() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.repeat([4, 5, 6], 10)
    X[y == 5, 2] = X[y == 5, 0]
    with pytest.raises(np.linalg.LinAlgError, match="class 5 is not full rank"):
        QuadraticDiscriminantAnalysis().fit(X, y)
    X[:, 2] = X[:, 0]
    assert int(LinearDiscriminantAnalysis().fit(X, y).energy_.rank) == 2


@pytest.mark.parametrize("settings", [{}, {"solver": "lsqr"}, {"priors": PRIORS}])
def test_scores_of_several_classes_are_the_linear_functions(settings) -> None:
    ours = LinearDiscriminantAnalysis(**settings).fit(X, y)
    scores = ours.decision_function(X)
    np.testing.assert_allclose(scores, X @ ours.coef_.T + ours.intercept_, rtol=1e-12)
    peer = peers.LinearDiscriminantAnalysis(**settings).fit(X, y)
    np.testing.assert_allclose(scores, peer.decision_function(X), rtol=1e-7, atol=1e-7)
    peer = peers.QuadraticDiscriminantAnalysis().fit(X, y)
    scores = QuadraticDiscriminantAnalysis().fit(X, y).decision_function(X)
    np.testing.assert_allclose(scores, peer.decision_function(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("estimator", [LedoitWolf(), OAS()], ids=str)
@pytest.mark.parametrize("priors", [None, PRIORS])
def test_covariances_by_an_estimator(estimator, priors) -> None:
    for name in ("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"):
        settings = {"solver": "eigen", "covariance_estimator": estimator, "priors": priors}
        ours = getattr(groundstate, name)(**settings).fit(X, y)
        peer = getattr(peers, name)(**settings).fit(X, y)
        np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-10)
        weight = np.arange(len(y)) % 3 + 1
        twice = np.repeat(np.arange(len(y)), weight)
        weighted = getattr(groundstate, name)(**settings).fit(X, y, sample_weight=weight)
        repeated = getattr(groundstate, name)(**settings).fit(X[twice], y[twice])
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)
        with pytest.raises(Unsupported, match="must be whole numbers"):
            getattr(groundstate, name)(**settings).fit(X, y, sample_weight=weight / 2)
        with pytest.raises(Unsupported, match="sees all rows at once"):
            getattr(groundstate, name)(**settings).partial_fit(X, y, [0, 1, 2])
        with pytest.raises(ValueError, match="both given"):
            getattr(groundstate, name)(**settings, shrinkage=0.1).fit(X, y)
        with pytest.raises(Unsupported, match="needs solver='eigen'"):
            getattr(groundstate, name)(covariance_estimator=estimator).fit(X, y)


def test_weights_are_routed_to_the_quadratic_classifier() -> None:
    with config_context(enable_metadata_routing=True):
        model = QuadraticDiscriminantAnalysis().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        line = make_pipeline(scaler, model).fit(X, y, sample_weight=np.arange(len(y)))
    direct = QuadraticDiscriminantAnalysis().fit(
        StandardScaler().fit_transform(X), y, sample_weight=np.arange(len(y))
    )
    np.testing.assert_allclose(line[-1].means_, direct.means_)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LinearDiscriminantAnalysis", {}),
        ("LinearDiscriminantAnalysis", {"solver": "lsqr", "priors": PRIORS}),
        ("LinearDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto"}),
        ("QuadraticDiscriminantAnalysis", {}),
        ("QuadraticDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto"}),
    ],
)
def test_row_by_row_is_all_rows_at_once(name, settings) -> None:
    weight = np.arange(len(v)) % 3 / 2 + (np.arange(len(v)) == 0)
    order = np.random.default_rng(0).permutation(len(v))
    model = getattr(groundstate, name)(**settings)
    for i in range(len(v)):
        at = [0] if i == 0 else order[order != 0][i - 1 : i]
        model.partial_fit(W[at], v[at], [0, 1, 2], sample_weight=weight[at])
    whole = getattr(groundstate, name)(**settings).fit(W, v, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(W), whole.predict_proba(W), atol=1e-8)


def test_a_stream_waits_for_rows_of_every_class() -> None:
    model = QuadraticDiscriminantAnalysis().partial_fit(X[:60], y[:60], [0, 1, 2])
    with pytest.raises(np.linalg.LinAlgError, match="class 2 is not full rank"):
        model.predict(X)
    model.partial_fit(X[60:], y[60:])
    direct = QuadraticDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), direct.predict_proba(X), atol=1e-9)
    model = LinearDiscriminantAnalysis()
    with pytest.raises(ValueError, match="non-zero"):
        model.partial_fit(X, y, [0, 1, 2], sample_weight=np.zeros(len(y)))
    model.partial_fit(X, y, [0, 1, 2]).partial_fit(X, y, sample_weight=np.zeros(len(y)))
    np.testing.assert_allclose(
        model.predict_proba(X), LinearDiscriminantAnalysis().fit(X, y).predict_proba(X)
    )
