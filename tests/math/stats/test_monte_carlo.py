"""Monte Carlo: rates, sharper estimates, importance weights, gradients and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import distributions as D

from groundstate import distributions as gd
from groundstate.errors import Unreliable, Unsupported
from groundstate.math import stats

F64 = torch.float64


def t(value) -> torch.Tensor:
    return torch.tensor(value, dtype=F64)


def quadrant(u: torch.Tensor) -> torch.Tensor:
    return 4.0 * (u.square().sum(-1) < 1)


NORMAL = D.Normal(t(0.0), t(1.0))


def test_pi_and_its_rate() -> None:
    sizes = (1000, 10_000, 100_000)
    errors = {"plain": [], "sobol": []}
    for n in sizes:
        for name, how in (("plain", None), ("sobol", "sobol")):
            found = [stats.expect_mc(quadrant, 2, n, qmc=how, random_state=i) for i in range(20)]
            off = np.array([float(f.mean) - math.pi for f in found])
            errors[name].append(np.sqrt(np.mean(off**2)))
            if how is None:
                scaled = np.mean([float(f.stderr) for f in found]) * math.sqrt(n)
                assert scaled == pytest.approx(1.642184, abs=0.02)
    slope = {k: np.polyfit(np.log(sizes), np.log(v), 1)[0] for k, v in errors.items()}
    assert slope["plain"] == pytest.approx(-0.5, abs=0.12)
    assert slope["sobol"] < -0.65  # an indicator: near -3/4; smooth functions near -1
    smooth = [float(stats.expect_mc(lambda u: u.prod(-1), 2, n, qmc="sobol").stderr) for n in sizes]
    assert np.polyfit(np.log(sizes), np.log(smooth), 1)[0] < -0.9


def test_intervals_cover_and_chunks_are_the_whole() -> None:
    hits = 0
    for i in range(200):
        low, high = stats.expect_mc(torch.square, NORMAL, 500, random_state=i).interval()
        hits += bool(low < 1 < high)
    assert 0.88 <= hits / 200 <= 0.99
    whole = stats.expect_mc(None, lambda m, g: torch.rand(m, generator=g, dtype=F64), 10_000)
    parts = stats.expect_mc(
        None, lambda m, g: torch.rand(m, generator=g, dtype=F64), 10_000, block=64
    )
    assert float(whole.mean) == pytest.approx(float(parts.mean), rel=1e-12)
    assert float(whole.stderr) == pytest.approx(float(parts.stderr), rel=1e-9)
    assert whole.running_mean is not None and float(whole.running_mean[-1]) == float(whole.mean)


def test_sharper_estimates() -> None:
    plain = stats.expect_mc(lambda v: v.exp(), NORMAL, 20_000)
    mirrored = stats.expect_mc(lambda v: v.exp(), NORMAL, 20_000, antithetic=True)
    control = stats.expect_mc(lambda v: v.exp(), NORMAL, 20_000, control=(lambda v: v, 0.0))
    for found in (plain, mirrored, control):
        assert abs(float(found.mean) - math.exp(0.5)) < 4 * float(found.stderr)
    # Var e^Z = e² − e; with mirror images, ½(e² − 2e + 1) a pair; with the control Z, e² − 2e
    assert float(plain.stderr) * math.sqrt(20_000) == pytest.approx(2.161, rel=0.1)
    pair = math.sqrt(math.e**2 - 2 * math.e + 1)
    assert float(mirrored.stderr) * math.sqrt(20_000) == pytest.approx(pair, rel=0.1)
    best = math.sqrt(math.e**2 - 2 * math.e)
    assert float(control.stderr) * math.sqrt(20_000) == pytest.approx(best, rel=0.15)
    line = stats.expect_mc(lambda v: 3 * v + 1, NORMAL, 1000, antithetic=True)
    assert float(line.mean) == pytest.approx(1) and float(line.stderr) < 1e-12
    stopped = stats.expect_mc(lambda v: v.square(), NORMAL, 1_000_000, rtol=0.05)
    assert stopped.n < 100_000 and abs(float(stopped.mean) - 1) < 0.1


def test_infinite_variance_is_flagged() -> None:
    with pytest.warns(Unreliable, match="may be infinite"):
        found = stats.expect_mc(None, D.Cauchy(t(0.0), t(1.0)), 50_000)
    assert not found.reliable and found.tail_index < 2
    for dist in (NORMAL, D.Exponential(t(1.0)), D.StudentT(t(5.0)), D.Uniform(t(0.0), t(1.0))):
        assert stats.expect_mc(None, dist, 50_000).reliable
    with pytest.raises(ValueError, match="unit cube"):
        stats.expect_mc(None, lambda m, g: torch.rand(m), 100, qmc="sobol")
    with pytest.raises(ValueError, match="at least 2 draws"):
        stats.expect_mc(None, NORMAL, 1)
    with pytest.raises(ValueError, match="sampler must be"):
        stats.expect_mc(None, "normal", 10)


def likelihood(z: torch.Tensor) -> torch.Tensor:
    return D.Normal(z, t(1.0)).log_prob(t(2.0))


def test_importance_numbers() -> None:
    exact = math.exp(st.norm(0, math.sqrt(2)).logpdf(2.0))
    assert exact == pytest.approx(0.103777, abs=1e-6)
    naive = stats.importance(likelihood, NORMAL, NORMAL, 400_000)
    assert naive.variance == pytest.approx(0.0134518, rel=0.02)
    shifted = stats.importance(likelihood, NORMAL, D.Normal(t(1.0), t(1.0)), 400_000)
    assert shifted.variance == pytest.approx(0.00166607, rel=0.03)
    best = stats.importance(likelihood, NORMAL, D.Normal(t(1.0), t(math.sqrt(0.5))), 100)
    assert best.variance < 1e-20 and best.value == pytest.approx(exact, rel=1e-12)
    for found in (naive, shifted):
        assert abs(found.value - exact) < 4 * found.stderr and found.pareto_k < 0.7
    with pytest.warns(Unreliable, match="Pareto k"):
        stats.importance(likelihood, NORMAL, D.Normal(t(1.0), t(math.sqrt(0.12))), 20_000)


def test_log_estimates_are_biased_low() -> None:
    truth = st.norm(0, math.sqrt(2)).logpdf(2.0)
    assert truth == pytest.approx(-2.265512, abs=1e-6)
    for M, listed in ((1, -2.4189), (5, -2.284), (50, -2.2666), (500, -2.2656)):
        z = D.Normal(t(1.0), t(1.0))
        g = torch.Generator().manual_seed(M)
        draws = 1.0 + torch.randn(400_000 // M if M > 1 else 400_000, M, generator=g, dtype=F64)
        log_w = likelihood(draws) + NORMAL.log_prob(draws) - z.log_prob(draws)
        mean = float((log_w.logsumexp(1) - math.log(M)).mean())
        assert mean == pytest.approx(listed, abs=0.004)
        assert mean <= truth + 0.002
    one = stats.importance(likelihood, NORMAL, D.Normal(t(1.0), t(1.0)), 5000, log=True)
    assert abs(one.value - truth) < 4 * one.stderr


def test_self_normalised_weights_need_no_constant() -> None:
    def unnormalised(z: torch.Tensor) -> torch.Tensor:
        return NORMAL.log_prob(z) + 7.0

    q = D.StudentT(t(5.0), t(0.5), t(1.5))
    found = stats.importance(
        lambda z: z.square().log(), unnormalised, q, 40_000, self_normalised=True
    )
    assert abs(found.value - 1) < 4 * found.stderr and found.ess > 10_000
    constant = stats.importance(None, unnormalised, q, 40_000, log=True)
    assert abs(constant.value - 7) < 4 * constant.stderr
    with pytest.raises(ValueError, match="one number per draw"):
        stats.importance(None, lambda z: z[:, None], q, 10)


def test_gradients_along_paths_and_by_scores() -> None:
    dist = D.Normal(t(1.5), t(1.0))
    path = stats.grad_mc(lambda z: z**2, dist, "pathwise", n=40_000)
    score = stats.grad_mc(lambda z: z**2, dist, "score", n=40_000)
    for found in (path, score):
        assert abs(float(found.mean["loc"]) - 3) < 4 * float(found.stderr["loc"])
        assert abs(float(found.mean["scale"]) - 2) < 4 * float(found.stderr["scale"])
    assert score.variance["loc"] > 3 * path.variance["loc"]
    zero = stats.grad_mc(torch.ones_like, dist, "score", n=40_000)
    assert abs(float(zero.mean["loc"])) < 4 * float(zero.stderr["loc"])
    straight = stats.grad_mc(lambda z: z, dist, "pathwise", n=1000)
    assert float(straight.variance["loc"]) == 0 and float(straight.mean["loc"]) == 1  # dz/dμ = 1
    assert float(straight.variance["scale"]) == pytest.approx(1, abs=0.2)  # dz/dσ = ε
    coin = stats.grad_mc(lambda z: 3 * z, D.Bernoulli(t(0.4)), "score", n=40_000)
    assert abs(float(coin.mean["probs"]) - 3) < 4 * float(coin.stderr["probs"])
    with pytest.raises(Unsupported, match="method='score'"):
        stats.grad_mc(lambda z: z, D.Bernoulli(t(0.4)))


def test_means_become_normal() -> None:
    exact = {1: 0.15866, 4: 0.06670, 16: 0.03328, 64: 0.01663, 256: 0.00831}
    one = D.Exponential(t(1.0))
    for m, value in exact.items():
        z = np.linspace(-4, 6, 40_001)
        gap = np.abs(
            gd.cdf(D.Gamma(t(float(m)), t(1.0)), m + math.sqrt(m) * z) - st.norm.cdf(z)
        ).max()
        assert gap == pytest.approx(value, abs=1e-5)
        found = stats.standardized_means(one, m, 20_000)
        assert found.ks == pytest.approx(value, abs=0.012)
        assert found.finite_variance and found.values.var() == pytest.approx(1, abs=0.05)
    q, ordered = found.qq()
    assert np.corrcoef(q, ordered)[0, 1] > 0.999


def test_limits_need_moments() -> None:
    with pytest.warns(Unreliable, match="no finite mean"):
        wild = stats.standardized_means(D.Cauchy(t(0.0), t(1.0)), 64, 4000)
    assert not wild.finite_mean
    # the mean of m Cauchy draws is a Cauchy draw
    mean = wild.values / math.sqrt(64) * wild.std + wild.mean
    assert st.kstest(mean, st.cauchy.cdf).pvalue > 0.01
    with pytest.warns(Unreliable, match="no finite variance"):
        stats.standardized_means(lambda s, g: g.standard_t(1.3, s), 16, 4000)
    x = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(stats.running_mean(x)[-1], x.mean(0))
    assert stats.running_mean(torch.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="at least"):
        stats.standardized_means(NORMAL, 0, 10)
