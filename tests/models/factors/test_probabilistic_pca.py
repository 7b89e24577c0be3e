"""ProbabilisticPCA: the closed form is the maximum, and x in part is filled in."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA

from groundstate import ProbabilisticPCA
from groundstate.energy import ProbabilisticPCAEnergy, gradcheck
from groundstate.energy.registering import example_rows
from groundstate.learn import EM, NLL, EigenFactors, fit

IRIS = load_iris().data


def with_spectrum(values: list[float], n: int = 400) -> np.ndarray:
    """Rows whose covariance (weights 1/n) has exactly these eigenvalues."""
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(n, len(values)))
    raw -= raw.mean(0)
    q, _ = np.linalg.qr(raw)
    turn, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    return (q * math.sqrt(n) * np.sqrt(values)) @ turn.T + 3.0


def test_worked_example() -> None:
    X = with_spectrum([9.0, 4.0, 0.5, 0.3, 0.2])
    model = ProbabilisticPCA(2).fit(X)
    assert model.noise_variance_ == pytest.approx(1 / 3)
    np.testing.assert_allclose(model.explained_variance_, [9.0, 4.0])
    np.testing.assert_allclose(model.energy_.W.detach().square().sum(0), [26 / 3, 11 / 3])
    assert model.score(X) == pytest.approx(-7.238534, abs=1e-6)
    assert model.explained_variance_ratio_.sum() == pytest.approx(13 / 14)


def test_iris() -> None:
    model = ProbabilisticPCA(2).fit(IRIS)
    assert model.noise_variance_ == pytest.approx(0.050682, abs=1e-6)
    assert model.score(IRIS) == pytest.approx(-2.699752, abs=1e-6)
    peer = PCA(2).fit(IRIS)
    n = len(IRIS)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(peer.components_), atol=1e-12)
    np.testing.assert_allclose(model.explained_variance_, peer.explained_variance_ * (n - 1) / n)
    largest = np.abs(model.components_).argmax(1)
    assert (model.components_[[0, 1], largest] > 0).all()


def test_closed_form_is_stationary_and_where_em_goes() -> None:
    x = torch.from_numpy(IRIS)
    exact = ProbabilisticPCAEnergy(4, 2).double()
    history = fit(exact, {"x": x}, NLL(), random_state=0)
    assert history.solver == "EigenFactors"
    loss = exact.marginal("z")(x=x).mean()
    for gradient in torch.autograd.grad(loss, list(exact.parameters())):
        assert float(gradient.abs().max()) < 1e-10
    slow = ProbabilisticPCAEnergy(4, 2).double()
    history = fit(slow, {"x": x}, NLL(), EM(max_iter=2000, tol=1e-12))
    assert (np.diff(history.extra["log_likelihood"]) >= -1e-10).all()
    assert float(slow.noise.detach()) == pytest.approx(float(exact.noise.detach()), rel=1e-5)


def test_energy_is_right_in_all_its_abilities() -> None:
    energy = ProbabilisticPCAEnergy(1, 1, noise=0.5)
    report = gradcheck(energy, example_rows(energy, 9, torch.Generator().manual_seed(0)))
    assert report.worst < 1e-6 and not report.unchecked


def test_code_is_the_posterior_mean_and_decodes() -> None:
    model = ProbabilisticPCA(2).fit(IRIS)
    W = model.components_.T * np.sqrt(model.explained_variance_ - model.noise_variance_)
    M = W.T @ W + model.noise_variance_ * np.eye(2)
    Z = model.transform(IRIS)
    np.testing.assert_allclose(Z, (IRIS - model.mean_) @ W @ np.linalg.inv(M))
    np.testing.assert_allclose(model.inverse_transform(Z), Z @ W.T + model.mean_)
    np.testing.assert_allclose(model.get_covariance(), W @ W.T + model.noise_variance_ * np.eye(4))
    np.testing.assert_allclose(model.get_precision() @ model.get_covariance(), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(model.infer({"x": IRIS[:4]}, "z"), Z[:4])
    with pytest.raises(ValueError, match="codes have 2 columns in this model, got 3"):
        model.inverse_transform(np.zeros((1, 3)))


def test_density_and_draws() -> None:
    from scipy.stats import multivariate_normal

    model = ProbabilisticPCA(2).fit(IRIS)
    distribution = multivariate_normal(model.mean_, model.get_covariance())
    np.testing.assert_allclose(model.score_samples(IRIS), distribution.logpdf(IRIS))
    np.testing.assert_allclose(model.energy(IRIS), -distribution.logpdf(IRIS))
    X = model.sample(20_000, random_state=0)
    np.testing.assert_allclose(X.mean(0), model.mean_, atol=0.05)
    np.testing.assert_allclose(np.cov(X.T), model.get_covariance(), atol=0.1)


def test_missing_values_are_filled_in_from_what_is_known() -> None:
    model = ProbabilisticPCA(2).fit(IRIS)
    X = IRIS[:3].copy()
    X[0, 3] = np.nan
    C, m = model.get_covariance(), model.mean_
    expected = m[3] + C[3, :3] @ np.linalg.solve(C[:3, :3], X[0, :3] - m[:3])
    for how in ("mean", "minimise"):
        filled = model.impute(X, how)
        assert filled[0, 3] == pytest.approx(expected)
        np.testing.assert_array_equal(filled[1:], IRIS[1:3])
    draws = [model.impute(X, "sample", random_state=s)[0, 3] for s in range(300)]
    assert np.mean(draws) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("rows", [20, 400])
def test_few_and_many_rows_give_the_axes_of_pca(rows: int) -> None:
    X = load_digits().data[:rows]
    model = ProbabilisticPCA(5).fit(X)
    peer = PCA(5).fit(X)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(peer.components_), atol=1e-8)
    assert np.isfinite(model.score_samples(X)).all()


def test_length_of_the_code() -> None:
    assert ProbabilisticPCA().fit(IRIS).n_components_ == 3
    everything = ProbabilisticPCA(4).fit(IRIS)
    assert everything.noise_variance_ > 0 and np.isfinite(everything.score(IRIS))
    with pytest.raises(ValueError, match=r"n_components=5 must be at most .*=4"):
        ProbabilisticPCA(5).fit(IRIS)
    names = ProbabilisticPCA(2).fit(IRIS).get_feature_names_out().tolist()
    assert names == ["probabilisticpca0", "probabilisticpca1"]


def test_solver_says_what_it_is_for() -> None:
    energy = ProbabilisticPCAEnergy(2, 1)
    with pytest.raises(TypeError, match="resident x"):
        fit(energy, {"x": torch.ones(3, 2), "z": torch.ones(3, 1)}, NLL(), EigenFactors())
