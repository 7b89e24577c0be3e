"""Intervals of means and shares, regions, adjusted p-values and bounds, by their numbers."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.stats
import torch

from groundstate.errors import DataError, Unreliable
from groundstate.math import stats
from groundstate.math.divergences.bernoulli import kl_bernoulli, kl_bernoulli_inv
from groundstate.math.stats import bounds

rng = np.random.default_rng(0)


def test_half_widths_of_means() -> None:
    for n, c in (
        (2, 12.7062),
        (5, 2.7764),
        (10, 2.2622),
        (20, 2.0930),
        (30, 2.0452),
        (100, 1.9842),
    ):
        x = rng.normal(size=n)
        found = stats.mean_interval(x)
        assert (found.high - found.estimate) / (x.std(ddof=1) / math.sqrt(n)) == pytest.approx(
            c, abs=1e-4
        )
    after = [138, 132, 140, 142, 136, 142, 147, 135, 140]
    assert list(stats.mean_interval(after)) == pytest.approx([135.685, 142.537], abs=1e-3)
    big = rng.normal(size=20_000)
    t, z = stats.mean_interval(big), stats.mean_interval(big, method="normal")
    assert t.width == pytest.approx(z.width, rel=2e-4)
    with pytest.raises(DataError, match="at least two rows"):
        stats.mean_interval([1.0])


def test_coverage_of_a_mean_of_five() -> None:
    x = rng.normal(size=(40_000, 5))
    t = np.abs(x.mean(1)) / (x.std(1, ddof=1) / math.sqrt(5))
    assert np.mean(t < 2.7764) == pytest.approx(0.95, abs=0.005)
    assert np.mean(t < 1.96) == pytest.approx(0.8784, abs=0.007)
    assert scipy.stats.t.cdf(1.96, 4) * 2 - 1 == pytest.approx(0.8784, abs=1e-4)


def test_clusters_of_equal_size_are_their_means_and_weights_are_repetitions() -> None:
    x = rng.normal(size=30)
    label = np.repeat(np.arange(10), 3)
    ours = stats.mean_interval(x, cluster=label)
    plain = stats.mean_interval(x.reshape(10, 3).mean(1))
    assert (ours.low, ours.high) == pytest.approx((plain.low, plain.high))
    weight = rng.integers(0, 3, 30)
    a = stats.mean_interval(x, sample_weight=weight)
    b = stats.mean_interval(np.repeat(x, weight))
    assert (a.low, a.high) == pytest.approx((b.low, b.high))


def test_couples() -> None:
    rho, n = 0.5, 100
    pair = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=(4000, n // 2))
    means = pair.reshape(4000, n).mean(1)
    assert means.var() * n == pytest.approx(1 + rho, rel=0.08)
    label = np.repeat(np.arange(n // 2), 2)
    naive = cluster = 0
    for row in pair[:1500].reshape(1500, n):
        naive += 0.0 in stats.mean_interval(row)
        cluster += 0.0 in stats.mean_interval(row, cluster=label)
    assert naive / 1500 == pytest.approx(0.89, abs=0.02)
    assert cluster / 1500 == pytest.approx(0.95, abs=0.015)
    row = pair[:20].reshape(-1)
    label = np.repeat(np.arange(len(row) // 2), 2)
    assert stats.design_effect(row, label) == pytest.approx(1.5, abs=0.08)
    assert stats.intraclass_correlation(row, label) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize(
    ("k", "n", "level", "method", "ends"),
    [
        (900, 1000, 0.99, "wald", (0.875564, 0.924436)),
        (900, 1000, 0.99, "wilson", (0.872865, 0.921862)),
        (900, 1000, 0.99, "exact", (0.873120, 0.922978)),
        (900, 1000, 0.95, "wilson", (0.879848, 0.917091)),
        (900, 1000, 0.95, "exact", (0.879712, 0.917895)),
        (10, 10, 0.95, "wilson", (0.722467, 1.0)),
        (0, 30, 0.95, "wilson", (0.0, 0.113513)),
        (900, 1000, 0.995, "wilson", (0.870164, 0.923582)),
    ],
)
def test_shares(k: int, n: int, level: float, method: str, ends: tuple[float, float]) -> None:
    assert tuple(stats.proportion_interval(k, n, level, method)) == pytest.approx(ends, abs=1e-6)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 7), (7, 7), (250, 1000)])
def test_exact_equals_scipy(k: int, n: int) -> None:
    for method in ("exact", "wilson"):
        ours = stats.proportion_interval(k, n, 0.9, method)
        theirs = scipy.stats.binomtest(k, n).proportion_ci(0.9, method=method)
        assert tuple(ours) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    jeffreys = stats.proportion_interval(3, 7, 0.9, "jeffreys")
    assert tuple(jeffreys) == pytest.approx(scipy.stats.beta(3.5, 4.5).ppf([0.05, 0.95]))


def test_coverage_of_shares_by_exact_sums() -> None:
    n, p, level = 30, 0.05, 0.99
    distribution = scipy.stats.binom(n, p).pmf(np.arange(n + 1))
    found = {}
    for method in ("wald", "wilson", "exact"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Unreliable)
            ends = [stats.proportion_interval(k, n, level, method) for k in range(n + 1)]
        inside = np.array([low <= p <= high for low, high in ends])
        found[method] = float(distribution @ inside)
    assert list(found.values()) == pytest.approx([0.7853, 0.9844, 0.9967], abs=1e-4)


def test_shares_warn_and_refuse() -> None:
    with pytest.warns(Unreliable, match="use method='wilson'"):
        stats.proportion_interval(0, 10, method="wald")
    with pytest.raises(DataError, match="0 <= successes <= n"):
        stats.proportion_interval(11, 10)
    with pytest.raises(ValueError, match="method must be one of"):
        stats.proportion_interval(1, 10, method="magic")
    assert stats.effective_n(np.ones(9)) == 9.0


def test_incumbent() -> None:
    y = np.ones(1000)
    yhat = np.r_[np.ones(900), np.zeros(100)]
    found = stats.accuracy_report(y, yhat, incumbent=0.88)
    assert found.decision == "cannot tell"
    assert found.pvalue_greater == pytest.approx(0.0266, abs=1e-4)
    assert stats.accuracy_report(y, yhat, incumbent=0.85).decision == "better"
    assert "worse than 0.95" in str(stats.accuracy_report(y, yhat, incumbent=0.95))
    wald = stats.accuracy_report(y, yhat, incumbent=0.919, method="wald")
    z = (0.9 - 0.919) / math.sqrt(0.9 * 0.1 / 1000)
    assert (wald.decision == "worse") == (abs(z) > 1.959964)


def test_adjusted_p() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert stats.adjust_pvalues(p, "holm") == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.adjust_pvalues(p, "bh") == pytest.approx([0.02, 0.04, 0.04, 0.02])
    from statsmodels.stats.multitest import multipletests

    values = rng.uniform(size=12) ** 2
    names = {"bonferroni": "bonferroni", "holm": "holm", "hochberg": "simes-hochberg",
             "bh": "fdr_bh", "by": "fdr_by"}  # fmt: skip
    for ours, theirs in names.items():
        expected = multipletests(values, method=theirs)[1]
        assert stats.adjust_pvalues(values, ours) == pytest.approx(expected)
    with pytest.raises(DataError, match="between 0 and 1"):
        stats.adjust_pvalues([1.2])


def two_peaks(x: np.ndarray) -> np.ndarray:
    distribution = scipy.stats.norm
    return 0.5 * distribution.pdf(x, 0.2, 0.02) + 0.5 * distribution.pdf(x, 0.8, 0.02)


def test_regions_of_two_peaks() -> None:
    draws = np.concatenate([rng.normal(0.2, 0.02, 50_000), rng.normal(0.8, 0.02, 50_000)])
    assert tuple(stats.eti(draws)) == pytest.approx((0.16710, 0.83290), abs=1e-3)
    exact = stats.hdr(two_peaks, support=(0, 1))
    assert len(exact) == 2 and exact.total == pytest.approx(0.15680, abs=1e-5)
    for found in (
        stats.hdr(draws),
        stats.hdr(draws, log_density=lambda x: np.log(two_peaks(x) + 1e-300)),
    ):
        assert len(found) == 2 and found.total == pytest.approx(0.1568, abs=3e-3)
    narrow = stats.hdr(draws, log_density=np.log(two_peaks(draws)))
    assert 0.5 not in narrow and 0.2 in narrow and 0.8 in narrow
    inside = np.mean([x in exact for x in draws[::50].tolist()])
    assert inside == pytest.approx(0.95, abs=0.02)


def test_region_of_two_gaussians_and_one() -> None:
    two = stats.hdr(
        lambda x: scipy.stats.norm.pdf(x, -3) + scipy.stats.norm.pdf(x, 3), 0.9, support=(-12, 12)
    )
    flat = [end for piece in two for end in piece]
    assert flat == pytest.approx([-4.643, -1.357, 1.357, 4.643], abs=3e-3)
    one = stats.hdr(scipy.stats.norm())
    assert one.pieces[0] == pytest.approx((-1.959964, 1.959964), abs=1e-3)
    sample = stats.hdr(rng.normal(size=20_000))
    assert len(sample) == 1 and sample.pieces[0] == pytest.approx((-1.96, 1.96), abs=0.12)
    distribution = torch.distributions.Normal(
        torch.tensor(0.0).double(), torch.tensor(1.0).double()
    )
    assert tuple(stats.eti(distribution)) == pytest.approx((-1.959964, 1.959964), abs=1e-5)
    assert stats.hdr([2.0, 2.0]).pieces == ((2.0, 2.0),)
    counts = stats.hdr(np.repeat([0.0, 1.0, 2.0], [30, 40, 30]))
    assert all(value in counts for value in (0.0, 1.0, 2.0))  # the piece of 0 ended at -5e-15
    waits = rng.exponential(size=2_000)
    assert stats.hdr(waits).pieces[0][0] >= waits.min()  # an estimate of density leaks below 0
    with pytest.raises(DataError, match="support"):
        stats.hdr(lambda x: x)


def test_bounds() -> None:
    assert bounds.hoeffding(1000, 0.05) == pytest.approx(0.042947, abs=1e-6)
    assert bounds.finite_class(1000, 0.05, 1e6) == pytest.approx(0.093553, abs=1e-6)
    assert [bounds.sample_size(0.05, 0.05, s) for s in (1, 1e3, 1e6)] == [738, 2120, 3501]
    assert bounds.hoeffding_tail(100, 0.1) == pytest.approx(0.270671, abs=1e-6)
    expected = {"exact": 0.116992, "kl": 0.124808, "hoeffding": 0.138702}
    for method, value in expected.items():
        assert bounds.risk_upper(100, 1000, method=method) == pytest.approx(value, abs=1e-6)
    assert bounds.hoeffding(10, a=0, b=5) == pytest.approx(5 * bounds.hoeffding(10))
    assert bounds.risk_upper(3, 3) == 1.0
    for bad in ({"n": 0}, {"n": 1, "delta": 1.0}, {"n": 1, "size": 0}):
        with pytest.raises(ValueError):
            bounds.finite_class(**bad)


def test_kl_of_coins() -> None:
    assert kl_bernoulli(0.1, 0.2) == pytest.approx(0.036690, abs=1e-6)
    assert kl_bernoulli(0.05, 0.2) == pytest.approx(0.093943, abs=1e-6)
    assert kl_bernoulli_inv(0.1, 0.0149045) == pytest.approx(0.159576, abs=1e-6)
    assert kl_bernoulli(0.0, 1.0) == math.inf and kl_bernoulli(1.0, 1.0) == 0.0
    p, q = rng.uniform(size=(2, 500))
    assert ((p - q) ** 2 <= kl_bernoulli(p, q) / 2 + 1e-15).all()
    p = 0.05 + 0.9 * p
    for side in ("upper", "lower"):
        c = rng.uniform(0, 0.5, size=500)
        found = kl_bernoulli_inv(p, c, side)
        assert kl_bernoulli(p, found) == pytest.approx(c, rel=1e-9)
        assert (found >= p if side == "upper" else found <= p).all()
    assert kl_bernoulli_inv(0.0, 0.5) == pytest.approx(1 - math.exp(-0.5))
    assert kl_bernoulli_inv(1.0, 0.3) == 1.0 and kl_bernoulli_inv(0.3, 0.0) == 0.3
    with pytest.raises(ValueError, match="between 0 and 1"):
        kl_bernoulli(1.2, 0.5)
    with pytest.raises(ValueError, match="non-negative"):
        kl_bernoulli_inv(0.2, -1.0)


def test_kl_gradients() -> None:
    p = torch.tensor([0.1, 0.4], dtype=torch.float64, requires_grad=True)
    c = torch.tensor([0.02, 0.3], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.2, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(kl_bernoulli, (p, q))
    assert torch.autograd.gradcheck(kl_bernoulli_inv, (p, c))
    assert torch.autograd.gradcheck(lambda a, b: kl_bernoulli_inv(a, b, "lower"), (p, c))
