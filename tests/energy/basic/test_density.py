"""Energies of distributions, directed models and distribution heads."""

from __future__ import annotations

import math

import pytest
import torch
from tests.energy.helpers import F64, t
from torch import distributions as D

from groundstate.energy import (
    BernoulliOf,
    Binary,
    CategoricalOf,
    Count,
    DensityEnergy,
    DirectedEnergy,
    DistributionHead,
    Finite,
    LinearNormal,
    PoissonOf,
    Real,
    Simplex,
    Space,
    exact_free_energy,
    gradcheck,
)
from groundstate.energy.networks.head import HEADS
from groundstate.errors import Unsupported
from groundstate.infer import marginalise, minimise, posterior, sample

ONE = torch.ones(1, dtype=F64)

DISTRIBUTIONS: list[tuple[D.Distribution, Space]] = [
    (D.Normal(t([0.5, -1.0]), t([1.0, 2.0])), Real(2)),
    (D.MultivariateNormal(t([0.0, 1.0]), t([[2.0, 1.0], [1.0, 2.0]])), Real(2)),
    (D.Laplace(t([1.0]), t([2.0])), Real(1)),
    (D.StudentT(t([5.0]), t([1.0]), t([2.0])), Real(1)),
    (D.Exponential(t([2.0])), Real(1, low=0.0)),
    (D.Gamma(t([2.5]), t([1.5])), Real(1, low=0.0)),
    (D.Beta(t(2.0), t(3.0)), Real(low=0.0, high=1.0)),
    (D.Uniform(t([-1.0]), t([2.0])), Real(1, low=-1.0, high=2.0)),
    (D.Categorical(logits=t([0.1, 0.5, -1.0])), Finite(3)),
    (D.Bernoulli(logits=t([0.1, -2.0])), Binary(2)),
    (D.Poisson(t([3.0])), Count(1)),
    (D.Dirichlet(t([2.0, 3.0, 4.0])), Simplex(3)),
]


@pytest.mark.parametrize(("distribution", "space"), DISTRIBUTIONS, ids=lambda v: type(v).__name__)
def test_density_energy(distribution: D.Distribution, space: Space) -> None:
    e = DensityEnergy(distribution)
    assert e.spaces["x"] == space
    assert e.normalised == {"x"}
    own = (
        distribution
        if not distribution.batch_shape
        else D.Independent(distribution, len(distribution.batch_shape))
    )
    x = e.ancestral(4, generator=torch.Generator().manual_seed(0))["x"]
    assert torch.allclose(e(x=x), -own.log_prob(x))
    gradcheck(e, {"x": x}, tol=1e-5)
    twin = DensityEnergy(**e.config())
    assert torch.allclose(twin(x=x), e(x=x))
    again = e.ancestral(4, generator=torch.Generator().manual_seed(0))["x"]
    assert torch.equal(x, again)


@pytest.mark.parametrize(
    "distribution",
    [distribution for distribution, _ in DISTRIBUTIONS if not isinstance(distribution, D.Uniform)],
    ids=lambda v: type(v).__name__,
)
def test_learned_density_starts_at_the_distribution(distribution: D.Distribution) -> None:
    fixed, learned = DensityEnergy(distribution), DensityEnergy(distribution, learn=True)
    x = fixed.ancestral(5, generator=torch.Generator().manual_seed(0))["x"]
    assert torch.allclose(fixed(x=x), learned(x=x))
    assert not list(fixed.parameters())
    grads = torch.autograd.grad(learned(x=x).sum(), list(learned.parameters()))
    assert all(torch.isfinite(g).all() for g in grads)


def test_round_trip_differs_by_one_constant() -> None:
    """Any energy with a distribution comes back from its density as e + log Z."""
    from tests.energy.helpers import linear_gaussian

    e = linear_gaussian()
    x = t([[2.0, 1.0]])
    back = DensityEnergy(e.code(x).__class__(e.code(x).loc[0], e.code(x).covariance_matrix[0]), "z")
    z = torch.randn(7, 1, dtype=F64, generator=torch.Generator().manual_seed(0))
    gap = back(z=z) - e(x=x.expand(7, 2), z=z)
    F = exact_free_energy(e, ("z",), {"x": x})
    assert F is not None
    assert torch.allclose(gap, -F.expand(7), atol=1e-12)


def test_outside_the_support_is_forbidden() -> None:
    for distribution in (D.Gamma(t(2.0), t(1.0)), D.Beta(t(2.0), t(2.0)), D.Poisson(t(2.0))):
        e = DensityEnergy(distribution)
        x = t([0.5, -1.0]).requires_grad_() if e.spaces["x"].is_real else t([1.0, 0.5])
        values = e(x=x)
        assert values[1] == math.inf and math.isfinite(values[0].item())
        if x.requires_grad:
            (grad,) = torch.autograd.grad(values[0], x)
            assert grad[1] == 0 and torch.isfinite(grad).all()


def test_temperature_of_distributions() -> None:
    distribution = posterior(DensityEnergy(D.Gamma(t([3.0]), t([2.0]))), "x", T=2.0)
    assert torch.allclose(distribution.mean, t([[2.0]]))  # Gamma(2, 1)
    with pytest.raises(Unsupported, match="StudentT to the power"):
        posterior(DensityEnergy(D.StudentT(t([5.0]))), "x", T=2.0)


def test_gaussian_known_in_part() -> None:
    cov = t([[2.0, 1.0], [1.0, 2.0]])
    e = DensityEnergy(D.MultivariateNormal(torch.zeros(2, dtype=F64), cov))
    x, mask = (
        t([[1.0, 0.0], [0.0, 3.0], [1.0, 2.0]]),
        torch.tensor([[False, True], [True, False], [True, True]]),
    )
    best = minimise(e, {"x": mask}, {"x": x})
    assert best.exact
    assert torch.allclose(best["x"], t([[1.0, 0.5], [1.5, 3.0], [0.0, 0.0]]), atol=1e-12)
    log_z = math.log(2 * math.pi) + 0.5 * math.log(3)
    assert log_z == pytest.approx(2.387183, abs=5e-7)
    F = marginalise(e, {"x": mask}, {"x": x}).value - log_z  # of the unnormalised energy
    assert F[0].item() == pytest.approx(-0.871671, abs=5e-7)
    assert (best.energy - log_z)[0].item() == pytest.approx(0.25)
    draws = sample(e, {"x": mask}, {"x": x}, n=20000, generator=torch.Generator().manual_seed(0))[
        "x"
    ]
    assert (draws[:, 0, 0] == 1).all()
    assert draws[:, 0, 1].var().item() == pytest.approx(1.5, rel=0.05)


def test_bayes_by_table() -> None:
    likelihood = t([0.10, 0.40, 0.05])
    e = DirectedEnergy(
        D.Categorical(probs=t([0.5, 0.3, 0.2])), lambda z: D.Bernoulli(probs=likelihood[z])
    )
    x = torch.ones(1, dtype=F64)
    distribution = posterior(e, "z", {"x": x})
    assert torch.allclose(distribution.probs, t([[0.277778, 0.666667, 0.055556]]), atol=5e-7)
    assert (-marginalise(e, "z", {"x": x}).value).exp().item() == pytest.approx(0.18)
    rare = DirectedEnergy(
        D.Categorical(probs=t([0.01, 0.99])), lambda z: D.Bernoulli(probs=t([0.9, 0.1])[z])
    )
    assert posterior(rare, "z", {"x": x}).probs[0, 0].item() == pytest.approx(0.083333, abs=5e-7)


def test_beta_bernoulli_gamma_poisson_dirichlet() -> None:
    coin = DirectedEnergy(D.Beta(t(1.0), t(1.0)), BernoulliOf(3))
    distribution = posterior(coin, "z", {"x": t([[1.0, 1.0, 0.0]])})
    assert (distribution.concentration1.item(), distribution.concentration0.item()) == (3.0, 2.0)
    counts = DirectedEnergy(D.Gamma(t([2.0]), t([1.0])), PoissonOf(2))
    distribution = posterior(counts, "z", {"x": t([[3.0, 4.0]])})
    assert (distribution.base_dist.concentration.item(), distribution.base_dist.rate.item()) == (
        9.0,
        3.0,
    )
    labels = DirectedEnergy(D.Dirichlet(t([1.0, 2.0, 3.0])), CategoricalOf())
    distribution = posterior(labels, "z", {"x": torch.tensor([2])})
    assert distribution.concentration.tolist() == [[1.0, 2.0, 4.0]]
    g = torch.Generator().manual_seed(0)
    for e in (coin, counts, labels):
        gradcheck(e, e.ancestral(3, generator=g), tol=1e-5)


def test_linear_normal_is_the_linear_gaussian() -> None:
    from tests.energy.helpers import linear_gaussian

    e = linear_gaussian()
    directed = DirectedEnergy(D.Normal(0 * ONE, 2 * ONE), LinearNormal(e.W.data, e.b.data))
    x = t([[2.0, 1.0], [0.0, 0.0]])
    ours, theirs = posterior(directed, "z", {"x": x}), posterior(e, "z", {"x": x})
    assert torch.allclose(ours.mean, theirs.mean)
    assert torch.allclose(ours.covariance_matrix, theirs.covariance_matrix)
    F = marginalise(directed, "z", {"x": x}).value  # −log p(x)
    cov = torch.eye(2, dtype=F64) + 4 * e.W @ e.W.T
    assert torch.allclose(F, -D.MultivariateNormal(e.b, cov).log_prob(x))


def test_mixture_marginal_matches_monte_carlo() -> None:
    means = t([-2.0, 1.0, 4.0])
    e = DirectedEnergy(
        D.Categorical(probs=t([0.2, 0.5, 0.3])),
        lambda z: D.Independent(D.Normal(means[z][:, None], ONE), 1),
    )
    g = torch.Generator().manual_seed(0)
    z = e.ancestral(40000, generator=g)["z"]
    x = t([[0.5]])
    estimate = D.Normal(means[z], ONE).log_prob(x[:, 0]).exp()
    exact = (-e.marginal("z")(x=x)).exp().item()
    stderr = estimate.std().item() / 200
    assert abs(estimate.mean().item() - exact) < 4 * stderr
    draws = e.ancestral(40000, generator=g)["x"]
    assert draws.mean().item() == pytest.approx(1.3, abs=0.05)


def test_likelihood_without_conjugate_has_no_posterior() -> None:
    e = DirectedEnergy(D.Normal(0 * ONE, ONE), lambda z: D.Independent(D.Normal(z.tanh(), ONE), 1))
    assert e.ability("conditional", "z") is None
    assert e.ability("conditional", "x") is not None
    with pytest.raises(Unsupported, match="plain function"):
        e.config()
    with pytest.raises(Unsupported, match="batch shape"):
        DirectedEnergy(D.Normal(0 * ONE, ONE), lambda z: D.Normal(z, ONE))
    with pytest.raises(Unsupported, match="T=1"):
        e.ancestral(3, T=2.0)


@pytest.mark.parametrize("family", [*HEADS, "categorical"])
def test_every_head(family: str) -> None:
    m = 3 if family == "categorical" else 1
    e = DistributionHead(family, 2, m, net=(4,)).double()
    for name, parameter in e.named_parameters():
        parameter.data += 1.5 * name.endswith("bias")  # away from densities without end at 0
    g = torch.Generator().manual_seed(0)
    x = torch.randn(3, 2, generator=g, dtype=F64)
    y = sample(e, "y", {"x": x}, n=1, generator=g)["y"][0]
    assert e.spaces["y"].contains(y).all()
    report = gradcheck(e, {"x": x, "y": y}, tol=1e-4)  # Laplace has a kink
    assert any(name.startswith("conditional") for name in report.checks)


def test_head_by_maximum_likelihood() -> None:
    """49 heads of 80: λ = .6125 and the derivative of the mean NLL is zero there."""
    e = DistributionHead("bernoulli", 1, net=()).double()
    y = torch.cat((torch.ones(49), torch.zeros(31))).double()[:, None]
    x = torch.zeros(80, 1, dtype=F64)
    bias = dict(e.named_parameters())["net.layers.0.bias"]
    bias.data.fill_(math.log(0.6125 / 0.3875))
    (grad,) = torch.autograd.grad(e(x=x, y=y).mean(), bias)
    assert grad.abs().item() < 1e-12
    assert minimise(e, "y", {"x": x[:1]})["y"].item() == 1.0
    with pytest.raises(Unsupported, match="family 'weibull' is not known"):
        DistributionHead("weibull", 1)


def test_ranking_head() -> None:
    """A distribution of rankings is an energy of sequences: +inf where an item repeats."""
    e = DistributionHead("plackett_luce", 2, 3, net=()).double()
    x = torch.randn(2, 2, generator=torch.Generator().manual_seed(0), dtype=F64)
    table = e.table("y", x=x)  # all 27 sequences
    assert torch.isinf(table).sum(1).tolist() == [21, 21]
    assert torch.allclose(torch.logsumexp(-table, 1), torch.zeros(2, dtype=F64), atol=1e-12)
    best = e.spaces["y"].enumerate()[table.argmin(1)]
    assert torch.equal(minimise(e, "y", {"x": x})["y"], best)


def test_links_of_a_head() -> None:
    e = DistributionHead("poisson", 1, net=(), link="exp").double()
    for p in e.parameters():
        p.data.zero_()
    y = torch.tensor([[0.0]], dtype=F64)
    assert e(x=torch.zeros(1, 1, dtype=F64), y=y).item() == 1.0  # rate e⁰
    assert DistributionHead(**e.config()).link == "exp"


def test_tied_bernoulli_mode_is_zero() -> None:
    e = DistributionHead("bernoulli", 1, net=())
    for p in e.parameters():
        p.data.zero_()
    assert minimise(e, "y", {"x": torch.ones(1, 1)})["y"].item() == 0.0
