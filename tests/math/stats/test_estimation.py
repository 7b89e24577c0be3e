"""Moments, tails, maximum likelihood, losses as likelihoods, bias and covariance: worked numbers and parity."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import distributions as D

from groundstate import distributions as gd
from groundstate.errors import DataError, Unreliable, Unsupported
from groundstate.math import stats

F64 = torch.float64
rng = np.random.default_rng(0)
A_BEFORE = np.array([150, 145, 160, 155, 148, 152, 158, 150, 147])
A_AFTER = np.array([138, 132, 140, 142, 136, 142, 147, 135, 140])


def t(value) -> torch.Tensor:
    return torch.tensor(value, dtype=F64)


EXP = D.Exponential(t(1.0))


def test_moments_of_distributions() -> None:
    assert stats.moments(EXP, 3).tolist() == pytest.approx([1, 1, 2], abs=1e-9)
    two = D.Gamma(t(2.0), t(1.0))  # the sum of two
    assert float(stats.moments(two, 3)[2]) == pytest.approx(4, abs=1e-9)
    each = float(stats.moments(EXP, 3, absolute=True)[2])
    assert each == pytest.approx(2.414553, abs=1e-6)
    assert float(stats.moments(two, 3, absolute=True)[2]) == pytest.approx(5.744140, abs=1e-6)
    assert float(stats.mean_abs_dev(EXP)) == pytest.approx(math.log(2), abs=1e-9)
    for ours, theirs in ((D.Gamma(t(2.5), t(0.7)), st.gamma(2.5, scale=1 / 0.7)),
                         (D.Beta(t(0.7), t(2.0)), st.beta(0.7, 2)),
                         (D.Laplace(t(1.0), t(2.0)), st.laplace(1, 2)),
                         (D.StudentT(t(9.0)), st.t(9)),
                         (D.Poisson(t(2.2)), st.poisson(2.2)),
                         (D.Binomial(6, t(0.3)), st.binom(6, 0.3))):  # fmt: skip
        m, v, s, k = stats.moments(ours, 4, standardized=True).tolist()
        mean, var, skew, kurt = (float(x) for x in theirs.stats("mvsk"))
        assert (m, v, s, k) == pytest.approx((mean, var, skew, kurt + 3), rel=1e-6, abs=1e-8)
    assert torch.isinf(stats.moments(D.StudentT(t(1.5)), 2)[1])
    assert torch.isnan(stats.moments(gd.Levy(t(0.0), t(1.0)), 2)).all()


def test_moments_of_samples() -> None:
    x = rng.gamma(2.0, size=(500, 2))
    found = stats.moments(x, 4)
    for k in (2, 3, 4):
        np.testing.assert_allclose(found[k - 1], st.moment(x, k))
    np.testing.assert_allclose(stats.moments(x, 3, standardized=True)[2], st.skew(x))
    np.testing.assert_allclose(stats.moments(x, 2, central=False)[1], (x**2).mean(0))
    w = rng.integers(0, 4, 500)
    np.testing.assert_allclose(
        stats.moments(x, 3, sample_weight=w), stats.moments(np.repeat(x, w, axis=0), 3)
    )
    assert stats.mean_abs_dev(x[:, 0]) == pytest.approx(np.abs(x[:, 0] - np.median(x[:, 0])).mean())
    assert torch.autograd.gradcheck(lambda v: stats.moments(v, 3), t(x[:6]).requires_grad_())
    with pytest.raises(ValueError, match="at least 1"):
        stats.moments(x, 0)
    with pytest.raises(ValueError, match="NaN"):
        stats.moments([1.0, np.nan])


@pytest.mark.parametrize(
    ("dist", "growth", "slope", "heavy"),
    [
        (D.Cauchy(t(0.0), t(1.0)), (-0.27, 10.45), -1, True),
        (gd.Levy(t(0.0), t(1.0)), (1.44, 13.07), -0.5, True),
        (D.StudentT(t(3.0)), (-2.37, 4.89), -3, True),
        (D.Normal(t(0.0), t(1.0)), (-12.56, -439.3), None, False),
        (EXP, (-2.5, -15), None, False),
    ],
)
def test_tails_of_distributions(dist, growth, slope, heavy) -> None:
    found = stats.tail_report(dist, t=[0.5], at=[5.0, 30.0])
    assert found.growth[0] == pytest.approx(growth, abs=0.06)
    assert found.heavy is heavy
    if slope is not None:
        assert found.slope == pytest.approx(slope, abs=0.01)


def test_tails_of_samples() -> None:
    for df, seed in ((1.0, 0), (3.0, 1)):
        x = np.abs(st.t(df).rvs(50_000, random_state=seed))
        found = stats.tail_report(x)
        assert found.heavy and found.index == pytest.approx(df, rel=0.25)
        assert found.slope == pytest.approx(-df, rel=0.25)
    light = stats.tail_report(rng.normal(size=50_000))
    assert not light.heavy and light.index > 4
    levels = stats.tail_report(rng.exponential(size=200_000)).excess
    assert levels == pytest.approx(np.ones(5), abs=0.1)  # no memory
    with pytest.raises(DataError, match="at least 20"):
        stats.tail_report([1.0, 2.0])


def test_coin() -> None:
    flips = np.r_[np.ones(49), np.zeros(31)]
    found = stats.fit_mle(D.Bernoulli, flips)
    assert found.params["probs"] == pytest.approx(0.6125)
    searched = stats.fit_mle(D.Binomial, [49.0], fixed={"total_count": 80})
    assert searched.params["probs"] == pytest.approx(0.6125, abs=1e-9)
    assert searched.stderr["probs"] == pytest.approx(math.sqrt(0.6125 * 0.3875 / 80), rel=1e-6)
    _, ll = searched.profile("probs", [1 / 3, 1 / 2, 2 / 3, 0.6125])
    assert np.exp(ll) == pytest.approx([2.08e-7, 0.011836, 0.054497, 0.091248], rel=1e-3)


def test_products_underflow_and_sums_of_logs_do_not() -> None:
    x = rng.normal(size=1000)
    found = stats.fit_mle(D.Normal, x)
    assert np.prod(st.norm.pdf(x)) == 0.0 and -1600 < found.loglik < -1300
    assert found.params["loc"] == pytest.approx(x.mean())
    assert found.params["scale"] ** 2 == pytest.approx(x.var())


PEERS = [
    (
        D.Gamma,
        rng.gamma(2.5, 2.0, 3000),
        lambda x: st.gamma.fit(x, floc=0),
        ("concentration", None, "rate"),
    ),
    (D.StudentT, st.t.rvs(4, 1, 2, size=3000, random_state=1), st.t.fit, ("df", "loc", "scale")),
    (D.Cauchy, rng.standard_cauchy(3000), st.cauchy.fit, ("loc", "scale")),
    (D.Gumbel, rng.gumbel(1, 2, 3000), st.gumbel_r.fit, ("loc", "scale")),
    (D.Laplace, rng.laplace(1, 2, 3001), st.laplace.fit, ("loc", "scale")),
    (D.LogNormal, rng.lognormal(1, 0.5, 3000), None, ("loc", "scale")),
]


@pytest.mark.parametrize(
    ("kind", "x", "peer", "names"), PEERS, ids=lambda v: getattr(v, "__name__", "")
)
def test_likelihood_is_at_least_the_peers(kind, x, peer, names) -> None:
    found = stats.fit_mle(kind, x)
    assert found.converged
    if peer is not None:
        theirs = dict(zip(names, peer(x)))
        if "rate" in theirs:
            theirs["rate"] = 1 / theirs["rate"]
        theirs.pop(None, None)
        other = kind(*(t(float(v)) for v in theirs.values())).log_prob(t(x)).sum()
        assert found.loglik >= float(other) - 1e-6
        for name, value in theirs.items():
            assert found.params[name] == pytest.approx(value, rel=5e-3, abs=5e-3)
    # at the maximum nothing moves, and the errors are those of the curvature along each profile
    name = names[-1]
    _, ll = found.profile(name, found.params[name] + np.array([-1, 0, 1]) * found.stderr[name])
    assert ll[1] >= ll[0] and ll[1] >= ll[2]
    assert 2 * (ll[1] - ll[[0, 2]]) == pytest.approx([1, 1], abs=0.15)


def test_weights_are_repetitions_and_order_does_not_matter() -> None:
    x, w = rng.gamma(2.0, size=200), rng.integers(0, 4, 200)
    for kind in (D.Gamma, D.Normal, D.Laplace, D.Exponential):
        weighted = stats.fit_mle(kind, x, weights=w)
        repeated = stats.fit_mle(kind, np.repeat(x, w)[::-1].copy())
        for name, value in repeated.params.items():
            assert weighted.params[name] == pytest.approx(value, rel=1e-6)
            assert weighted.stderr[name] == pytest.approx(repeated.stderr[name], rel=1e-5)
        assert weighted.loglik == pytest.approx(repeated.loglik)


def test_vectors_classes_and_stable() -> None:
    X = rng.normal(size=(300, 2)) @ [[1.0, 0.5], [0.0, 2.0]]
    found = stats.fit_mle(D.MultivariateNormal, X)
    np.testing.assert_allclose(found.params["covariance_matrix"], np.cov(X.T, ddof=0))
    labels = stats.fit_mle(D.Categorical, [0, 0, 0, 1.0])
    assert labels.params["probs"].tolist() == [0.75, 0.25]
    assert math.exp(labels.loglik) == pytest.approx(0.10546875)
    assert -labels.loglik == pytest.approx(2.2493406, abs=1e-7)
    x = gd.Stable(1.6, 0.4, 2.0, 1.0).draw(1500, torch.Generator().manual_seed(3))
    stable = stats.fit_mle(gd.Stable, x)
    truth = float(gd.Stable(1.6, 0.4, 2.0, 1.0).log_prob(x).sum())
    start = float(gd.Stable.fit(x).log_prob(x).sum())
    assert stable.converged and stable.loglik > truth and stable.loglik >= start
    assert 2 * (stable.loglik - truth) < st.chi2(4).ppf(0.9999)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
@pytest.mark.parametrize(
    "kind", [D.StudentT, D.Gumbel, D.Cauchy, gd.Stable], ids=lambda k: k.__name__
)
def test_the_unit_of_measurement_does_not_matter(kind, unit: float) -> None:
    """In units of 1e-8 the search for a location never left its start."""
    x = np.random.default_rng(5).standard_t(3, 300)
    one, other = stats.fit_mle(kind, x), stats.fit_mle(kind, unit * (x + 7.0))
    assert other.converged
    for name, value in one.params.items():
        scale = unit if name in ("loc", "scale") else 1.0
        shift = 7.0 * unit if name == "loc" else 0.0
        assert other.params[name] == pytest.approx(
            scale * value + shift, rel=2e-5, abs=1e-6 * scale
        )
        assert other.stderr[name] == pytest.approx(scale * one.stderr[name], rel=1e-3)


def test_fits_refuse() -> None:
    with pytest.raises(Unsupported, match="Uniform declares no parameters.*StudentT"):
        stats.fit_mle(D.Uniform, [1.0, 2.0])
    with pytest.raises(DataError, match="outside the support of Gamma"):
        stats.fit_mle(D.Gamma, [-1.0, 2.0])
    with pytest.raises(DataError, match="total_count is not fitted: give it as fixed="):
        stats.fit_mle(D.Binomial, [3.0, 5.0])
    with pytest.raises(Unsupported, match="moves with a parameter"):
        stats.fit_mle(D.Pareto, [1.0, 2.0])
    with pytest.raises(ValueError, match="no parameters"):
        stats.fit_mle(D.Gamma, [1.0], fixed={"loc": 0.0})
    with pytest.raises(ValueError, match="cannot start"):
        stats.fit_mle(D.Gamma, [1.0, 2.0], init={"rate": -1.0, "concentration": 1.0})
    with pytest.raises(DataError, match="0 and 1"):
        stats.fit_mle(D.Bernoulli, [2.0])
    with pytest.raises(ValueError, match="NaN"):
        stats.fit_mle(D.Normal, [np.nan, 1.0])
    with pytest.raises(DataError, match="at least one row"):
        stats.fit_mle(D.Normal, [])


LOSSES = {
    "squared_error": (rng.normal(size=8), rng.normal(size=8)),
    "absolute_error": (rng.normal(size=8), rng.normal(size=8)),
    "cross_entropy": (rng.integers(0, 3, 8), rng.normal(size=(8, 3))),
    "binary": (rng.integers(0, 2, 8), rng.normal(size=8)),
    "poisson": (rng.integers(0, 5, 8), rng.normal(size=8)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_likelihoods(name: str) -> None:
    y, out = LOSSES[name]
    for scale in (1.0, 0.3):
        pair = stats.loss_as_nll(name, scale=scale)
        assert pair.gap(y, out) < 1e-12 and pair.factor > 0
        # so the gradients agree up to the factor, and the best output is the same
        o = t(out).requires_grad_()
        (one,) = torch.autograd.grad(pair.loss(t(y), o).sum(), o)
        (other,) = torch.autograd.grad(pair.nll(t(y), o).sum(), o)
        torch.testing.assert_close(one, pair.factor * other)
    with pytest.raises(ValueError, match="loss must be"):
        stats.loss_as_nll("hinge")


def test_mean_nll_is_divergence_plus_entropy() -> None:
    p, q = np.array([0.75, 0.25]), np.array([0.6, 0.4])
    nll = -(3 * np.log(q[0]) + np.log(q[1])) / 4
    assert nll == pytest.approx(st.entropy(p, q) + st.entropy(p))
    logits = t(rng.normal(size=2)).requires_grad_()
    cross = -(t(p) * logits.log_softmax(0)).sum()
    kl = cross + (t(p) * t(p).log()).sum()
    grads = [torch.autograd.grad(v, logits, retain_graph=True)[0] for v in (cross, kl)]
    assert torch.equal(*grads)
    one_hot = stats.loss_as_nll("cross_entropy").loss(t([1.0]), t([[0.1, 2.0, -1.0]]))
    assert one_hot == pytest.approx(-math.log(float(t([0.1, 2.0, -1.0]).softmax(0)[1])))


def test_bias_and_variance() -> None:
    normal = D.Normal(t(0.0), t(1.0))
    for n in (2, 5, 10):
        found = stats.estimator_report(np.var, normal, 1.0, n)
        assert abs(found.bias + 1 / n) < 4 * found.bias_error
        assert found.mse == pytest.approx(found.bias**2 + found.variance)
    coin = D.Bernoulli(t(0.3))
    mean = stats.estimator_report(np.mean, coin, 0.3, 20)
    first = stats.estimator_report(lambda x: x[0], coin, 0.3, 20)
    assert abs(first.bias) < 4 * first.bias_error
    assert first.variance / mean.variance == pytest.approx(20, rel=0.1)
    for lam, odd, plain in ((0.5, 0.8647, 0.2699), (1.0, 0.9817, 0.2790), (2.0, 0.9997, 0.1342)):
        truth = math.exp(-2 * lam)
        poisson = D.Poisson(t(lam))
        unbiased = stats.estimator_report(
            lambda x, axis: (-1.0) ** x[..., 0], poisson, truth, 1, 40_000
        )
        biased = stats.estimator_report(
            lambda x, axis: np.exp(-2 * x[..., 0]), poisson, truth, 1, 40_000
        )
        assert abs(unbiased.bias) < 4 * unbiased.bias_error
        assert abs(unbiased.mse - odd) < 4 * unbiased.mse_error + 1e-4
        assert abs(biased.mse - plain) < 4 * biased.mse_error + 1e-4
    # a sampler that leaves out what is below the median is biased, whatever the estimator
    upper = stats.estimator_report(np.mean, lambda s, g: np.abs(g.standard_normal(s)), 0.0, 50, 200)
    assert upper.bias == pytest.approx(math.sqrt(2 / math.pi), abs=0.05)


def test_streaming_covariance() -> None:
    X = rng.normal(size=(1000, 4)) @ rng.normal(size=(4, 4)) + 1e6
    parts = stats.StreamingCov()
    for chunk in np.array_split(X, 7):
        parts.update(chunk)
    other = stats.StreamingCov().update(X[:400]).merge(stats.StreamingCov().update(X[400:]))
    exact = np.cov(X.T)
    for found in (parts, other, stats.StreamingCov().update(X)):
        np.testing.assert_allclose(found.covariance(), exact, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.mean, X.mean(0), rtol=1e-14)
        np.testing.assert_allclose(found.correlation(), np.corrcoef(X.T), atol=1e-9)
    Y = rng.normal(size=(60, 3))
    halves = stats.StreamingCov().update(Y[:20]).merge(stats.StreamingCov().update(Y[20:]))
    np.testing.assert_allclose(halves.covariance(0), np.cov(Y.T, ddof=0), atol=1e-12)
    w = rng.integers(0, 3, 60)
    weighted = stats.StreamingCov().update(Y, w).covariance()
    np.testing.assert_allclose(weighted, np.cov(np.repeat(Y, w, 0).T), atol=1e-12)
    s = stats.StreamingCov().update(Y[:, :2]).covariance()
    assert np.var(Y[:, 0] + Y[:, 1], ddof=1) == pytest.approx(s[0, 0] + s[1, 1] + 2 * s[0, 1])
    assert isinstance(stats.StreamingCov().update(t(Y)).covariance(), torch.Tensor)
    with pytest.warns(Unreliable, match="does not vary"):
        assert np.isnan(stats.StreamingCov().update(np.ones((3, 2))).correlation()).all()
    with pytest.raises(DataError, match="no rows"):
        stats.StreamingCov().covariance()
    with pytest.raises(DataError, match="3 columns, earlier ones had 2"):
        stats.StreamingCov().update(Y[:, :2]).update(Y)


def test_correlation() -> None:
    both = np.stack([A_BEFORE, A_AFTER], 1)
    S = stats.StreamingCov().update(both).covariance(0)
    assert (S[0, 1], S[0, 0], S[1, 1]) == pytest.approx((14.5926, 22.8889, 17.6543), abs=1e-4)
    found = stats.corr_interval(A_BEFORE, A_AFTER)
    assert found.estimate == pytest.approx(0.7259297, abs=1e-7)
    assert found.pvalue == pytest.approx(0.02681, abs=1e-5)
    assert found.interval == pytest.approx((0.1193, 0.9379), abs=1e-4)
    line = np.polyval(np.polyfit(A_BEFORE, A_AFTER, 1), A_BEFORE)
    R2 = 1 - ((A_AFTER - line) ** 2).sum() / ((A_AFTER - A_AFTER.mean()) ** 2).sum()
    assert found.estimate**2 == pytest.approx(R2)
    x = np.linspace(-1, 1, 101)
    assert stats.corr_interval(x, x**2).estimate == pytest.approx(0, abs=1e-12)
    with pytest.warns(Unreliable, match="NaN"):
        assert math.isnan(stats.corr_interval(np.ones(5), np.arange(5.0)).estimate)
    with pytest.raises(DataError, match="at least four"):
        stats.corr_interval([1, 2], [1, 2])
