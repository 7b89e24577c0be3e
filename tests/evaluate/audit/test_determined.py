"""Columns that determine the target together are named with the formula; usual tables are left alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import datasets

from groundstate.evaluate import audit
from groundstate.evaluate.audit.determined import determined

N = 2000
rng = np.random.default_rng(0)


def found(columns: dict[str, Any], y: Any, name: str = "y") -> list[str]:
    return [
        f.sentence.split(":")[0] for f in determined(pl.DataFrame(columns), np.asarray(y), name)
    ]


def _taxi() -> tuple[dict[str, Any], Any]:
    fare = np.round(rng.gamma(2, 8, N), 2)
    tip = np.round(fare * rng.choice([0, 0.1, 0.2], N), 2)
    tolls, fees = rng.choice([0, 0, 0, 6.55], N), rng.choice([0.5, 1, 2.5], N)
    total = np.round(fare + tip + tolls + fees, 2)
    total[:8] += 20  # 0.4 % of rows were typed wrong
    columns = {
        "distance": fare / 3 + rng.normal(size=N), "total": total, "tip": tip, "tolls": tolls,
        "fees": fees, "hour": rng.integers(0, 24, N),
    }  # fmt: skip
    return columns, fare


def test_fare_is_total_less_the_rest() -> None:
    columns, fare = _taxi()
    words = "fare_amount ≈ total − tip − tolls − fees, to 0.01 in 99.6 % of rows"
    assert found(columns, fare, "fare_amount") == [words]
    table = audit(pl.DataFrame(columns), fare)
    assert any(f.code == "determined" for f in table.leaks)


def test_amounts_with_an_error_are_a_suspicion_and_no_leak() -> None:
    columns, fare = _taxi()
    columns["total"] = columns["total"] + rng.normal(0, 0.2, N)
    (found,) = determined(pl.DataFrame(columns), fare, "fare")
    assert found.sentence.startswith("fare ≈ total − tip − tolls − fees, to 0.5")
    assert (found.code, found.severity) == ("nearly_determined", "warning") and found.value > 0.95
    assert not [f for f in audit(pl.DataFrame(columns), fare).leaks if "≈" in f.sentence]
    width, height = rng.uniform(1, 9, (2, N))
    area = width * height * rng.normal(1, 0.005, N)
    (product,) = determined(pl.DataFrame({"w": width, "h": height}), area, "area")
    assert product.sentence.startswith("area ≈ w · h, to") and product.severity == "warning"


def test_order_of_rows_and_of_columns_do_not_matter() -> None:
    columns, fare = _taxi()
    order = rng.permutation(N)
    turned = {k: v[order] for k, v in reversed(columns.items())}
    (first,) = determined(pl.DataFrame(columns), fare)
    (second,) = determined(pl.DataFrame(turned), fare[order])
    assert set(first.columns) == set(second.columns)
    assert first.value == second.value


def test_products_ratios_and_powers() -> None:
    height, weight = rng.normal(1.7, 0.1, N), rng.normal(70, 10, N)
    noise = {"age": rng.integers(18, 90, N)}
    (words,) = found({"height": height, "weight": weight, **noise}, np.round(weight / height**2, 1))
    assert words.startswith("y ≈ weight / height², to ")
    count, price = rng.integers(1, 100, N), rng.integers(1, 2000, N) / 100
    (words,) = found({"count": count, "price": price, **noise}, np.round(count * price, 2))
    assert words.startswith("y ≈ count · price, to 0.01")


def test_means_and_dates() -> None:
    a, b = rng.normal(size=(2, N))
    (words,) = found({"a": a, "b": b}, (a + b) / 2 + 3)
    assert words.startswith("y ≈ 0.5 · a + 0.5 · b + 3")
    start = [datetime(2024, 1, 1) + timedelta(hours=int(h)) for h in rng.integers(0, 9000, N)]
    hours = rng.integers(1, 300, N)
    end = [s + timedelta(hours=int(h)) for s, h in zip(start, hours, strict=True)]
    (words,) = found({"start": start, "end": end}, hours, "hours")
    assert words.startswith("hours ≈ 24 · end − 24 · start")


def test_classes_that_are_defined_by_two_columns() -> None:
    due, done = rng.normal(10, 3, size=(2, N))
    (words,) = found({"due": due, "done": done}, (done > due).astype(int), "late")
    assert words.startswith("the difference due − done alone separates the classes of late")
    a, b = rng.choice(["x", "y", "z"], N), rng.choice(["u", "v"], N)
    label = np.where((a == "x") & (b == "v"), "yes", "no")
    (words,) = found({"a": a, "b": b, "c": rng.choice(["p", "q"], N)}, label, "label")
    assert words.startswith("a and b together name the class of label in 100.0 % of rows")


@pytest.mark.parametrize(
    "name", ["iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud"]
)
def test_no_false_alarm_on_usual_tables(name: str) -> None:
    data = getattr(datasets, f"load_{name}")()
    target = data.target if data.target.ndim == 1 else data.target[:, 0]
    columns = {f"x{j}": x for j, x in enumerate(data.data.T)}
    assert found(columns, target) == []
    for j in range(0, len(columns), 3):  # each column as a target
        own = columns[f"x{j}"]
        assert found({k: v for k, v in columns.items() if k != f"x{j}"}, own) == []


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_formula(seed: int) -> None:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(200, 30))
    columns = {f"x{j}": x for j, x in enumerate(X.T)}
    assert found(columns, X[:, 0] + X[:, 1] + 0.1 * draw.normal(size=200)) == []
    assert found(columns, 1.3 * X[:, 0] + X[:, 1] + 0.02 * draw.normal(size=200)) == []
    assert found(columns, draw.integers(0, 5, 200)) == []
    wide = {f"x{j}": x for j, x in enumerate(draw.normal(size=(300, 60)))}
    assert found(wide, draw.normal(size=60)) == []


def test_what_cannot_be_judged_is_left_alone() -> None:
    assert found({"a": [1.0] * 50}, np.arange(50.0)) == []
    assert found({"a": [None] * 50}, np.arange(50.0)) == []
    assert found({"a": np.arange(10.0), "b": np.arange(10.0)}, np.arange(10.0)) == []
    assert found({"a": ["u", "v"] * 25}, np.arange(50.0)) == []


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160, 1e300])
def test_columns_whose_squares_leave_the_numbers_are_no_parts_of_a_formula(unit: float) -> None:
    rng = np.random.default_rng(0)
    fare, tip, x = rng.integers(1, 2000, size=(3, 200)) / 100
    rows = pl.DataFrame({"far": x * unit, "fare": fare, "tip": tip})
    found = list(determined(rows, fare + tip, "total"))
    assert [f.columns for f in found] == [("fare", "tip")]
    assert list(determined(rows, (fare + tip) * unit, "total")) == []
