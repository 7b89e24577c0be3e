"""Families and links: cumulants, deviances, distributions and maps that keep their promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from groundstate.errors import DataError, Unsupported
from groundstate.math.distributions import (
    FAMILIES,
    Bernoulli,
    Categorical,
    Family,
    Gamma,
    Gaussian,
    InverseGaussian,
    NegativeBinomial,
    Poisson,
    Tweedie,
    family_of,
)
from groundstate.math.distributions.links import (
    LINKS,
    CLogLog,
    Inverse,
    InversePower,
    Link,
    Log,
    Logit,
    Probit,
    Softmax,
    link_of,
)

SCALAR: list[Family] = [
    Gaussian(), Bernoulli(), Poisson(), Gamma(), InverseGaussian(), NegativeBinomial(0.5),
    Tweedie(1.5), Tweedie(2.5), Tweedie(0.0), Tweedie(1.0),
]  # fmt: skip
MU = torch.tensor([0.2, 0.5, 0.8], dtype=torch.float64)
Z = torch.tensor([-1000.0, -3.0, -0.2, 0.4, 2.0, 1000.0], dtype=torch.float64)


@pytest.mark.parametrize("family", SCALAR, ids=repr)
def test_mean_and_variance_are_derivatives_of_the_cumulant(family: Family) -> None:
    theta = family.natural(MU).clone().requires_grad_()
    first = torch.autograd.grad(family.cumulant(theta).sum(), theta, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), theta)[0]
    torch.testing.assert_close(first.detach(), MU)
    torch.testing.assert_close(second, family.variance(MU))


@pytest.mark.parametrize("family", SCALAR, ids=repr)
def test_deviance_is_zero_at_the_mean_and_positive_elsewhere(family: Family) -> None:
    y = torch.tensor([[0.3], [0.5], [0.9]], dtype=torch.float64)
    d = family.unit_deviance(y, torch.tensor([0.1, 0.3, 0.5, 0.9], dtype=torch.float64))
    same = torch.isclose(y, torch.tensor([0.1, 0.3, 0.5, 0.9], dtype=torch.float64))
    assert (d[same].abs() < 1e-12).all() and (d[~same] > 0).all()


@pytest.mark.parametrize("family", [f for f in SCALAR if f != Tweedie(2.5)], ids=repr)
def test_deviance_is_twice_the_loss_of_log_probability(family: Family) -> None:
    phi = 0.7 if family.scaled else 1.0
    y = torch.ones(3, dtype=torch.float64) if family.whole else MU.flip(0) + 0.1
    close = MU.clone()
    gap = family.log_prob(y, close, phi) - family.log_prob(y, close * 0.9, phi)
    lost = family.unit_deviance(y, close * 0.9) - family.unit_deviance(y, close)
    torch.testing.assert_close(2 * phi * gap, lost)


@pytest.mark.parametrize("family", [f for f in SCALAR if f != Tweedie(2.5)], ids=repr)
def test_draws_have_the_mean_and_the_variance(family: Family) -> None:
    phi = 0.5 if family.scaled else 1.0
    draws = family.sample(MU, phi, 40_000, torch.Generator().manual_seed(0))
    assert family.supports(draws).all()
    variance = phi * family.variance(MU)
    assert ((draws.mean(0) - MU).abs() < 5 * (variance / 40_000).sqrt()).all()
    torch.testing.assert_close(draws.var(0), variance, rtol=0.1, atol=0.0)


@pytest.mark.parametrize("family", [f for f in SCALAR if f != Tweedie(2.5)], ids=repr)
def test_quantiles_cut_the_draws(family: Family) -> None:
    phi = 0.5 if family.scaled else 1.0
    draws = family.sample(MU, phi, 20_000, torch.Generator().manual_seed(1))
    for q in (0.1, 0.6, 0.95):
        end = family.quantile(q, MU, phi)
        below, strictly = (draws <= end).double().mean(0), (draws < end).double().mean(0)
        assert (below > q - 0.02).all() and (strictly < q + 0.02).all()


def test_inverse_gaussian_and_tweedie_densities() -> None:
    y = np.array([0.3, 1.0, 2.5])
    ours = InverseGaussian().log_prob(torch.tensor(y), torch.full((3,), 1.5).double(), 0.4)
    theirs = scipy.stats.invgauss.logpdf(y, 1.5 * 0.4, scale=1 / 0.4)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    grid = torch.linspace(1e-6, 40, 40_001, dtype=torch.float64)
    distribution = Tweedie(1.3)
    density = distribution.log_prob(grid, torch.full_like(grid, 1.7), 0.8).exp()
    atom = distribution.log_prob(torch.zeros(1).double(), torch.full((1,), 1.7).double(), 0.8).exp()
    assert abs(float(torch.trapezoid(density, grid)) + float(atom) - 1) < 1e-3
    # of every jump count: a compound distribution written out
    lam = 1.7**0.7 / (0.8 * 0.7)
    shape, scale = 0.7 / 0.3, 0.8 * 0.3 * 1.7**0.3
    k = np.arange(1, 60)
    parts = scipy.stats.poisson.pmf(k, lam) * scipy.stats.gamma.pdf(2.0, k * shape, scale=scale)
    ours = distribution.log_prob(
        torch.tensor([2.0]).double(), torch.full((1,), 1.7, dtype=torch.float64), 0.8
    )
    assert math.isclose(float(ours), math.log(parts.sum()), rel_tol=1e-9)


def test_categorical_is_softmax() -> None:
    theta = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(Categorical().cumulant(theta), theta, create_graph=True)[0]
    np.testing.assert_allclose(first.detach(), [0.090031, 0.244728, 0.665241], atol=1e-6)
    jacobian = torch.stack([torch.autograd.grad(f, theta, retain_graph=True)[0] for f in first])
    torch.testing.assert_close(jacobian, Categorical().variance(first.detach()))
    torch.testing.assert_close(Softmax().derivative(theta.detach()), jacobian)
    torch.testing.assert_close(Softmax().inverse(theta + 100), Softmax().inverse(theta))
    pair = torch.tensor([0.3, 1.7], dtype=torch.float64)
    torch.testing.assert_close(Softmax().inverse(pair)[1], torch.sigmoid(pair[1] - pair[0]))
    with pytest.raises(DataError, match="sum to 1"):
        Categorical().check(torch.tensor([[0.5, 0.2]]))
    with pytest.raises(DataError, match="no order"):
        Categorical().quantile(0.5, MU)


REAL: list[Link] = [
    LINKS["identity"](), Log(), Logit(), Probit(), CLogLog(), Inverse(), InversePower(2.0),
]  # fmt: skip


@pytest.mark.parametrize("link", REAL, ids=repr)
def test_links_invert_and_differentiate(link: Link) -> None:
    torch.testing.assert_close(link.inverse(link.link(MU)), MU)
    eta = link.link(MU).clone().requires_grad_()
    slope = torch.autograd.grad(link.inverse(eta).sum(), eta)[0]
    torch.testing.assert_close(link.derivative(eta.detach()), slope)


@pytest.mark.parametrize("link", [Log(), Logit(), Probit(), CLogLog(), Inverse()], ids=repr)
def test_links_are_stable_far_out(link: Link) -> None:
    for value in (link.inverse(Z), link.derivative(Z)):
        assert not torch.isnan(value).any()
    if link.high == 1:
        mu = link.inverse(Z)
        assert (mu >= 0).all() and (mu <= 1).all()


def test_the_sigmoid_is_the_logistic_distribution_function() -> None:
    sigma = Logit().inverse(Z)
    torch.testing.assert_close(sigma, torch.tensor(scipy.stats.logistic.cdf(Z.numpy())))
    torch.testing.assert_close(Logit().inverse(-Z), 1 - sigma)
    torch.testing.assert_close(Logit().derivative(Z), sigma * (1 - sigma))
    assert float(Logit().inverse(torch.zeros(1))) == 0.5


@pytest.mark.parametrize(
    ("family", "bad"),
    [(Poisson(), -1.0), (Gamma(), 0.0), (InverseGaussian(), -0.1), (Bernoulli(), 1.5),
     (Tweedie(1.5), -1.0), (Tweedie(2.5), 0.0), (NegativeBinomial(), math.nan)],
    ids=repr,
)  # fmt: skip
def test_values_outside_the_support_are_named(family: Family, bad: float) -> None:
    with pytest.raises(ValueError, match=f"family '{family.name}'.*got"):
        family.check(torch.tensor([1.0, bad], dtype=torch.float64))
    if family != Tweedie(2.5):
        assert float(family.log_prob(torch.tensor(bad), torch.tensor(0.5))) == -math.inf


def test_names_and_mistakes() -> None:
    assert isinstance(family_of("poisson"), Poisson) and family_of(Gamma()) == Gamma()
    assert set(FAMILIES) >= {"gaussian", "bernoulli", "categorical", "tweedie"}
    assert link_of("probit") == Probit()
    with pytest.raises(Unsupported, match="not known.*poisson"):
        family_of("poison")
    with pytest.raises(Unsupported, match="not known.*logit"):
        link_of("logistic")
    with pytest.raises(ValueError, match="between 0 and 1"):
        Tweedie(0.5)
    with pytest.raises(ValueError, match="above 0"):
        NegativeBinomial(0.0)
    with pytest.raises(Unsupported, match="can be fitted"):
        Tweedie(2.5).distribution(MU)


def test_negative_binomial_nears_poisson() -> None:
    y: Tensor = torch.arange(4.0).double()
    mu = torch.full((4,), 1.3).double()
    torch.testing.assert_close(
        NegativeBinomial(1e-7).log_prob(y, mu), Poisson().log_prob(y, mu), rtol=1e-5, atol=1e-5
    )
