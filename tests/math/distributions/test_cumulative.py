"""The catalogue: densities integrate to one, distribution functions and their inverses, worked numbers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats as st
import torch
from scipy.integrate import quad
from torch import distributions as D

from groundstate import distributions as gd
from groundstate.math.distributions.calculus.cumulative import betainc, gammainc

F64 = torch.float64


def t(value) -> torch.Tensor:
    return torch.tensor(value, dtype=F64)


CONTINUOUS = {
    "normal": (D.Normal(t(0.3), t(1.4)), st.norm(0.3, 1.4)),
    "student": (D.StudentT(t(3.5), t(0.5), t(2.0)), st.t(3.5, 0.5, 2)),
    "cauchy": (D.Cauchy(t(0.5), t(2.0)), st.cauchy(0.5, 2)),
    "laplace": (D.Laplace(t(0.5), t(2.0)), st.laplace(0.5, 2)),
    "exponential": (D.Exponential(t(0.7)), st.expon(scale=1 / 0.7)),
    "gamma": (D.Gamma(t(2.5), t(0.7)), st.gamma(2.5, scale=1 / 0.7)),
    "chi2": (D.Chi2(t(3.0)), st.chi2(3)),
    "inverse gamma": (D.InverseGamma(t(2.5), t(0.7)), st.invgamma(2.5, scale=0.7)),
    "beta": (D.Beta(t(0.5), t(2.0)), st.beta(0.5, 2)),
    "F": (D.FisherSnedecor(t(3.0), t(7.0)), st.f(3, 7)),
    "lognormal": (D.LogNormal(t(0.2), t(0.8)), st.lognorm(0.8, scale=math.exp(0.2))),
    "uniform": (D.Uniform(t(4.0), t(6.0)), st.uniform(4, 2)),
    "levy": (gd.Levy(t(0.5), t(2.0)), st.levy(0.5, 2)),
}
COUNTS = {
    "bernoulli": (D.Bernoulli(t(0.3)), st.bernoulli(0.3)),
    "binomial": (D.Binomial(6, t(0.3)), st.binom(6, 0.3)),
    "poisson": (D.Poisson(t(2.2)), st.poisson(2.2)),
    "geometric": (D.Geometric(t(0.3)), st.geom(0.3, loc=-1)),
    "negative binomial": (D.NegativeBinomial(t(3.0), probs=t(0.6)), st.nbinom(3, 0.4)),
}
Q = np.array([0.001, 0.3, 0.5, 0.9, 0.999])
X = np.array([-3.0, -0.5, 0.0, 0.2, 0.7, 1.0, 2.5, 4.7, 9.0])


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_equal_scipy_and_derive_to_the_density(name: str) -> None:
    ours, theirs = CONTINUOUS[name]
    np.testing.assert_allclose(gd.cdf(ours, X), theirs.cdf(X), atol=1e-12)
    np.testing.assert_allclose(gd.icdf(ours, Q), theirs.ppf(Q), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gd.cdf(ours, gd.icdf(ours, Q)), Q, atol=1e-10)
    inside = t(theirs.ppf([0.2, 0.45, 0.8])).requires_grad_()
    (slope,) = torch.autograd.grad(gd.cdf(ours, inside).sum(), inside)
    torch.testing.assert_close(slope, ours.log_prob(inside).exp().detach())
    far = theirs.ppf(0.99)
    assert gd.log_sf(ours, far) == pytest.approx(theirs.logsf(far), rel=1e-9)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_equal_scipy(name: str) -> None:
    ours, theirs = COUNTS[name]
    np.testing.assert_allclose(gd.cdf(ours, X), theirs.cdf(X), atol=1e-12)
    np.testing.assert_array_equal(gd.icdf(ours, Q), theirs.ppf(Q))
    assert gd.prob(ours, 1, 1) == pytest.approx(theirs.pmf(1))
    assert gd.prob(ours, 0, 1) == pytest.approx(theirs.cdf(1))


@pytest.mark.parametrize("name", ["student", "gamma", "beta", "levy", "laplace"])
def test_densities_integrate_to_one(name: str) -> None:
    ours, theirs = CONTINUOUS[name]
    ends = theirs.ppf(np.concatenate([[1e-6, 1e-4], np.linspace(0.01, 0.99, 9), [1 - 1e-4]]))
    density = lambda x: float(ours.log_prob(t(x)).exp())
    mass = sum(quad(density, a, b)[0] for a, b in pairwise(ends))
    assert mass == pytest.approx(1 - 1e-4 - 1e-6, abs=1e-6)


def test_parameters_have_gradients() -> None:
    def free(value) -> torch.Tensor:
        return t(value).requires_grad_()

    check = torch.autograd.gradcheck
    x = free([-2.0, 0.3, 1.7, 0.0])
    student = lambda *a: gd.cdf(D.StudentT(*a[1:], validate_args=False), a[0])
    assert check(student, (x, free(3.3), free(0.1), free(1.3)))
    assert check(lambda x, a: gammainc(a, x), (free([0.2, 0.9, 4.0]), free(2.3)))
    assert check(lambda x, a, b: betainc(a, b, x), (free([0.2, 0.5, 0.95]), free(2.3), free(0.8)))
    assert check(lambda p: gd.cdf(D.Binomial(7, p, validate_args=False), t([1.0, 3.0])), free(0.3))
    assert check(lambda p: gd.cdf(D.Poisson(p, validate_args=False), t([1.0, 3.0])), free(2.3))
    q = free([0.2, 0.7])
    assert check(lambda q, a, b: gd.icdf(D.Gamma(a, b, validate_args=False), q),
                 (q, free(2.3), free(0.8)))  # fmt: skip
    assert check(lambda q, a: gd.icdf(D.StudentT(a, validate_args=False), q), (q, free(2.3)))


def test_batches_and_arrays() -> None:
    df = t([1.0, 2.0, 5.0])
    x = torch.linspace(-2, 2, 7, dtype=F64)[:, None]
    loop = torch.stack([gd.cdf(D.StudentT(v), x[:, 0]) for v in df], 1)
    torch.testing.assert_close(gd.cdf(D.StudentT(df), x), loop, atol=1e-12, rtol=0)
    found = gd.cdf(D.StudentT(t(3.0)), x.numpy())
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, gd.cdf(D.StudentT(t(3.0)), x).numpy(), atol=1e-15)
    with pytest.raises(ValueError, match="between 0 and 1"):
        gd.icdf(D.StudentT(t(3.0)), 1.5)


def test_worked_numbers() -> None:
    normal = D.Normal(t(0.0), t(1.0))
    assert normal.log_prob(t(0.0)).exp() == pytest.approx(0.3989422804, abs=1e-10)
    assert gd.cdf(normal, 1.959964) == pytest.approx(0.975, abs=1e-7)
    assert -normal.log_prob(t(1.0)) == pytest.approx(1.418939, abs=1e-6)
    peaks = [float(D.StudentT(t(df)).log_prob(t(0.0)).exp()) for df in (1.0, 2.0, 5.0, 30.0)]
    assert peaks == pytest.approx([0.318310, 0.353553, 0.379607, 0.395632], abs=1e-6)
    counts = D.Multinomial(4, t([0.5, 0.3, 0.2])).log_prob(t([2.0, 1.0, 1.0])).exp()
    assert counts == pytest.approx(0.18)
    # failures before the third success: torch counts "successes" before failures
    assert D.NegativeBinomial(3, probs=t(0.6)).log_prob(t(2.0)).exp() == pytest.approx(0.13824)
    assert st.nbinom(3, 0.4).pmf(2) == pytest.approx(0.13824)
    geometric = D.Geometric(t(0.5)).log_prob(t([0.0, 1.0, 2.0])).exp()
    assert geometric.tolist() == pytest.approx([0.5, 0.25, 0.125])
    for lam, variance, peak in ((0.5, 8, 0.25), (1, 2, 0.5), (2, 0.5, 1), (3, 0.2222, 1.5)):
        laplace = D.Laplace(t(0.0), t(1 / lam))
        assert laplace.variance == pytest.approx(variance, abs=1e-4)
        assert laplace.log_prob(t(0.0)).exp() == pytest.approx(peak)
    assert math.gamma(0.5) == pytest.approx(math.sqrt(math.pi))
    lifetime = D.Uniform(t(4.0), t(6.0))
    assert gd.prob(lifetime, 5.0, 5.01) == pytest.approx(0.005) and gd.prob(lifetime, 5.0, 5.0) == 0
    assert D.Normal(t(0.0), t(0.1)).log_prob(t(0.0)).exp() > 1  # a density may exceed one
    assert gd.prob(normal, 8.0, 9.0) == pytest.approx(st.norm.sf(8) - st.norm.sf(9), rel=1e-10)
    for df, c in ((4, 2.7764), (9, 2.2622), (29, 2.0452)):  # the printed table
        assert gd.icdf(D.StudentT(t(float(df))), 0.975) == pytest.approx(c, abs=1e-4)
