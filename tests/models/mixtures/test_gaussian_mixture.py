"""GaussianMixture: the numbers of the notes, the peer from the same start, four covariances."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_blobs
from sklearn.mixture import GaussianMixture as PeerMixture

from groundstate import GaussianMixture
from groundstate.energy import GaussianMixtureEnergy, gradcheck
from groundstate.energy.registering import example_rows
from groundstate.errors import DataError, NotConverged
from groundstate.learn import EM, NLL, MixtureEM, fit
from groundstate.learn.base import Problem
from groundstate.learn.fit import choose
from groundstate.learn.solvers.latent.mixtures import collapse, steps

IRIS = load_iris().data
KINDS = ("full", "tied", "diag", "spherical")
UNIT = {
    "full": np.array([np.eye(4)] * 3),
    "tied": np.eye(4),
    "diag": np.ones((3, 4)),
    "spherical": np.ones(3),
}


def start(kind: str) -> dict[str, Any]:
    return {
        "n_components": 3,
        "covariance_type": kind,
        "weights_init": [0.2, 0.3, 0.5],
        "means_init": IRIS[[0, 60, 120]],
        "precisions_init": 2 * UNIT[kind],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_energy_is_right_in_all_its_abilities(kind: str) -> None:
    energy = GaussianMixtureEnergy(3, 2, kind, reg_covar=0.0, scale=1.5)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        energy.logits.copy_(torch.tensor([0.3, -0.2, 0.5]))
        energy.U.add_(0.4 * torch.rand(energy.U.shape, generator=generator))
    report = gradcheck(energy, example_rows(energy, 30, generator))
    assert report.worst < 1e-6 and not report.unchecked


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", ["tiles", "differences"])
def test_equals_the_peer_step_for_step(
    kind: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "differences":
        monkeypatch.setattr(collapse, "DIGITS", 0.0)
    peer = PeerMixture(**start(kind), max_iter=15, tol=1e-12)
    with pytest.warns(Warning):
        peer.fit(IRIS)
    with pytest.warns(NotConverged, match="raise max_iter"):
        ours = GaussianMixture(**start(kind), max_iter=15, tol=1e-12).fit(IRIS)
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_", "precisions_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-7, atol=1e-9)
    assert ours.score(IRIS) == pytest.approx(peer.score(IRIS), abs=1e-10)
    assert ours.lower_bound_ == pytest.approx(ours.score(IRIS), abs=1e-10)
    np.testing.assert_allclose(ours.predict_proba(IRIS), peer.predict_proba(IRIS), atol=1e-9)
    assert ours.bic(IRIS) == pytest.approx(peer.bic(IRIS))
    assert ours.aic(IRIS) == pytest.approx(peer.aic(IRIS))


def test_worked_example() -> None:
    X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    energy = GaussianMixtureEnergy(2, 1).double()
    energy.mu.data.copy_(torch.tensor([[-1.0], [1.0]]))
    x = torch.from_numpy(X)
    history = fit(energy, {"x": x}, NLL(), MixtureEM(max_iter=1, tol=None))
    assert energy.log_weights.exp().tolist() == pytest.approx([0.496122, 0.503878], abs=1e-6)
    assert energy.mu.flatten().tolist() == pytest.approx([-1.369727, 1.844792], abs=1e-6)
    assert energy.covariances().flatten().tolist() == pytest.approx([0.618354, 1.582911], abs=1e-6)
    assert history.extra["log_likelihood"] == pytest.approx([-2.168465, -1.855797], abs=1e-6)
    history = fit(energy, {"x": x}, NLL(), MixtureEM(max_iter=5000, tol=1e-15))
    assert energy.mu.flatten().tolist() == pytest.approx([-1.502824, 1.981703], abs=1e-4)
    assert energy.covariances().flatten().tolist() == pytest.approx([0.250028, 1.049387], abs=1e-4)
    assert -history.objective[-1] == pytest.approx(-1.762850, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_never_falls_and_generic_em_agrees(kind: str) -> None:
    x = torch.from_numpy(IRIS)
    energies = []
    for solver in (EM(max_iter=20, tol=None, audit=True), MixtureEM(max_iter=20, tol=None)):
        energy = GaussianMixtureEnergy(3, 4, kind, reg_covar=0.0).double()
        energy.mu.data.copy_(x[[0, 60, 120]])
        likelihood = fit(energy, {"x": x}, NLL(), solver).extra["log_likelihood"]
        assert (np.diff(likelihood) >= -1e-10).all()
        energies.append(energy)
    torch.testing.assert_close(energies[0].mu, energies[1].mu)
    torch.testing.assert_close(energies[0].U, energies[1].U)


@pytest.mark.parametrize("kind", KINDS)
def test_ends_where_the_peer_ends(kind: str) -> None:
    """The pass that finds a small rise has the statistics of one more M-step, which is taken."""
    ours, peer = GaussianMixture(**start(kind)).fit(IRIS), PeerMixture(**start(kind)).fit(IRIS)
    assert ours.converged_ and ours.n_iter_ == peer.n_iter_
    np.testing.assert_allclose(ours.means_, peer.means_, rtol=1e-7)
    rises = np.diff(ours.lower_bounds_)
    assert rises[-2] < 1e-3 <= rises[-3] and ours.lower_bound_ == ours.lower_bounds_[-1]


def test_one_component_rests_at_its_start() -> None:
    model = GaussianMixture(tol=1e-12).fit(IRIS)
    assert model.converged_ and model.n_iter_ == 1


def test_it_is_the_solver_of_choice() -> None:
    x = torch.from_numpy(IRIS)
    energy = GaussianMixtureEnergy(3, 4).double()
    energy.mu.data.copy_(x[[0, 60, 120]])
    assert isinstance(choose(Problem(energy, NLL(), {"x": x})), MixtureEM)
    history = fit(energy, {"x": x}, NLL(), random_state=0)
    assert history.converged and len(history.objective) == history.n_iter


@pytest.mark.parametrize("kind", KINDS)
def test_features_and_differences_give_the_same_iterations(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(IRIS)).astype(float)
    settings = {**start(kind), "max_iter": 15, "tol": 0.0}
    found = []
    for digits, features in ((1e-8, 2**13), (0.0, 2**13), (1e-13, 2**13), (1e-8, 0)):
        monkeypatch.setattr(collapse, "DIGITS", digits)  # 0: differences for all components
        monkeypatch.setattr(steps, "MAX_FEATURES", features)  # 0: tensors
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            model = GaussianMixture(**settings).fit(IRIS, sample_weight=weight)
        found.append((model.lower_bounds_, model.means_, model.covariances_, model.weights_))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_small_components_far_from_the_mean_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(s * 1e3, 1e-3, (200, 2)) for s in (-1, 1)])
    model = GaussianMixture(2, reg_covar=0.0, tol=1e-9, random_state=0).fit(X)
    for label in (0, 1):
        rows = X[model.predict(X) == label]
        np.testing.assert_allclose(model.covariances_[label], np.cov(rows.T, ddof=0), rtol=1e-6)


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
def test_starts(init: str) -> None:
    X, _ = make_blobs(600, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    model = GaussianMixture(3, init_params=init, n_init=4, max_iter=2000, tol=1e-8, random_state=0)
    model.fit(X)
    assert model.converged_
    assert model.score(X) == pytest.approx(PeerMixture(3, random_state=0).fit(X).score(X), abs=2e-2)
    assert [model.lower_bound_, model.n_iter_] == [
        model.lower_bounds_[-1], len(model.lower_bounds_)
    ]  # fmt: skip


def test_bic_finds_the_number_of_components() -> None:
    X, _ = make_blobs(600, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)
    bic = {k: GaussianMixture(k, random_state=0).fit(X).bic(X) for k in (2, 3, 4)}
    assert min(bic, key=bic.__getitem__) == 3
    assert bic[3] == pytest.approx(4754.7, abs=0.5) and bic[2] == pytest.approx(4966.5, abs=1.0)


def test_warm_start_goes_on() -> None:
    model = GaussianMixture(3, max_iter=2, tol=0.0, warm_start=True, random_state=0).fit(IRIS)
    first = model.lower_bound_
    again = model.fit(IRIS)
    assert again.lower_bounds_[0] > first
    whole = GaussianMixture(3, max_iter=4, tol=0.0, random_state=0).fit(IRIS)
    np.testing.assert_allclose(again.means_, whole.means_, rtol=1e-9)


def test_float32_stays_and_agrees() -> None:
    start64 = GaussianMixture(**start("full"), max_iter=10, tol=0.0).fit(IRIS)
    start32 = GaussianMixture(**start("full"), max_iter=10, tol=0.0).fit(IRIS.astype(np.float32))
    assert start32.means_.dtype == np.float32 == start32.predict_proba(IRIS).dtype
    np.testing.assert_allclose(start32.means_, start64.means_, atol=1e-3)


def test_draws_have_the_moments_of_the_mixture() -> None:
    model = GaussianMixture(3, random_state=0).fit(IRIS)
    X, z = model.sample(20_000)
    assert X.shape == (20_000, 4) and z.shape == (20_000,)
    np.testing.assert_allclose(np.bincount(z) / len(z), model.weights_, atol=0.02)
    mean = model.weights_ @ model.means_
    np.testing.assert_allclose(X.mean(0), mean, atol=0.06)
    spread = model.covariances_ + np.einsum("ki,kj->kij", model.means_, model.means_)
    cov = np.einsum("k,kij->ij", model.weights_, spread) - np.outer(mean, mean)
    np.testing.assert_allclose(np.cov(X.T), cov, atol=0.1)
    np.testing.assert_array_equal(X, model.sample(20_000)[0])


def test_missing_values_are_filled_in_from_what_is_known() -> None:
    one = GaussianMixture(
        1, weights_init=[1.0], means_init=[[0.0, 0.0]],
        precisions_init=[np.linalg.inv([[2.0, 1.0], [1.0, 2.0]])], max_iter=1, tol=0.0,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    one.fit(rng.multivariate_normal([0, 0], [[2, 1], [1, 2]], 50))
    one.energy_.mu.data.zero_()
    one.energy_.from_precisions(torch.linalg.inv(torch.tensor([[[2.0, 1.0], [1.0, 2.0]]])))
    X = np.array([[1.0, np.nan], [1.0, 2.0]])
    for how in ("mean", "minimise"):
        np.testing.assert_allclose(one.impute(X, how), [[1.0, 0.5], [1.0, 2.0]], atol=1e-6)

    model = GaussianMixture(3, random_state=0).fit(IRIS)
    X = IRIS[:6].copy()
    hidden = np.zeros(X.shape, bool)
    hidden[0, 1] = hidden[1, 2:] = True
    hidden[2] = True
    X[hidden] = np.nan
    filled = model.impute(X)
    np.testing.assert_array_equal(filled[~hidden], IRIS[:6][~hidden])
    np.testing.assert_allclose(filled[2], model.weights_ @ model.means_, rtol=1e-9)
    drawn = np.stack([model.impute(X, "sample", random_state=s)[1] for s in range(400)])
    np.testing.assert_allclose(drawn.mean(0), filled[1], atol=0.15)
    # the best completion is a stationary point of the density along the free coordinates
    best = model.impute(X, "minimise")
    step = np.zeros_like(best)
    step[1, 2] = 1e-5
    slope = (model.score_samples(best + step) - model.score_samples(best - step))[1] / 2e-5
    assert abs(slope) < 1e-3


def test_questions() -> None:
    model = GaussianMixture(3, random_state=0).fit(IRIS)
    np.testing.assert_allclose(-model.energy(IRIS), model.score_samples(IRIS))
    np.testing.assert_array_equal(model.infer({"x": IRIS}, "z"), model.predict(IRIS))
    np.testing.assert_allclose(
        model.predict_proba(IRIS).max(1),
        np.exp(-model.energy(IRIS, z=model.predict(IRIS)) + model.energy(IRIS)),
    )
    means = model.infer({"z": [0, 1, 2]}, "x")
    np.testing.assert_allclose(means, model.means_)
    both = model.infer({}, ("x", "z"), "sample", n=5, random_state=0)
    assert both["x"].shape == (5, 1, 4) and both["z"].shape == (5, 1)
    far = np.full((1, 4), 1e3)
    assert (
        np.isfinite(model.score_samples(far)).all() and np.isfinite(model.predict_proba(far)).all()
    )


def test_bad_starts_and_collapse() -> None:
    with pytest.raises(
        ValueError, match=r"'means' should have the shape of \(3, 4\), but got \(2, 4\)"
    ):
        GaussianMixture(3, means_init=IRIS[:2]).fit(IRIS)
    with pytest.raises(ValueError, match="'weights' should be"):
        GaussianMixture(2, weights_init=[0.5, 0.6]).fit(IRIS)
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        GaussianMixture(1, precisions_init=[-np.eye(4)]).fit(IRIS)
    with pytest.raises(ValueError, match="n_components = 3, n_samples = 2"):
        GaussianMixture(3).fit(IRIS[:2])
    with pytest.raises(DataError, match="a component collapsed.*raise reg_covar"):
        GaussianMixture(2, reg_covar=0.0, random_state=0).fit(np.repeat([[0.0], [1.0]], 5, 0))


def test_density_integrates_to_one() -> None:
    X, _ = make_blobs(200, centers=3, random_state=0)
    model = GaussianMixture(3, random_state=0).fit(X)
    side = np.linspace(-15, 15, 400)
    points = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    mass = np.exp(model.score_samples(points)).sum() * (side[1] - side[0]) ** 2
    assert mass == pytest.approx(1.0, abs=1e-3)
    assert math.isfinite(model.lower_bound_)


def test_a_stream_of_batches_is_the_whole() -> None:
    x = torch.from_numpy(IRIS)
    weight = torch.linspace(0.5, 2.0, len(x), dtype=torch.float64)
    stream = [{"x": x[i : i + 40], "weight": weight[i : i + 40]} for i in range(0, len(x), 40)]
    fitted = []
    for data, w in (({"x": x}, weight), (stream, None)):
        energy = GaussianMixtureEnergy(3, 4).double()
        energy.mu.data.copy_(x[[0, 60, 120]])
        fit(energy, data, NLL(), MixtureEM(max_iter=8, tol=None), sample_weight=w)
        fitted.append(energy)
    torch.testing.assert_close(fitted[0].U, fitted[1].U, rtol=1e-9, atol=1e-9)
