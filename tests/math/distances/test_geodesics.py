"""Metrics that follow data: tensors, lengths, shortest curves, the exponential map and its inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from groundstate.math.distances import (
    ConstantMetric,
    LocalMetric,
    PullbackMetric,
    RiemannianMetric,
    exp_map,
    geodesic,
    log_map,
    pullback_metric,
)

ANGLES = np.linspace(0, np.pi, 100)
ARC = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
HALF = np.concatenate([r * ARC for r in (0.95, 1.0, 1.05)])
RNG = np.random.default_rng(0)


def polar(x: torch.Tensor) -> torch.Tensor:
    return x[0] * torch.stack([x[1].cos(), x[1].sin()])


@pytest.fixture(scope="module")
def half() -> LocalMetric:
    return LocalMetric(HALF, sigma=0.15, rho=0.01)


def test_pullback_of_polar_coordinates() -> None:
    at = np.array([[2.0, 0.3], [0.5, 1.0]])
    M = pullback_metric(polar, at)
    np.testing.assert_allclose(M, [np.diag([1, 4.0]), np.diag([1, 0.25])], atol=1e-12)
    metric = PullbackMetric(polar)
    np.testing.assert_allclose(metric.volume(at), [2.0, 0.5])
    angle = np.linspace(0, 2 * np.pi, 500)
    circle = np.column_stack([np.full(500, 1.7), angle])
    assert metric.length(circle) == pytest.approx(2 * np.pi * 1.7, rel=1e-9)
    v, eps = np.array([0.3, -0.2]), 1e-5
    near = metric.length(np.stack([at[0], at[0] + eps * v])) / eps
    assert near == pytest.approx(math.sqrt(v @ M[0] @ v), rel=1e-4)
    found = metric.geodesic([1.0, 0.0], [1.0, 1.0], 65)  # a chord, in other coordinates
    assert found.length == pytest.approx(2 * math.sin(0.5), rel=1e-3)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_local_metric_from_its_formula(kind: Any) -> None:
    X, at = RNG.normal(size=(30, 3)), RNG.normal(size=(4, 3))
    metric = LocalMetric(X, 0.7, 0.2, kind=kind)
    gap = X - at[:, None]
    w = np.exp(-(gap**2).sum(2) / (2 * 0.7**2))
    cov = np.einsum("qn,qni,qnj->qij", w, gap, gap) + 0.2 * np.eye(3)
    if kind == "diagonal":
        cov = cov * np.eye(3)
    np.testing.assert_allclose(metric.tensor(at), np.linalg.inv(cov), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(metric.volume(at), np.linalg.det(cov) ** -0.5, rtol=1e-9)
    far = metric.tensor(np.full((1, 3), 90.0))
    np.testing.assert_allclose(far[0], np.eye(3) / 0.2, atol=1e-12)
    values, vectors = np.linalg.eigh(cov[0])
    other, axes = np.linalg.eigh(metric.tensor(at)[0])
    np.testing.assert_allclose(other, 1 / values[::-1], rtol=1e-9)  # reciprocal eigenvalues
    assert abs(vectors[:, -1] @ axes[:, 0]) == pytest.approx(1.0)  # the cheapest way is the longest
    x, v = torch.from_numpy(at).requires_grad_(), torch.from_numpy(RNG.normal(size=(4, 3)))
    assert torch.autograd.gradcheck(lambda p: metric.quadratic(p, v), (x,))
    eps = 1e-6
    step = np.stack([at[0], at[0] + eps * v[0].numpy()])
    quadratic = math.sqrt(v[0].numpy() @ metric.tensor(at)[0] @ v[0].numpy())
    assert metric.length(step) / eps == pytest.approx(quadratic, rel=1e-4)


def test_weights_are_repetitions() -> None:
    X, at = RNG.normal(size=(40, 2)), RNG.normal(size=(5, 2))
    plain = LocalMetric(X, rho=0.1)
    doubled = LocalMetric(np.vstack([X, X]), rho=0.1, weights=np.full(80, 0.5))
    assert doubled.sigma == plain.sigma
    np.testing.assert_allclose(doubled.tensor(at), plain.tensor(at), rtol=1e-12)
    w = RNG.integers(0, 3, 40)
    weighted, repeated = LocalMetric(X, weights=w), LocalMetric(np.repeat(X, w, axis=0))
    assert weighted.sigma == repeated.sigma
    np.testing.assert_allclose(weighted.tensor(at), repeated.tensor(at), rtol=1e-10)
    tenth = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 10]
    assert plain.sigma == pytest.approx(np.sort(tenth)[19])


def test_the_half_circle(half: LocalMetric) -> None:
    line = np.linspace([1, 0], [-1, 0], 65)
    t = np.linspace(0, np.pi, 65)
    assert half.length(line) == pytest.approx(11.936, abs=1e-3)
    assert half.length(np.column_stack([np.cos(t), np.sin(t)])) == pytest.approx(4.554, abs=1e-3)
    found = half.geodesic([1.0, 0.0], [-1.0, 0.0], 65)
    assert found.length == pytest.approx(4.082, abs=1e-3) and found.converged
    assert np.linalg.norm(np.diff(found.points, axis=0), axis=1).sum() == pytest.approx(
        2.77, abs=0.01
    )
    assert np.linalg.norm(found.points, axis=1).min() > 0.8
    assert half.distance([-1.0, 0.0], [1.0, 0.0]) == pytest.approx(found.length, abs=1e-3)
    assert found.energy == pytest.approx(found.length**2 / 2, rel=1e-3)  # constant speed


@pytest.mark.parametrize("seed", range(5))
def test_a_noisy_half_circle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, np.pi, 200)
    X = np.column_stack([np.cos(t), np.sin(t)]) + 0.03 * rng.normal(size=(200, 2))
    metric = LocalMetric(X, 0.15, 0.01)
    found = metric.geodesic([1.0, 0.0], [-1.0, 0.0], 41)
    assert metric.length(np.linspace([1, 0], [-1, 0], 41)) == pytest.approx(12.3, abs=1.5)
    assert found.length == pytest.approx(5.0, abs=0.3)
    assert np.linalg.norm(found.points, axis=1).min() > 0.8


def test_every_start_and_every_batch(half: LocalMetric) -> None:
    lengths = [
        half.distance([1.0, 0.0], [-1.0, 0.0], starts=(s,)) for s in ("line", "bumps", "graph")
    ]
    np.testing.assert_allclose(lengths, 4.082, atol=2e-3)
    ends = np.array([[0.0, 1.0], [0.7, 0.7], [-0.95, 0.1]])
    together = half.geodesic([1.0, 0.0], ends, 33)
    assert together.points.shape == (3, 33, 2)
    for i, end in enumerate(ends):
        alone = half.geodesic([1.0, 0.0], end, 33)
        assert alone.length == pytest.approx(together.length[i], abs=1e-4)
    tensors = half.geodesic(torch.tensor([1.0, 0.0]).double(), torch.from_numpy(ends), 33)
    assert isinstance(tensors.points, torch.Tensor)
    np.testing.assert_allclose(tensors.length.numpy(), together.length, atol=1e-12)
    same = half.geodesic(ends, ends, 9)
    np.testing.assert_allclose(same.length, 0.0, atol=1e-12)


def test_a_constant_metric_has_straight_lines() -> None:
    M = np.array([[3.0, 1.0], [1.0, 2.0]])
    a, b = np.array([0.5, -1.0]), np.array([2.0, 1.0])
    found = geodesic(ConstantMetric(M), a, b, 21)
    np.testing.assert_allclose(found.points, np.linspace(a, b, 21), atol=1e-6)
    assert found.length == pytest.approx(math.sqrt((b - a) @ M @ (b - a)), rel=1e-9)
    np.testing.assert_allclose(log_map(ConstantMetric(M), a, b), b - a, atol=1e-6)
    np.testing.assert_allclose(exp_map(ConstantMetric(M), a, b - a), b, atol=1e-12)


def test_directions_lead_back(half: LocalMetric) -> None:
    V = half.log([0.0, 1.0], HALF[::20])
    np.testing.assert_allclose(half.exp([0.0, 1.0], V), HALF[::20], atol=0.02)
    length = half.distance([0.0, 1.0], HALF[::20])
    M = half.tensor([0.0, 1.0])
    np.testing.assert_allclose(np.sqrt(np.einsum("ni,ij,nj->n", V, M, V)), length, rtol=1e-6)
    assert (half.log([0.0, 1.0], [0.0, 1.0]) == 0).all()
    far = np.array([[-0.7, 0.7]])  # errors grow along the way: Newton takes them back
    rough, fine = (half.log([1.0, 0.0], far, polish=k) for k in (0, 4))
    errors = [np.linalg.norm(half.exp([1.0, 0.0], v) - far) for v in (rough, fine)]
    assert errors[1] < 1e-3 < errors[0]


@pytest.mark.parametrize("d", [1, 2, 4])
def test_slopes_and_curvatures_by_loops_are_those_by_torch(d: int) -> None:
    metric = LocalMetric(RNG.normal(size=(40, d)), 0.7, 0.2, weights=RNG.uniform(0.5, 2, 40))
    x, v = (torch.from_numpy(RNG.normal(size=(6, d))) for _ in "xv")
    for name in ("slopes", "flow", "curvatures"):
        pairs = zip(getattr(metric, name)(x, v), getattr(RiemannianMetric, name)(metric, x, v))
        for ours, plain in pairs:
            torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11)
    far = metric.slopes(x + 1e3, v)
    assert bool((far[1] == 0).all()) and torch.allclose(far[2], v / 0.2)
    x.requires_grad_()
    assert torch.autograd.gradgradcheck(lambda p: metric.quadratic(p, v), (x,))


def test_a_curve_does_not_depend_on_its_batch(half: LocalMetric) -> None:
    ends = HALF[::37]
    together = half.geodesic([0.0, 1.0], ends, 33)
    order = RNG.permutation(len(ends))
    shuffled = half.geodesic([0.0, 1.0], ends[order], 33)
    np.testing.assert_allclose(shuffled.points, together.points[order], atol=1e-9)
    for i, end in enumerate(ends):
        alone = half.geodesic([0.0, 1.0], end, 33)
        np.testing.assert_allclose(alone.points, together.points[i], atol=1e-9)
    again = half.geodesic([0.0, 1.0], ends, 33, starts=together.points + 1e-3)
    np.testing.assert_allclose(again.points, together.points, atol=1e-9)
    none = half.geodesic([0.0, 1.0], ends[:0], 33)
    assert none.points.shape == (0, 33, 2) and none.length.shape == (0,)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_directions_are_differentiable_in_both_ends(kind: Any) -> None:
    metric = LocalMetric(RNG.normal(size=(25, 2)), 0.8, 0.3, kind=kind)
    mu = torch.tensor([0.1, -0.2], dtype=torch.float64, requires_grad=True)
    X = torch.from_numpy(RNG.normal(size=(3, 2)) * 0.7).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda a, b: log_map(metric, a, b, 17), (mu, X), eps=1e-5, atol=1e-5
    )


def test_exp_solves_the_geodesic_equation_of_a_diagonal_metric(half: LocalMetric) -> None:
    from groundstate.math.distances.exponential import path

    mu, v = torch.tensor([0.0, 1.0]).double(), torch.tensor([0.5, -0.1]).double()
    n = 400
    curve = path(half, mu, v, n).numpy()
    h = 1 / n
    for i in (50, 200, 350):
        x = torch.from_numpy(curve[i])
        speed = (curve[i + 1] - curve[i - 1]) / (2 * h)
        bend = (curve[i + 1] - 2 * curve[i] + curve[i - 1]) / h**2
        m = 1 / half.variance(x[None])[0].numpy()
        dm = torch.autograd.functional.jacobian(lambda p: 1 / half.variance(p[None])[0], x).numpy()
        # γ̈_k = −[2 Σ_j ∂_j m_k γ̇_j γ̇_k − Σ_j ∂_k m_j γ̇_j²] / 2m_k
        want = -(2 * (dm @ speed) * speed - dm.T @ speed**2) / (2 * m)
        np.testing.assert_allclose(bend, want, rtol=2e-3, atol=2e-3)
    speeds = half.quadratic(
        torch.from_numpy(curve[1:-1]), torch.from_numpy((curve[2:] - curve[:-2]) / (2 * h))
    )
    assert float(speeds.max() / speeds.min()) == pytest.approx(1.0, abs=1e-3)  # constant speed


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LocalMetric(np.zeros((0, 2))), "at least one"),
        (lambda: LocalMetric(HALF, rho=0.0), "rho is the least variance"),
        (lambda: LocalMetric(HALF, sigma=-1.0), "sigma must be positive"),
        (lambda: LocalMetric(np.zeros((20, 2))), "give a number"),
        (lambda: LocalMetric(HALF, weights=[1.0]), "each of the 300 rows"),
        (lambda: LocalMetric(HALF, kind="round"), "'diagonal' or 'full'"),  # type: ignore[arg-type]
        (lambda: LocalMetric([[np.inf, 0.0]]), "X holds NaN or infinity"),
        (lambda: geodesic(ConstantMetric(np.eye(2)), [0.0, 0.0], [1.0], 9), "one width"),
        (lambda: geodesic(ConstantMetric(np.eye(1)), [0.0], [1.0], 2), "n >= 3"),
        (lambda: geodesic(ConstantMetric(np.eye(1)), [0.0], [1.0], starts=("arc",)), "chosen from"),
        (lambda: ConstantMetric(np.eye(2)).length([[0.0, 0.0]]), "a curve needs points"),
        (
            lambda: geodesic(ConstantMetric(np.eye(1)), [0.0], [1.0], 5, starts=np.zeros((4, 1))),
            "a curve for each pair",
        ),
        (lambda: PullbackMetric(3), "function of a point"),  # type: ignore[arg-type]
    ],
)
def test_errors_teach(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()
