"""Sequential minimal optimisation: optimal, feasible, monotone, and the same however it is run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification

from groundstate.learn import smo
from groundstate.learn.solvers.svm.smo.device import device_rounds
from groundstate.learn.solvers.svm.smo.reference import smo_reference
from groundstate.learn.solvers.svm.smo.rows import KernelRows, canonical_rows
from groundstate.math.kernels import RBF, Linear, Matern


def problem(n: int, C: float = 1.0, seed: int = 0) -> tuple[torch.Tensor, Any, Any, Any]:
    X, y = make_classification(n, 6, flip_y=0.1, class_sep=0.8, random_state=seed)
    t = 2.0 * y - 1
    return torch.from_numpy(X), t, np.minimum(C * t, 0), np.maximum(C * t, 0)


def objective(K: np.ndarray, t: np.ndarray, beta: np.ndarray) -> float:
    return float(t @ beta - 0.5 * beta @ K @ beta)


@pytest.mark.parametrize("kernel", [RBF(1.0), Linear(), Matern(1.0)], ids=str)
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_same_optimum_as_the_reference(kernel: Any, C: float) -> None:
    x, t, lo, hi = problem(120, C)
    K = kernel(x).numpy()
    expected, _ = smo_reference(K, t, lo, hi, 1e-6)
    found = smo(kernel, x, t, lo, hi, tol=1e-6)
    assert found.converged and found.violation <= 1e-6
    assert objective(K, t, found.beta) == pytest.approx(objective(K, t, expected), rel=1e-6)
    assert found.dual(t) == pytest.approx(objective(K, t, found.beta), rel=1e-9)
    np.testing.assert_allclose(found.F, t - K @ found.beta, atol=1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_working_sets_agree_with_the_whole(tol: float) -> None:
    x, t, lo, hi = problem(1600)
    whole = smo(RBF(2.0), x, t, lo, hi, tol=tol, block=2000)
    parts = smo(RBF(2.0), x, t, lo, hi, tol=tol, block=128, megabytes=0.2)
    assert parts.rounds > 3 and whole.rounds == 1
    assert parts.dual(t) == pytest.approx(whole.dual(t), rel=max(tol, 1e-6))
    K = RBF(2.0)(x).numpy()
    F = t - K @ parts.beta  # the errors that were kept up to date are the true ones
    np.testing.assert_allclose(parts.F, F, atol=1e-4 if tol == 1e-3 else 1e-8)
    top, bottom = F[parts.beta < hi].max(), F[parts.beta > lo].min()
    assert top - bottom <= tol * 1.1


def test_feasible_to_the_last_digit() -> None:
    x, t, lo, hi = problem(1600, 0.7)
    found = smo(RBF(2.0), x, t, lo, hi, block=128, megabytes=0.2)
    assert found.rounds > 1
    assert (found.beta >= lo).all() and (found.beta <= hi).all()
    assert abs(found.beta.sum()) < 1e-11


def test_the_dual_only_rises() -> None:
    x, t, lo, hi = problem(400, 10.0)
    values = [
        smo(RBF(1.0), x, t, lo, hi, max_steps=steps).dual(t) for steps in (5, 20, 60, 150, 400)
    ]
    assert values == sorted(values)


def test_shrinking_changes_nothing_but_time() -> None:
    x, t, lo, hi = problem(600, 5.0)
    with_it = smo(RBF(1.0), x, t, lo, hi, tol=1e-8)
    without = smo(RBF(1.0), x, t, lo, hi, tol=1e-8, shrinking=False)
    np.testing.assert_allclose(with_it.beta, without.beta, atol=1e-5)
    assert with_it.intercept == pytest.approx(without.intercept, abs=1e-7)


def test_watcher_may_stop() -> None:
    x, t, lo, hi = problem(1600)
    seen: list[float] = []

    def watch(violation: float) -> bool:
        seen.append(violation)
        return len(seen) == 2

    found = smo(RBF(2.0), x, t, lo, hi, block=64, megabytes=0.2, watch=watch)
    assert len(seen) == 2 and not found.converged


@pytest.mark.parametrize("kernel", [RBF(2.0), Linear(), Matern(2.0), None], ids=str)
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_rounds_of_a_device_find_the_same(kernel: Any, tol: float) -> None:
    """The torch code that a GPU runs, on the CPU."""
    x, t, lo, hi = problem(500, 0.5)
    rows = x if kernel is not None else RBF(2.0)(x)
    whole = smo(kernel, rows, t, lo, hi, tol=tol)
    seen: list[float] = []
    beta, F, steps, rounds, violation = device_rounds(
        KernelRows(kernel, rows, single=tol >= 1e-5), t, lo, hi, tol, 2**62, 64,
        lambda v: bool(seen.append(v)),
    )  # fmt: skip
    assert rounds > 3 and steps > rounds and violation <= tol
    assert len(seen) >= rounds - 1
    K = rows.numpy() if kernel is None else kernel(x).numpy()
    assert objective(K, t, beta) == pytest.approx(whole.dual(t), rel=max(tol, 1e-6))
    np.testing.assert_allclose(F, t - K @ beta, atol=1e-4 if tol == 1e-3 else 1e-8)
    assert abs(beta.sum()) < 1e-10 and (beta >= lo).all() and (beta <= hi).all()


def test_rounds_of_a_device_keep_to_the_limit() -> None:
    x, t, lo, hi = problem(500)
    rows = KernelRows(RBF(2.0), x, single=True)
    steps = device_rounds(rows, t, lo, hi, 1e-3, 40, 64)[2]
    assert steps == 40


def test_equal_rows_are_one_in_an_order_of_their_own() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0], [2.0, 3.0], [5.0, 5.0]]).double()
    y = torch.tensor([0, 1, 0, 0, 1])
    first, weight = canonical_rows(x, y, torch.tensor([1.0, 2.0, 0.5, 1.0, 0.0]))
    assert dict(zip(first.tolist(), weight.tolist(), strict=True)) == {0: 1.5, 1: 2.0, 3: 1.0}
    mixed = torch.tensor([3, 1, 0, 2])
    again, _ = canonical_rows(x[mixed], y[mixed], None)
    np.testing.assert_array_equal(x[mixed][again].numpy(), x[first].numpy())
