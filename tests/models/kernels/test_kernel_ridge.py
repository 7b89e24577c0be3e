"""Kernel ridge regression: scikit-learn, the Gaussian process, paths, and kernels on any set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge as Peer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import groundstate
from groundstate import (
    SVC,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelRegressor,
    KernelRidge,
    Ridge,
)
from groundstate.errors import Unreliable
from groundstate.learn.solvers.gp.kernel_ridge import KernelRidgePath
from groundstate.math.kernels import RBF, BagOfWords, OnObjects, Polynomial, Spectrum
from groundstate.math.kernels.feature_maps import PolynomialKernelMap

R = np.random.default_rng(0)
X, Z = R.uniform(0, 1, (40, 3)), R.uniform(0, 1, (7, 3))
Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] ** 2 + 0.1 * R.normal(size=40)])
TEXTS = ("aaab", "aaba", "abaa", "bbba", "bbab", "babb", "aaaa", "bbbb")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 0.3, "alpha": 1e-3},
        {"kernel": "poly", "degree": 2},
        {"kernel": "polynomial", "degree": 2.5},
        {"kernel": "sigmoid", "coef0": 0.1},
        {"kernel": "laplacian"},
        {"kernel": "cosine"},
        {"kernel": "chi2", "gamma": 0.7},
        {"kernel": "rbf", "alpha": [0.1, 2.0]},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn(settings: dict[str, Any], weighted: bool) -> None:
    weight = R.uniform(0.1, 3.0, 40) if weighted else None
    ours = KernelRidge(**settings).fit(X, Y, sample_weight=weight)
    peer = Peer(**settings).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(Z), peer.predict(Z), atol=1e-9)
    if not weighted:
        np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, atol=1e-8)
        np.testing.assert_array_equal(ours.X_fit_, peer.X_fit_)


def test_functions_and_given_values() -> None:
    def similar(a: np.ndarray, b: np.ndarray, power: float = 2.0) -> float:
        return float(np.exp(-(np.abs(a - b) ** power).sum()))

    how = {"kernel": similar, "kernel_params": {"power": 1.5}}
    ours, peer = KernelRidge(**how).fit(X, Y[:, 0]), Peer(**how).fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.predict(Z), peer.predict(Z), atol=1e-10)
    given = KernelRidge(kernel="precomputed").fit(RBF(1.0)(X), Y[:, 0])
    direct = KernelRidge(kernel=RBF(1.0)).fit(X, Y[:, 0])
    np.testing.assert_allclose(given.predict(RBF(1.0)(Z, X)), direct.predict(Z), atol=1e-10)
    with pytest.raises(ValueError, match="square matrix"):
        KernelRidge(kernel="precomputed").fit(RBF(1.0)(X, Z), Y[:, 0])
    with pytest.raises(ValueError, match="one for each of the 2 targets"):
        KernelRidge([1.0, 2.0, 3.0]).fit(X, Y)


def test_the_mean_of_the_gaussian_process() -> None:
    ridge = KernelRidge(0.2, kernel=RBF(0.5)).fit(X, Y)
    process = GaussianProcessRegressor(RBF(0.5), alpha=0.2, optimizer=None).fit(X, Y)
    np.testing.assert_allclose(ridge.predict(Z), process.predict(Z), atol=1e-10)


def test_the_linear_kernel_is_ridge_and_without_penalty_it_interpolates() -> None:
    line = KernelRidge(0.5).fit(X, Y).predict(Z)
    np.testing.assert_allclose(line, Ridge(0.5, fit_intercept=False).fit(X, Y).predict(Z))
    free = KernelRidge(0.0, kernel=RBF(0.3)).fit(X[:10], Y[:10])
    np.testing.assert_allclose(free.predict(X[:10]), Y[:10], atol=1e-4)
    singular = KernelRidge(0.0).fit(X, Y)  # of least norm
    least = Ridge(1e-10, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(singular.predict(Z), least.predict(Z), atol=1e-6)


def test_weights_are_repetitions_to_the_bit() -> None:
    weight = np.arange(40) % 3
    index = R.permutation(np.repeat(np.arange(40), weight))
    a = KernelRidge(0.1, kernel="rbf").fit(X, Y, sample_weight=weight)
    b = KernelRidge(0.1, kernel="rbf").fit(X[index], Y[index])
    np.testing.assert_array_equal(a.predict(Z), b.predict(Z))


def test_strengths_and_folds_from_one_decomposition() -> None:
    K, alphas = torch.from_numpy(RBF(0.5)(X)), [1e-3, 0.1, 3.0]
    path = KernelRidgePath(K, torch.from_numpy(Y))
    stack = path.coefficients(alphas)
    folds = [held for _, held in KFold(5).split(X)]
    for alpha, a in zip(alphas, stack, strict=True):
        alone = KernelRidge(alpha, kernel=RBF(0.5)).fit(X, Y)
        np.testing.assert_allclose(a, alone.dual_coef_, rtol=1e-6, atol=1e-6)
        wrong = np.empty_like(Y)
        for held in folds:
            kept = np.setdiff1d(np.arange(40), held)
            fitted = KernelRidge(alpha, kernel=RBF(0.5)).fit(X[kept], Y[kept])
            wrong[held] = Y[held] - fitted.predict(X[held])
        np.testing.assert_allclose(path.left_out(alpha, folds), wrong, atol=1e-6)
    one_by_one = [np.array([i]) for i in range(40)]
    np.testing.assert_allclose(path.left_out(0.1), path.left_out(0.1, one_by_one), atol=1e-9)
    errors = path.errors(alphas, folds)
    assert errors.shape == (3,) and errors.argmin() == 1


@pytest.mark.parametrize(
    "features",
    [
        Nystroem("rbf", gamma=2.0, n_components=40, random_state=0),
        Nystroem(
            lambda a, b: float(RBF(0.5)(a[None], b[None])[0, 0]), n_components=40, random_state=0
        ),
        RBFSampler(gamma=2.0, n_components=3000, random_state=0),
    ],
    ids=["nystroem", "nystroem of our kernel", "random features"],
)
def test_features_of_scikit_learn_stand_for_the_kernel(features: Any) -> None:
    full = KernelRidge(0.1, kernel=RBF(gamma=2.0)).fit(X, Y[:, 0])
    few = make_pipeline(features, Ridge(0.1, fit_intercept=False)).fit(X, Y[:, 0])
    assert np.abs(few.predict(Z) - full.predict(Z)).max() < 0.1


def test_a_feature_map_written_out_is_its_kernel() -> None:
    phi = PolynomialKernelMap(2, 1.0)
    plain = Ridge(0.1, fit_intercept=False).fit(phi(X), Y).predict(phi(Z))
    kernel = KernelRidge(0.1, kernel=Polynomial(2, 1.0)).fit(X, Y).predict(Z)
    np.testing.assert_allclose(plain, kernel, atol=1e-8)


@pytest.mark.parametrize("function", [Spectrum(2), BagOfWords()], ids=str)
def test_texts_enter_every_kernel_method(function: Any) -> None:
    words = tuple(" ".join(3 * letter for letter in t) for t in TEXTS)
    texts = TEXTS if isinstance(function, Spectrum) else words
    kernel = OnObjects(texts, function)
    at, label = np.arange(6)[:, None], np.array([0, 0, 0, 1, 1, 1])
    new, K = [[6], [7]], function(texts[:6])
    np.testing.assert_array_equal(kernel(at), K)
    np.testing.assert_array_equal(kernel.diag(at), np.diag(K))
    for model in (SVC(kernel=kernel), KernelClassifier(kernel)):
        assert model.fit(at, label).predict(new).tolist() == [0, 1]
    for model in (KernelRidge(0.1, kernel=kernel), KernelRegressor(kernel)):
        low, high = model.fit(at, label).predict(new)
        assert low < 0.5 < high
    process = GaussianProcessRegressor(1.0 * kernel, alpha=0.1).fit(at, label - 0.5)
    mean, std = process.predict(new, return_std=True)
    assert mean[0] < 0 < mean[1] and (std > 0).all()


def test_numbers_of_objects_are_checked() -> None:
    kernel = OnObjects(TEXTS, Spectrum(2))
    with pytest.raises(ValueError, match="there are 8 objects, got number 9"):
        kernel(np.array([[9.0]]))
    with pytest.raises(ValueError, match="one number of an object"):
        kernel(np.zeros((2, 2)))
    by_hand = OnObjects(
        [{1, 2}, {2, 3}], lambda A, B: np.array([[len(a & b) for b in B] for a in A])
    )
    assert by_hand(np.array([[0.0], [1.0]])).tolist() == [[2.0, 1.0], [1.0, 2.0]]
    assert by_hand.diag(np.array([[0.0], [1.0]])).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "kernel", ["laplacian", "poly", OnObjects(TEXTS, Spectrum(2))], ids=["named", "poly", "texts"]
)
def test_saved_with_its_kernel(kernel: Any, tmp_path: Path) -> None:
    rows = np.arange(6)[:, None] if isinstance(kernel, OnObjects) else X[:6]
    model = KernelRidge(0.1, kernel=kernel).fit(rows, Y[:6, 0])
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


def test_sparse_rows_are_rows() -> None:
    rows = np.where(X > 0.5, X, 0.0)
    for kernel in ("linear", "rbf", "laplacian"):
        model = KernelRidge(0.1, kernel=kernel)
        dense = model.fit(rows, Y).predict(Z)
        np.testing.assert_array_equal(model.fit(csr_matrix(rows), Y).predict(csr_matrix(Z)), dense)


def test_sums_that_cancel_are_told() -> None:
    noise, far = R.normal(size=40), 1e6 * X
    exact = Ridge(0.01, fit_intercept=False).fit(far, noise).predict(far)
    with pytest.warns(Unreliable, match="scale the inputs or raise alpha"):
        lost = KernelRidge(0.01).fit(far, noise)
    assert np.abs(lost.predict(far) - exact).max() > 0.01 * np.abs(noise).max()
    exact = Ridge(1e10, fit_intercept=False).fit(far, noise).predict(far)
    np.testing.assert_allclose(KernelRidge(1e10).fit(far, noise).predict(far), exact, atol=1e-6)
