"""Tables by the chain rule: sums to one, orders, worked numbers, missing cells."""

from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from groundstate import AutoregressiveDensity
from groundstate.energy.sequences.chain_rule import ChainRuleEnergy
from groundstate.energy.sequences.columns import NETWORKS, ColumnChainEnergy
from groundstate.nn.columns import ColumnHeads

LEVELS = (2, 3, 2, 4)


def shaken(energy: ColumnChainEnergy, scale: float = 0.5) -> ColumnChainEnergy:
    """Random weights everywhere, in float64."""
    g = torch.Generator().manual_seed(0)
    energy.double()
    with torch.no_grad():
        for p in energy.parameters():
            p.add_(scale * torch.randn(p.shape, generator=g, dtype=torch.float64))
    return energy


def every(levels: Any) -> Tensor:
    return torch.tensor(list(product(*(range(n) for n in levels)))).double()


@pytest.mark.parametrize("net", NETWORKS)
@pytest.mark.parametrize("order", [None, (2, 0, 3, 1)])
def test_all_strings_sum_to_one(net: str, order: Any) -> None:
    e = shaken(ColumnChainEnergy(LEVELS, net, (8, 8), order=order))
    assert e.log_prob(every(LEVELS)).exp().sum().item() == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("net", NETWORKS)
def test_uniform_is_d_log_c(net: str) -> None:
    e = ColumnChainEnergy((3,) * 5, net, (8,)).double()
    e.net.start_at(torch.zeros(15))
    torch.testing.assert_close(
        e(x=every((3,) * 5)), torch.full((3**5,), 5 * np.log(3), dtype=torch.float64)
    )


def test_all_orders_of_a_table_agree() -> None:
    joint = torch.rand(2, 2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    every_string = every((2, 2, 2)).long()
    expected = (joint / joint.sum()).reshape(-1)
    for order in permutations(range(3)):
        e = ChainRuleEnergy.from_joint(joint, order)
        torch.testing.assert_close(e.log_prob(every_string).exp(), expected)


@pytest.mark.parametrize("net", NETWORKS)
@pytest.mark.parametrize("levels", [(0, 3, 0, 2), (0, 0, 0, 0)])
def test_columns_behind_never_change_columns_before(net: str, levels: Any) -> None:
    order = (1, 3, 0, 2)
    e = ColumnChainEnergy(levels, net, (8, 8), "tanh", 2, context=2, order=order)
    e = shaken(e)
    g = torch.Generator().manual_seed(1)
    x = torch.stack([torch.randint(max(n, 2), (6,), generator=g).double() for n in levels], 1)
    y = torch.randn(6, 2, generator=g, dtype=torch.float64)
    before = e.factors(x, y)
    for place, j in enumerate(order):
        changed = x.clone()
        changed[:, j] = 1 - changed[:, j].clamp(max=1)
        after = e.factors(changed, y)
        for i in order[:place]:
            torch.testing.assert_close(after[:, i], before[:, i], rtol=0, atol=0)
        if place + 1 < len(order):
            assert not torch.equal(
                after[:, list(order[place + 1 :])], before[:, list(order[place + 1 :])]
            )


@pytest.mark.parametrize("net", NETWORKS)
def test_steps_are_the_whole_pass(net: str) -> None:
    levels, order = (0, 3, 2, 0), (3, 1, 0, 2)
    e = shaken(ColumnChainEnergy(levels, net, (8, 8), components=3, context=2, order=order))
    y = torch.ones(5, 2, dtype=torch.float64)
    x = e.ancestral(5, generator=torch.Generator().manual_seed(0), y=y)["x"]
    nothing_free = torch.zeros(5, 4, dtype=torch.bool)
    again, log_p = e.complete(x, nothing_free, y)
    torch.testing.assert_close(again, x)
    torch.testing.assert_close(log_p, e.log_prob(x, y=y))
    first = e.conditional(x[:, [3]], y=y)  # of column 1 given column 3
    torch.testing.assert_close(first.log_prob(x[:, 1].long()), e.factors(x, y)[:, 1])
    last = e.conditional(x[:, [3, 1]], y=y)
    torch.testing.assert_close(last.log_prob(x[:, 0]), e.factors(x, y)[:, 0])


@pytest.mark.parametrize("net", NETWORKS)
def test_draws_have_the_probabilities(net: str) -> None:
    e = shaken(ColumnChainEnergy((2, 3), net, (8,), order=(1, 0)))
    p = e.log_prob(every((2, 3))).exp()
    x = e.ancestral(20_000, generator=torch.Generator().manual_seed(0))["x"]
    found = torch.bincount((3 * x[:, 0] + x[:, 1]).long(), minlength=6) / 20_000
    assert (found - p).abs().max().item() < 4 * 0.5 / 20_000**0.5


@pytest.mark.parametrize("family", ["normal", "logistic"])
def test_a_factor_integrates_to_one(family: str) -> None:
    heads = ColumnHeads([0], 3, family)
    own = torch.randn(1, 1, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    grid = torch.linspace(-80, 80, 400_001, dtype=torch.float64)
    p = heads.mixture_log_prob(own.expand(len(grid), 1, 9), grid[:, None]).exp()
    assert torch.trapezoid(p[:, 0], grid).item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("K", "expected"), [(1, 1.423914), (2, -0.190499)])
def test_two_peaks_need_two_components(K: int, expected: float) -> None:
    # y = ±1 with a spread of 0.1: the best normal has the variance 1.01
    heads = ColumnHeads([0], K, min_scale=1e-9)
    scale = np.log(np.sqrt(1.01)) if K == 1 else np.log(0.1)
    own = torch.tensor([[*([0.0] if K == 1 else [-1.0, 1.0]), *[scale] * K, *[0.0] * K]]).double()
    grid = torch.linspace(-3, 3, 200_001, dtype=torch.float64)
    z = torch.stack([(grid - m) / 0.1 for m in (-1, 1)])
    density = (0.5 * torch.exp(-0.5 * z**2) / (0.1 * np.sqrt(2 * np.pi))).sum(0)
    log_p = heads.mixture_log_prob(own.expand(len(grid), 1, -1), grid[:, None])[:, 0]
    assert -torch.trapezoid(density * log_p, grid).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("K", "expected"), [(1, 1.423914), (2, -0.190499)])
def test_two_peaks_are_learned(K: int, expected: float) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((4000, 1)) < 0.5, -1, 1) + 0.1 * rng.normal(size=(4000, 1))
    model = AutoregressiveDensity("linear", n_components=K, max_iter=60, random_state=0).fit(X)
    assert -model.score(X) == pytest.approx(expected, abs=0.05)


def test_an_autoregression_has_its_stationary_variance() -> None:
    rng = np.random.default_rng(0)
    x = np.zeros((3000, 40))
    for t in range(1, 40):
        x[:, t] = 0.8 * x[:, t - 1] + rng.normal(size=3000)
    model = AutoregressiveDensity("linear", n_components=1, max_iter=60, random_state=0)
    model.fit(x[:, -4:])
    drawn = model.sample(20_000, random_state=0)
    assert drawn[:, 3].var() == pytest.approx(2.777778, rel=0.08)
    lag = np.corrcoef(drawn[:, 2], drawn[:, 3])[0, 1]
    assert lag == pytest.approx(0.8, abs=0.02)


def gaussian() -> np.ndarray:
    S = np.array([[2.0, 2, 0], [2, 3, 0], [0, 0, 1]])
    return np.random.default_rng(0).multivariate_normal([1, 1, -1], S, 4000)


def test_missing_cells_of_a_gaussian() -> None:
    model = AutoregressiveDensity("linear", n_components=1, max_iter=60, random_state=0)
    model.fit(gaussian())
    gaps = np.tile([np.nan, 2.0, -1.0], (400, 1))
    drawn = model.impute(gaps, "sample", random_state=0)[:, 0]
    assert drawn.mean() == pytest.approx(1.666667, rel=0.1)
    assert drawn.var() == pytest.approx(0.666667, rel=0.2)
    assert model.impute(gaps[:1], "mean", random_state=0)[0, 0] == pytest.approx(1.666667, rel=0.1)
    assert model.impute(gaps[:1], "minimise", random_state=0)[0, 0] == pytest.approx(1.67, rel=0.15)


def mixed(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    kind = rng.choice(["a", "b", "c"], n, p=[0.2, 0.5, 0.3])
    size = np.where(kind == "a", 5.0, 0.0) + rng.normal(size=n)
    colour = np.where((size > 2) ^ (rng.random(n) < 0.1), "red", "blue")
    return pd.DataFrame({"kind": kind, "size": size, "colour": colour})


def test_tables_of_mixed_columns_have_their_exact_density() -> None:
    train, test = mixed(1500), mixed(1500, 1)
    model = AutoregressiveDensity(max_iter=40, random_state=0).fit(train)
    assert model.log_prob_kind_ == "exact"
    kind = {"a": 0.2, "b": 0.5, "c": 0.3}
    size, mean = test["size"].to_numpy(), np.where(test["kind"] == "a", 5.0, 0.0)
    true = np.log(test["kind"].map(kind)) - 0.5 * (size - mean) ** 2 - 0.5 * np.log(2 * np.pi)
    true += np.where((size > 2) == (test["colour"] == "red"), np.log(0.9), np.log(0.1))
    assert true.mean() - model.score(test) < 0.12
    parts = model.conditionals(test)
    np.testing.assert_allclose(parts.sum(1), model.score_samples(test), rtol=1e-4, atol=1e-4)
    drawn = model.sample(2000, random_state=0)
    assert list(drawn.columns) == ["kind", "size", "colour"]
    assert (drawn["kind"] == "a").mean() == pytest.approx(0.2, abs=0.05)
    assert drawn.loc[drawn["kind"] == "a", "size"].mean() == pytest.approx(5, abs=0.3)


def test_order_and_what_is_wrong_with_it() -> None:
    X = gaussian()[:200]
    model = AutoregressiveDensity(order=[2, 0, 1], max_iter=2, random_state=0).fit(X)
    assert model.order_.tolist() == [2, 0, 1]
    drawn = AutoregressiveDensity(order="random", max_iter=2, random_state=0).fit(X)
    assert sorted(drawn.order_) == [0, 1, 2]
    with pytest.raises(ValueError, match="permutation"):
        AutoregressiveDensity(order=[0, 0, 1], max_iter=2).fit(X)


def test_temperature_sharpens() -> None:
    model = AutoregressiveDensity("linear", n_components=1, max_iter=20, random_state=0)
    model.fit(gaussian())
    hot, cold = (model.sample(2000, T=T, random_state=0).std(0) for T in (1.0, 0.25))
    np.testing.assert_allclose(cold / hot, 0.5, atol=0.06)


def test_conditions_are_their_own_tables() -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(["low", "high"], 800)
    X = np.where(y == "high", 3.0, -3.0)[:, None] + rng.normal(size=(800, 2))
    model = AutoregressiveDensity(max_iter=30, random_state=0).fit(X, y)
    assert model.sample(500, y="high", random_state=0).mean() == pytest.approx(3, abs=0.3)
    assert (model.infer({"x": X}, "y") == y).mean() > 0.98
    both = np.logaddexp(
        *(model.score_samples(X, [k] * 800) + np.log((y == k).mean()) for k in set(y))
    )
    np.testing.assert_allclose(model.score_samples(X), both, rtol=1e-3, atol=1e-3)
