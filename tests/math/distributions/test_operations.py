"""Distributions of our own keep the shape rules of torch's."""

from __future__ import annotations

import torch
from torch.distributions import Bernoulli, Categorical, Independent, MixtureSameFamily, Normal

from groundstate.math.distributions.operations import MixtureDistribution, draw

F64 = torch.float64


def test_one_mixture_scores_many_values() -> None:
    generator = torch.Generator().manual_seed(0)
    log_w = torch.randn(1, 3, generator=generator, dtype=F64)
    loc = torch.randn(3, 2, generator=generator, dtype=F64)
    distribution = MixtureDistribution(log_w, Independent(Normal(loc, torch.ones_like(loc)), 1))
    peer = MixtureSameFamily(
        Categorical(logits=log_w[0]), Independent(Normal(loc, torch.ones_like(loc)), 1)
    )
    x = torch.randn(5, 4, 2, generator=generator, dtype=F64)
    torch.testing.assert_close(distribution.log_prob(x), peer.log_prob(x))  # (5, 4)
    torch.testing.assert_close(distribution.log_prob(x[0]), peer.log_prob(x[0]))  # (4,)
    torch.testing.assert_close(distribution.log_prob(x[:, :1]), peer.log_prob(x[:, :1]))  # (5, 1)


def test_many_bits_follow_their_logits() -> None:
    logits = torch.tensor([-4.0, -1.0, 0.0, 0.5, 3.0, 200.0, -200.0])
    distribution = Independent(Bernoulli(logits=logits), 1)
    bits, again = (draw(distribution, 40_000, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(bits, again)
    p = torch.sigmoid(logits)
    error = (p * (1 - p) / 40_000).sqrt()
    assert ((bits.mean(0) - p).abs() <= 4.5 * error + 1e-12).all()
    pairs = (bits[:, 2] * bits[:, 3]).mean() - bits[:, 2].mean() * bits[:, 3].mean()
    assert abs(float(pairs)) < 4.5 * 0.25 / 40_000**0.5
