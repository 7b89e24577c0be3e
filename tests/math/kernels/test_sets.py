"""Kernels on any set: strings, lists of tokens, sets of vectors; random and exact feature maps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.feature_extraction.text import CountVectorizer

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.kernels import (
    RBF,
    BagOfWords,
    FourierFeatures,
    Laplace,
    Lift,
    Linear,
    Matern,
    Periodic,
    SetKernel,
    Spectrum,
    TaylorFeatures,
    check_kernel,
)

RNG = np.random.default_rng(0)
BOOKS = [
    "call me ishmael some years ago never mind how long precisely",
    "it was the best of times it was the worst of times",
    "some years ago it was the age of wisdom",
]
SETS = [RNG.normal(size=(n, 2)) for n in (3, 1, 5, 4)]


def test_words_are_counted_as_scikit_learn_counts_them() -> None:
    counts = CountVectorizer().fit_transform(BOOKS).toarray()
    np.testing.assert_array_equal(BagOfWords()(BOOKS), counts @ counts.T)
    tokens = [text.split() for text in BOOKS]
    np.testing.assert_array_equal(BagOfWords()(tokens), BagOfWords()(BOOKS))
    letters = CountVectorizer(analyzer="char", ngram_range=(3, 3)).fit_transform(BOOKS).toarray()
    np.testing.assert_array_equal(Spectrum(3)(BOOKS), letters @ letters.T)
    pairs = CountVectorizer(ngram_range=(2, 2)).fit_transform(BOOKS).toarray()
    np.testing.assert_array_equal(Spectrum(2)(tokens), pairs @ pairs.T)


@pytest.mark.parametrize("kernel", [BagOfWords(), Spectrum(2), BagOfWords(normalize=True)])
def test_texts_give_inner_products(kernel: Any) -> None:
    assert check_kernel(kernel, BOOKS).is_psd
    np.testing.assert_allclose(np.diagonal(kernel(BOOKS)), kernel.diag(BOOKS), atol=1e-12)
    if kernel.normalize:
        np.testing.assert_allclose(kernel.diag(BOOKS), 1.0)
        counts = BagOfWords()(BOOKS)
        size = np.sqrt(np.diagonal(counts))
        np.testing.assert_allclose(kernel(BOOKS), counts / size[:, None] / size, atol=1e-12)
        assert kernel([""], BOOKS).tolist() == [[0.0, 0.0, 0.0]]


def test_sets_are_compared_by_their_mean_embeddings() -> None:
    K = SetKernel(RBF(1.0))(SETS)
    by_hand = [[RBF(1.0)(a, b).mean() for b in SETS] for a in SETS]
    np.testing.assert_allclose(K, by_hand, atol=1e-12)
    np.testing.assert_allclose(SetKernel(RBF(1.0))(SETS[:2], SETS), K[:2], atol=1e-12)
    assert check_kernel(SetKernel(RBF(1.0)), SETS).is_psd
    means = np.stack([a.mean(0) for a in SETS])
    np.testing.assert_allclose(SetKernel(Linear())(SETS), means @ means.T, atol=1e-12)
    normalised = SetKernel(RBF(1.0), normalize=True)
    np.testing.assert_allclose(np.diagonal(normalised(SETS)), 1.0)
    np.testing.assert_allclose(SetKernel(RBF(1.0)).diag(SETS), np.diagonal(K), atol=1e-12)
    tensors = SetKernel(RBF(1.0))([torch.from_numpy(a) for a in SETS])
    assert isinstance(tensors, torch.Tensor)
    np.testing.assert_allclose(tensors.numpy(), K, atol=1e-12)
    with pytest.raises(ShapeError, match="at least one vector each"):
        SetKernel(RBF(1.0))([np.zeros((0, 2))])
    with pytest.raises(ShapeError, match="several widths"):
        SetKernel(RBF(1.0))([np.zeros((1, 2)), np.zeros((1, 3))])


def test_a_kernel_is_a_similarity() -> None:
    X = RNG.normal(size=(30, 2))
    report = check_kernel(RBF(0.5), X)
    assert report.is_psd and report.least > 0  # distinct points: full rank
    assert np.linalg.matrix_rank(RBF(0.5)(X)) == 30
    assert not check_kernel(lambda a, b: -cdist(a, b), X).is_psd
    assert not check_kernel(lambda a, b: a @ b.T + np.tri(len(a)), X).is_psd  # not symmetric
    assert check_kernel(
        lambda a, b: [[float(len({*s} & {*t})) for t in b] for s in a], BOOKS
    ).is_psd
    with pytest.raises(ShapeError, match=r"must return a matrix \(30, 30\)"):
        check_kernel(lambda a, b: 1.0, X)


def test_lift_of_the_exclusive_or() -> None:
    lift = Lift(lambda X: np.column_stack([X, X[:, 0] * X[:, 1]]))
    X, Y = RNG.normal(size=(5, 2)), RNG.normal(size=(4, 2))
    by_hand = X @ Y.T + np.outer(X[:, 0] * X[:, 1], Y[:, 0] * Y[:, 1])
    np.testing.assert_allclose(lift.kernel(X, Y), by_hand, atol=1e-12)
    corners = np.array([[1.0, 1], [-1, -1], [1, -1], [-1, 1]])
    assert (np.sign(lift(corners)[:, 2]) == [1, 1, -1, -1]).all()  # a plane separates


def test_series_of_the_gaussian_kernel_converges() -> None:
    X = RNG.uniform(-1, 1, (20, 2))
    errors = [
        np.abs(TaylorFeatures(k, 0.5)(X) @ TaylorFeatures(k, 0.5)(X).T - RBF(1.0)(X)).max()
        for k in range(16)
    ]
    assert all(a > b for a, b in pairwise(errors[:12])) and errors[-1] < 1e-8
    x = torch.from_numpy(X[:3]).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: TaylorFeatures(3, 0.5)(a), (x,))


@pytest.mark.parametrize("kernel", [RBF(0.8), RBF((0.5, 2.0)), Laplace(1.5), Matern(1.2, nu=2.5)])
def test_random_waves_approach_the_kernel_as_one_over_root_d(kernel: Any) -> None:
    X = RNG.normal(size=(40, 2))

    def error(d: int) -> float:
        found = []
        for seed in range(8):
            phi = FourierFeatures(kernel, d, seed)(X)
            found.append(np.sqrt(((phi @ phi.T - kernel(X)) ** 2).mean()))
        return float(np.mean(found))

    few, many = error(100), error(10_000)
    assert many < 0.02 and 6 < few / many < 16  # √100 = 10
    assert FourierFeatures(kernel, 6, 0)(X).shape == (40, 6)


def test_waves_are_the_same_from_call_to_call() -> None:
    X = RNG.normal(size=(5, 3))
    phi = FourierFeatures(RBF(1.0), 10)
    np.testing.assert_array_equal(phi(X), phi(X))
    tensor = phi(torch.from_numpy(X).requires_grad_())
    assert tensor.requires_grad
    np.testing.assert_allclose(tensor.detach().numpy(), phi(X), atol=1e-15)
    with pytest.raises(ValueError, match="even and at least 2, got 3"):
        FourierFeatures(RBF(1.0), 3)
    with pytest.raises(Unsupported, match="choose RBF, Laplacian or Matern"):
        FourierFeatures(Periodic())
