"""The perceptron: its updates, its bound on the mistakes, and its relatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.linear_model import Perceptron as Peer

import groundstate
from groundstate import Perceptron
from groundstate.energy import LinearEnergy
from groundstate.learn import OnlinePerceptron, fit
from groundstate.learn import Perceptron as Rule
from groundstate.learn.solvers.svm.smo.rows import canonical_rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def separable(k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    centers = [[0.0, 0.0], [6.0, 5.0], [-6.0, 5.0]][:k]
    return make_blobs(90, centers=centers, cluster_std=0.8, random_state=0)


def one_visit(energy: LinearEnergy, x: list[float], y: int, eta: float) -> None:
    data = {"x": torch.tensor([x], dtype=torch.float64), "y": torch.tensor([y])}
    fit(energy, data, Rule(), OnlinePerceptron(eta=eta, max_iter=1))


def test_a_mistake_moves_both_energies_by_the_squared_length() -> None:
    energy = LinearEnergy(2, 3).double()
    energy.W.data.copy_(torch.tensor([[0.5, -1.0], [1.0, 1.0], [0.0, 0.0]]))
    energy.b.data.copy_(torch.tensor([0.3, 0.0, 0.0]))
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    before = energy.table("y", x=x)[0].detach()
    assert float(before[0]) == pytest.approx(1.2)
    one_visit(energy, [1.0, 2.0], 0, eta=0.1)
    after = energy.table("y", x=x)[0].detach()
    np.testing.assert_allclose((after - before).numpy(), [-0.6, 0.6, 0.0], atol=1e-12)
    assert float(after[0]) == pytest.approx(0.6)


def test_two_classes_move_their_difference_by_one_step() -> None:
    energy = LinearEnergy(2, 2).double()
    one_visit(energy, [1.0, 2.0], 1, eta=1.0)  # at zero the first class wins
    W, b = energy.W.detach().numpy(), energy.b.detach().numpy()
    np.testing.assert_allclose(W[1] - W[0], [1.0, 2.0])
    assert b[1] - b[0] == 1.0


def test_a_right_answer_teaches_nothing() -> None:
    energy = LinearEnergy(2, 2).double()
    one_visit(energy, [1.0, 2.0], 0, eta=1.0)
    assert not energy.W.detach().any() and not energy.b.detach().any()


@pytest.mark.parametrize("seed", range(4))
def test_mistakes_stay_below_the_bound(seed: int) -> None:
    X, y = separable()
    model = Perceptron(tol=None, random_state=seed).fit(X, y)
    assert model.converged_ and model.score(X, y) == 1.0
    rows = np.column_stack([X, np.ones(len(X))])
    best = groundstate.SVC(kernel="linear", C=np.inf).fit(X, y)
    w = np.r_[best.coef_[0], best.intercept_]
    gamma = (np.where(y == 1, 1, -1) * (rows @ w)).min() / np.linalg.norm(w)
    assert 0 < model.n_mistakes_ <= (np.linalg.norm(rows, axis=1).max() / gamma) ** 2


@pytest.mark.parametrize("how", ["joint", "ovr"])
def test_several_classes(how: str) -> None:
    X, y = separable(3)
    model = Perceptron(multi_class=how, tol=None).fit(X, y)
    assert model.score(X, y) == 1.0 and model.converged_
    assert model.coef_.shape == (3, 2)


def test_one_against_the_rest_is_the_peer_in_the_same_order() -> None:
    X, y = load_iris(return_X_y=True)
    X, first = np.unique(X, axis=0, return_index=True)
    y = y[first]
    order, _ = canonical_rows(torch.from_numpy(X), torch.from_numpy(y), None)
    ours = Perceptron(multi_class="ovr", shuffle=False, max_iter=7, tol=None).fit(X, y)
    peer = Peer(shuffle=False, max_iter=7, tol=None)
    peer.fit(X[order], y[order])
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-9)


def test_step_size_scales_the_weights_and_no_prediction() -> None:
    X, y = make_classification(120, 5, random_state=0)
    a, b = (Perceptron(eta0=eta, random_state=1).fit(X, y) for eta in (1.0, 0.25))
    np.testing.assert_allclose(b.coef_, 0.25 * a.coef_, rtol=1e-9)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_average_is_the_mean_over_all_visits() -> None:
    X, y = make_classification(60, 4, flip_y=0.2, random_state=0)
    mean = Perceptron(average=True, max_iter=3, tol=None, shuffle=False).fit(X, y)
    # visits one by one: the weights after every row of the same fixed order
    energy = LinearEnergy(4, 2).double()
    seen: list[np.ndarray] = []
    order, _ = canonical_rows(torch.from_numpy(X), torch.from_numpy(y), None)
    for _ in range(3):
        for i in order:
            one_visit(energy, X[i].tolist(), int(y[i]), 1.0)
            W = energy.W.detach().numpy()
            seen.append(W[1] - W[0])
    np.testing.assert_allclose(mean.coef_[0], np.mean(seen, 0), atol=1e-12)
    assert mean.score(X, y) >= Perceptron(max_iter=3, tol=None).fit(X, y).score(X, y) - 0.05


def test_sparse_rows_and_penalties() -> None:
    X, y = make_classification(150, 8, random_state=0)
    for settings in ({}, {"penalty": "l2", "alpha": 0.01}, {"average": True}):
        dense = Perceptron(**settings).fit(X, y)
        sparse = Perceptron(**settings, shuffle=False).fit(csr_matrix(X), y)
        assert abs(dense.score(X, y) - sparse.score(csr_matrix(X), y)) < 0.2
    many = Perceptron(penalty="l1", alpha=0.05, max_iter=20, tol=None).fit(X, y)
    assert (many.coef_ == 0).any()
    mixed = Perceptron(penalty="elasticnet", alpha=0.02).fit(X, y)
    free = Perceptron().fit(X, y)
    assert np.abs(mixed.coef_).sum() < np.abs(free.coef_).sum()


def test_parts_of_a_stream_are_visited_one_after_the_other(tmp_path: Path) -> None:
    X, y = separable(3)
    model = Perceptron(random_state=0)
    for _ in range(20):
        for part in np.array_split(np.random.default_rng(0).permutation(len(X)), 3):
            model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert model.score(X, y) > 0.95 and model.n_iter_ == 60
    assert model.n_mistakes_ == sum(model.history_.extra["mistakes"])
    twin = groundstate.load(model.save(tmp_path / "m.gs"))
    twin.partial_fit(X, y)
    model.partial_fit(X, y)
    np.testing.assert_array_equal(twin.coef_, model.coef_)
    with pytest.raises(ValueError, match="average=True"):
        Perceptron(average=True).partial_fit(X, y, classes=[0, 1, 2])


def test_begin_at_the_last_weights() -> None:
    X, y = separable()
    model = Perceptron(warm_start=True, tol=None).fit(X, y)
    again = model.fit(X, y)
    assert again.n_mistakes_ == 0 and again.n_iter_ == 1


def test_held_out_rows_may_stop_it() -> None:
    X, y = make_classification(300, 6, flip_y=0.3, random_state=0)
    model = Perceptron(early_stopping=True, n_iter_no_change=3).fit(X, y)
    assert model.n_iter_ < 200 and model.history_.stop.startswith("tol")


@pytest.mark.parametrize("settings", [{}, {"multi_class": "ovr"}, {"average": True}], ids=str)
def test_weights_are_repetitions_to_the_bit(settings: dict[str, Any]) -> None:
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    index = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), weight))
    a = Perceptron(**settings).fit(X, y, sample_weight=weight)
    b = Perceptron(**settings).fit(X[index], y[index])
    np.testing.assert_array_equal(a.coef_, b.coef_)
