"""KernelPCA: the peer's coordinates, and the two kernels that give PCA and classical scaling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_iris, make_circles
from sklearn.decomposition import KernelPCA as Peer

from groundstate import PCA, KernelPCA

IRIS = load_iris().data
NEW = IRIS[::7] + 0.1


POSITIVE = ("linear", "rbf", "poly", "cosine")
# a sigmoid is no positive kernel: its eigenvalue of largest modulus, which a range finder sees, is negative
PAIRS = [(k, s) for s in ("auto", "dense", "arpack", "randomized") for k in POSITIVE]
PAIRS += [("sigmoid", s) for s in ("auto", "dense", "arpack")]


@pytest.mark.parametrize(("kernel", "solver"), PAIRS)
def test_the_peers_coordinates(kernel: str, solver: str) -> None:
    settings = {"kernel": kernel, "gamma": 0.05, "coef0": 0.5}
    model = KernelPCA(3, eigen_solver=solver, iterated_power=40, random_state=0, **settings)
    peer = Peer(3, eigen_solver="dense", **settings).fit(IRIS)
    codes = model.fit_transform(IRIS)
    np.testing.assert_allclose(model.eigenvalues_, peer.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(codes), np.abs(peer.transform(IRIS)), atol=1e-6)
    np.testing.assert_allclose(np.abs(model.transform(NEW)), np.abs(peer.transform(NEW)), atol=1e-6)
    scaled = model.eigenvectors_ * np.sqrt(model.eigenvalues_)
    np.testing.assert_allclose(codes, scaled, atol=1e-7)


def test_two_kernels_that_are_known_by_other_names() -> None:
    linear, pca = KernelPCA(2).fit(IRIS), PCA(2).fit(IRIS)
    np.testing.assert_allclose(np.abs(linear.transform(NEW)), np.abs(pca.transform(NEW)), atol=1e-8)
    np.testing.assert_allclose(linear.energy(NEW), pca.energy(NEW), atol=1e-8)
    D = squareform(pdist(IRIS))
    scaling = KernelPCA(2, kernel="precomputed").fit_transform(-0.5 * D**2)
    np.testing.assert_allclose(np.abs(scaling), np.abs(pca.transform(IRIS)), atol=1e-8)


def test_back_from_codes() -> None:
    settings = {"kernel": "rbf", "gamma": 0.1, "fit_inverse_transform": True, "alpha": 0.01}
    model, peer = KernelPCA(5, **settings).fit(IRIS), Peer(5, **settings).fit(IRIS)
    np.testing.assert_allclose(model.inverse_transform(model.transform(NEW)),
                               peer.inverse_transform(peer.transform(NEW)), atol=1e-6)  # fmt: skip
    with pytest.raises(ValueError, match="precomputed"):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(np.eye(3))


def test_weights_are_repetitions() -> None:
    w = np.random.default_rng(0).integers(0, 3, len(IRIS))
    a = KernelPCA(3, kernel="rbf").fit(IRIS, sample_weight=w)
    b = KernelPCA(3, kernel="rbf").fit(np.repeat(IRIS, w, 0))
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(a.transform(NEW)), np.abs(b.transform(NEW)), atol=1e-7)


def test_landmarks_come_near_and_all_of_them_are_exact() -> None:
    X, _ = make_circles(300, factor=0.3, noise=0.05, random_state=0)
    whole = KernelPCA(2, kernel="rbf", gamma=1.0).fit(X)
    few = KernelPCA(2, kernel="rbf", gamma=1.0, n_landmarks=60, random_state=0).fit(X)
    assert len(few.X_fit_) == 60
    np.testing.assert_allclose(few.eigenvalues_, whole.eigenvalues_, rtol=0.01)
    np.testing.assert_allclose(few.energy(X), whole.energy(X), atol=0.01)
    full = KernelPCA(2, kernel="rbf", gamma=1.0, n_landmarks=300).fit(X)
    np.testing.assert_allclose(full.transform(X), whole.transform(X), atol=1e-8)


def test_all_axes_and_no_variance() -> None:
    assert KernelPCA().fit(IRIS).eigenvalues_.shape == (4,)
    assert KernelPCA(6, remove_zero_eig=True).fit(IRIS).eigenvalues_.shape == (4,)
    flat = KernelPCA(2, kernel="rbf").fit(np.ones((5, 2)))
    np.testing.assert_array_equal(flat.transform(np.ones((2, 2))), 0)


@pytest.mark.parametrize("solver", ["dense", "arpack", "randomized"])
@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_a_kernel_that_is_not_positive(solver: str, gamma: float) -> None:
    """The sigmoid has negative eigenvalues: few axes are the peer's, those below zero are refused."""
    X = np.random.default_rng(0).normal(size=(80, 5))
    given = {"kernel": "sigmoid", "gamma": gamma, "eigen_solver": solver, "random_state": 0}
    ours, theirs = KernelPCA(5, **given).fit(X), Peer(5, **given).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-7)
    with pytest.raises(ValueError, match="significant negative eigenvalues"):
        KernelPCA(**given).fit(X)


def test_fit_transform_is_transform() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[10:20] = X[:10]
    for given in ({"kernel": "rbf"}, {"kernel": "rbf", "n_landmarks": 20}, {"kernel": "poly"}):
        model = KernelPCA(3, random_state=0, **given)
        codes = model.fit_transform(X)
        np.testing.assert_allclose(codes, model.transform(X), atol=1e-8)
        weight = np.r_[0.0, np.full(59, 2.0)]
        np.testing.assert_allclose(
            model.fit_transform(X, sample_weight=weight), model.transform(X), atol=1e-8
        )


def test_going_back_has_the_gamma_of_the_rows() -> None:
    X = np.random.default_rng(0).random((30, 4))
    models = [kind(2, kernel="rbf", fit_inverse_transform=True) for kind in (KernelPCA, Peer)]
    ours, theirs = (model.inverse_transform(model.fit_transform(X)) for model in models)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_equal_rows_and_single_precision_keep_their_shapes() -> None:
    X = np.ones((3, 2))
    assert KernelPCA(2).fit_transform(X).shape == (3, 2)
    assert KernelPCA(2, remove_zero_eig=True).fit_transform(X).shape == (3, 0)
    rows = np.random.default_rng(0).normal(size=(30, 3))
    single = KernelPCA().fit_transform(rows.astype(np.float32))
    assert single.shape == KernelPCA().fit_transform(rows).shape == (30, 3)
