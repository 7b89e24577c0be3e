"""GaussianProcessClassifier: parity with scikit-learn, gradients, weights, kernels, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process import kernels as theirs

import groundstate
from groundstate import GaussianProcessClassifier
from groundstate.math import kernels

MOONS = make_moons(60, noise=0.25, random_state=0)
IRIS = tuple(v[::2] for v in load_iris(return_X_y=True))
WIDE = make_classification(70, 6, n_informative=4, random_state=0)
KERNELS = [
    None,
    1.0 * theirs.RBF(1.0),
    theirs.Matern(1.0, nu=1.5) + theirs.WhiteKernel(0.1),
    theirs.ConstantKernel(0.5) * theirs.RationalQuadratic(),
]


@pytest.mark.parametrize("rows", [MOONS, IRIS, WIDE], ids=["moons", "iris", "wide"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_scikit_learn_with_the_kernel_as_it_is(rows, kernel) -> None:
    X, y = rows
    ours = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    peer = Peer(kernel, optimizer=None).fit(X, y)
    value = peer.log_marginal_likelihood_value_
    np.testing.assert_allclose(ours.log_marginal_likelihood_value_, value, rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    if len(ours.classes_) == 2:
        for mine, other in zip(
            ours.latent_mean_and_variance(X), peer.latent_mean_and_variance(X), strict=True
        ):
            np.testing.assert_allclose(mine, other, atol=1e-8)


@pytest.mark.parametrize("rows", [MOONS, IRIS], ids=["moons", "iris"])
def test_learned_kernels_are_as_likely_as_scikit_learn_s(rows) -> None:
    X, y = rows
    kernel = 1.0 * theirs.RBF(1.0)
    ours = GaussianProcessClassifier(kernel).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = Peer(kernel).fit(X, y)
    assert ours.log_marginal_likelihood_value_ >= peer.log_marginal_likelihood_value_ - 1e-6
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-3)


def test_pairs_of_classes_vote_as_in_scikit_learn() -> None:
    X, y = IRIS
    ours = GaussianProcessClassifier(multi_class="one_vs_one").fit(X, y)
    peer = Peer(multi_class="one_vs_one").fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    np.testing.assert_allclose(
        ours.log_marginal_likelihood_value_, peer.log_marginal_likelihood_value_, rtol=1e-9
    )
    with pytest.raises(ValueError, match="one_vs_rest mode instead"):
        ours.predict_proba(X)


def test_the_gradient_is_that_of_the_likelihood() -> None:
    X, y = MOONS
    model = GaussianProcessClassifier(kernels.Constant() * kernels.RBF()).fit(X, y)
    peer = Peer(1.0 * theirs.RBF(1.0), optimizer=None).fit(X, y)
    theta = np.array([0.3, -0.2])
    value, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
    expected, also = peer.log_marginal_likelihood(theta, eval_gradient=True)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(slope, also, rtol=1e-6)
    many = GaussianProcessClassifier(kernels.Constant() * kernels.RBF(), optimizer=None).fit(*IRIS)
    other = Peer(1.0 * theirs.RBF(1.0), optimizer=None).fit(*IRIS)
    for at in (theta, np.tile(theta, 3)):
        np.testing.assert_allclose(
            many.log_marginal_likelihood(at), other.log_marginal_likelihood(at), rtol=1e-9
        )


@pytest.mark.parametrize("kernel", [None, kernels.Constant() * kernels.RBF()])
@pytest.mark.parametrize("rows", [MOONS, IRIS], ids=["moons", "iris"])
def test_weights_are_repetitions_in_any_order(rows, kernel) -> None:
    X, y = rows
    weight = np.arange(len(X)) % 3
    index = np.random.default_rng(0).permutation(np.repeat(np.arange(len(X)), weight))
    weighted = GaussianProcessClassifier(kernel).fit(X, y, sample_weight=weight)
    repeated = GaussianProcessClassifier(kernel).fit(X[index], y[index])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)
    peer = Peer(1.0 * theirs.RBF(1.0), optimizer=None).fit(X[index], y[index])
    if kernel is None:  # one row of weight 2 has the evidence of two rows
        np.testing.assert_allclose(
            weighted.log_marginal_likelihood_value_, peer.log_marginal_likelihood_value_, rtol=1e-8
        )


def test_a_kernel_with_noise_of_its_own_repeats_rows() -> None:
    X, y = MOONS
    kernel = kernels.RBF() + kernels.White(0.2)
    weight = np.arange(len(X)) % 3
    index = np.repeat(np.arange(len(X)), weight)
    weighted = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y, sample_weight=weight)
    repeated = GaussianProcessClassifier(kernel, optimizer=None).fit(X[index], y[index])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match="whole numbers"):
        GaussianProcessClassifier(kernel).fit(X, y, sample_weight=weight + 0.5)


def test_restarts_are_seeded_and_never_worse() -> None:
    X, y = MOONS
    kernel = kernels.Constant(1.0, (1e-2, 1e3)) * kernels.RBF(10.0, (1e-2, 1e2))
    plain = GaussianProcessClassifier(kernel).fit(X, y)
    more = [
        GaussianProcessClassifier(kernel, n_restarts_optimizer=2, random_state=0).fit(X, y)
        for _ in range(2)
    ]
    values = [model.log_marginal_likelihood_value_ for model in more]
    assert values[0] == values[1] >= plain.log_marginal_likelihood_value_ - 1e-9


def test_saved_models_know_their_likelihood(tmp_path) -> None:
    model = GaussianProcessClassifier(kernels.Constant() * kernels.RBF()).fit(*IRIS)
    loaded = groundstate.load(model.save(tmp_path / "m.gs"))
    theta = np.array([0.1, 0.2])
    assert loaded.log_marginal_likelihood(theta) == model.log_marginal_likelihood(theta)
    assert loaded.kernel_ == model.kernel_ and len(model.kernel_) == 3


def test_bad_input_is_named() -> None:
    X, y = MOONS
    with pytest.raises(TypeError, match="kernel must be"):
        GaussianProcessClassifier(kernel=3).fit(X, y)
    with pytest.raises(ValueError, match="multi_class"):
        GaussianProcessClassifier(multi_class="all").fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        GaussianProcessClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="two classes only"):
        GaussianProcessClassifier().fit(*IRIS).latent_mean_and_variance(IRIS[0])
    with pytest.raises(ValueError, match="Shape of theta"):
        GaussianProcessClassifier().fit(X, y).log_marginal_likelihood([1.0, 2.0, 3.0])
