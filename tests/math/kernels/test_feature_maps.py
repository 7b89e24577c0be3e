"""Feature maps written out, and kernels on texts."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import RidgeClassifier

from groundstate import SVC
from groundstate.math.kernels import RBF, BagOfWords, Polynomial, Spectrum, check_psd
from groundstate.math.kernels.feature_maps import Lift, PolynomialKernelMap, RBFTaylor

R = np.random.default_rng(0)
X, Z = R.normal(size=(6, 3)), R.normal(size=(4, 3))
TEXTS = ["the cat sat on the mat", "a dog sat", "THE mat, the dog!", "", "cats and dogs and cats"]


@pytest.mark.parametrize(
    ("degree", "coef0", "gamma"), [(2, 1.0, 1.0), (3, 0.5, 0.3), (4, 0.0, 1.0)]
)
def test_polynomial_map(degree: int, coef0: float, gamma: float) -> None:
    phi = PolynomialKernelMap(degree, coef0, gamma)
    expected = Polynomial(degree, coef0, gamma)(X, Z)
    np.testing.assert_allclose(phi(X) @ phi(Z).T, expected, atol=1e-12 * np.abs(expected).max())


def test_polynomial_map_of_degree_two_in_the_known_order() -> None:
    a, b, c = 2.0, 3.0, 5.0
    root = math.sqrt(2 * c)
    found = PolynomialKernelMap(2, c)([[a, b]])[0]
    np.testing.assert_allclose(found, [a * a, b * b, math.sqrt(2) * a * b, root * a, root * b, c])
    with pytest.raises(ValueError, match="must not be negative"):
        PolynomialKernelMap(2, -1.0)


def test_taylor_error_falls_factorially() -> None:
    small, other = 0.5 * X, 0.5 * Z
    exact = RBF(gamma=0.5)(small, other)
    errors = [
        np.abs(RBFTaylor(k, 0.5)(small) @ RBFTaylor(k, 0.5)(other).T - exact).max()
        for k in (0, 2, 4, 8, 12)
    ]
    assert all(later < earlier / 5 for earlier, later in pairwise(errors))
    assert errors[-1] < 1e-10


def test_a_lift_makes_exclusive_or_separable() -> None:
    rows = np.array([[1.0, 1], [-1, -1], [1, -1], [-1, 1]])
    labels = [1, 1, -1, -1]
    lift = Lift(lambda X: np.column_stack([X, X[:, 0] * X[:, 1]]))
    a, b = rows[0], rows[2]
    assert lift.kernel([a], [b])[0, 0] == a[0] * b[0] + a[1] * b[1] + a[0] * a[1] * b[0] * b[1]
    assert RidgeClassifier().fit(rows, labels).score(rows, labels) <= 0.75
    assert SVC(kernel="linear", C=np.inf).fit(lift(rows), labels).score(lift(rows), labels) == 1.0


def test_words_are_counted_as_scikit_learn_does() -> None:
    counts = CountVectorizer().fit_transform(TEXTS)
    expected = (counts @ counts.T).toarray()
    np.testing.assert_array_equal(BagOfWords()(TEXTS), expected)
    np.testing.assert_array_equal(BagOfWords().diag(TEXTS), np.diag(expected))
    np.testing.assert_array_equal(BagOfWords()(TEXTS[:2], TEXTS[2:]), expected[:2, 2:])


def test_spectrum_is_an_inner_product_of_counts() -> None:
    counts = CountVectorizer(analyzer="char", ngram_range=(3, 3), lowercase=False)
    features = counts.fit_transform(TEXTS)
    np.testing.assert_array_equal(Spectrum(3)(TEXTS), (features @ features.T).toarray())
    with pytest.raises(ValueError, match="at least one letter"):
        Spectrum(0)


def test_texts_are_classified_by_their_gram_matrix() -> None:
    texts = ["aaab", "aaba", "abaa", "bbba", "bbab", "babb"]
    K = Spectrum(2)(texts)
    model = SVC(kernel="precomputed", C=10.0).fit(K, [0, 0, 0, 1, 1, 1])
    assert model.predict(Spectrum(2)(["aaaa", "bbbb"], texts)).tolist() == [0, 1]


def test_check_psd() -> None:
    assert check_psd(RBF(1.0)(X)).is_psd and check_psd(BagOfWords()(TEXTS)).is_psd
    report = check_psd([[1.0, 2.0], [2.0, 1.0]])
    assert not report.is_psd and report.least == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="square"):
        check_psd(np.ones((2, 3)))
