"""Distances of sets: the pair that attains them, quantiles, temperatures, every base metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, directed_hausdorff

from groundstate.math.distances import hausdorff

RNG = np.random.default_rng(0)
A, B = [[0, 0], [1, 0], [0, 1]], [[0, 0], [3, 0]]


def test_worked_numbers() -> None:
    assert hausdorff(A, B, directed=True).distance == 1.0
    assert hausdorff(B, A, directed=True).distance == 2.0
    found = hausdorff(A, B)
    assert found.distance == 2.0 and (found.i, found.j) == (1, 1)


@pytest.mark.parametrize("n", [20, 300, 1500])
@pytest.mark.parametrize("d", [1, 2, 5, 20])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_agrees_with_scipy(n: int, d: int, shift: float) -> None:
    X, Y = RNG.normal(size=(n, d)), RNG.normal(size=(n // 2, d)) + shift
    there, back = directed_hausdorff(X, Y)[0], directed_hausdorff(Y, X)[0]
    one = hausdorff(X, Y, directed=True)
    assert one.distance == pytest.approx(there, rel=1e-12)
    both = hausdorff(X, Y)
    assert both.distance == pytest.approx(max(there, back), rel=1e-12)
    for found in (one, both):
        assert np.linalg.norm(X[found.i] - Y[found.j]) == pytest.approx(found.distance, rel=1e-12)
    assert hausdorff(Y, X).distance == both.distance


def test_zero_exactly_for_equal_sets() -> None:
    X = RNG.normal(size=(400, 3))
    shuffled = np.vstack([X, X[:7]])[RNG.permutation(407)]
    assert hausdorff(X, shuffled).distance == 0.0
    assert hausdorff(X, shuffled[:390]).distance > 0.0
    assert hausdorff(X, X[:200], directed=True).distance > 0.0
    assert hausdorff(X[:200], X, directed=True).distance == 0.0


def test_one_outlier_sets_the_value_and_not_the_quantile() -> None:
    t = np.linspace(0, 3, 400)
    X, Y = np.column_stack([t, np.sin(t)]), np.column_stack([t, np.sin(t) + 0.1])
    far = np.vstack([Y, [[1.5, 9.0]]])
    clean, hit = hausdorff(X, Y, quantile=0.95).distance, hausdorff(X, far, quantile=0.95).distance
    assert hit == pytest.approx(clean, rel=0.05)
    found = hausdorff(X, far)
    assert found.j == 400
    assert found.distance == pytest.approx(cdist(X, [[1.5, 9.0]]).min(), rel=1e-12)
    near = cdist(X, far).min(1), cdist(X, far).min(0)
    exact = max(float(np.quantile(v, 0.95)) for v in near)
    assert hit == pytest.approx(exact, rel=1e-12)
    assert hausdorff(X, far, quantile=1.0).distance == pytest.approx(found.distance)


def test_soft_goes_to_hard() -> None:
    X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=(20, 2))
    hard = hausdorff(X, Y).distance
    gaps = [abs(hausdorff(X, Y, soft=T).distance - hard) for T in (0.3, 0.03, 1e-4)]
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 1e-6


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "canberra", "cosine_like"])
@pytest.mark.parametrize("n", [20, 200])
def test_any_base_metric(metric: Any, n: int) -> None:
    X, Y = RNG.uniform(0.5, 2, (n, 3)), RNG.uniform(0.5, 2, (n // 2, 3))
    if metric == "cosine_like":
        if n > 20:
            return

        def metric(a: Any, b: Any) -> float:
            return float(np.abs(a - b).max() ** 0.5)

        D = np.abs(X[:, None] - Y).max(2) ** 0.5
    else:
        D = cdist(X, Y, "cityblock" if metric == "manhattan" else metric)
    found = hausdorff(X, Y, metric=metric)
    exact = max(D.min(1).max(), D.min(0).max())
    assert found.distance == pytest.approx(exact, rel=1e-12)
    assert D[found.i, found.j] == pytest.approx(exact, rel=1e-12)


def test_the_slope_goes_through_the_pair() -> None:
    x = torch.tensor(A, dtype=torch.float64, requires_grad=True)
    y = torch.tensor(B, dtype=torch.float64, requires_grad=True)
    hausdorff(x, y).distance.backward()
    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == [[0, 0], [-1, 0], [0, 0]] and y.grad.tolist() == [[0, 0], [1, 0]]
    for settings in ({"soft": 0.5}, {"quantile": 0.7}, {"metric": "manhattan"}):
        u = torch.from_numpy(RNG.normal(size=(6, 2))).requires_grad_()
        v = torch.from_numpy(RNG.normal(size=(5, 2))).requires_grad_()
        call = lambda a, b, s=settings: hausdorff(a, b, **s).distance
        assert torch.autograd.gradcheck(call, (u, v))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hausdorff(np.zeros((0, 2)), B), "X is empty"),
        (lambda: hausdorff(A, [[1.0]]), "X has 2 columns, Y has 1"),
        (lambda: hausdorff([1.0], B), r"X needs points"),
        (lambda: hausdorff(A, B, quantile=1.5), r"lie in \[0, 1\]"),
        (lambda: hausdorff(A, B, soft=0.0), "must be positive"),
        (lambda: hausdorff(A, B, soft=1.0, quantile=0.5), "not both"),
        (lambda: hausdorff(A, [[np.nan, 0.0]]), "Y holds NaN"),
    ],
)
def test_errors_teach(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
