"""The audit names what is wrong, and is quiet about what is not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from groundstate.data import Finding, audit, load

N = 200
RNG = np.random.default_rng(3)
Y = RNG.integers(0, 2, N)
NOISE = RNG.normal(size=N)


def codes(columns: dict[str, object], target: str | None = "y") -> dict[str, Finding]:
    base = {"noise": NOISE, **columns, "y": columns.get("y", Y)}
    return {finding.code: finding for finding in audit(base, target)}


def test_clean_tables_are_clean() -> None:
    assert codes({}) == {}
    assert [f.code for f in audit(load("iris"))] == ["duplicate_rows"]  # iris has one


@pytest.mark.parametrize(
    ("columns", "code", "severity", "value", "words"),
    [
        ({"m": np.where(np.arange(N) < 20, np.nan, NOISE)}, "missing", "info", 0.1, "10.0% of 'm'"),
        ({"m": np.where(np.arange(N) < 120, np.nan, NOISE)}, "missing", "serious", 0.6, "60.0%"),
        ({"k": np.ones(N)}, "constant", "info", 1, "'k' never changes"),
        ({"k": [None] * N}, "empty", "info", 1, "'k' holds no value at all"),
        (
            {"far": np.where(np.arange(N) == 7, 1e300, NOISE)},
            "extreme",
            "warning",
            1e300,
            "'far' holds 1e+300, more than a million times further out",
        ),
        ({"id": np.arange(N)}, "id", "info", 1, "'id' only names the rows"),
        ({"twin": NOISE}, "duplicate_columns", "warning", 2, "'noise', 'twin' hold the same"),
        ({"n": np.arange(N)}, "row_number", "warning", N, "'n' counts the rows"),
        (
            {"patient_id": np.arange(N) // 4 * 7},
            "repeated_id",
            "warning",
            50,
            "one side of a split",
        ),
        (
            {"s": np.where(np.arange(N) % 9 == 0, -999.0, NOISE)},
            "sentinel",
            "warning",
            -999,
            "holds -999 in 23 rows",
        ),
        ({"y": np.arange(N) < 20}, "imbalance", "warning", 0.9, "right in 90.0% of rows"),
        ({"y": np.arange(N) < 4}, "imbalance", "serious", 0.98, "right in 98.0%"),
        ({"y": ["rare"] * 2 + ["u", "v"] * 99}, "tiny_classes", "warning", 1, "'rare'"),
        ({"y": ["same"] * N}, "one_class", "serious", 1, "nothing to learn"),
        ({"y": ["u", None] * 100}, "missing_target", "warning", 100, "100 rows without"),
        ({"leak": np.where(Y == 1, "yes", "no")}, "leak", "serious", 1.0, "'leak' alone predicts"),
        ({"leak": Y * 10 + NOISE}, "leak", "serious", 1.0, "'leak' alone predicts"),
        ({"y": NOISE * 3 + 1}, "leak", "serious", 1.0, "'noise' alone predicts 'y'"),
        ({"c": [f"w{i % 80}" for i in range(N)]}, "many_levels", "info", 80, "80 levels"),
    ],
)
def test_findings(
    columns: dict[str, object], code: str, severity: str, value: float, words: str
) -> None:
    finding = codes(columns)[code]
    assert finding.severity == severity
    assert finding.value == pytest.approx(value, abs=0.011)
    assert words in finding.sentence
    assert json.loads(json.dumps(finding.to_dict()))["code"] == code


def test_a_name_per_row_is_no_leak() -> None:
    assert "leak" not in codes({"name": [f"n{i}" for i in RNG.permutation(N)]})
    assert "leak" not in codes({"other": RNG.normal(size=N)})


def test_empty_is_not_constant_and_a_long_tail_is_not_extreme() -> None:
    assert "constant" not in codes({"k": [None] * N})
    assert "extreme" not in codes({"wealth": np.exp(4 * NOISE)})


def test_leaks_are_found_at_any_scale() -> None:
    for scale in (1e-300, 1.0, 1e300):  # squares of these leave the range of a float
        found = codes({"y": NOISE * 3 + 1, "noise": NOISE * scale})
        assert found["leak"].columns == ("noise",)
        assert "leak" in codes({"y": NOISE * scale})


def test_repeated_rows() -> None:
    rows = {"a": [1.5, 2.5, 3.5] * 30, "y": [0, 1, 0] * 30}
    found = {f.code: f for f in audit(rows, "y")}
    assert found["duplicate_rows"].value == 87


def test_more_columns_than_rows() -> None:
    X = RNG.normal(size=(30, 60))
    found = {f.code: f for f in audit((X, RNG.normal(size=30)))}
    assert found["few_rows"].value == pytest.approx(0.5)
    assert "tiny_table" in found


def test_serious_comes_first() -> None:
    found = audit({"k": [1] * N, "x": NOISE, "y": ["a"] * N}, "y")
    order = [f.severity for f in found]
    assert order == sorted(order, key=["serious", "warning", "info"].index)


def test_the_table_decides_the_target() -> None:
    assert "one_class" not in codes({"y": ["same"] * N}, target=None)


def test_labels_that_differ_in_spelling_only_are_named() -> None:
    labels = np.where(NOISE > 0, "yes", "no")
    labels[::9] = np.char.upper(labels[::9])
    shades = np.array(["red", "Red ", "blue"])[np.arange(N) % 3]
    found = [
        f
        for f in audit({"noise": NOISE, "shade": shades, "y": labels}, "y")
        if f.code == "spelling"
    ]
    assert [f.columns for f in found] == [("shade",), ("y",)]
    assert "'NO', 'no'; 'YES', 'yes'; write them alike" in found[1].sentence
    assert not any(f.code == "spelling" for f in audit({"noise": NOISE, "y": Y.astype(str)}, "y"))
