"""MADE: bits, categories, Gaussians and mixtures in one table, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from groundstate import MADE
from groundstate.energy import MaskedDensityEnergy
from groundstate.errors import DataError


@pytest.mark.parametrize("agnostic", [False, True])
def test_ten_bits_sum_to_one(agnostic: bool) -> None:
    e = MaskedDensityEnergy((2,) * 10, order_agnostic=agnostic, zero=False).double().eval()
    assert torch.exp(
        -e(x=e.spaces["x"].enumerate(dtype=torch.float64))
    ).sum().item() == pytest.approx(1)


def test_levels_sum_to_one_and_what_is_none_is_impossible() -> None:
    e = MaskedDensityEnergy((3, 2, 4), 1, (8,), zero=False, order=(2, 0, 1)).double()
    assert torch.exp(
        -e(x=e.spaces["x"].enumerate(dtype=torch.float64))
    ).sum().item() == pytest.approx(1)
    assert torch.isinf(e(x=torch.tensor([[0.0, 0.5, 1.0]], dtype=torch.float64))).all()


@pytest.mark.parametrize("components", [1, 3])
def test_a_real_and_a_category_integrate_to_one(components: int) -> None:
    e = MaskedDensityEnergy((3, 0), components, (8,), zero=False).double()
    side = torch.linspace(-15, 15, 6001, dtype=torch.float64)
    with torch.no_grad():
        each = [torch.exp(-e(x=torch.stack((torch.full_like(side, k), side), 1))) for k in range(3)]
    total = torch.stack(each).sum()
    assert float(total) * 0.005 == pytest.approx(1, abs=1e-6)


def test_factors_see_earlier_columns_alone() -> None:
    e = MaskedDensityEnergy(
        (0, 0, 0, 0), 2, (12, 12), "tanh", zero=False, order=(2, 0, 3, 1)
    ).double()
    x = torch.randn(1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    J = torch.autograd.functional.jacobian(lambda v: e.net(v), x[0])
    place = {c: i for i, c in enumerate(e.net.order)}
    for i, rows in enumerate(e.net.rows):
        for j in range(4):
            assert bool((J[rows, j] != 0).any()) == (place[j] < place[i])


def test_draws_have_the_probabilities() -> None:
    e = MaskedDensityEnergy((2, 3), 1, (8,), zero=False)
    cells = e.spaces["x"].enumerate()
    p = torch.exp(-e(x=cells)).detach()
    x = e.draw(20000, generator=torch.Generator().manual_seed(0))
    found = torch.stack([(x == cell).all(1).float().mean() for cell in cells])
    assert (found - p).abs().max() < 4 * (p * (1 - p) / 20000).sqrt().max()


def _mixed(n: int = 500) -> Any:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], n, p=[0.2, 0.5, 0.3])
    size = np.select([kind == "a", kind == "b"], [3.0, -3.0], 0.0) + 0.5 * rng.normal(size=n)
    bit = (rng.random(n) < np.where(kind == "c", 0.9, 0.1)).astype(float)
    return pd.DataFrame({"kind": kind, "size": size, "bit": bit})


@pytest.mark.parametrize("agnostic", [False, True])
def test_tables_of_mixed_columns(agnostic: bool) -> None:
    frame = _mixed()
    model = MADE(
        2,
        order_agnostic=agnostic,
        hidden_layer_sizes=(32,),
        max_iter=120 if agnostic else 60,
        random_state=0,
    ).fit(frame)
    assert model.levels_ == [3, 0, 2] and model.log_prob_kind_ == "exact"
    drawn = model.sample(1500, random_state=0)
    assert list(drawn.columns) == list(frame.columns)
    assert (drawn.kind == "b").mean() == pytest.approx(0.5, abs=0.06)
    assert drawn[drawn.kind == "a"]["size"].mean() == pytest.approx(3, abs=0.8 if agnostic else 0.4)
    entropy = -(0.2 * np.log(0.2) + 0.5 * np.log(0.5) + 0.3 * np.log(0.3))
    entropy += 0.5 * np.log(2 * np.pi * np.e * 0.25) - 0.9 * np.log(0.9) - 0.1 * np.log(0.1)
    assert -model.score(frame) == pytest.approx(entropy, abs=0.3 if agnostic else 0.15)
    gaps = pd.DataFrame({"kind": [None] * 60, "size": [3.0] * 30 + [-3.0] * 30, "bit": [0.0] * 60})
    filled = model.impute(gaps, "sample", random_state=0)
    assert (filled.kind[:30] == "a").mean() > 0.8 and (filled.kind[30:] == "b").mean() > 0.8


def test_missing_cells_of_a_gaussian() -> None:
    S = np.array([[2.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    X = np.random.default_rng(0).multivariate_normal([1, 1, -1], S, 3000)
    model = MADE(hidden_layer_sizes=(), max_iter=60, random_state=0).fit(X)
    gap = np.tile([[np.nan, 2.0, -1.0]], (600, 1))  # the known column stands after the unknown one
    drawn = model.impute(gap, "sample", random_state=0)[:, 0]
    assert drawn.mean() == pytest.approx(1.666667, rel=0.1)
    assert drawn.var() == pytest.approx(0.666667, rel=0.2)


def test_a_mixture_is_better_than_one_gaussian() -> None:
    """y = ±1 with spread 0.12: one Gaussian has 1.42 nats, two about log 2 less than one narrow one."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (800, 1)) + 0.12 * rng.normal(size=(800, 1))
    one, two = (MADE(k, max_iter=150, random_state=0).fit(X) for k in (1, 2))
    assert -one.score(X) == pytest.approx(1.4239, abs=0.02)
    assert -two.score(X) == pytest.approx(
        np.log(2) + 0.5 * np.log(2 * np.pi * np.e * 0.0144), abs=0.08
    )


def test_values_that_are_no_levels() -> None:
    X = np.random.default_rng(0).integers(0, 2, (100, 3)).astype(float)
    model = MADE(hidden_layer_sizes=(8,), max_iter=2, random_state=0).fit(X)
    with pytest.raises(DataError, match="binary=False"):
        model.score_samples([[0.5, 0, 1]])
    assert MADE(binary=False, hidden_layer_sizes=(8,), max_iter=2).fit(X).levels_ == [0, 0, 0]
