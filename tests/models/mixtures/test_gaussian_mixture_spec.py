"""GaussianMixture beyond the peer: bounds, fixed parts, missing values, mini-batches, entropies."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture as Peer

from groundstate import GaussianMixture, load
from groundstate.errors import DataError, NotConverged

LINE = np.array([[-2.0], [-1.0], [1.0], [3.0]])
MEANS = np.array([[-1.0], [1.0]])
IDENTITY = {"covariance_type": "identity", "weights": "uniform", "means_init": MEANS}


def steps(n: int, **settings: object) -> GaussianMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        return GaussianMixture(2, max_iter=n, tol=0.0, reg_covar=0.0, **settings).fit(LINE)


def test_steps_of_the_notes() -> None:
    start = {"means_init": MEANS, "precisions_init": np.ones((2, 1, 1)), "weights_init": [0.5, 0.5]}
    one = steps(1, **start)
    np.testing.assert_allclose(one.weights_, [0.496122, 0.503878], atol=1e-6)
    np.testing.assert_allclose(one.means_.ravel(), [-1.369727, 1.844792], atol=1e-6)
    np.testing.assert_allclose(
        one.covariances_.ravel(), [0.618353, 1.582910], atol=1e-6
    )  # less reg_covar
    assert one.history_.extra["log_likelihood"][0] == pytest.approx(-2.168465, abs=1e-6)
    assert one.lower_bound_ == pytest.approx(-1.855797, abs=1e-6)
    assert steps(2, **start).lower_bound_ == pytest.approx(-1.772379, abs=1e-6)
    end = steps(2000, **start)
    np.testing.assert_allclose(end.means_.ravel(), [-1.502824, 1.981703], atol=1e-5)
    np.testing.assert_allclose(end.covariances_.ravel(), [0.250028, 1.049387], atol=1e-5)
    assert end.lower_bound_ == pytest.approx(-1.762850, abs=1e-6)


def test_bound_of_fixed_parts() -> None:
    one = steps(1, **IDENTITY)
    np.testing.assert_allclose(one.means_.ravel(), [-1.369727, 1.844792], atol=1e-6)
    np.testing.assert_allclose(one.covariances_, 1.0)
    np.testing.assert_allclose(one.weights_, 0.5)
    start = GaussianMixture(2, **IDENTITY)
    assert one.history_.extra["log_likelihood"][0] == pytest.approx(-2.168465, abs=1e-6)
    old = 1 / (1 + np.exp(2 * LINE))  # responsibilities at the start: softmax of −½(x ± 1)²
    alpha = np.hstack([old, 1 - old])
    np.testing.assert_allclose(alpha[:, 0], [0.982014, 0.880797, 0.119203, 0.002473], atol=1e-6)
    assert one.bound(LINE, alpha) == pytest.approx(-1.954753, abs=1e-6)
    assert one.score(LINE) == pytest.approx(-1.909317, abs=1e-6)
    assert one.bound(LINE) == pytest.approx(one.score(LINE), abs=1e-12)
    end = steps(500, **IDENTITY)
    np.testing.assert_allclose(end.means_.ravel(), [-1.396994, 2.027614], atol=1e-5)
    assert end.lower_bound_ == pytest.approx(-1.901677, abs=1e-6)
    assert start.fit(LINE)._n_parameters() == 2
    with pytest.raises(ValueError, match=r"alpha must be \(4, 2\)"):
        one.bound(LINE, alpha[:3])


def test_starts_decide_where_it_ends() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1, (200, 1)) for m in (0.0, 10.0, 20.0)])
    found = []
    for start in ([0.0, 0.5, 15.0], [0.0, 10.0, 20.0]):
        model = GaussianMixture(
            3, covariance_type="identity", weights="uniform", tol=1e-9, max_iter=500,
            means_init=np.array(start)[:, None],
        )  # fmt: skip
        found.append(model.fit(X).lower_bound_)
    assert found[0] == pytest.approx(-10.70, abs=0.35)
    assert found[1] == pytest.approx(-2.51, abs=0.1)


def test_information_criteria_choose_three() -> None:
    X, _ = make_blobs(600, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)
    bic = {k: GaussianMixture(k, random_state=0).fit(X).bic(X) for k in range(1, 6)}
    assert min(bic, key=bic.__getitem__) == 3
    assert bic[3] == pytest.approx(4754.7, abs=1.0)
    assert bic[2] == pytest.approx(4966.5, abs=1.5)
    assert bic[4] == pytest.approx(4783.7, abs=12.0)
    peer = Peer(3, random_state=0).fit(X)
    ours = GaussianMixture(
        3, weights_init=peer.weights_, means_init=peer.means_, precisions_init=peer.precisions_
    ).fit(X)
    assert ours.bic(X) == pytest.approx(peer.bic(X), rel=1e-5)
    assert ours.aic(X) == pytest.approx(peer.aic(X), rel=1e-5)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_missing_values(kind: str) -> None:
    X, _ = make_blobs(400, 3, centers=3, random_state=1)
    X = X @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    gaps = X.copy()
    gaps[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    gaps[0] = np.nan
    settings = {"covariance_type": kind, "reg_covar": 0.0, "tol": 1e-6, "max_iter": 500}
    model = GaussianMixture(3, random_state=0, **settings).fit(gaps)
    likelihood = np.array(model.history_.extra["log_likelihood"])
    assert (np.diff(likelihood) >= -1e-10).all()
    filled = model.impute(gaps)
    np.testing.assert_allclose(filled[0], model.weights_ @ model.means_, atol=1e-8)
    density = model.score_samples(gaps)
    np.testing.assert_allclose(model.energy(gaps), -density, rtol=1e-12)
    assert (model.energy(gaps, z=model.predict(gaps)) >= -density).all()
    hidden = np.isnan(gaps)
    plain = np.where(hidden, np.nanmean(gaps, 0), gaps)
    error, before = (np.square((a - X)[hidden]).mean() for a in (filled, plain))
    assert error < 0.6 * before
    assert np.isfinite(model.impute(gaps, how="mode")).all()
    w = np.random.default_rng(1).integers(1, 3, len(X)).astype(float)
    one = GaussianMixture(3, random_state=0, **settings).fit(gaps, sample_weight=w)
    two = GaussianMixture(3, random_state=0, **settings).fit(np.repeat(gaps, w.astype(int), 0))
    np.testing.assert_allclose(one.means_, two.means_, atol=1e-6)


def test_missing_values_change_nothing_where_there_are_none() -> None:
    from groundstate.learn.solvers.latent.mixtures.missing import MissingM
    from groundstate.learn.solvers.latent.mixtures.steps import GaussianM

    X, _ = make_blobs(200, 2, centers=3, random_state=0)
    plain = GaussianMixture(3, random_state=0).fit(X)
    import groundstate.learn.solvers.latent.mixtures.mixture_em as solver

    kept = solver.GaussianM
    try:
        solver.GaussianM = MissingM  # type: ignore[misc]
        other = GaussianMixture(3, random_state=0).fit(X)
    finally:
        solver.GaussianM = kept  # type: ignore[misc]
    assert kept is GaussianM
    np.testing.assert_allclose(other.means_, plain.means_, atol=1e-9)
    np.testing.assert_allclose(other.covariances_, plain.covariances_, atol=1e-9)


def test_a_column_without_values() -> None:
    X = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan]])
    with pytest.raises(DataError, match="column 1 of X has no value"):
        GaussianMixture(1).fit(X)


def test_conditioning() -> None:
    rng = np.random.default_rng(0)
    model = GaussianMixture(1, reg_covar=0.0).fit(rng.normal(size=(50, 2)))
    model.means_[:] = 0.0
    P = np.linalg.inv([[2.0, 1.0], [1.0, 2.0]])
    model.precisions_cholesky_ = np.linalg.cholesky(P[::-1, ::-1])[::-1, ::-1][None]
    given = model.condition({0: 1.0})
    np.testing.assert_allclose(given.means_, [[0.5]], atol=1e-10)
    np.testing.assert_allclose(given.covariances_, [[[1.5]]], atol=1e-10)
    np.testing.assert_allclose(model.impute(np.array([[1.0, np.nan]])), [[1.0, 0.5]], atol=1e-10)
    with pytest.raises(ValueError, match="some of the 2 columns"):
        model.condition({0: 1.0, 1: 2.0})


def test_conditional_of_a_mixture_is_the_ratio_of_densities() -> None:
    X, _ = make_blobs(300, 3, centers=3, random_state=0)
    model = GaussianMixture(3, random_state=0).fit(X)
    given = model.condition({1: 0.7})
    at = X[:20, [0, 2]]
    whole = np.column_stack([at[:, 0], np.full(20, 0.7), at[:, 1]])
    alone = np.array([[np.nan, 0.7, np.nan]])
    expected = model.score_samples(whole) - model.score_samples(alone)[0]
    np.testing.assert_allclose(given.score_samples(at), expected, atol=1e-6)


def test_entropy() -> None:
    model = GaussianMixture(1).fit(np.random.default_rng(0).normal(size=(200, 1)))
    model.means_[:], model.precisions_cholesky_ = 0.0, np.ones((1, 1, 1))
    found = model.entropy(random_state=0)
    assert found.lower == pytest.approx(1.418939, abs=1e-6) == found.upper
    assert abs(found.value - 1.418939) < 4 * found.standard_error
    for seed in range(5):
        X, _ = make_blobs(300, 2, centers=4, random_state=seed)
        found = GaussianMixture(4, random_state=0).fit(X).entropy(random_state=0)
        slack = 4 * found.standard_error
        assert found.lower - slack <= found.value <= found.upper + slack
        assert found.upper - found.lower <= math.log(4) + 1e-9


def test_temperature_hardens() -> None:
    X, _ = make_blobs(300, 2, centers=3, cluster_std=2.0, random_state=0)
    entropies = []
    for T in (0.05, 1.0, 20.0):
        r = GaussianMixture(
            3, covariance_type="identity", weights="uniform", temperature=T, random_state=0,
            max_iter=300,
        ).fit(X).predict_proba(X)  # fmt: skip
        entropies.append(float(-(r * np.log(np.clip(r, 1e-300, 1))).sum(1).mean()))
    assert entropies[0] < entropies[1] < entropies[2]


def test_mini_batches_reach_the_likelihood_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[-3.0, -1.0], [-2.5, 1.5], [0.0, 2.5], [2.5, 1.5], [2.75, -1.5]])
    X = centres[rng.integers(5, size=20_000)] + rng.normal(size=(20_000, 2))
    common = {"covariance_type": "identity", "weights": "uniform", "means_init": centres}
    whole = GaussianMixture(5, tol=1e-6, max_iter=300, **common).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        parts = GaussianMixture(5, batch_size=256, max_iter=10, tol=0.0, **common).fit(X)
    assert parts.score(X) == pytest.approx(whole.score(X), abs=2e-3)
    stream = GaussianMixture(5, **common)
    for at in range(0, len(X), 500):
        stream.partial_fit(X[at : at + 500])
    assert stream.n_steps_ == 40
    assert stream.score(X) == pytest.approx(whole.score(X), abs=5e-3)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "identity"])
def test_gradient_steps_are_gradients(kind: str) -> None:
    """Steps are the gradient of the log-likelihood times a positive definite matrix."""
    X, _ = make_blobs(300, 3, centers=3, random_state=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        model = GaussianMixture(
            3, covariance_type=kind, online="gradient", learning_rate=1e-3, max_iter=1, tol=0.0,
            random_state=0, reg_covar=1e-3,
        ).fit(X)  # fmt: skip
    energy = model.energy_
    if kind != "identity":
        energy.U.data.mul_(0.8)
    else:
        energy.mu.data.add_(0.1)
    alpha, mu = model.predict_proba(X), np.array(model.means_)
    pi, cov = np.array(model.weights_), energy.full_covariances().numpy()
    before = model.score(X)
    model.partial_fit(X)
    diff = X - mu[:, None]  # (k, n, d)
    np.testing.assert_allclose(model.weights_, pi + 1e-3 * (alpha.mean(0) - pi), atol=1e-12)
    shift = np.einsum("nk,knd->kd", alpha, diff) / len(X)
    np.testing.assert_allclose(model.means_, mu + 1e-3 * shift, atol=1e-12)
    own = cov - 1e-3 * np.eye(3)
    moved = np.einsum("nk,kni,knj->kij", alpha, diff, diff) / len(X)
    moved = moved - alpha.mean(0)[:, None, None] * own
    if kind == "tied":
        moved = np.broadcast_to(moved.sum(0), moved.shape)
    elif kind == "diag":
        moved = moved * np.eye(3)
    elif kind == "spherical":
        moved = np.trace(moved, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3)
    elif kind == "identity":
        moved = np.zeros_like(moved)
    np.testing.assert_allclose(energy.full_covariances().numpy(), cov + 1e-3 * moved, atol=1e-10)
    assert model.score(X) > before


def test_gradient_steps_reach_the_likelihood_of_all_rows() -> None:
    X, _ = make_blobs(20_000, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)
    whole = GaussianMixture(3, random_state=0, tol=1e-6).fit(X)
    for rate in (None, 0.1):
        parts = GaussianMixture(
            3, batch_size=256, online="gradient", learning_rate=rate, random_state=0, max_iter=5
        ).fit(X)
        assert parts.score(X) == pytest.approx(whole.score(X), abs=0.01)
    with pytest.raises(ValueError, match="learning_rate"):
        GaussianMixture(online="gradient", learning_rate=1.5).fit(X)
    gaps = X[:100].copy()
    gaps[0, 0] = np.nan
    with pytest.raises(ValueError, match="mini-batches take rows without NaN"):
        GaussianMixture(3, batch_size=10).fit(gaps)
    with pytest.raises(DataError, match="partial_fit takes rows without NaN"):
        whole.partial_fit(gaps)


@pytest.mark.parametrize("online", ["stepwise", "gradient"])
def test_a_stored_mixture_goes_on(online: str, tmp_path: Path) -> None:
    X, _ = make_blobs(300, centers=3, random_state=0)
    model = GaussianMixture(3, online=online, random_state=0)
    for at in range(0, 200, 50):
        model.partial_fit(X[at : at + 50])
    model.save(tmp_path / "model")
    other = load(tmp_path / "model")
    for one in (model, other):
        one.partial_fit(X[200:])
    np.testing.assert_array_equal(other.means_, model.means_)
    assert other.n_steps_ == model.n_steps_ == 5


@pytest.mark.parametrize("online", ["stepwise", "gradient"])
def test_partial_fit_with_weights_is_with_repeated_rows(online: str) -> None:
    X, _ = make_blobs(200, 2, centers=2, random_state=0)
    w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    one, two = (GaussianMixture(2, random_state=0, online=online) for _ in range(2))
    for at in (slice(0, 100), slice(100, 200)):
        one.partial_fit(X[at], sample_weight=w[at])
        two.partial_fit(np.repeat(X[at], w[at].astype(int), 0))
    np.testing.assert_allclose(one.means_, two.means_, atol=1e-8)


def test_regularisation_by_held_out_rows() -> None:
    rng = np.random.default_rng(0)
    train, test = np.round(rng.normal(size=(60, 5)), 1), rng.normal(size=(200, 5))
    train[:, 0] = np.round(train[:, 0])
    plain = GaussianMixture(8, random_state=0, max_iter=300).fit(train)
    careful = GaussianMixture(8, random_state=0, max_iter=300, reg_covar="auto").fit(train)
    assert careful.reg_covar_ > 1e-4
    assert careful.score(test) > plain.score(test) + 2
    again = GaussianMixture(8, max_iter=300, random_state=0, reg_covar=careful.reg_covar_).fit(
        train
    )
    np.testing.assert_allclose(again.means_, careful.means_)
    assert GaussianMixture(1, reg_covar="auto").fit(np.ones((9, 2))).reg_covar_ == 1e-6


def test_restarts_are_kept() -> None:
    X, _ = make_blobs(200, 2, centers=4, random_state=0)
    model = GaussianMixture(4, n_init=3, init_params="random_from_data", random_state=0).fit(X)
    assert len(model.restarts_) == 3
    assert max(model.restarts_) == pytest.approx(model.lower_bound_)


def test_components_without_rows_begin_again() -> None:
    X = np.array([[-2.0], [-1.9], [-2.1], [2.0], [2.1], [1.9]])
    model = GaussianMixture(
        2, means_init=[[0.0], [1e6]], precisions_init=np.ones((2, 1, 1)), weights_init=[0.5, 0.5]
    ).fit(X)
    assert model.n_reseeded_ >= 1
    assert np.isfinite(model.means_).all() and np.abs(model.means_).max() < 5
