"""Factors and signs are the same in all models without labels, each checked in one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from groundstate import (
    PCA,
    BayesianGaussianMixture,
    ClassicalMDS,
    FactorAnalysis,
    FastICA,
    GaussianMixture,
    IncrementalPCA,
    Isomap,
    KernelPCA,
    KMeans,
    LandmarkMDS,
    MiniBatchKMeans,
    MixtureModel,
    ProbabilisticPCA,
    SoftKMeans,
    TruncatedSVD,
)

X: np.ndarray = scale(load_wine().data)[:, :6] @ np.diag([3.0, 2, 1.5, 1, 0.8, 0.5]) + 1.0
W = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
N = len(X)


def eigenvalues(ddof: int) -> np.ndarray:
    """Variances of the principal directions, decreasing."""
    values: np.ndarray = np.linalg.eigvalsh(np.cov(X.T, ddof=ddof))[::-1]
    return values


@pytest.mark.parametrize(
    "model", [KMeans(3, random_state=0), MiniBatchKMeans(3, random_state=0), SoftKMeans(3)]
)
def test_inertia_is_the_sum_of_squares_and_twice_the_energy(model: Any) -> None:
    model.set_params(random_state=0).fit(X, sample_weight=W)
    mu = np.asarray(model.cluster_centers_)
    squares = np.square(X[:, None] - mu).sum(-1).min(1)
    assert model.inertia_ == pytest.approx(W @ squares, rel=1e-12)
    e = model.energy(X, z=model.predict(X))
    assert model.inertia_ == pytest.approx(2 * W @ e, rel=1e-12)
    assert model.score(X, sample_weight=W) == pytest.approx(-model.inertia_, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "ddof"),
    [(PCA(3), 1), (PCA(3, svd_solver="full"), 1), (IncrementalPCA(6), 1), (ProbabilisticPCA(3), 0)],
)
def test_variances(model: Any, ddof: int) -> None:
    found = model.fit(X).explained_variance_
    np.testing.assert_allclose(found[:3], eigenvalues(ddof)[:3], rtol=1e-9)
    np.testing.assert_allclose(eigenvalues(1), eigenvalues(0) * N / (N - 1), rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "variances"),
    [
        (GaussianMixture(1, reg_covar=0.0), lambda m: np.diagonal(m.covariances_[0])),
        (GaussianMixture(1, covariance_type="diag", reg_covar=0.0), lambda m: m.covariances_[0]),
        (ProbabilisticPCA(6), lambda m: np.diagonal(m.get_covariance())),
        (FactorAnalysis(2, tol=1e-10), lambda m: np.diagonal(m.get_covariance())),
    ],
)
def test_maximum_likelihood_divides_by_n(model: Any, variances: Any) -> None:
    np.testing.assert_allclose(variances(model.fit(X)), X.var(0), rtol=1e-5)


DENSITIES = [
    GaussianMixture(2, random_state=0, tol=1e-10, max_iter=2000),
    MixtureModel("gaussian", 2, random_state=0, tol=1e-10, max_iter=2000),
    BayesianGaussianMixture(2, random_state=0, max_iter=500),
    ProbabilisticPCA(2),
    FactorAnalysis(2),
    PCA(2),
]


@pytest.mark.parametrize("model", DENSITIES, ids=lambda m: type(m).__name__)
def test_scores_are_means_over_rows_in_nats(model: Any) -> None:
    model.fit(X)
    each = model.score_samples(X)
    assert model.score(X) == pytest.approx(each.mean(), rel=1e-12)
    assert model.score(np.r_[X, X]) == pytest.approx(each.mean(), rel=1e-12)
    if not isinstance(model, PCA | BayesianGaussianMixture):  # whose energies are of another kind
        np.testing.assert_allclose(each, -model.energy(X), rtol=1e-8)
    if isinstance(model, GaussianMixture | MixtureModel):
        assert model.lower_bound_ == pytest.approx(model.score(X), abs=1e-7)


def test_a_nat_is_a_nat() -> None:
    one = multivariate_normal(X.mean(0), np.cov(X.T, ddof=0)).logpdf(X)
    for model in (GaussianMixture(1, reg_covar=0.0), ProbabilisticPCA(6), FactorAnalysis(5)):
        scores = model.fit(X).score_samples(X)
        assert scores.mean() == pytest.approx(
            one.mean(), abs=2e-2 if "Factor" in str(model) else 1e-8
        )


@pytest.mark.parametrize("T", [0.25, 4.0])
@pytest.mark.parametrize("kind", [SoftKMeans, GaussianMixture])
def test_temperature_divides_the_energy(kind: Any, T: float) -> None:
    model = kind(3, temperature=T, random_state=0).fit(X)
    table = model.energy_.table("z", x=torch.from_numpy(X)).detach()
    np.testing.assert_allclose(model.predict_proba(X), torch.softmax(-table / T, 1), atol=1e-10)


def components(model: Any) -> np.ndarray:
    return np.asarray(model.components_)


def columns(model: Any) -> np.ndarray:
    kept = model.eigenvectors_ if hasattr(model, "eigenvectors_") else model.embedding_
    return np.asarray(kept).T


AXES = [
    (PCA(3), components),
    (PCA(3, svd_solver="randomized", random_state=0), components),
    (IncrementalPCA(3, batch_size=50), components),
    (TruncatedSVD(3), components),
    (ProbabilisticPCA(3), components),
    (FactorAnalysis(2), components),
    (FastICA(3, random_state=0, tol=1e-8, max_iter=2000), components),
    (KernelPCA(3), columns),
    (ClassicalMDS(n_components=3), columns),
    (LandmarkMDS(n_components=2), columns),
    (Isomap(n_neighbors=20), columns),
]


@pytest.mark.parametrize(("model", "axes"), AXES, ids=lambda v: type(v).__name__)
def test_the_largest_entry_of_an_axis_is_positive(model: Any, axes: Any) -> None:
    found = axes(model.fit(X))
    peak = np.abs(found).argmax(1)
    assert (found[np.arange(len(found)), peak] > 0).all()
    np.testing.assert_allclose(axes(model.fit(X)), found, atol=1e-9)  # a refit has the same signs
    mirrored = axes(model.fit(-X))
    assert (mirrored[np.arange(len(found)), np.abs(mirrored).argmax(1)] > 0).all()


@pytest.mark.parametrize("T", [0.5, 1.0, 3.0])
def test_free_energies_sum_the_hidden_variable_out(T: float) -> None:
    model = KMeans(3, random_state=0).fit(X)
    table = np.stack([model.energy(X, z=np.full(len(X), z)) for z in range(3)], 1)
    expected = -T * logsumexp(-table / T, axis=1)
    np.testing.assert_allclose(model.free_energy(X, T), expected, rtol=1e-9)
    factors = ProbabilisticPCA(2).fit(X)
    found = factors.infer({"x": X}, "z", "marginal", T=T)
    np.testing.assert_allclose(factors.free_energy(X, T), found, rtol=1e-9)
    if T == 1.0:
        np.testing.assert_allclose(factors.free_energy(X), -factors.score_samples(X), rtol=1e-9)
        return
    gaps = X.copy()
    gaps[0, 0] = np.nan
    with pytest.raises(ValueError, match="temperature than 1 need every value"):
        factors.free_energy(gaps, T)
