"""Mixtures over columns of any kind: densities sum to one, conditionals are exact, held-out rows choose."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

import groundstate as gs
from groundstate.energy.latent.table_mixture import TableMixtureEnergy
from groundstate.math.distributions.operations import draw
from groundstate.study.generators.candidates import candidates


def energy() -> TableMixtureEnergy:
    e = TableMixtureEnergy(3, [0, 2, 0, 3]).double()
    generator = torch.Generator().manual_seed(1)
    for value in (e.logits, e.tables, e.normal.mu):
        value.data.normal_(generator=generator)
    e.requires_grad_(False)
    e.normal.U.data += 0.4 * torch.randn(3, 2, 2, generator=generator, dtype=torch.float64).triu(1)
    return e


def animals(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Two kinds of rows; columns are independent within each."""
    rng = np.random.default_rng(seed)
    cat = rng.random(n) < 0.4
    return pd.DataFrame({
        "legs": np.where(rng.random(n) < np.where(cat, 0.9, 0.2), "long", "short"),
        "kg": np.where(cat, 4.0, 20.0) + rng.normal(size=n) * np.where(cat, 0.5, 4.0),
        "ears": rng.choice(["up", "down"], n),
    })  # fmt: skip


def test_marginals_are_sums_and_integrals_of_the_density() -> None:
    e = energy()
    grid = torch.linspace(-12, 12, 1201, dtype=torch.float64)
    x = torch.tensor([[0.3, 1.0, -0.4, 2.0]], dtype=torch.float64)
    free = torch.tensor([[True, False, False, True]])
    rows = x.repeat(3 * len(grid), 1)
    rows[:, 0] = grid.repeat(3)
    rows[:, 3] = torch.arange(3).repeat_interleave(len(grid))
    total = (-e(x=rows)).exp().sum() * (grid[1] - grid[0])
    assert float(e.log_marginal(x, free).exp()) == pytest.approx(float(total), rel=1e-8)
    everything = torch.ones_like(free)
    assert float(e.log_marginal(x, everything)) == pytest.approx(0.0, abs=1e-9)


def test_free_columns_given_known_ones_against_a_grid() -> None:
    e = energy()
    x = torch.tensor([[0.0, 1.0, 0.7, 0.0]], dtype=torch.float64)
    free = torch.tensor([[True, False, False, True]])
    given = e.conditional(x, free)
    grid = torch.linspace(-12, 12, 2401, dtype=torch.float64)
    rows = x.repeat(3 * len(grid), 1)
    rows[:, 0] = grid.repeat(3)
    rows[:, 3] = torch.arange(3).repeat_interleave(len(grid))
    p = (-e(x=rows)).exp()
    p = p / p.sum()
    assert float(given.mean[0, 0]) == pytest.approx(float(p @ rows[:, 0]), abs=1e-8)
    levels = torch.stack([p[rows[:, 3] == v].sum() for v in range(3)])
    torch.testing.assert_close(given.marginals()[3][0], levels)
    drawn = draw(given, 20_000, torch.Generator().manual_seed(0))[:, 0]
    assert bool((drawn[:, 1:3] == x[0, 1:3]).all())
    assert float(drawn[:, 0].mean()) == pytest.approx(float(p @ rows[:, 0]), abs=0.05)
    shares = torch.bincount(drawn[:, 3].long(), minlength=3) / len(drawn)
    torch.testing.assert_close(shares.double(), levels, atol=0.02, rtol=0)
    best = -e(x=given.mode)
    assert float(best) >= float((-e(x=rows)).max()) - 0.2  # the best completion of one component


def test_one_component_without_a_prior_is_the_gaussian_and_the_shares() -> None:
    table = animals()
    model = gs.TableMixture(1, prior=1e-9).fit(table)
    own = table.assign(number=(table.legs == "long") * 1.0)
    kg = table["kg"]
    log_p = -0.5 * ((kg - kg.mean()) / kg.std(ddof=0)) ** 2 - np.log(kg.std(ddof=0))
    log_p = log_p - 0.5 * np.log(2 * np.pi)
    for name in ("legs", "ears"):
        log_p = log_p + np.log(own[name].map(own[name].value_counts(normalize=True)))
    np.testing.assert_allclose(model.score_samples(table), log_p, atol=1e-4)


def test_held_out_rows_ask_for_two_kinds() -> None:
    model = gs.TableMixture(random_state=0).fit(animals())
    assert model.n_components_ == 2
    held = model.held_out_
    assert held[2] > held[1] + 0.3 and held[2] > held[4]
    better = gs.TableMixture(1).fit(animals()).score(animals(seed=1))
    assert model.score(animals(seed=1)) > better + 0.3
    gap = pd.DataFrame({"legs": [None, "short"], "kg": [4.0, np.nan], "ears": ["up", "up"]})
    filled = model.impute(gap)
    assert filled["legs"][0] == "long" and 15 < filled["kg"][1] < 22


def test_a_weight_is_a_repetition_and_order_does_not_matter() -> None:
    table = animals(200)
    w = np.random.default_rng(1).integers(0, 3, 200)
    weighted = gs.TableMixture(random_state=0).fit(table, sample_weight=w)
    again = table.loc[np.repeat(np.arange(200), w)].sample(frac=1, random_state=0)
    repeated = gs.TableMixture(random_state=0).fit(again.reset_index(drop=True))
    assert weighted.n_components_ == repeated.n_components_
    np.testing.assert_allclose(
        weighted.score_samples(table), repeated.score_samples(table), atol=1e-5
    )


def test_a_component_of_one_row_stays_wide() -> None:
    X = np.vstack([np.random.default_rng(0).normal(size=(60, 2)), [[50.0, 50.0]]])
    model = gs.TableMixture(2, random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    alone = model.score_samples([[50.0, 50.0]]) - model.score_samples([[49.0, 50.0]])
    assert alone[0] < 5.0  # one row is no spike


def test_each_class_chooses_for_itself() -> None:
    table = animals()
    y = np.where(table["kg"] > 10, "big", "small")
    model = gs.TableMixture(random_state=0).fit(table, y)
    assert model.n_components_.shape == (2,)
    drawn = model.sample(200, y="big", random_state=0)
    assert drawn["kg"].mean() > 15


def test_studies_of_tables_compare_it() -> None:
    assert "TableMixture" in candidates("auto", False, 0, None)
    assert "TableMixture" not in candidates("auto", True, 0, None)


def test_all_levels_sum_to_one() -> None:
    X = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(str)
    model = gs.TableMixture(random_state=0).fit(pd.DataFrame(X, columns=list("abc")))
    states = pd.DataFrame(list(itertools.product("01", repeat=3)), columns=list("abc"))
    assert np.exp(model.score_samples(states)).sum() == pytest.approx(1.0, abs=1e-5)
    assert model.energy_.normal is None
