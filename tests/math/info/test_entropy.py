"""Information quantities: worked numbers, closed forms, Monte Carlo, inequalities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import distributions as D

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.divergences import kl
from groundstate.math.info import (
    Estimate,
    code_length,
    cross_entropy,
    entropy,
    free_energy,
    gini,
    surprise,
)

Q = torch.tensor([0.2, 0.6, 0.2], dtype=torch.float64)
POSTERIOR = torch.tensor([0.05, 0.12, 0.01], dtype=torch.float64) / 0.18


def number(value: torch.Tensor | Estimate) -> float:
    assert isinstance(value, torch.Tensor)
    return float(value)


def test_worked_tables() -> None:
    assert number(entropy(Q)) == pytest.approx(0.950271, abs=1e-6)
    assert number(kl(Q, POSTERIOR)) == pytest.approx(0.127270, abs=1e-6)
    assert number(entropy(Q)) == pytest.approx(stats.entropy(Q.numpy()))
    assert number(kl(Q, POSTERIOR)) == pytest.approx(stats.entropy(Q.numpy(), POSTERIOR.numpy()))


def test_worked_gaussians() -> None:
    a = D.Normal(torch.tensor(0.0).double(), torch.tensor(1.0).double())
    b = D.Normal(torch.tensor(1.0).double(), torch.tensor(2.0).double())
    assert number(kl(a, b)) == pytest.approx(0.443147, abs=1e-6)
    assert number(kl(b, a)) == pytest.approx(1.306853, abs=1e-6)
    eye = torch.eye(2, dtype=torch.float64)
    one = D.MultivariateNormal(torch.tensor([1.0, 2.0]).double(), eye)
    assert number(kl(one, D.MultivariateNormal(torch.zeros(2).double(), 4 * eye))) == pytest.approx(
        1.261294, abs=1e-6
    )
    left = D.MultivariateNormal(
        torch.tensor([0.0, 1.0]).double(), torch.diag(torch.tensor([1.0, 2.0]).double())
    )
    right = D.MultivariateNormal(
        torch.tensor([1.0, 0.0]).double(), torch.tensor([[2.0, 0.5], [0.5, 1.0]]).double()
    )
    assert number(kl(left, right)) == pytest.approx(1.504663, abs=1e-6)


def test_geometric_poisson_fit() -> None:
    k = torch.arange(100, dtype=torch.float64)
    p = 0.5 ** (k + 1)
    q = torch.exp(k * 0.0 - 1.0 - torch.lgamma(k + 1))
    p, q = p / p.sum(), q / q.sum()
    assert number(cross_entropy(p, q)) == pytest.approx(1.507834, abs=1e-6)
    assert number(kl(p, q)) == pytest.approx(0.121540, abs=1e-6)


def test_zero_probabilities() -> None:
    p, q = torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5])
    assert number(entropy(p)) == 0.0
    assert number(kl(p, q)) == pytest.approx(math.log(2))
    assert math.isinf(number(kl(q, p)))
    assert number(kl(p, p)) == 0.0


def test_gibbs_inequality_and_decomposition() -> None:
    g = torch.Generator().manual_seed(0)
    q, p = torch.softmax(2 * torch.randn(2, 500, 7, generator=g, dtype=torch.float64), -1)
    value, h, c = kl(q, p), entropy(q), cross_entropy(q, p)
    assert isinstance(value, torch.Tensor) and isinstance(h, torch.Tensor)
    assert isinstance(c, torch.Tensor)
    assert bool((value >= 0).all())
    torch.testing.assert_close(value, c - h)
    assert bool((h <= math.log(7) + 1e-12).all())


def test_surprise_and_bits() -> None:
    p = torch.tensor([0.5, 0.25, 0.25])
    assert code_length(p, torch.tensor([0, 2])).tolist() == [1.0, 2.0]
    distribution = D.Categorical(probs=p)
    torch.testing.assert_close(
        surprise(distribution, torch.tensor([0, 2])), surprise(p, torch.tensor([0, 2]))
    )
    mean = (p * code_length(p)).sum()
    assert float(mean) == pytest.approx(number(entropy(p)) / math.log(2))


def test_monte_carlo_where_there_is_no_closed_form() -> None:
    mix = D.MixtureSameFamily(
        D.Categorical(probs=torch.tensor([0.5, 0.5])),
        D.Normal(torch.tensor([-3.0, 3.0]), torch.ones(2)),
    )
    wide = D.Normal(torch.tensor(0.0), torch.tensor(10.0**0.5))
    g = torch.Generator().manual_seed(1)
    found = kl(mix, wide, n=20_000, random_state=g, stderr=True)
    assert isinstance(found, Estimate)
    x = torch.linspace(-12, 12, 20_001)
    exact = torch.trapezoid(mix.log_prob(x).exp() * (mix.log_prob(x) - wide.log_prob(x)), x)
    assert abs(float(found.value - exact)) < 3 * float(found.stderr) < 0.02
    h = entropy(mix, n=20_000, random_state=g, stderr=True)
    c = cross_entropy(mix, wide, n=20_000, random_state=g, stderr=True)
    assert isinstance(h, Estimate) and isinstance(c, Estimate)
    assert abs(float(c.value - h.value - exact)) < 4 * float(h.stderr + c.stderr)
    exact_pair = kl(D.Normal(0.0, 1.0), D.Normal(1.0, 2.0), stderr=True)
    assert isinstance(exact_pair, Estimate) and float(exact_pair.stderr) == 0.0


def test_messages() -> None:
    with pytest.raises(
        Unsupported, match="both distributions must be tables or both distributions"
    ):
        kl(Q, D.Normal(0.0, 1.0))
    with pytest.raises(ValueError, match="negative entries"):
        kl(Q - 0.3, Q)


@pytest.mark.parametrize("ask", [kl, cross_entropy], ids=["kl", "cross_entropy"])
def test_tables_of_different_values(ask: Any) -> None:
    """A table of one value broadcast, and gave a divergence below zero."""
    for other in ([1.0], [0.2, 0.3, 0.5]):
        with pytest.raises(ShapeError, match=f"over the same values, got 2 and {len(other)}"):
            ask([0.5, 0.5], other)
    with pytest.raises(ShapeError, match="do not broadcast"):
        ask(torch.ones(2, 3), torch.ones(4, 3))


def test_free_energy_of_arrays() -> None:
    e = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    value = float(free_energy(e, 0.5))
    for given in (e.numpy(), e.tolist(), [1, 2, 4]):
        assert free_energy(given, 0.5) == pytest.approx(value)
    assert float(free_energy(e.int(), 0.5)) == pytest.approx(value)
    assert isinstance(free_energy(e.numpy()[None]), np.ndarray)


def test_impurity_of_counts_that_are_none() -> None:
    for counts in ([-1, 2], [0, 0]):
        with pytest.raises(ValueError, match="counts are at least 0 and not all 0"):
            gini(counts)
