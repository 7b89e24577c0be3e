"""Drift between two tables, and profiles of columns: known answers, false alarms, odd files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.stats

from groundstate.data import load
from groundstate.errors import DataError
from groundstate.evaluate import column_profiles, drift


def _rows(seed: int, n: int = 250) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "size": draw.normal(size=n),
            "colour": draw.choice(["red", "blue", "green"], n, p=[0.5, 0.3, 0.2]),
            "count": draw.poisson(3, n),
        }
    )


def test_equal_distributions_seldom_alarm() -> None:
    alarms = [drift(_rows(2 * s), _rows(2 * s + 1)) for s in range(30)]
    assert sum(bool(found.moved) for found in alarms) <= 4
    assert sum(found.auc is not None and found.auc.low > 0.5 for found in alarms) <= 1
    assert sum(found.drifted for found in alarms) <= 4
    quiet = next(found for found in alarms if not found.drifted)
    assert quiet.sentence.startswith("No drift found: a classifier cannot tell them apart")


def test_a_shift_is_found_with_its_size() -> None:
    a, b = _rows(0), _rows(1)
    b = b.with_columns(pl.col("size") + 1.0)
    found = drift(a, b)
    (size,) = found.moved
    told = scipy.stats.ks_2samp(a["size"].to_numpy(), b["size"].to_numpy())
    assert size.name == "size" and size.distance == pytest.approx(told.statistic)
    assert size.p == pytest.approx(told.pvalue)
    assert size.moved == pytest.approx(1 / 1.35, abs=0.2)
    assert found.auc is not None and 0.7 < found.auc.estimate < 0.82  # Φ(1/√2) = .76
    assert "1 of 3 columns differs, most 'size'" in found.sentence


def test_new_labels_and_missing_cells() -> None:
    a, b = _rows(0), _rows(1)
    b = b.with_columns(pl.col("colour").str.replace("red", "crimson"))
    b = b.with_columns(
        pl.when(pl.int_range(pl.len()) % 4 == 0)
        .then(None)
        .otherwise(pl.col("count"))
        .alias("count")
    )
    found = drift(a, b)
    by_name = {c.name: c for c in found.columns}
    assert by_name["colour"].new == ("crimson",) and by_name["colour"].gone == ("red",)
    assert by_name["colour"].new_share == pytest.approx((b["colour"] == "crimson").mean())
    assert by_name["count"].missing == (0.0, pytest.approx(0.252, abs=0.01))
    assert by_name["count"].p_missing is not None and by_name["count"].p_missing < 1e-10
    assert {c.name for c in found.moved} == {"colour", "count"}
    assert drift(a, b, columns=["size"]).drifted is False


def test_the_same_rows_in_another_order_give_the_same_numbers() -> None:
    a, b = _rows(0), _rows(1).with_columns(pl.col("size") * 1.5)
    order = np.random.default_rng(5).permutation(len(b))
    one, two = drift(a, b), drift(a, b[order])
    assert [c.to_dict() for c in one.columns] == [c.to_dict() for c in two.columns]


def test_columns_that_one_table_lacks() -> None:
    a = _rows(0)
    found = drift(a, a.drop("count").with_columns(extra=pl.lit(1)))
    assert found.only_a == ("count",) and found.only_b == ("extra",) and found.drifted
    assert "are in one set only" in found.sentence
    with pytest.raises(DataError, match="share no column"):
        drift(a, {"other": [1, 2, 3]})


def test_few_rows_are_compared_without_a_classifier() -> None:
    found = drift(_rows(0, 12), _rows(1, 12))
    assert found.auc is None and not found.drifted


def test_a_column_of_two_labels_is_enough_for_a_classifier() -> None:
    few, many = (["u"] * n + ["v"] * (40 - n) for n in (10, 30))
    moved = drift({"kind": few}, {"kind": many})
    assert moved.auc is not None and 0.5 < moved.auc.low < 0.75 < moved.auc.high
    same = drift({"kind": few}, {"kind": few[::-1]})
    assert same.auc is not None and same.auc.low <= 0.5 and not same.drifted


def test_profiles_of_known_columns() -> None:
    draw = np.random.default_rng(0)
    n = 500
    size = draw.normal(size=n)
    size[:3] = 50.0
    rows: dict[str, Any] = {
        "size": size.tolist(),
        "colour": draw.choice(["red", "blue"], n, p=[0.7, 0.3]).tolist(),
        "noise": draw.normal(size=n).tolist(),
        "y": (size.clip(-3, 3) + 0.1 * draw.normal(size=n)).tolist(),
    }
    rows["size"][10] = None
    found = {p.name: p for p in column_profiles(rows, "y")}
    assert found["size"].missing == 1 and found["size"].outliers == 3
    assert found["size"].quantiles[3] == pytest.approx(np.median(np.delete(size, 10)))
    edges, counts = found["size"].bins or ((), ())
    assert len(edges) == len(counts) + 1 and sum(counts) == n - 1 - 3
    told = scipy.stats.spearmanr(np.delete(size, 10), np.delete(rows["y"], 10))
    relation = found["size"].relation
    assert relation is not None and relation.value == pytest.approx(told.statistic)
    assert relation.low is not None and relation.high is not None
    assert relation.low < relation.value < relation.high
    colour = found["colour"]
    assert colour.levels[0][0] == "red" and sum(k for _, k in colour.levels) == n
    assert colour.relation is not None and colour.relation.measure == "eta"
    noise = found["noise"].relation
    assert noise is not None and noise.p_corrected is not None and noise.p_corrected > 0.05
    assert found["y"].relation is None
    assert found["size"].to_dict()["missing_share"] == pytest.approx(1 / n)


def test_profiles_of_classes() -> None:
    found = {p.name: p for p in column_profiles(load("iris"))}
    strongest = max(
        (p for p in found.values() if p.relation is not None),
        key=lambda p: p.relation.value,  # type: ignore[union-attr]
    )
    assert "petal" in strongest.name and strongest.relation is not None
    assert strongest.relation.value > 0.9 and strongest.relation.p_corrected is not None
    assert strongest.relation.p_corrected < 1e-20
    empty = column_profiles({"a": [None, None, None], "b": [1, 1, 1], "c": ["x", "y", "z"]})
    assert [p.missing for p in empty] == [3, 0, 0]


def test_a_table_beside_itself_is_a_toss_up() -> None:
    rng = np.random.default_rng(0)
    rows = {"a": rng.normal(size=200), "b": rng.normal(size=200)}
    found = drift(rows, rows)
    assert found.auc is not None and found.auc.estimate == pytest.approx(0.5, abs=0.02)
    assert found.auc.low <= 0.5 <= found.auc.high and not found.drifted


def test_few_rows_are_read_as_the_first_table(tmp_path: Path) -> None:
    days = [f"{month:02d}/{day:02d}/2020" for month in range(1, 13) for day in (3, 14, 25)]
    (tmp_path / "a.csv").write_text("day\n" + "\n".join(days) + "\n")
    (tmp_path / "b.csv").write_text("day\n" + "\n".join(d for d in days if "/03/" in d) + "\n")
    found = drift(str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    # read on its own, every day of b would be one of the first twelve of March
    assert found.columns[0].distance is not None and found.columns[0].distance < 0.1
