"""Sum, product and chain rules on tables; Bayes' rule and conjugate families."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from torch import distributions as D

from groundstate import distributions as gd
from groundstate.errors import Unsupported

F64 = torch.float64
rng = np.random.default_rng(0)


def table() -> gd.JointTable:
    return gd.JointTable(rng.random((2, 3, 4)), ["A", "B", "C"])


def test_conditionals_and_the_product_rule() -> None:
    t = table()
    abc = t.conditional("A", ["B", "C"])
    assert abc.names == ("B", "C", "A")
    np.testing.assert_allclose(abc.p.sum(-1), 1, atol=1e-15)
    ab_c, b_c = t.conditional(["A", "B"], "C").p, t.conditional("B", "C").p  # (c, a, b), (c, b)
    ratio = ab_c / b_c[:, None, :]
    np.testing.assert_allclose(abc.p, ratio.transpose(2, 0, 1), atol=1e-15)
    product = t.marginal("B", "C").p[..., None] * abc.p
    np.testing.assert_allclose(product, t.p.transpose(1, 2, 0), atol=1e-15)
    part = t.given(B=1, C=2)
    np.testing.assert_allclose(part.p, abc.p[1, 2], atol=1e-15)


def test_all_chain_orders_give_the_same_joint() -> None:
    t = table()
    for order in permutations(t.names):
        factors = t.chain(order)
        assert [len(f.conditions) for f in factors] == [0, 1, 2]
        np.testing.assert_allclose(gd.JointTable.product(factors, t.names).p, t.p, atol=1e-15)


def test_tower_property_and_independence() -> None:
    t = table()
    f = rng.random(2)
    inner = (t.conditional("A", ["B", "C"]).p * f).sum(-1)
    assert (inner * t.marginal("B", "C").p).sum() == pytest.approx(f @ t.marginal("A").p)
    a, b = np.array([0.3, 0.7]), np.array([0.2, 0.5, 0.3])
    free = gd.JointTable(np.outer(a, b), "AB")
    assert free.is_independent("A", "B") and not t.is_independent("A", "B")
    pc, pa, pb = rng.random(2), rng.random((2, 2)), rng.random((2, 3))
    given = np.einsum("c,ca,cb->cab", pc, pa, pb)
    assert gd.JointTable(given, "CAB").is_independent("A", "B", given="C")
    assert not gd.JointTable(given, "CAB").is_independent("A", "B")


def test_tables_sample_score_and_differentiate() -> None:
    t = table()
    rows = t.sample(40_000, random_state=0)
    seen = np.zeros((2, 3, 4))
    np.add.at(seen, tuple(rows.T), 1 / len(rows))
    assert np.abs(seen - t.p).max() < 4 * 0.5 / 200
    np.testing.assert_array_equal(rows, t.sample(40_000, random_state=0))
    np.testing.assert_allclose(t.log_prob(rows[:5]), np.log(t.p[tuple(rows[:5].T)]))
    raw = torch.rand(2, 3, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p: gd.JointTable(p, "AB").conditional("A", "B").p, raw)


def test_tables_refuse() -> None:
    t = gd.JointTable([[0.5, 0.0], [0.5, 0.0]], ["A", "B"])
    with pytest.raises(ValueError, match="B=1 has probability 0"):
        t.given(B=1)
    with pytest.raises(ValueError, match="probability 0, so nothing"):
        t.conditional("A", "B")
    with pytest.raises(ValueError, match="no variable 'Z'"):
        t.marginal("Z")
    with pytest.raises(ValueError, match="negative"):
        gd.JointTable([[-1.0, 2.0]], "AB")
    with pytest.raises(ValueError, match="both sides"):
        t.conditional("A", "A")
    with pytest.raises(ValueError, match="conditional on"):
        t.conditional("B", "A").sample(3)


def test_bayes_numbers() -> None:
    assert gd.posterior([0.01, 0.99], [0.9, 0.1]).posterior[0] == pytest.approx(0.083333, abs=1e-6)
    after, evidence = gd.posterior([0.5, 0.3, 0.2], [0.10, 0.40, 0.05])
    assert evidence == pytest.approx(0.18)
    np.testing.assert_allclose(after, [0.277778, 0.666667, 0.055556], atol=1e-6)
    # a thousand rows, whose likelihood is no floating-point number
    log = gd.posterior(np.log([0.5, 0.5]), [-5000.0, -5001.0], log=True)
    assert log.posterior[0] == pytest.approx(1 / (1 + np.exp(-1)))
    assert log.evidence == pytest.approx(-5000 + np.log(0.5 + 0.5 * np.exp(-1)))
    batch = gd.posterior([0.5, 0.5], rng.random((7, 2)))
    assert batch.posterior.shape == (7, 2) and batch.evidence.shape == (7,)
    with pytest.raises(ValueError, match="under every reason"):
        gd.posterior([0.5, 0.5], [0.0, 0.0])
    with pytest.raises(ValueError, match="one number per reason"):
        gd.posterior([0.5, 0.5], [0.1, 0.2, 0.3])


COIN = [1, 1, 0, 1, 0, 1]
COUNTS = [3, 0, 2, 5, 1]
REAL = [1.2, 0.4, 2.2, 1.9]


@pytest.mark.parametrize(
    ("prior", "x", "likelihood", "grid", "extra"),
    [
        (D.Beta(2.0, 3.0), COIN, lambda t: D.Bernoulli(t), (1e-6, 1 - 1e-6), {}),
        (D.Gamma(2.0, 1.5), COUNTS, lambda t: D.Poisson(t), (1e-6, 20.0), {}),
        (D.Normal(0.3, 2.0), REAL, lambda t: D.Normal(t, 0.7), (-4.0, 6.0), {"scale": 0.7}),
    ],
)
def test_conjugate_equals_grid(prior, x, likelihood, grid, extra) -> None:
    theta = torch.linspace(*grid, 200_001, dtype=F64)
    prior = type(prior)(*(getattr(prior, n).double() for n in names(prior)))
    rows = torch.tensor(x, dtype=F64)
    log_lik = sum(likelihood(theta).log_prob(v) for v in rows)
    log_prior = prior.log_prob(theta)
    on_grid = gd.posterior(log_prior, log_lik, log=True).posterior / (theta[1] - theta[0])
    exact = gd.conjugate_update(prior, rows, **extra).log_prob(theta).exp()
    assert float((on_grid - exact).abs().max()) < 1e-6 * float(exact.max())
    twice = gd.conjugate_update(prior, torch.cat([rows, rows[:1]]), **extra)
    weight = torch.ones(len(rows), dtype=F64)
    weight[0] = 2
    weighted = gd.conjugate_update(prior, rows, sample_weight=weight, **extra)
    torch.testing.assert_close(weighted.mean, twice.mean)


def names(p: D.Distribution) -> list[str]:
    order = {D.Beta: ["concentration1", "concentration0"], D.Gamma: ["concentration", "rate"]}
    return order.get(type(p), ["loc", "scale"])


def test_conjugate_dirichlet_and_normal_inverse_gamma() -> None:
    found = gd.conjugate_update(D.Dirichlet(torch.ones(3)), [0, 2, 2, 1, 2])
    assert found.concentration.tolist() == [2.0, 2.0, 4.0]
    prior = gd.NormalInverseGamma(*(torch.tensor(v, dtype=F64) for v in (0.5, 2.0, 3.0, 2.0)))
    after = gd.conjugate_update(prior, REAL)
    mu, v = torch.meshgrid(
        torch.linspace(-3, 5, 801, dtype=F64), torch.linspace(0.01, 25, 5001, dtype=F64),
        indexing="ij",
    )  # fmt: skip
    at = torch.stack([mu, v], -1)
    log_lik = sum(D.Normal(mu, v.sqrt()).log_prob(torch.tensor(x, dtype=F64)) for x in REAL)
    joint = (prior.log_prob(at) + log_lik).flatten()
    grid = (joint - joint.logsumexp(0)).exp() / ((mu[1, 0] - mu[0, 0]) * (v[0, 1] - v[0, 0]))
    exact = after.log_prob(at).exp().flatten()
    assert float((grid - exact).abs().max()) < 1e-4 * float(exact.max())
    assert after.mean[0] == pytest.approx((2 * 0.5 + sum(REAL)) / 6)
    with pytest.raises(ValueError, match="needs scale="):
        gd.conjugate_update(D.Normal(0.0, 1.0), REAL)
    with pytest.raises(ValueError, match="0 and 1"):
        gd.conjugate_update(D.Beta(1.0, 1.0), [2])
    with pytest.raises(Unsupported, match="not a conjugate prior"):
        gd.conjugate_update(D.Cauchy(0.0, 1.0), REAL)
