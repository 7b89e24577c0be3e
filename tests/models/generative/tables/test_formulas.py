"""Columns of numbers that others decide: new rows compute them, gaps are solved for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groundstate
from groundstate import TableGenerator, TableMixture
from groundstate.models.generative.tables.columns import NumberColumn
from groundstate.models.generative.tables.formulas import learned_formulas

N = 500


def invoices() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    months = rng.choice([1, 3, 6, 12, 24], N)
    price = np.exp(rng.normal(3, 0.5, N)).round(2)
    net = (price * months).round(2)
    tax = (0.19 * net).round(2)
    born = rng.integers(1940, 2005, N)
    warm = rng.normal(15, 8, N).round(1)
    warm[rng.random(N) < 0.1] = np.nan
    table = {
        "months": months, "price": price, "net": net, "tax": tax, "total": (net + tax).round(2),
        "born": born, "age": 2024 - born, "celsius": warm, "fahrenheit": (1.8 * warm + 32).round(1),
        "speed": rng.normal(size=N),
    }  # fmt: skip
    return pl.DataFrame(table).fill_nan(None)


@pytest.fixture(scope="module")
def model() -> TableGenerator:
    return TableGenerator(TableMixture(3, random_state=0)).fit(invoices())


def holds(rows: pl.DataFrame) -> bool:
    net = (rows["price"] * rows["months"] - rows["net"]).abs().max()
    total = (rows["net"] + rows["tax"] - rows["total"]).abs().max()
    tax = (0.19 * rows["net"] - rows["tax"]).abs().max()
    warm = (1.8 * rows["celsius"] + 32 - rows["fahrenheit"]).abs().max()
    exact = max(net, total) < 1e-6 and tax < 0.0051 and (warm is None or warm < 0.051)
    return bool(exact and (rows["born"] + rows["age"] == 2024).all())


def test_new_rows_compute_what_follows(model: TableGenerator) -> None:
    assert {name: f.text for name, f in model.formulas_.items()} == {
        "net": "months × price", "tax": "0.19 × net", "total": "net + tax", "age": "-born + 2024",
        "fahrenheit": "1.8 × celsius + 32",
    }  # fmt: skip
    assert model.notes_[0] == "net: always months × price"
    new = model.sample(2000, random_state=0)
    assert new.schema == invoices().schema and holds(new)
    assert (new["celsius"].is_null() == new["fahrenheit"].is_null()).all()
    assert 0.05 < new["celsius"].null_count() / 2000 < 0.15


@pytest.mark.parametrize("how", ["minimise", "sample"])
def test_gaps_are_solved_for(model: TableGenerator, how: Any) -> None:
    rows = invoices().drop_nulls().head(40)
    gaps = rows.with_columns(
        pl.lit(None, pl.Float64).alias("price"), pl.lit(None, pl.Int64).alias("born")
    )
    filled = model.impute(gaps, how, random_state=0)
    assert filled["price"].to_list() == pytest.approx(rows["price"].to_list(), abs=0.006)
    assert filled["born"].to_list() == rows["born"].to_list()
    gone = rows.with_columns(pl.lit(None, pl.Float64).alias(n) for n in ("net", "tax", "total"))
    filled = model.impute(gone, how, random_state=0)
    assert filled["total"].to_list() == pytest.approx(rows["total"].to_list())
    both = gaps.with_columns(pl.lit(None, pl.Int64).alias("months"))
    filled = model.impute(both, how, random_state=0)
    assert filled["net"].to_list() == rows["net"].to_list()
    assert (
        (filled["price"] * filled["months"] - filled["net"]).abs() <= 0.0051 * filled["months"]
    ).all()


def test_rows_given_a_result(model: TableGenerator) -> None:
    rows = model.sample(50, {"net": 240.0}, random_state=0)
    assert set(rows["net"]) == {240.0} and holds(rows) and rows["months"].n_unique() > 1
    rows = model.sample(50, {"age": 30}, random_state=0)
    assert set(rows["born"]) == {1994} and holds(rows)


def test_rows_that_break_a_formula_have_no_probability(model: TableGenerator) -> None:
    rows = invoices().head(20)
    assert np.isfinite(model.score_samples(rows)).all()
    assert np.isneginf(model.score_samples(rows.with_columns(pl.col("net") + 1))).all()


def test_a_file_keeps_formulas(model: TableGenerator, tmp_path: Path) -> None:
    back = groundstate.load(model.save(tmp_path / "model.gs"))
    assert back.sample(50, random_state=1).equals(model.sample(50, random_state=1))


def columns_of(table: dict[str, Any], weight: Any) -> list[NumberColumn]:
    return [NumberColumn.learned(k, v, weight, integer=False, date=False) for k, v in table.items()]


@pytest.mark.parametrize("seed", range(5))
def test_a_formula_is_no_accident(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 200)).round(2)
    near = {"a": a, "b": b, "c": (a * b + 0.02 * rng.normal(size=200)).round(2)}
    assert not learned_formulas(columns_of(near, np.ones(200)), near, np.ones(200))
    bits = {k: rng.integers(0, 2, 200).astype(float) for k in ("a", "b")}
    bits["c"] = bits["a"] * bits["b"]
    assert not learned_formulas(columns_of(bits, np.ones(200)), bits, np.ones(200))
    spoiled = {"a": a, "b": b, "c": (a * b).round(2)}
    assert list(learned_formulas(columns_of(spoiled, np.ones(200)), spoiled, np.ones(200))) == ["c"]
    spoiled["c"][7] += 1
    assert not learned_formulas(columns_of(spoiled, np.ones(200)), spoiled, np.ones(200))
    ignored = np.where(np.arange(200) == 7, 0.0, 1.0)  # a row of weight zero is no row
    assert list(learned_formulas(columns_of(spoiled, ignored), spoiled, ignored)) == ["c"]


@pytest.mark.parametrize("kind", ["product", "sum", "difference", "quotient"])
def test_a_weight_of_two_is_the_row_twice(kind: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 9, size=(2, 20))
    c = {"product": a * b, "sum": a + b, "difference": a - b, "quotient": a / b}[kind]
    table = {"a": a, "b": b, "c": c}
    twice = {k: np.repeat(v, 2) for k, v in table.items()}
    heavy = learned_formulas(columns_of(table, np.full(20, 2.0)), table, np.full(20, 2.0))
    repeated = learned_formulas(columns_of(twice, np.ones(40)), twice, np.ones(40))
    assert {k: f.text for k, f in heavy.items()} == {k: f.text for k, f in repeated.items()} != {}
    assert not learned_formulas(columns_of(table, np.ones(20)), table, np.ones(20))  # too few rows
