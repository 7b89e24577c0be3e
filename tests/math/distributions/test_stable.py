"""Stable distributions against SciPy, against their characteristic function, and by their own identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import distributions as D

from groundstate import distributions as gd
from groundstate.errors import DataError
from groundstate.math.distributions.stable.integrals import log_density

F64 = torch.float64
X = np.array([-30.0, -5, -2, -0.3, -0.01, 0.01, 0.5, 1, 4, 50])


def t(value) -> torch.Tensor:
    return torch.tensor(value, dtype=F64)


def by_characteristic_function(x: float, alpha: float, beta: float) -> float:
    r"""(1/π) ∫ e^{-t^α} cos(phase) dt, in panels."""
    edges = np.linspace(0, 38 ** (1 / alpha), 4001)
    nodes, w = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(edges)[:, None]
    s = half * (nodes + 1) + edges[:-1, None]
    if alpha == 1:
        phase = x * s + beta * (2 / np.pi) * s * np.log(s)
    else:
        phase = x * s - beta * np.tan(np.pi * alpha / 2) * s**alpha
    return float((half * w * np.exp(-(s**alpha)) * np.cos(phase)).sum() / np.pi)


def test_worked_numbers() -> None:
    assert gd.Stable(2.0).log_prob(t(0.0)).exp() == pytest.approx(0.282095, abs=1e-6)
    assert gd.Stable(1.0).log_prob(t(0.0)).exp() == pytest.approx(0.318310, abs=1e-6)
    assert gd.Stable(0.5, 1.0).log_prob(t(1.0)).exp() == pytest.approx(0.241971, abs=1e-6)
    assert gd.Stable(2.0, 0.0, 3.0).variance == pytest.approx(2 * 9)
    levy = gd.Levy(t(0.0), t(1.0))
    assert levy.icdf(t(0.5)) == pytest.approx(2.1981093, abs=1e-7)
    x = t([0.3, 1.0, 7.0])
    same = D.InverseGamma(t(0.5), t(1.0))
    torch.testing.assert_close(gd.Levy(t(0.0), t(2.0)).log_prob(x), same.log_prob(x))
    torch.testing.assert_close(levy.log_prob(x), gd.Stable(0.5, 1.0).log_prob(x))
    assert levy.entropy() == pytest.approx(float(st.levy().entropy()))
    assert float(levy.log_prob(t(-1.0)) if levy._validate_args is False else -math.inf) == -math.inf


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.7, 0.9, 1.0, 1.3, 1.5, 1.8, 1.95])
@pytest.mark.parametrize("beta", [0.0, 0.3, -0.5, 1.0])
def test_density_equals_scipy(alpha: float, beta: float) -> None:
    p = gd.Stable(alpha, beta, 2.0, 0.5)
    theirs = st.levy_stable.pdf(X, alpha, beta, 0.5, 2.0)
    np.testing.assert_allclose(p.log_prob(t(X)).exp().numpy(), theirs, atol=1e-9, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "alpha", "beta"),
    [(0.01, 1.05, -0.5), (-0.3, 1.01, 0.3), (-5.0, 1.01, 1.0), (0.5, 1.0, 0.01), (10.0, 1.0, 1.0),
     (4.0, 1.01, -1.0), (2.0, 0.99, 0.3), (-0.3, 1.3, 1.0)],
)  # fmt: skip
def test_density_where_scipy_rounds(x: float, alpha: float, beta: float) -> None:
    """Near α = 1, SciPy answers with the density at a neighbouring point (1.17.1)."""
    found = gd.Stable(alpha, beta).log_prob(t(x)).exp()
    assert found == pytest.approx(by_characteristic_function(x, alpha, beta), rel=1e-8)


def test_tails_keep_their_digits() -> None:
    # f(x) ~ α (1 + β) Γ(α) sin(πα/2)/π · x^(-α-1)
    for alpha, beta in ((0.8, 0.0), (1.5, 0.5), (1.9, -0.3)):
        x = 1e9
        leading = alpha * (1 + beta) * math.gamma(alpha) * math.sin(math.pi * alpha / 2) / math.pi
        expected = math.log(leading) - (alpha + 1) * math.log(x)
        assert gd.Stable(alpha, beta).log_prob(t(x)) == pytest.approx(expected, abs=1e-4)
    # the light side of a fully skewed one: log f is a large negative number, not -inf or NaN
    light = gd.Stable(1.5, 1.0).log_prob(t([-5.0, -10.0, -20.0]))
    assert torch.isfinite(light).all() and light[2] < -300
    assert gd.Stable(0.7, 1.0).log_prob(t(-1.0)) == -math.inf
    assert gd.Stable(0.7, 1.0).cdf(t(-1.0)) == 0


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [(0.4, 0.2), (0.7, 1.0), (0.95, 0.5), (1.0, 0.4), (1.02, 0.9), (1.2, -1.0), (1.7, 0.5)],
)
def test_draws_density_and_distribution_function_agree(alpha: float, beta: float) -> None:
    p = gd.Stable(alpha, beta, 2.0, 1.0)
    x = p.draw(20_000, torch.Generator().manual_seed(2))
    assert st.kstest(p.cdf(x).numpy(), "uniform").pvalue > 0.01
    # the table of many values and the integral of single ones
    few = x[:40]
    torch.testing.assert_close(p.log_prob(x)[:40], p.log_prob(few), atol=1e-6, rtol=1e-7)
    torch.testing.assert_close(p.cdf(x)[:40], p.cdf(few), atol=1e-8, rtol=0)
    # the empirical characteristic function
    s = t([0.1, 0.5, 1.0])
    tan = (
        (2 / math.pi) * s.log() if alpha == 1 else -t(math.tan(math.pi * alpha / 2)) * torch.ones(3)
    )
    log_cf = torch.complex(-((2 * s) ** alpha), 1.0 * s - (2 * s) ** alpha * beta * tan)
    seen = torch.polar(torch.ones(1).double(), s[:, None] * x).mean(1)
    assert float((seen - log_cf.exp()).abs().max()) < 4 / math.sqrt(len(x))


@pytest.mark.parametrize(("alpha", "beta"), [(0.7, 0.3), (1.4, -0.5), (1.0, 0.5)])
def test_distribution_function_derives_to_the_density(alpha: float, beta: float) -> None:
    p = gd.Stable(alpha, beta)
    x = t([-4.0, -0.7, 0.2, 3.0]).requires_grad_()
    (slope,) = torch.autograd.grad(p.cdf(x).sum(), x)
    torch.testing.assert_close(slope, p.log_prob(x).exp().detach(), atol=1e-8, rtol=1e-7)
    q = t([0.01, 0.4, 0.9])
    torch.testing.assert_close(p.cdf(p.icdf(q)), q, atol=1e-9, rtol=0)
    mirrored = gd.Stable(alpha, -beta)
    torch.testing.assert_close(mirrored.log_prob(-x), p.log_prob(x), atol=1e-11, rtol=0)


def test_gradients() -> None:
    def free(value) -> torch.Tensor:
        return t(value).requires_grad_()

    def score(x, a, b, s, m) -> torch.Tensor:
        return gd.Stable(a, b, s, m, validate_args=False).log_prob(x)

    for alpha in (1.4, 0.7):
        rest = (free(alpha), free(0.3), free(1.2), free(0.2))
        assert torch.autograd.gradcheck(score, (free([-1.0, 0.5, 3.0]), *rest))
    many = torch.linspace(-5, 9, 1800, dtype=F64)
    rest = (free(1.4), free(0.3), free(1.2), free(0.2))
    total = lambda *a: score(many, *a).sum()
    assert torch.autograd.gradcheck(total, rest, atol=1e-4)

    def drawn(a, b, s, m) -> torch.Tensor:
        p = gd.Stable(a, b, s, m, validate_args=False)
        return s * p._of(t([0.1, 0.4, 0.8]), t([0.3, 0.6, 0.9])) + m

    assert torch.autograd.gradcheck(drawn, rest)
    assert gd.Stable(free(1.4)).rsample((3,)).requires_grad


def test_batch_equals_loop_and_shapes() -> None:
    alpha, beta = t([0.6, 1.0, 1.5]), t([0.5, -0.2, 0.0])
    p = gd.Stable(alpha, beta)
    x = t([0.3, -1.0, 2.0])
    loop = torch.stack([gd.Stable(a, b).log_prob(v) for a, b, v in zip(alpha, beta, x)])
    torch.testing.assert_close(p.log_prob(x), loop, atol=1e-12, rtol=0)
    assert p.sample((4, 2)).shape == (4, 2, 3) and p.expand([5, 3]).batch_shape == (5, 3)
    torch.testing.assert_close(log_density(x, alpha, beta), loop, atol=1e-12, rtol=0)
    single = gd.Stable(torch.tensor(1.5)).log_prob(torch.tensor([0.1, 0.2]))
    assert single.dtype == torch.float32


def test_fit_by_quantiles() -> None:
    for alpha, beta in ((1.9, 0.0), (1.5, 0.5), (1.2, -0.7), (0.8, 0.3)):
        x = gd.Stable(alpha, beta, 2.0, 1.0).draw(100_000, torch.Generator().manual_seed(1))
        found = gd.Stable.fit(x)
        assert abs(float(found.alpha) - alpha) < 0.05 and abs(float(found.beta) - beta) < 0.1
        assert abs(float(found.scale) - 2) < 0.1
    with pytest.raises(DataError, match="at least five"):
        gd.Stable.fit([1.0, 2.0])
    with pytest.raises(DataError, match="one value"):
        gd.Stable.fit(np.zeros(50))
    with pytest.raises(ValueError, match="alpha"):
        gd.Stable(2.5, validate_args=True)
    with pytest.raises(ValueError, match="alpha"):
        gd.Stable(0.0, validate_args=True)
