"""Tails and lower ends, where 1 - F has no digits left: against scipy's own formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import distributions as D

from groundstate import distributions as gd


def t(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


PAIRS = {
    "normal": (D.Normal(t(0.5), t(2.0)), st.norm(0.5, 2)),
    "half normal": (D.HalfNormal(t(2.0)), st.halfnorm(scale=2)),
    "lognormal": (D.LogNormal(t(0.0), t(1.0)), st.lognorm(1)),
    "laplace": (D.Laplace(t(0.5), t(2.0)), st.laplace(0.5, 2)),
    "cauchy": (D.Cauchy(t(0.5), t(2.0)), st.cauchy(0.5, 2)),
    "gumbel": (D.Gumbel(t(0.5), t(2.0)), st.gumbel_r(0.5, 2)),
    "weibull": (D.Weibull(t(2.0), t(1.5)), st.weibull_min(1.5, scale=2)),
    "pareto": (D.Pareto(t(2.0), t(3.0)), st.pareto(3, scale=2)),
    "beta": (D.Beta(t(2.0), t(3.0)), st.beta(2, 3)),
    "gamma": (D.Gamma(t(0.3), t(2.0)), st.gamma(0.3, scale=0.5)),
    "gamma of 300": (D.Gamma(t(300.0), t(2.0)), st.gamma(300, scale=0.5)),
    "inverse gamma": (D.InverseGamma(t(2.0), t(3.0)), st.invgamma(2, scale=3)),
    "fisher": (D.FisherSnedecor(t(3.0), t(5.0)), st.f(3, 5)),
    "student": (D.StudentT(t(2.5), t(0.5), t(2.0)), st.t(2.5, 0.5, 2)),
    "poisson": (D.Poisson(t(3.0)), st.poisson(3)),
    "binomial": (D.Binomial(60, t(0.3)), st.binom(60, 0.3)),
    "geometric": (D.Geometric(t(0.3)), st.geom(0.3, loc=-1)),
    "negative binomial": (D.NegativeBinomial(5, t(0.4)), st.nbinom(5, 0.6)),
}
COUNTS = ("poisson", "binomial", "geometric", "negative binomial")


@pytest.mark.parametrize("name", PAIRS)
def test_upper_tail(name: str) -> None:
    """HalfNormal, Weibull and Poisson had log P(X > x) = -inf from about -37 on."""
    ours, theirs = PAIRS[name]
    x = {
        "beta": np.array([0.1, 0.5, 0.999, 1 - 1e-9, 1.0]),
        "binomial": np.array([0.0, 18.0, 40.0, 59.0, 60.0]),
        "geometric": np.array([0.0, 3.0, 20.0, 130.0, 380.0]),
    }.get(name)
    if x is None:
        x = np.floor(theirs.isf([0.9, 0.3, 1e-3, 1e-20, 1e-60]))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(gd.log_sf(ours, x), np.log(theirs.sf(x)), rtol=1e-9, atol=1e-12)
    if name not in ("normal", "laplace", "cauchy", "gumbel", "student"):  # before the support
        assert gd.log_sf(ours, np.array([-1e3])).tolist() == [0.0]


@pytest.mark.parametrize("name", [name for name in PAIRS if name not in COUNTS])
def test_lower_tail(name: str) -> None:
    """Φ(-8) was 2 % off, Φ(-40) and the quantile of 1e-300 were 0 and -inf."""
    ours, theirs = PAIRS[name]
    q = np.array([0.0, 1e-300, 1e-20, 1e-6, 0.4, 0.6, 0.999, 1.0])
    if name in ("half normal", "pareto", "weibull", "beta"):
        q = q[3:]  # near the finite end
    if name in ("gamma", "student"):
        q = q[2:]  # scipy's own quantiles of 1e-300 are 0 and inf
    x = gd.icdf(ours, q)
    np.testing.assert_allclose(x, theirs.ppf(q), rtol=1e-7)
    inside = np.isfinite(x)
    np.testing.assert_allclose(gd.cdf(ours, x[inside]), q[inside], rtol=1e-7)


@pytest.mark.parametrize("name", [name for name in PAIRS if name not in COUNTS])
def test_quantiles_near_one(name: str) -> None:
    """From F alone, that of 1 - 1e-10 was 4 % off for Gamma(0.3) and negative for Gamma(300)."""
    ours, theirs = PAIRS[name]
    above = 2.0 ** -np.array([10, 25, 40, 50])  # 1 - above is exact
    np.testing.assert_allclose(gd.icdf(ours, 1 - above), theirs.isf(above), rtol=1e-7)


@pytest.mark.parametrize("name", ["gamma", "inverse gamma", "fisher", "student", "beta"])
def test_tails_have_slopes_in_all_parameters(name: str) -> None:
    """That of a gamma distribution raised: torch does not derive its upper integral in the shape."""
    kind = type(PAIRS[name][0])
    names = [n for n in ("df", "df1", "df2", "concentration", "concentration1", "concentration0",
                         "rate", "loc", "scale") if n in kind.arg_constraints]  # fmt: skip
    values = [getattr(PAIRS[name][0], n).clone().requires_grad_() for n in names]

    def tail(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return gd.log_sf(kind(**dict(zip(names, parameters, strict=True))), x)

    x = torch.tensor([0.3, 0.9], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(tail, (x, *values), atol=1e-6)
    far = t(20.0 if name != "beta" else 1 - 1e-6)
    (slope,) = torch.autograd.grad(tail(far, *values), values[0])
    step = 1e-4 * values[0].item()
    with torch.no_grad():
        up, down = (tail(far, values[0] + s, *values[1:]) for s in (step, -step))
    assert float(slope) == pytest.approx(float(up - down) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("name", ["normal", "lognormal", "cauchy", "laplace", "gumbel"])
def test_slopes(name: str) -> None:
    ours = PAIRS[name][0]
    x = t(1.3).requires_grad_()
    (slope,) = torch.autograd.grad(gd.cdf(ours, x), x)
    torch.testing.assert_close(slope, ours.log_prob(x).exp().detach())
    (tail,) = torch.autograd.grad(gd.log_sf(ours, x), x)
    hazard = ours.log_prob(x).exp() / (1 - gd.cdf(ours, x))
    torch.testing.assert_close(tail, -hazard.detach())
    q = t(0.2).requires_grad_()
    (back,) = torch.autograd.grad(gd.icdf(ours, q), q)
    torch.testing.assert_close(back, (-ours.log_prob(gd.icdf(ours, q))).exp().detach())


def test_direction_of_an_array() -> None:
    made = gd.VonMisesFisher(np.array([1.0, 0.0, 0.0]), 2.0)
    known = st.vonmises_fisher([1, 0, 0], 2).logpdf([1, 0, 0])
    np.testing.assert_allclose(made.log_prob(made.loc).item(), known, rtol=1e-9)
