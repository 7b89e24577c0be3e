"""Likelihoods of reconstructions: values, normalisation, gradients, draws, tables of mixed columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import Tensor

from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.math.distributions.columns import Joined, LevelColumns
from groundstate.nn.heads.likelihoods import LIKELIHOODS, Likelihood, likelihood
from groundstate.store import load, save

F64 = torch.float64
LEVELS = [0, 3, 0, 2]


def gen(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(name: str, d: int = 4, **options: Any) -> Likelihood:
    levels = {"mixed": LEVELS, "categorical": [3, 2, 4, 2]}.get(name)
    return likelihood(name, d, levels, **options).to(F64)


def rows(head: Likelihood, n: int = 5) -> tuple[Tensor, Tensor]:
    out = torch.randn(n, head.n_outputs, generator=gen(), dtype=F64)
    return out, head.sample(out, gen(1))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_contract(name: str, tmp_path: Any) -> None:
    head = made(name)
    out, x = rows(head)
    log_p = head.log_prob(out, x)
    assert log_p.shape == (5,) and x.shape == head.mean(out).shape == (5, 4)
    assert head.inputs(x).shape == (5, head.n_inputs)
    torch.testing.assert_close(head(out, x), -log_p)
    head.check(x)
    each = torch.cat([head.log_prob(out[i : i + 1], x[i : i + 1]) for i in range(5)])
    torch.testing.assert_close(each, log_p)  # a batch is a loop
    if head.is_normalised:
        torch.testing.assert_close(head.distribution(out).log_prob(x), log_p)
    assert torch.equal(head.sample(out, gen(7)), head.sample(out, gen(7)))
    assert torch.autograd.gradcheck(lambda o: head.log_prob(o, x), (out.requires_grad_(),))
    save(head, tmp_path / "head")
    again = load(tmp_path / "head")
    torch.testing.assert_close(again.log_prob(out, x), head.log_prob(out, x))
    with pytest.raises(ShapeError, match=rf"outputs \(B, {head.n_outputs}\)"):
        head.log_prob(out[:, 1:], x)


@pytest.mark.parametrize("scale", [0.7, "learned", "per_dim"])
def test_gaussian_is_the_squared_error_over_twice_the_variance(scale: Any) -> None:
    head = made("gaussian", scale=scale)
    out, x = rows(head)
    sigma = head.scales(out)  # type: ignore[operator]
    by_hand = st.norm.logpdf(x.numpy(), out.numpy(), sigma.detach().numpy()).sum(1)
    np.testing.assert_allclose(head.log_prob(out, x).detach().numpy(), by_hand, rtol=1e-12)
    if scale == 0.7:
        sse = (x - out).square().sum(1)
        torch.testing.assert_close(
            head(out, x), sse / (2 * 0.49) + 2 * math.log(2 * math.pi * 0.49)
        )


def test_the_squared_error_is_a_normal_likelihood_of_variance_one_half() -> None:
    out, x = rows(made("squared"))
    constant = 2 * math.log(math.pi)
    normal = made("gaussian", scale=math.sqrt(0.5))
    torch.testing.assert_close(made("squared")(out, x), normal(out, x) - constant)


@pytest.mark.parametrize(
    ("scale", "want"), [("learned", [math.sqrt(4.625)] * 2), ("per_dim", [0.5, 3.0])]
)
def test_the_best_learned_scale_is_the_residuals(scale: Any, want: list[float]) -> None:
    head = likelihood("gaussian", 2, scale=scale).to(F64)
    x = torch.tensor([[0.5, 3.0], [-0.5, -3.0]], dtype=F64)
    optimiser = torch.optim.LBFGS(head.parameters(), max_iter=200, tolerance_grad=1e-10)

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = head(torch.zeros(2, 2, dtype=F64), x).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    found = head.scales(x).detach()  # type: ignore[operator]
    torch.testing.assert_close(found, torch.tensor(want, dtype=F64), rtol=1e-4, atol=0)


def test_a_learned_scale_stays_above_its_floor() -> None:
    head = made("gaussian", scale="per_dim")
    head.log_scale.data.fill_(-100.0)  # type: ignore[union-attr,operator]
    assert float(head.scales(torch.zeros(1, 4)).detach().min()) >= 1e-3  # type: ignore[operator]


def test_bernoulli_is_least_at_x_with_the_entropy() -> None:
    x = torch.tensor([[0.2, 0.9]], dtype=F64)
    head = made("bernoulli", 2)
    at = head(torch.logit(x), x).item()
    entropy = -sum(p * math.log(p) + (1 - p) * math.log(1 - p) for p in (0.2, 0.9))
    assert at == pytest.approx(entropy) and at > 0
    assert head(torch.logit(x) + 0.1, x).item() > at
    with pytest.raises(DataError, match=r"x\[0, 1\] is 1.5.*from 0 to 1"):
        head.check(torch.tensor([[0.5, 1.5]]))


def test_discretized_logistic_numbers() -> None:
    head = made("discretized_logistic", 1, scale=0.1)
    zero = torch.zeros(1, 1, dtype=F64)
    assert head.log_prob(zero, zero).item() == pytest.approx(-3.931954, abs=5e-7)
    grid = torch.linspace(-1, 1, 256, dtype=F64)[:, None]
    for mean in (-1.3, 0.0, 0.37, 0.99):
        mass = head.log_prob(torch.full_like(grid, mean), grid).exp().sum()
        assert mass.item() == pytest.approx(1, abs=1e-12)
    far = head.log_prob(torch.full((1, 1), 1e3, dtype=F64), zero)
    assert torch.isfinite(far).all()  # the tail does not cancel to log 0
    with pytest.raises(DataError, match="scale='minmax'"):
        head.check(torch.tensor([[2.0]]))


def test_discretized_logistic_draws_on_its_grid() -> None:
    head = made("discretized_logistic", 1, scale=0.2, bins=5)
    out = torch.full((40_000, 1), 0.1, dtype=F64)
    x = head.sample(out, gen())
    grid = torch.linspace(-1, 1, 5, dtype=F64)[:, None]
    share = torch.stack([(x == value).double().mean() for value in grid[:, 0]])
    exact = head.log_prob(torch.full_like(grid, 0.1), grid).exp()
    assert float((share - exact).abs().max()) < 4 * 0.5 / 200


def test_student_t_against_scipy() -> None:
    head = made("student_t", scale=0.8, df=3.0)
    out, x = rows(head)
    want = st.t.logpdf(x.numpy(), 3.0, out.numpy(), 0.8).sum(1)
    np.testing.assert_allclose(head.log_prob(out, x).numpy(), want, rtol=1e-10)


def test_a_mixed_table_adds_normal_columns_and_levels() -> None:
    head = made("mixed", scale=0.5)
    out, x = rows(head)
    real = st.norm.logpdf(x[:, [0, 2]].numpy(), out[:, :2].numpy(), 0.5).sum(1)
    first, second = out[:, 2:5].log_softmax(1), out[:, 5:].log_softmax(1)
    at = torch.arange(5)
    levels = first[at, x[:, 1].long()] + second[at, x[:, 3].long()]
    np.testing.assert_allclose(head.log_prob(out, x).numpy(), real + levels.numpy(), rtol=1e-12)
    mean = head.mean(out)
    assert torch.equal(mean[:, 1], first.argmax(1).to(F64))
    assert torch.equal(mean[:, [0, 2]], out[:, :2])
    with pytest.raises(
        DataError, match=r"x\[0, 1\] is 3, but this column has level numbers below 3"
    ):
        head.check(torch.tensor([[0.0, 3.0, 0.0, 1.0]]))


def test_levels_sum_to_one_and_are_drawn_by_their_probability() -> None:
    logits = torch.tensor([[0.0, 1.0, -1.0, 0.3, 0.7]], dtype=F64)
    p = LevelColumns(logits, [3, 2])
    pairs = torch.cartesian_prod(torch.arange(3.0), torch.arange(2.0)).to(F64)[:, None]
    mass = torch.cat([p.log_prob(pair) for pair in pairs]).exp()
    assert mass.sum().item() == pytest.approx(1)
    x = p.draw(20_000, gen())[:, 0]
    share = torch.stack([(x == pair).all(1).double().mean() for pair in pairs[:, 0]])
    assert float((share - mass).abs().max()) < 4 * 0.5 / 141


def test_errors_say_what_to_do() -> None:
    with pytest.raises(Unsupported, match="there is no likelihood 'normal'; use one of squared"):
        likelihood("normal", 2)
    with pytest.raises(ValueError, match="number of levels of each of the 2 columns"):
        likelihood("mixed", 2)
    with pytest.raises(ValueError, match="use likelihood='mixed'"):
        likelihood("categorical", 2, [0, 2])
    with pytest.raises(ValueError, match="'learned' or 'per_dim'"):
        likelihood("gaussian", 2, scale="net")
    with pytest.raises(ValueError, match="must be positive"):
        likelihood("gaussian", 2, scale=0.0)
    with pytest.raises(ShapeError, match="each of 0, 1"):
        Joined([([0, 2], LevelColumns(torch.zeros(1, 4), [2, 2]))])
