"""Entropic transport: optimality, marginals, limits, implicit gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate import transport
from groundstate.errors import NotConverged, ShapeError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("eps", [10.0, 0.3, 0.03, 3e-3, 3e-4])
def test_plan_is_the_minimiser(eps: float) -> None:
    n, m = 25, 20
    a, b = RNG.dirichlet(np.ones(n)), RNG.dirichlet(np.ones(m))
    M = RNG.random((n, m))
    found = transport.sinkhorn(a, b, M, eps, tol=1e-9, max_iter=200_000)
    assert np.abs(found.plan.sum(1) - a).sum() <= 2e-9
    assert np.abs(found.plan.sum(0) - b).sum() <= 2e-9
    np.testing.assert_allclose(
        found.plan, np.outer(a, b) * np.exp((found.f[:, None] + found.g - M) / eps)
    )
    primal = (found.plan * M).sum() + eps * np.sum(
        found.plan * np.log(np.maximum(found.plan, 1e-300) / np.outer(a, b))
    )
    assert found.value == pytest.approx(primal, abs=1e-8)
    exact = transport.emd(a, b, M).cost
    assert exact - 1e-9 <= found.value <= exact + eps * np.log(1 / min(a.min(), b.min()))


def test_large_eps_is_independence_and_small_eps_is_exact() -> None:
    a, b, M = RNG.dirichlet(np.ones(5)), RNG.dirichlet(np.ones(4)), RNG.random((5, 4))
    loose = transport.sinkhorn(a, b, M, 1e6)
    np.testing.assert_allclose(loose.plan, np.outer(a, b), rtol=1e-5)
    tight = transport.sinkhorn(a, b, M, 1e-4, tol=1e-6, max_iter=100_000)
    assert tight.value == pytest.approx(transport.emd(a, b, M).cost, abs=1e-3)


def test_shifts_scales_and_permutations() -> None:
    a, b, M = RNG.dirichlet(np.ones(6)), RNG.dirichlet(np.ones(5)), RNG.random((6, 5))
    base = transport.sinkhorn(a, b, M, 0.05, tol=1e-11)
    moved = transport.sinkhorn(a, b, M + 3, 0.05, tol=1e-11)
    scaled = transport.sinkhorn(a, b, 1e5 * M, 1e5 * 0.05, tol=1e-11)
    np.testing.assert_allclose(moved.plan, base.plan, atol=1e-12)
    np.testing.assert_allclose(scaled.plan, base.plan, atol=1e-10)
    assert moved.value == pytest.approx(base.value + 3)
    order = RNG.permutation(6)
    turned = transport.sinkhorn(a[order], b, M[order], 0.05, tol=1e-11)
    np.testing.assert_allclose(turned.plan, base.plan[order], atol=1e-12)
    across = transport.sinkhorn(b, a, M.T, 0.05, tol=1e-11)
    np.testing.assert_allclose(across.plan, base.plan.T, atol=1e-10)
    flat = transport.sinkhorn(a, b, np.zeros((6, 5)), 0.05)
    np.testing.assert_allclose(flat.plan, np.outer(a, b))


def test_far_points_overflow_nothing() -> None:
    x, y = np.array([0.0, 1.0, 500.0]), np.array([0.0, 400.0])
    M = (x[:, None] - y) ** 2
    found = transport.sinkhorn(None, None, M, 0.5, tol=1e-8)
    assert found.value == pytest.approx(transport.emd(None, None, M).cost, rel=1e-5)
    zero = transport.sinkhorn([0.5, 0.5, 0.0], [0.5, 0.5], M, 0.5, tol=1e-8)
    assert zero.plan[2].sum() == 0 and np.isfinite(zero.f).all()
    single = transport.sinkhorn(None, None, torch.from_numpy(M).float(), 5.0, tol=1e-4)
    assert single.plan.dtype == torch.float32 and float(single.value) == pytest.approx(
        transport.sinkhorn(None, None, M, 5.0).value, rel=1e-4
    )


def test_implicit_gradients() -> None:
    g = torch.Generator().manual_seed(0)
    M = torch.rand(4, 5, generator=g, dtype=torch.float64, requires_grad=True)
    s = torch.randn(4, generator=g, dtype=torch.float64, requires_grad=True)
    t = torch.randn(5, generator=g, dtype=torch.float64, requires_grad=True)

    def run(s: torch.Tensor, t: torch.Tensor, M: torch.Tensor) -> transport.Sinkhorn:
        return transport.sinkhorn(s.softmax(-1), t.softmax(-1), M, 0.1, tol=1e-13)

    for part in ("value", "plan", "f", "g"):
        assert torch.autograd.gradcheck(
            lambda *v, part=part: getattr(run(*v), part), (s, t, M), atol=1e-4
        )
    both = torch.stack([M, M.flip(1)])
    assert torch.autograd.gradcheck(
        lambda M: transport.sinkhorn(None, None, M, 0.2, tol=1e-13).plan, (both,), atol=1e-4
    )


def test_batches_are_loops() -> None:
    M = torch.from_numpy(RNG.random((2, 3, 6, 5)))
    whole = transport.sinkhorn(None, None, M, 0.05, tol=1e-11)
    for i in range(2):
        for j in range(3):
            one = transport.sinkhorn(None, None, M[i, j], 0.05, tol=1e-11)
            torch.testing.assert_close(whole.value[i, j], one.value)
            torch.testing.assert_close(whole.plan[i, j], one.plan, atol=1e-10, rtol=1e-8)


def test_mistakes() -> None:
    M = RNG.random((3, 3))
    for eps in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="eps must be positive"):
            transport.sinkhorn(None, None, M, eps)
    with pytest.raises(ValueError, match="same positive total mass"):
        transport.sinkhorn([1.0, 1.0, 1.0], None, M, 1.0)
    with pytest.raises(ShapeError, match="needs 3 masses a"):
        transport.sinkhorn([1.0], None, M, 1.0)
    with pytest.warns(NotConverged, match="marginals are off"):
        transport.sinkhorn(None, None, RNG.random((40, 40)), 1e-4, max_iter=2)
