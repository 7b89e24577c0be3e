"""Softmax regression's one derivation: value, gradient, Hessian, products; rows of every kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate.energy import LinearEnergy
from groundstate.learn import L2, SoftMin
from groundstate.learn.base import Problem
from groundstate.learn.solvers.logistic.members import Members
from groundstate.learn.solvers.logistic.objective import SoftmaxObjective
from groundstate.learn.solvers.logistic.softmax import both, hessian, losses, probabilities

N, P = 50, 4
EVERY = pytest.mark.parametrize(
    ("classes", "intercept", "weighted"),
    [(2, True, True), (2, False, False), (3, True, False), (4, True, True), (3, False, True)],
)


def problem(
    classes: int, intercept: bool, weighted: bool, sparse: bool = False
) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(classes)
    x = torch.from_numpy(rng.normal(size=(N, P)) * (rng.uniform(size=(N, P)) < 0.6))
    y = torch.from_numpy(rng.integers(0, classes, N))
    w = torch.from_numpy(rng.integers(0, 4, N).astype(float)) if weighted else None
    energy = LinearEnergy(P, classes, intercept).double()
    data = {"x": x.to_sparse_csr() if sparse else x, "y": y}
    return Problem(energy, SoftMin(), data, w, L2(0.7)), rng.normal(
        size=(1 if classes == 2 else classes, P + intercept)
    )


@EVERY
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_derivatives(classes: int, intercept: bool, weighted: bool) -> None:
    task, theta = problem(classes, intercept, weighted)
    rows = SoftmaxObjective(task)
    value, gradient = rows.evaluate(theta)
    h = 1e-6
    for at in np.ndindex(*theta.shape):
        move = np.zeros_like(theta)
        move[at] = h
        slope = (rows.evaluate(theta + move)[0] - rows.evaluate(theta - move)[0]) / (2 * h)
        assert gradient[at] == pytest.approx(slope, abs=1e-8)
        turned = (rows.evaluate(theta + move)[1] - rows.evaluate(theta - move)[1]) / (2 * h)
        product = rows.product(rows.curvature(theta), move / h)
        np.testing.assert_allclose(product, turned, atol=1e-7)
    matrix = rows.hessian(theta)
    free = theta - theta.mean(0) if classes > 2 else theta  # the pinned direction is left out
    whole = (matrix @ free.reshape(-1)).reshape(theta.shape)
    np.testing.assert_allclose(whole, rows.product(rows.curvature(theta), free), atol=1e-12)
    rows.evaluate(theta)  # what the gradient saw serves the Hessian
    np.testing.assert_allclose(rows.hessian(theta), matrix, atol=1e-13)
    thin = SoftmaxObjective(problem(classes, intercept, weighted, sparse=True)[0])
    assert thin.sparse and thin.evaluate(theta)[0] == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(thin.evaluate(theta)[1], gradient, atol=1e-13)
    np.testing.assert_allclose(thin.hessian(theta), matrix, atol=1e-13)
    # the objective is that of the energy and the rule
    rows.store(theta)
    assert task.value_and_gradient([])[0] == pytest.approx(value, rel=1e-12)


@EVERY
def test_a_population_is_its_members(classes: int, intercept: bool, weighted: bool) -> None:
    task, theta = problem(classes, intercept, weighted)
    rows = SoftmaxObjective(task)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, (3, N)).astype(float)
    thetas = np.stack([theta, 2 * theta, -theta])
    found = Members(rows, weights).gradient(thetas, np.arange(3), np.tile(rows.ridge, (3, 1)))
    for k, own in enumerate(weights):
        alone = Problem(task.energy, task.rule, task.data, torch.from_numpy(own), task.penalty)
        np.testing.assert_allclose(
            found[k], SoftmaxObjective(alone).evaluate(thetas[k])[1], atol=1e-13
        )


def test_far_scores_neither_overflow_nor_lose_their_tails() -> None:
    y = np.array([1, 0, 1])
    two = np.array([[800.0, -800.0, -800.0]])
    np.testing.assert_allclose(losses(two, y), [0.0, 0.0, 800.0])
    np.testing.assert_allclose(
        both(np.array([[40.0, 0.0, 0.0]]), y)[0][0], np.exp(-40.0), rtol=1e-9
    )
    many = np.stack([-two[0], two[0], 0 * two[0]])
    np.testing.assert_allclose(losses(many, y), [0.0, 0.0, 1600.0])
    np.testing.assert_allclose(probabilities(many).sum(0), 1.0)
    assert np.isfinite(hessian(np.ones((3, 2)), probabilities(many))).all()
