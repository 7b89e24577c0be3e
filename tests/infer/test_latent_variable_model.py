"""Models with a hidden cause: sums, closed forms, nodes and draws agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import MultivariateNormal

from groundstate.energy import LinearNormal
from groundstate.infer import Importance, LatentVariableModel, Quadrature

F64 = torch.float64


def normal(k: int) -> D.Distribution:
    zero = torch.zeros(k, dtype=F64)
    return D.Independent(D.Normal(zero, zero + 1), 1)


class Bent(nn.Module):
    """N((z, z²/2), 0.3² I) of one number, or the first two numbers of more."""

    def forward(self, z: Tensor) -> D.Distribution:
        mean = torch.stack([z[:, 0], z[:, -1].square() / 2], 1)
        return D.Independent(D.Normal(mean, torch.full_like(mean, 0.3)), 1)


def test_a_discrete_cause_is_summed() -> None:
    rows = torch.tensor([[0.10, 0.90], [0.40, 0.60], [0.05, 0.95]], dtype=F64)
    prior = D.Categorical(torch.tensor([0.5, 0.3, 0.2], dtype=F64))
    model = LatentVariableModel(prior, lambda z: D.Categorical(rows[z]))
    x = torch.tensor([0])
    assert model.log_prob(x).exp().item() == pytest.approx(0.18)
    assert -model.log_prob(x).item() == pytest.approx(1.714798, abs=5e-7)
    want = torch.tensor([[0.277778, 0.666667, 0.055556]], dtype=F64)
    torch.testing.assert_close(model.posterior(x).probs, want, atol=5e-7, rtol=0)  # type: ignore[attr-defined]
    assert model.log_prob_kind == "exact"


def test_a_linear_decoder_has_a_normal_marginal() -> None:
    W = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, -1.0]], dtype=F64)
    b = torch.tensor([0.5, -1.0, 0.0], dtype=F64)
    model = LatentVariableModel(normal(2), LinearNormal(W, b, 0.5).double())
    exact = MultivariateNormal(b, W @ W.T + 0.25 * torch.eye(3, dtype=F64))
    x, z = model.sample(2000, random_state=0)
    torch.testing.assert_close(model.log_prob(x[:20]), exact.log_prob(x[:20]))
    torch.testing.assert_close(
        model.log_prob(x[:20], Quadrature(16)), exact.log_prob(x[:20]), rtol=1e-8, atol=1e-8
    )
    assert z.shape == (2000, 2) and model.log_prob_kind == "exact"
    torch.testing.assert_close(torch.cov(x.T), exact.covariance_matrix, atol=0.5, rtol=0.1)
    torch.testing.assert_close(x.mean(0), b, atol=0.25, rtol=0)


def test_a_bent_decoder_by_nodes_is_a_fine_sum() -> None:
    model = LatentVariableModel(normal(1), Bent())
    x = model.sample(8, random_state=1)[0]
    grid = torch.linspace(-8, 8, 8001, dtype=F64)[:, None]
    log_prior = normal(1).log_prob(grid)
    fine = torch.stack([
        (log_prior + Bent()(grid).log_prob(row.expand(8001, 2))).logsumexp(0) + math.log(16 / 8000)
        for row in x
    ])  # fmt: skip
    torch.testing.assert_close(model.log_prob(x), fine, atol=0.02, rtol=0)
    assert model.log_prob_kind == "estimate"
    drawn = model.log_prob(x, Importance(n=20_000), random_state=0)
    torch.testing.assert_close(drawn, fine, atol=0.1, rtol=0)


def test_many_hidden_numbers_are_drawn() -> None:
    W = torch.eye(5, dtype=F64)

    class Same(nn.Module):
        def forward(self, z: Tensor) -> D.Distribution:
            return D.Independent(D.Normal(z @ W.T, torch.ones_like(z)), 1)

    model = LatentVariableModel(normal(5), Same())
    x = torch.ones(1, 5, dtype=F64)
    exact = MultivariateNormal(torch.zeros(5, dtype=F64), 2 * W).log_prob(x)
    assert model.log_prob(x, random_state=0).item() == pytest.approx(exact.item(), abs=0.1)
    with pytest.raises(ValueError, match="draw_posterior"):
        model.posterior(x)
    drawn = model.draw_posterior(x.expand(1, 5), 200, random_state=0)["z"]
    assert drawn.shape == (200, 1, 5)
    np.testing.assert_allclose(drawn.mean((0, 1)), 0.5, atol=0.35)


def test_errors() -> None:
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        LatentVariableModel(normal(1), Bent()).sample(0)
