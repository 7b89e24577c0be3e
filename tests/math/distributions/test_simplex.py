"""Softmax, sparsemax, entmax: worked numbers, optimality, exact Jacobians."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from groundstate.math.distributions.simplex import (
    entmax,
    fenchel_young,
    softmax,
    sparsemax,
    tsallis,
)
from groundstate.math.info import maxent

A = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def random_energies(n: int = 20, k: int = 6, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, k, generator=g, dtype=torch.float64)


def test_maxent_worked() -> None:
    s = maxent(A)
    assert s.p.tolist() == pytest.approx([0.665241, 0.244728, 0.090031], abs=1e-6)
    assert float(s.gamma) == pytest.approx(1.592394, abs=1e-6)
    assert float(s.value) == pytest.approx(-0.592394, abs=1e-6)
    assert float(s.stationarity(A).abs().max()) < 1e-14
    torch.testing.assert_close(s.p, softmax(A))


def test_maxent_equals_a_general_solver_and_is_a_maximum() -> None:
    def objective(p: Tensor) -> Tensor:
        return -(p @ A) - torch.special.xlogy(p, p).sum(-1)

    found = minimize(
        lambda p: -float(objective(torch.as_tensor(p))),
        [1 / 3] * 3,
        method="SLSQP",
        bounds=[(1e-9, 1)] * 3,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14},
    )
    s = maxent(A)
    assert found.x == pytest.approx(s.p.numpy(), abs=1e-6)
    assert -found.fun == pytest.approx(float(s.value), abs=1e-6)
    near = s.p + 0.02 * random_energies(200, 3).sub_(random_energies(200, 3).mean(-1, keepdim=True))
    assert bool((objective(near[(near > 0).all(-1)]) < s.value).all())


def test_sparsemax_worked() -> None:
    e = torch.tensor([0.1, 0.5, 1.0], dtype=torch.float64)
    torch.testing.assert_close(sparsemax(e), torch.tensor([0.7, 0.3, 0.0]).double())
    assert sparsemax(A).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 1.9, 2.0, 3.0])
@pytest.mark.parametrize("T", [0.5, 1.0, 3.0])
def test_optimality(alpha: float, T: float) -> None:
    e = random_energies()
    p = entmax(e, alpha, T)
    torch.testing.assert_close(p.sum(-1), torch.ones(20).double())
    # stationarity: e/T - H'(p) is the same on the support and not lower outside it
    slope = (p ** (alpha - 1)) / (alpha - 1) if alpha > 1 else p.log() + 1
    level = e / T + slope
    low = torch.where(p > 0, level, torch.inf).amin(-1, keepdim=True)
    assert bool(((level - low).abs() < 1e-9)[p > 0].all())
    assert bool((level >= low - 1e-9).all())
    assert bool((p[..., 1:] >= 0).all())


def test_limits_join() -> None:
    e = random_energies()
    torch.testing.assert_close(entmax(e, 1.001), softmax(e), atol=2e-3, rtol=0)
    torch.testing.assert_close(entmax(e, 2.0 - 1e-9), sparsemax(e), atol=1e-6, rtol=0)
    torch.testing.assert_close(sparsemax(e, dim=0), sparsemax(e.T).T)


@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0, 2.5])
def test_exact_derivatives(alpha: float) -> None:
    e = random_energies(4, 5, seed=3).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: entmax(v, alpha, T=0.8), e, atol=1e-5)
    y = torch.tensor([0, 1, 4, 2])
    assert torch.autograd.gradcheck(lambda v: fenchel_young(v, y, alpha, T=0.8), e, atol=1e-5)
    (g,) = torch.autograd.grad(fenchel_young(e, y, alpha).sum(), e)
    hot = torch.nn.functional.one_hot(y, 5).double()
    torch.testing.assert_close(g, hot - entmax(e, alpha))


def test_fenchel_young_is_cross_entropy_at_one_and_never_negative() -> None:
    e = random_energies()
    y = torch.arange(20) % 6
    torch.testing.assert_close(
        fenchel_young(e, y), torch.nn.functional.cross_entropy(-e, y, reduction="none")
    )
    for alpha in (1.5, 2.0):
        loss = fenchel_young(e, y, alpha)
        assert bool((loss >= 0).all())
        p = entmax(e, alpha)
        assert float(fenchel_young(e, p, alpha).abs().max()) < 1e-12  # zero at its own distribution
    assert float(tsallis(torch.full((4,), 0.25).double(), 2.0)) == pytest.approx(0.375)


def test_forbidden_values_get_zero() -> None:
    e = torch.tensor([0.0, torch.inf, 0.1])
    for alpha in (1.0, 1.5, 2.0):
        p = entmax(e, alpha)
        assert float(p[1]) == 0.0 and float(p.sum()) == pytest.approx(1.0)


def test_messages() -> None:
    with pytest.raises(ValueError, match="alpha must be at least 1"):
        entmax(A, 0.5)
    with pytest.raises(ValueError, match="T=0 is argmin"):
        softmax(A, T=0.0)
