"""Columns that follow from others, and columns in order: new rows keep both, and say so."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groundstate
from groundstate import TableGenerator, TableMixture
from groundstate.models.generative.tables.columns import LevelColumn, NumberColumn
from groundstate.models.generative.tables.derived import derived_columns
from groundstate.models.generative.tables.orders import learned_orders

NAMES = {1: "First", 2: "Second", 3: "Third"}
N = 400


def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    tier = rng.integers(1, 4, N)
    ordered = [date(2024, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 300, N)]
    shipped = [
        None if rng.random() < 0.1 else a + timedelta(days=int(d))
        for a, d in zip(ordered, rng.geometric(0.3, N) - 1, strict=True)
    ]
    return pl.DataFrame(
        {
            "tier": tier,
            "name": [NAMES[t] for t in tier],
            "ordered": ordered,
            "shipped": shipped,
            "best": tier == 1,
            "weight": rng.exponential(2.0, N) * tier,
        }
    )


@pytest.fixture(scope="module")
def model() -> TableGenerator:
    return TableGenerator(TableMixture(4, random_state=0)).fit(table())


def agree(rows: pl.DataFrame) -> bool:
    named = [NAMES[t] for t in rows["tier"].to_list()] == rows["name"].to_list()
    return named and ((rows["tier"] == 1) == rows["best"]).all()


def in_order(rows: pl.DataFrame) -> bool:
    return bool((rows["ordered"] <= rows["shipped"]).fill_null(True).all())


def test_new_rows_keep_what_always_holds(model: TableGenerator) -> None:
    assert {n: d.source for n, d in model.derived_.items()} == {"name": "tier", "best": "tier"}
    assert model.orders_ == [("ordered", "shipped")] and len(model.notes_) == 3
    new = model.sample(3000, random_state=0)
    assert new.columns == table().columns and new.schema == table().schema
    assert agree(new) and in_order(new)
    assert 0.05 < new["shipped"].null_count() / 3000 < 0.17
    parts = pl.concat(list(model.iter_samples(3000, random_state=0)))
    assert parts.equals(new) and model.sample(3000, random_state=0).equals(new)
    free = TableMixture(4, random_state=0)  # the same columns, each learned by itself
    plain = TableGenerator(free).fit(table())
    plain.orders_ = []
    assert not in_order(plain.sample(3000, random_state=0))


def test_rows_given_a_column_that_follows(model: TableGenerator) -> None:
    first = model.sample(200, {"name": "First"}, random_state=0)
    assert set(first["tier"]) == {1} and agree(first) and in_order(first)
    rest = model.sample(200, {"best": False}, random_state=0)  # which leaves two tiers
    assert set(rest["tier"]) == {2, 3} and agree(rest)
    given = model.sample(100, {"ordered": date(2024, 10, 20)}, random_state=0)
    assert set(given["ordered"]) == {date(2024, 10, 20)} and in_order(given)


@pytest.mark.parametrize("how", ["minimise", "sample"])
def test_gaps_are_filled_in_keeping_with_what_is_known(model: TableGenerator, how: Any) -> None:
    rows = table().head(120)
    gaps = rows.with_columns(
        pl.when(pl.int_range(120) % 2 == 0).then(None).otherwise("tier").alias("tier"),
        pl.when(pl.int_range(120) % 3 == 0).then(None).otherwise("best").alias("best"),
        pl.lit(None, pl.Date).alias("shipped"),
    )
    filled = model.impute(gaps, how, random_state=0)
    assert filled["tier"].to_list() == rows["tier"].to_list() and agree(filled)
    assert in_order(filled) and filled["shipped"].null_count() == 0
    assert filled["ordered"].to_list() == rows["ordered"].to_list()


def test_rows_that_are_never_drawn_have_no_probability(model: TableGenerator) -> None:
    assert model.log_prob_kind_ == "bound"
    rows = table().head(5)
    assert np.isfinite(model.score_samples(rows)).all()
    odd = rows.with_columns(pl.lit("Third").alias("name"), pl.lit(1).alias("tier"))
    assert np.isneginf(model.score_samples(odd)).all()
    late = rows.with_columns(pl.lit(date(2023, 12, 31)).alias("shipped"))
    assert np.isneginf(model.score_samples(late)).all()


def test_ties_are_no_accident() -> None:
    few = TableGenerator(TableMixture(2, random_state=0)).fit(table().head(25))
    assert not few.derived_ and not few.orders_
    apart = table().with_columns(pl.col("weight") + 1000, (pl.col("weight") / 3).alias("less"))
    found = TableGenerator(TableMixture(2, random_state=0)).fit(apart)
    assert found.orders_ == [("ordered", "shipped")]  # of numbers that never meet none is a rule


def test_a_file_keeps_ties(model: TableGenerator, tmp_path: Path) -> None:
    back = groundstate.load(model.save(tmp_path / "model.gs"))
    assert back.sample(50, random_state=1).equals(model.sample(50, random_state=1))
    before = TableGenerator.upgrade_learned({"names_": []})
    assert before["orders_"] == [] and before["formulas_"] == {}


def test_values_that_were_not_seen_lie_between_those_that_were() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=150).round(1)
    column = NumberColumn.learned("x", x, np.ones(150), integer=False, date=False)
    unseen = np.setdiff1d(np.arange(-20, 20) / 10, x)
    assert len(unseen) and column.log_slope(unseen).min() > -8  # a row's share, not a bare 0
    one = NumberColumn.learned("x", np.ones(9), np.ones(9), integer=True, date=False)
    assert one.values(rng.normal(size=5)).tolist() == [1.0] * 5


@pytest.mark.parametrize(
    "rows", [30, 60]
)  # the twice as many rows of the second are enough for ties
def test_a_weight_of_two_is_the_row_twice_for_what_is_tied(rows: int) -> None:
    rng = np.random.default_rng(0)
    tier = rng.integers(1, 4, rows)
    a = rng.normal(size=rows).round(1)
    numbers = {"a": a, "b": a + rng.exponential(0.5, rows)}
    words = {"tier": [f"t{t}" for t in tier], "name": [NAMES[t] for t in tier]}

    def learned(weight: np.ndarray, repeats: int) -> tuple[Any, ...]:
        of = {k: np.repeat(v, repeats) for k, v in numbers.items()}
        columns = [
            NumberColumn.learned(k, v, weight, integer=False, date=False) for k, v in of.items()
        ]
        plain = {k: [w for w in v for _ in range(repeats)] for k, v in words.items()}
        levels = [
            LevelColumn.learned(k, v, weight, number=False, integer=False) for k, v in plain.items()
        ]
        shapes = [(c.x.tolist(), c.p.round(12).tolist()) for c in columns]
        ties = {k: d.source for k, d in derived_columns(levels, plain, weight).items()}
        return shapes, learned_orders(columns, of, weight), ties

    heavy, twice = learned(np.full(rows, 2.0), 1), learned(np.ones(2 * rows), 2)
    assert heavy == twice
    assert heavy[1] == ([("a", "b")] if rows == 60 else []) and heavy[2] == {"name": "tier"}
