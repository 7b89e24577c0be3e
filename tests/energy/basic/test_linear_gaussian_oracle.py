"""The linear-Gaussian model: every number of its joint distribution, and what a fixed spread costs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from groundstate import ProbabilisticPCA
from groundstate.energy import LinearGaussianEnergy, LinearGaussianLVM, best_squared_weights

F64 = torch.float64


@pytest.fixture
def model() -> LinearGaussianEnergy:
    e = LinearGaussianLVM(2, 1, s=2.0).double()
    with torch.no_grad():
        e.W.copy_(torch.tensor([[1.0], [2.0]]))
        e.b.copy_(torch.tensor([0.5, -1.0]))
    return e.requires_grad_(False)


def test_numbers(model: LinearGaussianEnergy) -> None:
    x = torch.tensor([[2.0, 1.0]], dtype=F64)
    cov = torch.tensor([[5.0, 8, 4], [8, 17, 8], [4, 8, 4]], dtype=F64)
    torch.testing.assert_close(model.joint_covariance(), cov)
    torch.testing.assert_close(model.joint_precision() @ cov, torch.eye(3, dtype=F64))
    assert model.encode(x).item() == pytest.approx(1.047619, abs=5e-7)
    assert model.unit_bound(x).item() == pytest.approx(-4.900072, abs=5e-7)
    assert model.unit_gap().item() == pytest.approx(1.295886, abs=5e-7)
    assert model.marginal_x().log_prob(x).item() == pytest.approx(-3.604186, abs=5e-7)


def test_the_bound_is_that_of_the_family(model: LinearGaussianEnergy) -> None:
    """E_q log p(x, z) + H(q) of N(μ, 1) by nodes, largest at the posterior mean."""
    x, best = torch.tensor([[2.0, 1.0]], dtype=F64), 1.0476190476
    t, w = np.polynomial.hermite_e.hermegauss(20)
    t, w = torch.from_numpy(t), torch.from_numpy(w / w.sum())

    def bound(mu: float) -> float:
        e = model(x=x.expand(20, 2), z=(mu + t)[:, None])
        entropy = 0.5 * (1 + np.log(2 * np.pi))
        return float(-(w * (e + model.total())).sum() + entropy)

    assert bound(best) == pytest.approx(model.unit_bound(x).item(), abs=1e-9)
    assert bound(best) > max(bound(best - 0.1), bound(best + 0.1))


def test_too_small_a_family_learns_another_model() -> None:
    lam = torch.tensor([9.0, 4, 0.5, 0.3, 0.2], dtype=F64)
    assert best_squared_weights(lam)[:2].tolist() == [8, 3]
    assert best_squared_weights(lam, unit=True)[:2].tolist() == [2, 1]
    assert best_squared_weights(lam)[2:].tolist() == [0, 0, 0]

    def mean_bound(w2: torch.Tensor, gap: bool) -> float:
        marginal = (1 + w2) * 1.0
        log_p = -0.5 * (lam / marginal + marginal.log() + np.log(2 * np.pi)).sum()
        A = w2[:2] + 1.0
        return float(log_p - (0.5 * (A - 1 - A.log()).sum() if gap else 0))

    for unit in (False, True):
        at = best_squared_weights(lam, unit=unit)
        for i in range(2):
            for step in (-0.05, 0.05):
                other = at.clone()
                other[i] += step
                assert mean_bound(at, unit) > mean_bound(other, unit)


def test_it_is_the_marginal_of_probabilistic_pca() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 4)) + 0.5 * rng.normal(size=(500, 4))
    ppca = ProbabilisticPCA(2).fit(X)
    sigma = float(np.sqrt(ppca.noise_variance_))
    e = LinearGaussianLVM(4, 2).double().requires_grad_(False)
    W = np.linalg.svd(ppca.get_covariance() - sigma**2 * np.eye(4), hermitian=True)
    e.W.copy_(torch.from_numpy(W[0][:, :2] * np.sqrt(W[1][:2]) / sigma))
    e.b.copy_(torch.from_numpy(X.mean(0) / sigma))
    scaled = e.marginal_x().log_prob(torch.from_numpy(X / sigma)) - 4 * np.log(sigma)
    np.testing.assert_allclose(scaled.numpy(), ppca.score_samples(X), rtol=1e-6)
    assert isinstance(e.marginal_x(), MultivariateNormal)
