"""Metrics learned from pairs: numbers of another library, conditions of an optimum, bad input."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neighbors import NeighborhoodComponentsAnalysis as PeerNCA
from sklearn.pipeline import make_pipeline

import groundstate
from groundstate import ITML, LMNN, MMC, NeighborhoodComponentsAnalysis
from groundstate.errors import DataError, NotConverged, ShapeError
from groundstate.learn.solvers.metrics.neighborhood import Neighbors

RNG = np.random.default_rng(0)
Y = np.arange(40) % 2
X = np.column_stack([Y + 0.3 * RNG.normal(size=40), 2 * RNG.normal(size=40), RNG.normal(size=40)])
A, B = RNG.integers(40, size=(2, 60))
A, B = A[A != B], B[A != B]
PAIRS, KIND = np.stack([X[A], X[B]], 1), np.where(Y[A] == Y[B], 1, -1)
GAP = PAIRS[:, 0] - PAIRS[:, 1]


def ratio(M: Any) -> float:
    """Distances of different pairs in units of the root mean square of similar ones."""
    d2 = np.einsum("ni,ij,nj->n", GAP, M, GAP)
    return float(np.sqrt(d2[KIND < 0]).sum() / np.sqrt(d2[KIND > 0].sum()))


def test_information_theoretic_is_that_of_metric_learn() -> None:
    # metric_learn 0.7 with sklearn 1.9: ITML(max_iter=200).fit(PAIRS, KIND).get_mahalanobis_matrix()
    expected = [
        [4.12273698, -0.00871136, -0.06214365],
        [-0.00871136, 0.01998937, -0.01417293],
        [-0.06214365, -0.01417293, 0.16051204],
    ]
    model = ITML(max_iter=200).fit_pairs(PAIRS, KIND)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), expected, atol=1e-8)
    np.testing.assert_allclose(model.bounds_, [0.78504156, 6.15916214], rtol=1e-8)


def test_information_theoretic_keeps_the_prior_where_the_bounds_hold() -> None:
    prior = np.diag([2.0, 1.0, 0.5])
    model = ITML(prior=prior, bounds=(1e6, 1e-6)).fit_pairs(PAIRS, KIND)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), prior, atol=1e-12)


def test_information_theoretic_meets_bounds_without_slack() -> None:
    model = ITML(np.inf, bounds=(1.0, 2.0), tol=1e-9, max_iter=10_000)
    M = model.fit_pairs(PAIRS[[0, 1, 2, 3, 4, 5]], [1, -1, 1, 1, -1, 1]).get_mahalanobis_matrix()
    d2 = np.einsum("ni,ij,nj->n", GAP[:6], M, GAP[:6])
    assert (d2[[0, 2, 3, 5]] <= 1 + 1e-5).all() and (d2[[1, 4]] >= 2 - 1e-5).all()


def test_clustering_metric_is_optimal() -> None:
    M = MMC(tol=1e-9, max_iter=1000).fit_pairs(PAIRS, KIND).get_mahalanobis_matrix()
    similar, different = GAP[KIND > 0], GAP[KIND < 0]
    S = similar.T @ similar
    assert (M * S).sum() == pytest.approx(1, rel=1e-5)  # the bound is used
    length = np.sqrt(np.einsum("ni,ij,nj->n", different, M, different))
    pull = (different / length[:, None]).T @ different / 2  # gradient of the objective in M
    price = (pull * M).sum()  # its multiplier
    slope = price * S - pull
    assert np.linalg.eigvalsh(slope)[0] > -1e-4 * np.abs(slope).max()  # no direction gains
    assert abs((slope * M).sum()) < 1e-6 * price
    # metric_learn 0.7: 27.92605688 (100 steps), diagonal 26.74148243
    assert ratio(M) >= 27.926538
    diagonal = MMC(diagonal=True).fit_pairs(PAIRS, KIND).get_mahalanobis_matrix()
    assert ratio(diagonal) == pytest.approx(26.74148243, abs=1e-7)
    assert np.count_nonzero(diagonal - np.diag(np.diagonal(diagonal))) == 0


def test_neighbourhood_objective_and_gradient_are_those_of_scikit_learn() -> None:
    peer = PeerNCA(2)
    peer.n_iter_, peer.callback, peer.verbose = 0, None, 0
    J = RNG.normal(size=(2, 3))
    same = Y[:, None] == Y[None]
    value, slope = peer._loss_grad_lbfgs(J.ravel(), X, same, -1.0)
    ours = Neighbors(torch.from_numpy(X), torch.from_numpy(Y), torch.ones(40, dtype=torch.float64))
    found, gradient = ours(J.ravel())
    assert found == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(gradient, slope, atol=1e-8)


@pytest.mark.parametrize("name", ["ITML", "MMC"])
def test_triplets_are_two_pairs_each(name: str) -> None:
    triplets = np.stack([X[:-2], X[2:], X[1:-1]], 1)
    pairs = np.concatenate([triplets[:, [0, 1]], triplets[:, [0, 2]]])
    kinds = np.repeat([1, -1], len(triplets))
    model = getattr(groundstate, name)()
    one = model.fit_triplets(triplets).get_mahalanobis_matrix()
    np.testing.assert_allclose(one, model.fit_pairs(pairs, kinds).get_mahalanobis_matrix())


@pytest.mark.parametrize(
    "model",
    [
        ITML(random_state=0),
        MMC(random_state=0),
        LMNN(),
        NeighborhoodComponentsAnalysis(init="lda"),
    ],
)
@pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
def test_neighbours_of_wines_are_better(model: Any) -> None:
    rows, kind = load_wine(return_X_y=True)
    plain = cross_val_score(KNeighborsClassifier(3), rows, kind).mean()
    learned = cross_val_score(make_pipeline(model, KNeighborsClassifier(3)), rows, kind).mean()
    assert learned >= plain


@pytest.mark.parametrize("name", ["ITML", "MMC"])
def test_what_is_no_pair_is_named(name: str) -> None:
    model = getattr(groundstate, name)()
    with pytest.raises(ShapeError, match="n_pairs, 2, n_features"):
        model.fit_pairs(X, Y)
    with pytest.raises(ShapeError, match="a 1 or a -1"):
        model.fit_pairs(PAIRS, np.arange(len(PAIRS)))
    with pytest.raises(DataError, match="no pair of different rows that belong together"):
        model.fit_pairs(PAIRS, -np.ones(len(PAIRS)))
    with pytest.raises(DataError, match="entry 3 holds NaN"):
        wrong = PAIRS.copy()
        wrong[3, 1, 0] = np.nan
        model.fit_pairs(wrong, KIND)
    with pytest.raises(ValueError, match="symmetric positive definite"):
        parameter = "prior" if name == "ITML" else "init"
        model.set_params(**{parameter: -np.eye(3)}).fit_pairs(PAIRS, KIND)


def test_too_few_passes_are_said() -> None:
    with pytest.warns(NotConverged, match="max_iter=1 passes"):
        ITML(max_iter=1).fit_pairs(PAIRS, KIND)
    with pytest.raises(ValueError, match="two finite numbers"):
        ITML(bounds=(1.0, 2.0, 3.0)).fit_pairs(PAIRS, KIND)
