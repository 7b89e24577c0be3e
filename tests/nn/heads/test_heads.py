"""Heads of networks: values against SciPy, maximum likelihood, predictions and intervals."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats as st
import torch
from torch import Tensor, nn

from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.math.distributions.plackett_luce import PlackettLuce
from groundstate.math.distributions.quantiles import interval, quantile
from groundstate.nn.heads.base import FAMILIES, LINKS, DistributionHead, Link
from groundstate.nn.heads.multi import MultiHead
from groundstate.nn.heads.normal import NormalHead
from groundstate.store import load, save

F64 = torch.float64
B = 5


def t(values: Any) -> Tensor:
    return torch.tensor(values, dtype=F64)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def positive(link: Link, a: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(a)) + 1e-6 if link == "softplus" else np.exp(a)


def plackett_luce(s: np.ndarray, ranking: np.ndarray) -> float:
    left, total = list(range(len(s))), 0.0
    for item in ranking:
        total += s[item] - math.log(sum(math.exp(s[i]) for i in left))
        left.remove(item)
    return total


def cholesky(a: np.ndarray, link: Link) -> tuple[np.ndarray, np.ndarray]:
    L = np.diag(positive(link, a[2:4]))
    L[1, 0] = a[4]
    return a[:2], L @ L.T


# name -> (m, y, −scipy's logarithm of the density for one row)
Density = Callable[[np.ndarray, Any, Link], float]
CASES: dict[str, tuple[int, list[Any], Density]] = {
    "normal": (1, [0.3], lambda a, y, k: st.norm.logpdf(y, a[0], positive(k, a[1]))),
    "laplace": (1, [0.3], lambda a, y, k: st.laplace.logpdf(y, a[0], positive(k, a[1]))),
    "student_t": (
        1, [-2.0], lambda a, y, k: st.t.logpdf(y, 2 + positive(k, a[2]), a[0], positive(k, a[1])),
    ),
    "lognormal": (
        1, [1.7], lambda a, y, k: st.lognorm.logpdf(y, positive(k, a[1]), scale=np.exp(a[0])),
    ),
    "gamma": (
        1, [1.7], lambda a, y, k: st.gamma.logpdf(y, positive(k, a[0]), scale=1 / positive(k, a[1])),
    ),
    "exponential": (1, [1.7], lambda a, y, k: st.expon.logpdf(y, scale=1 / positive(k, a[0]))),
    "beta": (1, [0.2], lambda a, y, k: st.beta.logpdf(y, positive(k, a[0]), positive(k, a[1]))),
    "von_mises": (1, [1.2], lambda a, y, k: st.vonmises.logpdf(y, positive(k, a[1]), a[0])),
    "bernoulli": (1, [1.0], lambda a, y, k: st.bernoulli.logpmf(y, 1 / (1 + np.exp(-a[0])))),
    "categorical": (
        3, 2, lambda a, y, k: st.multinomial.logpmf(np.eye(3)[y], 1, np.exp(a) / np.exp(a).sum()),
    ),
    "poisson": (1, [3.0], lambda a, y, k: st.poisson.logpmf(y, positive(k, a[0]))),
    "negative_binomial": (
        1, [3.0], lambda a, y, k: st.nbinom.logpmf(
            y, positive(k, a[1]), positive(k, a[1]) / (positive(k, a[0]) + positive(k, a[1]))),
    ),
    "multivariate_normal": (
        2, [0.3, -1.0], lambda a, y, k: st.multivariate_normal.logpdf(y, *cholesky(a, k)),
    ),
    "plackett_luce": (4, [2, 0, 3, 1], lambda a, y, k: plackett_luce(a, y)),
}  # fmt: skip


def test_every_family_is_checked() -> None:
    assert set(CASES) == set(FAMILIES) and len(FAMILIES) == 14


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", CASES)
def test_value_is_scipys(name: str, link: Link) -> None:
    m, y, density = CASES[name]
    head = DistributionHead(name, m, link)
    raw = torch.randn(B, head.n_outputs, generator=generator(), dtype=F64)
    rows = torch.tensor(
        [y] * B, dtype=torch.long if name in ("categorical", "plackett_luce") else F64
    )
    head.check(rows)
    want = [-float(np.sum(density(a, np.asarray(y), link))) for a in raw.numpy()]
    assert head(raw, rows).tolist() == pytest.approx(want, abs=1e-6)
    assert (-head.dist(raw).log_prob(rows)).tolist() == pytest.approx(want, abs=1e-6)
    twin = DistributionHead(**head.config())
    assert torch.equal(twin(raw, rows), head(raw, rows))
    assert pickle.loads(pickle.dumps(head)).config() == head.config()


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("categorical", "plackett_luce")])
def test_coordinates_add(name: str) -> None:
    head, one = DistributionHead(name, 2, "softplus"), DistributionHead(name, 1, "softplus")
    if name == "multivariate_normal":
        head = DistributionHead(name, 2, "softplus", "diagonal")
        assert head.n_outputs == 4
    per = one.n_outputs
    raw = torch.randn(B, per, 2, generator=generator(1), dtype=F64)
    y = torch.tensor([CASES[name][1][:1] * 2] * B, dtype=F64)
    each = [one(raw[:, :, i], y[:, i : i + 1]) for i in (0, 1)]
    assert torch.allclose(head(raw.flatten(1), y), each[0] + each[1], atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_populations_and_empty_batches(name: str) -> None:
    m, y, _ = CASES[name]
    head = DistributionHead(name, m)
    labels = name in ("categorical", "plackett_luce")
    rows = torch.tensor([y] * B, dtype=torch.long if labels else F64)
    raw = torch.randn(3, B, head.n_outputs, generator=generator(2), dtype=F64)
    stacked = torch.func.vmap(head, in_dims=(0, None))(raw, rows)
    assert torch.allclose(stacked, torch.stack([head(r, rows) for r in raw]), atol=1e-12)
    assert head(raw[0, :0], rows[:0]).shape == (0,)


def fitted(head: nn.Module, y: Tensor) -> Tensor:
    """Raw outputs of an intercept-only network at the maximum of the likelihood."""
    bias = nn.Parameter(torch.zeros(1, head.n_outputs, dtype=F64))  # type: ignore[arg-type]
    optimiser = torch.optim.LBFGS(
        [bias],
        max_iter=60,
        tolerance_grad=1e-10,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss: Tensor = head(bias.expand(len(y), -1), y).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    return bias.detach()


def test_intercept_only_fit_is_maximum_likelihood() -> None:
    g = np.random.default_rng(0)
    counts = t(g.poisson(3.0, 200))[:, None]
    assert DistributionHead("poisson").mean(fitted(DistributionHead("poisson"), counts)).item() == (
        pytest.approx(counts.mean().item(), rel=1e-6)
    )
    times = t(g.exponential(2.0, 200))[:, None]
    head = DistributionHead("exponential")
    assert head.mean(fitted(head, times)).item() == pytest.approx(times.mean().item(), rel=1e-6)
    labels = torch.tensor(g.integers(0, 3, 200))
    head = DistributionHead("categorical", 3)
    share = torch.bincount(labels, minlength=3) / 200
    assert torch.allclose(head.mean(fitted(head, labels))[0], share.double(), atol=1e-6)
    sizes = t(g.gamma(2.0, 1.5, 200))[:, None]
    head = DistributionHead("gamma")
    distribution = head.dist(fitted(head, sizes)).base_dist  # type: ignore[attr-defined]
    shape, _, scale = st.gamma.fit(sizes.numpy(), floc=0)
    assert distribution.concentration.item() == pytest.approx(shape, rel=1e-4)
    assert 1 / distribution.rate.item() == pytest.approx(scale, rel=1e-4)
    values = t(g.standard_normal((200, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]]))
    head = DistributionHead("multivariate_normal", 2)
    found = head.dist(fitted(head, values)).covariance_matrix[0]  # type: ignore[attr-defined]
    assert torch.allclose(found, torch.cov(values.T, correction=0), atol=1e-5)


def distribution_of(name: str, y: Tensor, m: int = 1) -> Any:
    head = DistributionHead(name, m)
    distribution: Any = head.dist(fitted(head, y))
    return getattr(distribution, "base_dist", distribution)


def test_more_fits_without_inputs() -> None:
    g = np.random.default_rng(1)
    z = t(g.standard_normal(101) * 2 + 1)[:, None]
    distribution = distribution_of("normal", z)
    assert [distribution.loc.item(), distribution.scale.item()] == pytest.approx(
        [z.mean().item(), z.std(correction=0).item()], rel=1e-5
    )
    sizes = t(np.exp(g.standard_normal(101)))[:, None]
    distribution = distribution_of("lognormal", sizes).base_dist
    logs = sizes.log()
    assert [distribution.loc.item(), distribution.scale.item()] == pytest.approx(
        [logs.mean().item(), logs.std(correction=0).item()], rel=1e-5
    )
    distribution = distribution_of("laplace", z)  # the median, and the mean distance from it
    assert distribution.loc.item() == pytest.approx(z.median().item(), abs=2e-2)
    assert distribution.scale.item() == pytest.approx(
        (z - z.median()).abs().mean().item(), rel=1e-3
    )
    shares = t(g.beta(2.0, 5.0, 101))[:, None]
    distribution = distribution_of("beta", shares)
    a, b, *_ = st.beta.fit(shares.numpy(), floc=0, fscale=1)
    assert [
        distribution.concentration1.item(),
        distribution.concentration0.item(),
    ] == pytest.approx([a, b], rel=1e-3)
    counts = t(g.negative_binomial(3, 0.4, 101))[:, None]
    assert distribution_of("negative_binomial", counts).mean.item() == pytest.approx(
        counts.mean().item(), rel=1e-5
    )
    angles = t(g.vonmises(0.5, 2.0, 101))[:, None]
    distribution = distribution_of("von_mises", angles)
    direction = math.atan2(angles.sin().mean().item(), angles.cos().mean().item())
    assert distribution.loc.item() == pytest.approx(direction, abs=1e-5)
    resultant = math.hypot(angles.sin().mean().item(), angles.cos().mean().item())
    kappa = distribution.concentration.item()
    assert scipy.special.i1e(kappa) / scipy.special.i0e(kappa) == pytest.approx(resultant, abs=1e-5)
    coins = t(g.integers(0, 2, 101))[:, None]
    assert distribution_of("bernoulli", coins).probs.item() == pytest.approx(
        coins.mean().item(), rel=1e-6
    )


def test_fits_of_heavy_tails_and_rankings() -> None:
    g = np.random.default_rng(2)
    y = t(g.standard_t(4.0, 400))[:, None]
    head = DistributionHead("student_t")
    ours = head(fitted(head, y).expand(400, -1), y).sum().item()
    theirs = -st.t.logpdf(y.numpy(), *st.t.fit(y.numpy())).sum()
    assert ours == pytest.approx(theirs, abs=1e-2)
    first = torch.tensor([[0, 1, 2]] * 5 + [[1, 0, 2]] * 3 + [[2, 1, 0]] * 2)
    head = DistributionHead("plackett_luce", 3)
    raw = fitted(head, first).requires_grad_()
    (slope,) = torch.autograd.grad(head(raw.expand(10, -1), first).mean(), raw)
    assert slope.abs().max().item() < 1e-6
    better = head(raw.expand(10, -1), first).sum()
    assert (
        better < head(torch.zeros(10, 3, dtype=F64), first).sum() == pytest.approx(10 * math.log(6))
    )


def test_poisson_has_its_constant() -> None:
    """Log-rate .5, y = 3; Stirling's formula, torch's full=True, gives 1.9128."""
    raw, y = t([[0.5]]), t([[3.0]])
    assert DistributionHead("poisson")(raw, y).item() == pytest.approx(1.940481, abs=1e-6)
    assert nn.PoissonNLLLoss(full=True)(raw, y).item() == pytest.approx(1.9128, abs=5e-5)


def test_logarithms_do_not_underflow() -> None:
    y = torch.randn(1000, 1, generator=generator(), dtype=F64)
    rows = DistributionHead("normal")(torch.zeros(1000, 2, dtype=F64), y)
    assert torch.exp(-rows).prod().item() == 0.0
    assert 1000 < rows.sum().item() < 2000


def test_mean_nll_is_kl_plus_entropy() -> None:
    y = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    raw = torch.randn(1, 3, generator=generator(), dtype=F64).expand(10, -1)
    q = t([0.5, 0.3, 0.2])
    log_p = torch.log_softmax(raw[0], 0)
    kl, entropy = (q * (q.log() - log_p)).sum(), -(q * q.log()).sum()
    rows = DistributionHead("categorical", 3)(raw, y)
    assert rows.mean().item() == pytest.approx((kl + entropy).item(), abs=1e-12)


def test_gaussian_variance_fixed_learned_net() -> None:
    one = torch.ones(1, 1, dtype=F64)
    assert NormalHead(scale="fixed")(0 * one, one).item() == pytest.approx(1.418939, abs=1e-6)
    assert nn.GaussianNLLLoss()(0 * one, one, one).item() == 0.5
    y = torch.randn(50, 1, generator=generator(), dtype=F64) + 2
    mu = torch.zeros(50, 1, dtype=F64, requires_grad=True)
    for sigma in (0.5, 3.0):  # the gradient is that of squared error over 2σ²
        (grad,) = torch.autograd.grad(NormalHead(scale="fixed", sigma=sigma)(mu, y).sum(), mu)
        (sse,) = torch.autograd.grad((mu - y).square().sum(), mu)
        assert torch.allclose(grad, sse / (2 * sigma**2), atol=1e-12)
        assert fitted(NormalHead(scale="fixed", sigma=sigma), y).item() == pytest.approx(
            y.mean().item(), rel=1e-6
        )
    residual = y - 1.5
    head = NormalHead(scale="learned").double()
    head.log_var.data.fill_(residual.square().mean().log())
    (slope,) = torch.autograd.grad(head(torch.full_like(y, 1.5), y).mean(), head.log_var)
    assert slope.abs().item() < 1e-12  # stationary at the mean squared residual
    raw = t([[1.0, 50.0], [1.0, -50.0], [1.0, 0.7]])
    assert NormalHead().dist(raw).stddev[:, 0].log().tolist() == pytest.approx([10.0, -10.0, 0.35])
    std = NormalHead(param="std").dist(t([[1.0, -2.0]]))
    assert std.stddev.item() == pytest.approx(2.0)
    distribution = NormalHead().dist(raw)
    assert torch.allclose(NormalHead()(raw, 0 * raw[:, :1]), -distribution.log_prob(0 * raw[:, :1]))


def test_multi_head_adds() -> None:
    heads = {f"y{j}": NormalHead(scale="fixed", sigma=2.0) for j in range(3)}
    head = MultiHead(heads)
    raw = torch.randn(B, 3, generator=generator(), dtype=F64, requires_grad=True)
    y = torch.randn(B, 3, generator=generator(1), dtype=F64)
    parts = {f"y{j}": y[:, j : j + 1] for j in range(3)}
    rows = head(raw, parts)
    constant = 1.5 * math.log(2 * math.pi * 4)
    assert torch.allclose(rows, (raw - y).square().sum(1) / 8 + constant, atol=1e-12)
    (joint,) = torch.autograd.grad(rows.sum(), raw, retain_graph=True)
    for j in range(3):  # as many separate regressions
        (own,) = torch.autograd.grad(heads["y0"](raw[:, j : j + 1], y[:, j : j + 1]).sum(), raw)
        assert torch.allclose(joint[:, j], own[:, j], atol=1e-14)
    per_row = (raw - y).square().sum(1)
    assert torch.allclose(nn.MSELoss()(raw, y), per_row.mean() / 3)
    weighted = MultiHead(heads, {"y0": 2.0, "y1": 0.0, "y2": 1.0})
    terms = head.terms(raw, parts)
    assert torch.allclose(weighted(raw, parts), 2 * terms["y0"] + terms["y2"])
    learned = MultiHead(heads, "learned").double()
    assert torch.allclose(learned(raw, parts), rows)
    loss = learned(raw.detach(), parts).mean()
    (slope,) = torch.autograd.grad(loss, learned.log_scale)
    want = torch.stack([1 - terms[k].mean() for k in heads])
    assert torch.allclose(slope, want.detach())
    with pytest.raises(ShapeError, match=r"need raw outputs \(B, 3\), got \(5, 2\)"):
        head(raw[:, :2], parts)
    with pytest.raises(ShapeError, match=r"y has no \['y2'\]"):
        head(raw, {"y0": y, "y1": y})


def test_multi_head_of_mixed_types() -> None:
    head = MultiHead(
        {
            "n": DistributionHead("poisson"),
            "kind": DistributionHead("categorical", 3),
            "z": NormalHead(),
        }
    )
    raw = torch.randn(B, 6, generator=generator(), dtype=F64)
    y = {"n": torch.full((B, 1), 2.0), "kind": torch.arange(B) % 3, "z": torch.zeros(B, 1)}
    rows = head(raw, y)
    distributions = head.dist(raw)
    want = sum(-distributions[k].log_prob(v.double() if k != "kind" else v) for k, v in y.items())
    assert torch.allclose(rows, want)  # type: ignore[arg-type]
    assert head.predict(raw)["kind"].tolist() == raw[:, 1:4].argmax(1).tolist()


def test_predictions() -> None:
    raw = t([[0.4, -1.0], [-0.3, 2.0]])
    assert torch.equal(NormalHead().predict(raw), raw[:, :1])
    coin = DistributionHead("bernoulli", 2)
    assert torch.equal(coin.predict(raw), (torch.sigmoid(raw) > 0.5).double())
    assert torch.allclose(coin.proba(raw), torch.sigmoid(raw))
    label = DistributionHead("categorical", 2)
    assert label.predict(raw).tolist() == [0, 1]
    assert torch.allclose(label.proba(raw).sum(1), torch.ones(2, dtype=F64))
    assert DistributionHead("plackett_luce", 2).predict(raw).tolist() == [[0, 1], [1, 0]]
    turned = DistributionHead("von_mises").predict(t([[4.0, 0.0]]))
    assert turned.item() == pytest.approx(4.0 - 2 * math.pi)
    with pytest.raises(Unsupported, match="no distribution of labels"):
        NormalHead().proba(raw)
    with pytest.raises(Unsupported, match="a ranking has no mean"):
        DistributionHead("plackett_luce", 2).mean(raw)


@pytest.mark.parametrize(
    "name", [n for n in CASES if n not in ("categorical", "plackett_luce", "bernoulli")]
)
def test_interval_covers_its_share(name: str) -> None:
    m = CASES[name][0]
    head = DistributionHead(name, m)
    raw = 0.5 * torch.randn(4, head.n_outputs, generator=generator(3), dtype=F64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        y = head.dist(raw).sample(torch.Size([20_000]))
    low, high = head.interval(raw, 0.8)
    inside = ((y >= low) & (y <= high)).double().mean(0)
    if head.kind == "angle":
        inside = (torch.cos(y - raw[:, :1]) >= torch.cos((high - low) / 2)).double().mean(0)
    least = 0.79 if head.kind == "count" else 0.785
    assert bool((inside >= least).all())
    if head.kind != "count":
        assert bool((inside <= 0.815).all())


def test_band_covers_its_share_of_new_rows() -> None:
    """A net of mean and variance on y ~ N(2x, e^(2.2x − 2.4)): 90 % of new rows lie in its band."""
    g = generator(5)
    x = torch.rand(24_000, 1, generator=g, dtype=F64)
    y = 2 * x + torch.exp(1.1 * x - 1.2) * torch.randn(24_000, 1, generator=g, dtype=F64)
    net, head, seen = nn.Linear(1, 2).double(), NormalHead(), slice(0, 4000)
    for p in net.parameters():
        nn.init.zeros_(p)
    optimiser = torch.optim.LBFGS(net.parameters(), max_iter=40, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss: Tensor = head(net(x[seen]), y[seen]).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    x, y = x[4000:], y[4000:]
    with torch.no_grad():
        low, high = head.interval(net(x), 0.9)
    inside = ((y >= low) & (y <= high)).double()
    assert inside.mean().item() == pytest.approx(0.9, abs=0.01)
    for side in (x < 0.5, x >= 0.5):  # where the variance is small, and where it is large
        assert inside[side].mean().item() == pytest.approx(0.9, abs=0.015)


def test_quantiles_of_labels_and_bad_levels() -> None:
    with pytest.raises(Unsupported, match="Categorical has no quantiles"):
        DistributionHead("categorical", 3).interval(torch.zeros(1, 3))
    assert quantile(torch.distributions.Bernoulli(logits=t([-2.0, 2.0])), 0.5).tolist() == [0, 1]
    with pytest.raises(ValueError, match="level must lie in"):
        interval(torch.distributions.Normal(0.0, 1.0), 95)
    with pytest.raises(ValueError, match="q=1.2"):
        quantile(torch.distributions.Normal(0.0, 1.0), 1.2)


BAD: list[tuple[str, Any, str]] = [
    (
        "normal",
        [[0.0], [math.nan]],
        r"y\[1, 0\] is nan, but the head 'normal' needs a finite number",
    ),
    ("gamma", [[1.0], [0.0]], r"y\[1, 0\] is 0.0, but the head 'gamma' needs a number above 0"),
    ("beta", [[1.0]], "between 0 and 1, both excluded"),
    ("von_mises", [[4.0]], r"an angle in \[-pi, pi\]"),
    ("bernoulli", [[2.0]], "needs 0 or 1"),
    ("poisson", [[1.5]], r"needs a count 0, 1, 2"),
    ("categorical", [0, 3], r"y\[1\] is 3, but the head 'categorical' needs a label 0 to 2"),
    ("plackett_luce", [[0, 1, 1]], r"y\[0\] is \[0, 1, 1\].*items 0 to 2, each once"),
]


@pytest.mark.parametrize(("name", "y", "message"), BAD)
def test_outcomes_outside_the_support(name: str, y: Any, message: str) -> None:
    head = DistributionHead(name, 3 if name in ("categorical", "plackett_luce") else 1)
    with pytest.raises(DataError, match=message):
        head.check(torch.tensor(y))


def test_wrong_settings() -> None:
    with pytest.raises(Unsupported, match="there is no head 'weibull'"):
        DistributionHead("weibull")
    with pytest.raises(ValueError, match="link must be one of softplus, exp"):
        DistributionHead("gamma", link="log")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"needs raw outputs \(B, 2\), got \(4, 3\)"):
        DistributionHead("gamma")(torch.zeros(4, 3), torch.ones(4, 1))
    with pytest.raises(ValueError, match="scale must be 'net', 'learned' or 'fixed'"):
        NormalHead(scale="free")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sigma must be positive"):
        NormalHead(sigma=0.0)


def test_plackett_luce() -> None:
    s = torch.randn(4, generator=generator(), dtype=F64, requires_grad=True)
    distribution = PlackettLuce(s)
    every = torch.tensor(list(permutations(range(4))))
    log_p = distribution.log_prob(every)
    assert log_p.exp().sum().item() == pytest.approx(1.0, abs=1e-12)
    assert every[int(log_p.argmax())].tolist() == distribution.mode.tolist()
    top = distribution.log_prob(torch.tensor([2, 0])).exp()  # all rankings that begin with 2, 0
    assert top.item() == pytest.approx(
        log_p[(every[:, 0] == 2) & (every[:, 1] == 0)].exp().sum().item()
    )
    assert distribution.log_prob(torch.tensor([0, 0, 1, 2])).item() == -math.inf
    (grad,) = torch.autograd.grad(distribution.log_prob(every).sum(), s)
    assert bool(torch.isfinite(grad).all())
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = distribution.sample(torch.Size([20_000]))[:, 0]
    share = torch.bincount(first, minlength=4) / 20_000
    assert torch.allclose(share.double(), torch.softmax(s.detach(), 0), atol=0.012)


def test_heads_are_stored(tmp_path: Any) -> None:
    head = MultiHead(
        {"a": NormalHead(2, "learned", 3.0), "b": DistributionHead("gamma")}, "learned"
    )
    head.log_scale.data += 0.3
    save(head, tmp_path / "head.gs")
    twin = load(tmp_path / "head.gs")
    raw = torch.randn(4, head.n_outputs, generator=generator())
    y = {"a": torch.zeros(4, 2), "b": torch.ones(4, 1)}
    assert torch.equal(twin(raw, y), head(raw, y))
