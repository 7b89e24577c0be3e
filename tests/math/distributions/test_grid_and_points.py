"""Convolutions on grids, empirical distributions, directions, and where distributions come from."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.signal
import scipy.stats as st
import torch
from torch import distributions as D

from groundstate import distributions as gd
from groundstate.math.distributions.von_mises_fisher import log_normaliser

F64 = torch.float64


def t(value) -> torch.Tensor:
    return torch.tensor(value, dtype=F64)


def test_sum_of_uniforms_is_a_triangle() -> None:
    uniform = D.Uniform(t(0.0), t(1.0))
    found = gd.convolve(uniform, uniform, torch.linspace(-0.5, 2, 10_001, dtype=F64))
    assert found.log_prob(t(0.5)).exp() == pytest.approx(0.5, abs=1e-6)
    assert found.log_prob(t(1.0)).exp() == pytest.approx(1.0, abs=1e-3)
    assert torch.trapezoid(found.p, found.x) == pytest.approx(1, abs=1e-6)
    assert found.mean == pytest.approx(1, abs=1e-6)
    assert found.variance == pytest.approx(1 / 6, abs=1e-6)


def test_normals_add_means_and_variances() -> None:
    grid = torch.linspace(-12, 12, 2001, dtype=F64)
    found = gd.convolve(D.Normal(t(1.0), t(0.6)), D.Normal(t(-0.5), t(0.8)), grid)
    x = torch.linspace(-2, 3, 11, dtype=F64)
    torch.testing.assert_close(
        found.log_prob(found.x[1900:2100:20]).exp(),
        D.Normal(t(0.5), t(1.0)).log_prob(found.x[1900:2100:20]).exp(), atol=1e-10, rtol=0,
    )  # fmt: skip
    torch.testing.assert_close(found.cdf(x), D.Normal(t(0.5), t(1.0)).cdf(x), atol=1e-4, rtol=0)
    peer = scipy.signal.fftconvolve(*(D.Normal(*map(t, a)).log_prob(grid).exp().numpy()
                                      for a in ((1.0, 0.6), (-0.5, 0.8)))) * 0.012  # fmt: skip
    np.testing.assert_allclose(found.p.numpy(), peer, atol=1e-10)


def test_counts_and_smoothing() -> None:
    die = [0.0, *[1 / 6] * 6]
    two = gd.convolve(die, die, np.arange(7.0), pmf=True)
    assert two.log_prob(t(7.0)).exp() == pytest.approx(6 / 36)
    assert two.cdf(t([1.0, 2.0, 12.0])).tolist() == pytest.approx([0, 1 / 36, 1])
    grid = torch.linspace(-8, 14, 4001, dtype=F64)
    smoothed = gd.convolve(D.Exponential(t(1.0)), D.Normal(t(0.0), t(0.5)), grid)
    peer = st.exponnorm(2.0, scale=0.5)
    x = np.array([-0.5, 0.3, 1.0, 4.0])
    np.testing.assert_allclose(smoothed.log_prob(t(x)).exp().numpy(), peer.pdf(x), atol=1e-4)
    sums = [gd.Levy(t(0.0), t(1.0))]
    with pytest.raises(ValueError, match="widen it"):
        gd.convolve(sums[0], sums[0], grid)


def test_grid_density_samples_and_inverts() -> None:
    x = torch.linspace(-5, 5, 1001, dtype=F64)
    p = gd.GridDensity(x, D.Normal(t(0.0), t(1.0)).log_prob(x).exp())
    q = t([0.01, 0.3, 0.9])
    torch.testing.assert_close(p.cdf(p.icdf(q)), q, atol=1e-12, rtol=0)
    draws = p.draw(20_000, torch.Generator().manual_seed(0))
    assert st.kstest(draws.numpy(), "norm").pvalue > 0.01
    assert p.log_prob(t(9.0)) == -math.inf
    with pytest.raises(ValueError, match="equal steps"):
        gd.GridDensity([0.0, 1.0, 3.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="at least 0"):
        gd.GridDensity([0.0, 1.0], [1.0, -1.0])


def test_empirical() -> None:
    x = np.random.default_rng(0).normal(size=50).round(1)
    p = gd.Empirical(x)
    assert float(p.expectation(lambda v: v**3)) == pytest.approx((x**3).mean())
    at = np.linspace(-3, 3, 61).round(2)
    np.testing.assert_allclose(p.cdf(at).numpy(), st.ecdf(x).cdf.evaluate(at), atol=1e-12)
    q = np.array([0.02, 0.25, 0.5, 0.98])
    peer = np.quantile(x, q, method="inverted_cdf")
    np.testing.assert_allclose(p.icdf(q).numpy(), peer)
    draws = p.draw(20_000, torch.Generator().manual_seed(0))
    assert set(draws.tolist()) <= set(x.tolist())
    assert abs(float(draws.mean()) - x.mean()) < 4 * x.std() / math.sqrt(20_000)
    w = np.ones(50)
    w[3] = 2
    twice = gd.Empirical(np.append(x, x[3]))
    weighted = gd.Empirical(x, w)
    np.testing.assert_allclose(weighted.cdf(at).numpy(), twice.cdf(at).numpy(), atol=1e-12)
    assert float(weighted.variance) == pytest.approx(float(twice.variance))
    assert float(twice.log_prob(t(x[3])).exp()) >= 2 / 51 - 1e-12
    kde = p.smooth(0.4)
    by_hand = np.log(
        np.mean(np.exp(-0.5 * ((0.3 - x) / 0.4) ** 2)) / (0.4 * math.sqrt(2 * math.pi))
    )
    assert kde.score_samples([[0.3]])[0] == pytest.approx(by_hand)
    rows = gd.Empirical(np.arange(6.0).reshape(3, 2))
    assert rows.mean.tolist() == [2.0, 3.0] and rows.log_prob(t([2.0, 3.0])).exp() == pytest.approx(
        1 / 3
    )
    with pytest.raises(ValueError, match="one column"):
        rows.cdf(0.0)
    with pytest.raises(ValueError, match="one number per point"):
        gd.Empirical([1.0, 2.0], [1.0])


@pytest.mark.parametrize("d", [2, 3, 5, 20])
@pytest.mark.parametrize("kappa", [0.0, 0.7, 30.0, 2000.0])
def test_directions_equal_scipy(d: int, kappa: float) -> None:
    from scipy.special import ive

    nu = d / 2 - 1
    if kappa > 0:
        log_bessel = math.log(ive(nu, kappa)) + kappa
        exact = d / 2 * math.log(2 * math.pi) + log_bessel - nu * math.log(kappa)
    else:
        exact = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
    assert float(log_normaliser(t(kappa), d)) == pytest.approx(exact, rel=1e-10)


def test_directions_draw_fit_and_differentiate() -> None:
    mu = t([0.6, 0.0, 0.8, 0.0])
    p = gd.VonMisesFisher(mu, 4.0)
    x = p.draw(20_000, torch.Generator().manual_seed(0))
    torch.testing.assert_close(x.norm(dim=1), torch.ones(20_000, dtype=F64))
    error = (x @ mu).std() / math.sqrt(20_000)
    assert abs(float((x @ mu).mean() - p.resultant())) < 4 * error
    assert float((x.mean(0) - p.mean).abs().max()) < 0.02
    assert -p.log_prob(x).mean() == pytest.approx(float(p.entropy()), abs=0.03)
    found = gd.VonMisesFisher.fit(x)
    assert found.concentration == pytest.approx(4.0, abs=0.15)
    kappa = torch.tensor([0.5, 3.0, 40.0], dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda k: log_normaliser(k, 4), kappa)
    theirs = st.vonmises_fisher(mu.numpy(), 4.0)
    np.testing.assert_allclose(p.log_prob(x[:5]).numpy(), theirs.logpdf(x[:5].numpy()), rtol=1e-9)
    with pytest.raises(ValueError, match="length one"):
        gd.VonMisesFisher.fit(torch.ones(4, 3))
    assert gd.VonMisesFisher(mu, t([1.0, 2.0])).sample((3,)).shape == (3, 2, 4)


def test_constructions() -> None:
    made = gd.constructions
    distances = [made.poisson(3.0, n, 10).distance for n in (10, 100, 1000)]
    assert distances == pytest.approx([0.0864089, 0.0076070, 0.00075154], abs=1e-6)
    for found in (
        made.binomial(12, 0.3), made.multinomial(4, [0.5, 0.3, 0.2]), made.negative_binomial(3, 0.4),
        made.exponential(2.0, 5000.0), made.levy(),
    ):  # fmt: skip
        assert found.pvalue > 0.001, found.name
    gaps = [made.exponential(2.0, 500.0, random_state=i).pvalue for i in range(300)]
    assert st.kstest(gaps, "uniform").pvalue > 0.01
    assert made.stirling(10) / math.factorial(10) == pytest.approx(0.99170, abs=1e-5)
    t_gaps = [made.normal_from_t(df, 10).distance for df in (1, 2, 5, 30, 100)]
    assert t_gaps == sorted(t_gaps, reverse=True)
    with pytest.raises(ValueError, match="sum to 1"):
        made.multinomial(3, [0.5, 0.4])
