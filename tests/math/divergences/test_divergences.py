"""Divergences: worked numbers, closed forms against sampling, inequalities, gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from torch import distributions as D
from torch.nn import functional as F

from groundstate import divergences as dv
from groundstate.errors import ShapeError, Unsupported

RNG = np.random.default_rng(0)
P, Q = [0.5, 0.5], [0.9, 0.1]


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def normal(mean: float, std: float) -> D.Normal:
    return D.Normal(*double(mean, std))


def test_kl_worked() -> None:
    assert (dv.kl(P, Q), dv.kl(Q, P)) == pytest.approx((0.510826, 0.368064), abs=1e-6)
    assert float(dv.kl(normal(0, 1), normal(1, 2))) == pytest.approx(0.443147, abs=1e-6)
    assert float(dv.kl(normal(1, 2), normal(0, 1))) == pytest.approx(1.306853, abs=1e-6)
    assert dv.kl([0.36, 0.48, 0.16], [1, 1, 1]) == pytest.approx(0.085300, abs=1e-6)
    p, q = RNG.dirichlet(np.ones(4), 3), RNG.dirichlet(np.ones(4), 3)
    loss = F.kl_div(torch.from_numpy(q).log(), torch.from_numpy(p), reduction="batchmean")
    assert dv.kl(p, q).mean() == pytest.approx(float(loss))


def test_kl_of_gaussians() -> None:
    full = dv.kl_gaussian([0, 1], [[1, 0], [0, 2]], [1, 0], [[2, 0.5], [0.5, 1]])
    assert full == pytest.approx(1.5046629, abs=1e-7)
    assert dv.kl_gaussian([1, -1], [0.5, 2], [0, 0], 1.0) == pytest.approx(1.25)
    assert dv.kl_gaussian(1, 0.25, 0, 1) == pytest.approx(0.818147, abs=1e-6)
    assert dv.kl_gaussian([1, 2], 1.0, [0, 0], 4.0) == pytest.approx(1.261294, abs=1e-6)
    assert dv.kl_gaussian([1, 2], 3.0, [0, 0], 3.0) == pytest.approx(5 / 6)
    A = RNG.normal(size=(5, 3, 6))
    S, m = A @ A.transpose(0, 2, 1), RNG.normal(size=(5, 3))
    batch = dv.kl_gaussian(m, S, m[::-1].copy(), S[::-1].copy())
    for k in range(5):
        a, b = (
            D.MultivariateNormal(torch.from_numpy(m[i]), torch.from_numpy(S[i])) for i in (k, 4 - k)
        )
        assert batch[k] == pytest.approx(float(D.kl_divergence(a, b)))
    mixed = dv.kl(
        D.Independent(D.Normal(*torch.ones(2, 3).double()), 1),
        D.MultivariateNormal(torch.from_numpy(m[0]), torch.from_numpy(S[0])),
    )
    assert float(mixed) == pytest.approx(dv.kl_gaussian(np.ones(3), np.ones(3), m[0], S[0]))
    with pytest.raises(ValueError, match="not positive definite"):
        dv.kl_gaussian([0, 0], [[1, 2], [2, 1]], [0, 0], 1.0)
    with pytest.raises(ValueError, match="positive variances"):
        dv.kl_gaussian([0, 0], [1, -1], [0, 0], 1.0)
    g = torch.from_numpy(m[0]).requires_grad_(), torch.from_numpy(A[0]).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda m, A: dv.kl_gaussian(m, A @ A.mT, torch.zeros(3).double(), double(2.0)[0]), g
    )


def test_kl_by_draws_and_by_neighbours() -> None:
    mix = D.MixtureSameFamily(
        D.Categorical(torch.ones(2).double()), D.Normal(double(-3, 3), double(1, 1))
    )
    x = torch.linspace(-12, 12, 20_001).double()
    wide = normal(0, math.sqrt(10))
    exact = float(torch.trapezoid(mix.log_prob(x).exp() * (mix.log_prob(x) - wide.log_prob(x)), x))
    plain = dv.kl(mix, wide, n=20_000, random_state=0, stderr=True)
    low = dv.kl(mix, wide, method="low_variance", n=20_000, random_state=0, stderr=True)
    for found in (plain, low):
        assert abs(float(found.value) - exact) < 4 * float(found.stderr)
    near = normal(0, 1), normal(0.1, 1.05)  # close laws: the second estimator varies far less
    errors = [
        float(dv.kl(*near, method=m, random_state=0, stderr=True).stderr)
        for m in ("plain", "low_variance")
    ]
    assert errors[1] < 0.3 * errors[0]
    X, Y = RNG.normal(size=(3000, 2)), RNG.normal(size=(3000, 2)) + np.array([1, 0])
    assert dv.kl(X, Y, method="knn") == pytest.approx(0.5, abs=0.08)
    assert abs(dv.kl(X[:1500], X[1500:], method="knn")) < 0.08
    mean = double(0.3)[0].requires_grad_()
    student = D.StudentT(double(5.0)[0])
    value = dv.kl(D.Normal(mean, double(1.0)[0]), student, n=4000, random_state=0)
    assert torch.autograd.grad(value, mean)[0].item() > 0  # reparametrised draws
    with pytest.raises(ValueError, match="more than k times"):
        dv.kl(np.zeros(20), np.arange(20.0), method="knn")
    with pytest.raises(ValueError, match="method must be"):
        dv.kl(P, Q, method="exactly")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tables are summed"):
        dv.kl(P, Q, method="plain")


def test_js() -> None:
    assert dv.js(P, Q) == pytest.approx(0.101749, abs=1e-6)
    assert dv.js([0, 0, 1], [0.1, 0.2, 0.7]) == pytest.approx(0.117277, abs=1e-6)
    assert dv.js([1, 0], [0, 1]) == pytest.approx(math.log(2))
    p, q = RNG.dirichlet(np.ones(5), 7), RNG.dirichlet(np.ones(5), 7)
    np.testing.assert_allclose(dv.js(p, q), jensenshannon(p, q, axis=1) ** 2)
    for m, value in ((1.0, 0.111421), (2.0, 0.336831), (4.0, 0.632720)):
        assert float(dv.js(normal(0, 1), normal(m, 1))) == pytest.approx(value, abs=1e-6)
    many = dv.js([1, 0, 0], [0, 1, 0], [0, 0, 1], weights=[0.5, 0.25, 0.25], base=2)
    assert many == pytest.approx(1.5)  # the entropy of the weights
    best = p / (p + q)  # the best discriminator
    game = (p * np.log(best) + q * np.log(1 - best)).sum(1)
    np.testing.assert_allclose(game, 2 * dv.js(p, q) - 2 * math.log(2))
    mix = D.MixtureSameFamily(
        D.Categorical(torch.ones(2).double()), D.Normal(double(-3, 3), double(1, 1))
    )
    exact = float(dv.js(mix, normal(0, 3)))
    x = torch.linspace(-40, 40, 400_001).double()
    a, b = mix.log_prob(x).exp(), normal(0, 3).log_prob(x).exp()
    c = (a + b) / 2
    whole = torch.trapezoid((torch.xlogy(a, a / c) + torch.xlogy(b, b / c)).nan_to_num() / 2, x)
    assert exact == pytest.approx(float(whole), abs=1e-8)
    planes = [
        D.MultivariateNormal(torch.zeros(2).double() + m, torch.eye(2).double()) for m in (0, 1)
    ]
    found = dv.js(*planes, n=20_000, random_state=0, stderr=True)
    # along (1, 1) the means are sqrt 2 apart
    line = float(dv.js(normal(0, 1), normal(math.sqrt(2), 1)))
    assert abs(float(found.value) - line) < 4 * float(found.stderr)
    assert float(dv.js(D.Exponential(double(1.0)[0]), normal(0, 1))) < math.log(2)
    with pytest.raises(ValueError, match="two or more"):
        dv.js(P)
    with pytest.raises(Unsupported, match="not both"):
        dv.js(P, normal(0, 1))
    with pytest.raises(ShapeError, match="same values"):
        dv.js([1, 2], [1, 2, 3])


def test_f_divergences() -> None:
    assert dv.tv(P, Q) == pytest.approx(0.4)
    assert dv.hellinger(P, Q) == pytest.approx(0.324920, abs=1e-6)
    assert dv.chi2(P, Q) == pytest.approx(1.777778, abs=1e-6)
    assert dv.renyi(P, Q, 2) == pytest.approx(1.021651, abs=1e-6)
    assert dv.renyi(P, Q, 0.5) == pytest.approx(0.223144, abs=1e-6)
    p, q = RNG.dirichlet(np.ones(6), 50), RNG.dirichlet(np.ones(6), 50)
    xlogx = torch.special.xlogy
    pairs = {
        "kl": (dv.kl(p, q), lambda t: xlogx(t, t), math.inf),
        "tv": (dv.tv(p, q), lambda t: 0.5 * (t - 1).abs(), 0.5),
        "chi2": (dv.chi2(p, q), lambda t: (t - 1) ** 2, math.inf),
        "hellinger": (dv.hellinger(p, q) ** 2, lambda t: 0.5 * (t.sqrt() - 1) ** 2, 0.5),
    }
    for value, f, slope in pairs.values():
        np.testing.assert_allclose(dv.f_divergence(p, q, f, slope=slope), value, rtol=1e-10)
    assert np.all(2 * dv.tv(p, q) ** 2 <= dv.kl(p, q))
    orders = np.stack([dv.renyi(p, q, a) for a in (0, 0.3, 1, 1.5, 5, math.inf)])
    assert np.all(np.diff(orders, axis=0) >= -1e-9)
    np.testing.assert_allclose(dv.renyi(p, q, 1 + 1e-7), dv.kl(p, q), rtol=1e-4)
    zero = [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]
    assert dv.chi2(*zero) == dv.renyi(*zero, 2) == dv.kl(*zero) == math.inf
    assert dv.tv(*zero) == 0.5 and dv.hellinger(*zero) == pytest.approx(math.sqrt(0.5))
    assert dv.f_divergence(*zero, lambda t: 0.5 * (t - 1).abs(), slope=0.5) == 0.5
    assert dv.renyi([1, 0], [0.25, 0.75], 0) == pytest.approx(math.log(4))
    with pytest.raises(ValueError, match="xlogy"):
        dv.f_divergence([1, 0], [1, 1], lambda t: t * t.log())
    with pytest.raises(ValueError, match="alpha must be at least 0"):
        dv.renyi(P, Q, -1)
    a, b = (torch.from_numpy(v[:2]).requires_grad_() for v in (p, q))
    for f in (dv.hellinger, dv.chi2, dv.tv, lambda u, v: dv.renyi(u, v, 2.5), dv.js):
        assert torch.autograd.gradcheck(f, (a, b))


def test_fisher() -> None:
    value = dv.fisher(normal(1, 2), normal(4, 2), random_state=0)
    assert value.item() == pytest.approx(9 / 16)
    assert dv.fisher(normal(1, 2), normal(1, 2), random_state=0).item() == 0
    d = 50
    p = D.Independent(D.Normal(torch.zeros(d).double(), 1.0), 1)
    q = D.Independent(D.Normal(torch.ones(d).double(), 1.0), 1)
    assert dv.fisher(p, q, n=100, random_state=0).item() == pytest.approx(d)
    sliced = dv.fisher(p, q, n=400, slices=20, random_state=0, stderr=True)
    assert abs(float(sliced.value) - d) < 4 * float(sliced.stderr)
    by_score = dv.fisher(p, lambda x: 1 - x, n=100, random_state=0)
    assert by_score.item() == pytest.approx(d)
    x = RNG.normal(size=2000)
    assert dv.fisher(normal(0, 1), normal(0, 2), x) == pytest.approx(0.5625 * (x**2).mean())
    mean = double(2.0)[0].requires_grad_()
    gap = dv.fisher(normal(0, 1), D.Normal(mean, double(1.0)[0]), random_state=0)
    assert torch.autograd.grad(gap, mean)[0].item() == pytest.approx(4)  # of mean²
    with pytest.raises(ValueError, match="score alone"):
        dv.fisher(lambda x: -x, normal(0, 1))


def test_frechet() -> None:
    assert dv.frechet(0, 1, 3, 4) == pytest.approx(10)
    S = [[2, 1], [1, 2]], [[1, 0], [0, 4]]
    assert dv.frechet([0, 0], S[0], [1, -2], S[1]) == pytest.approx(5.771220, abs=1e-6)
    assert dv.frechet([1, -2], S[1], [0, 0], S[0]) == pytest.approx(5.771220, abs=1e-6)
    from scipy.linalg import sqrtm

    A = RNG.normal(size=(6, 5, 8))
    C, m = A @ A.transpose(0, 2, 1), RNG.normal(size=(6, 5))
    found = dv.frechet(m[:3], C[:3], m[3:], C[3:])
    for k in range(3):
        cross = np.trace(sqrtm(C[k] @ C[k + 3])).real
        expected = ((m[k] - m[k + 3]) ** 2).sum() + np.trace(C[k] + C[k + 3]) - 2 * cross
        assert found[k] == pytest.approx(expected)
    X = RNG.normal(size=(8, 20))  # fewer rows than columns: singular covariances
    assert dv.frechet_from_samples(X, X) == pytest.approx(0, abs=1e-9)
    assert dv.frechet_from_samples(X, X + 1) == pytest.approx(20, abs=1e-6)
    assert dv.frechet_from_samples(X.astype(np.float32), X.astype(np.float32) + 1) == (
        pytest.approx(20, abs=1e-4)
    )
    with pytest.raises(ShapeError, match="means of 2 entries"):
        dv.frechet([0, 0], np.eye(3), [0, 0], np.eye(2))
    with pytest.raises(ValueError, match="negative eigenvalues"):
        dv.frechet([0, 0], [[1, 2], [2, 1]], [0, 0], np.eye(2))
    g = [torch.from_numpy(RNG.normal(size=(6, 3))).requires_grad_() for _ in range(2)]
    assert torch.autograd.gradcheck(dv.frechet_from_samples, g)


def test_kl_of_gaussians_from_an_encoder() -> None:
    kl = dv.kl_gaussian
    assert kl([1, -1], [0.5, 2]) == pytest.approx(1.25)
    assert kl([1.0], [0.25]) == pytest.approx(0.818147, abs=1e-6)
    entropy, cross = (
        0.5 * math.log(2 * math.pi * math.e * 0.25),
        0.5 * (math.log(2 * math.pi) + 1.25),
    )
    assert (-entropy, -cross) == pytest.approx((-0.725791, -1.543939), abs=1e-6)
    assert cross - entropy == pytest.approx(kl([1.0], [0.25]))
    assert kl([1, 2], 1, cov1=4) == pytest.approx(1.261294, abs=1e-6)
    full = kl([1, -1], [[0.5, 0.0], [0.0, 2.0]])
    assert full == pytest.approx(1.25)
    mean, logvar = torch.randn(
        2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    assert torch.allclose(kl(mean, logvar0=logvar), kl(mean, logvar.exp()))
    assert torch.allclose(
        kl(mean, logvar0=logvar, mean1=mean, logvar1=logvar), torch.zeros(4).double()
    )
    assert math.isfinite(kl([0.0], logvar0=[-1e4]))  # cut off at -30
    with pytest.raises(ValueError, match="pass cov0 or logvar0"):
        kl([0.0])
    with pytest.raises(ValueError, match="not both"):
        kl([0.0], [1.0], logvar0=[0.0])
