"""The audit of a split: planted faults are found, clean tables are left alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from groundstate.errors import DataError
from groundstate.evaluate import audit, split

rng = np.random.default_rng(0)
N = 400
X = rng.normal(size=(N, 4))
y = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
PARTS = split(X, y, sizes=(0.7, 0, 0.3))


def test_a_clean_table_has_no_finding() -> None:
    assert len(audit(X, y, PARTS)) == 0
    assert len(audit(X, X[:, 1] + rng.normal(size=N), PARTS)) == 0
    assert str(audit(X, y, PARTS)) == "no finding"


def test_planted_copy_of_the_target() -> None:
    leaky = np.column_stack([X, y + 0.001 * rng.normal(size=N)])
    found = audit(leaky, y, PARTS)
    assert found.leaks and found.leaks[0].columns == ("x4",)
    real = X[:, 0] * 3 + rng.normal(size=N)
    found = audit(np.column_stack([X, np.exp(real / 3)]), real, PARTS)
    assert "leak" in found.codes
    with pytest.raises(DataError, match="leak: 'x4' alone gives the target away"):
        audit(leaky, y, PARTS, strict=True)


def test_planted_duplicates_and_groups() -> None:
    twice = X.copy()
    twice[PARTS.test[:7]] = twice[PARTS.train[:7]]
    found = audit(twice, y, PARTS)
    shared = next(f for f in found if f.code == "shared_rows")
    assert shared.value == 7
    people = np.arange(N) // 2
    found = audit(X, y, PARTS, groups=people)
    assert "shared_groups" in found.codes
    clean = split(X, y, groups=people)
    assert "shared_groups" not in audit(X, y, clean, groups=people).codes
    torn = X.copy()
    torn[1] = torn[0]
    label = y.copy()
    label[0], label[1] = 0, 1
    assert "contradiction" in audit(torn, label).codes


def test_rows_that_are_equal_by_chance_are_no_copies() -> None:
    draw = np.random.default_rng(3)
    grid = draw.integers(0, 25, size=(600, 2)).astype(float)
    target = (grid.sum(1) + 10 * draw.normal(size=600) > 24).astype(int)
    parts = np.arange(400), np.arange(400, 600)
    found = audit(grid, target, parts)
    assert "repeated_rows" in found.codes and "shared_rows" not in found.codes
    copies = np.repeat(grid[:300] + draw.normal(size=(300, 2)), 2, 0)  # each row twice, one target
    order = draw.permutation(600)
    found = audit(copies[order], np.repeat(target[:300], 2)[order], parts)
    assert "shared_rows" in found.codes


def test_planted_shift() -> None:
    moved = X.copy()
    moved[PARTS.test, 2] += 4.0
    found = audit(moved, y, PARTS)
    assert {"shift", "extrapolation"} <= set(found.codes)
    assert next(f for f in found if f.code == "extrapolation").columns == ("x2",)


def test_fitted_preparation_future_dates_and_absent_classes() -> None:
    recipe = make_pipeline(StandardScaler(), LogisticRegression())
    assert "fitted_before" not in audit(X, y, PARTS, estimator=recipe).codes
    recipe.fit(X, y)
    assert "fitted_before" in audit(X, y, PARTS, estimator=recipe).codes
    when = np.datetime64("2020-01-01") + np.arange(N).astype("timedelta64[D]")
    frame = pl.DataFrame({"a": X[:, 0], "seen": when, "later": when + np.timedelta64(3, "D")})
    found = audit(frame, y, PARTS, time=when)
    assert [f.columns for f in found if f.code == "future"] == [("later",)]
    label = y.copy()
    label[PARTS.test[0]] = 2
    assert any("training" in f.sentence for f in audit(X, label, PARTS) if f.code == "absent_class")
    with pytest.raises(DataError, match="one target per row"):
        audit(X, y[:-1])


def test_labels_too_rare_to_judge_tell_nothing() -> None:
    labels = np.arange(60) // 2  # two rows of each
    found = audit(X[:60], labels, (np.arange(0, 60, 2), np.arange(1, 60, 2)))
    assert "leak" not in found.codes


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_columns_whose_squares_leave_the_numbers_are_judged_as_any_other(unit: float) -> None:
    target = X[:, 0] + rng.normal(size=N)
    assert "leak" not in audit(X * unit, target, PARTS).codes
    assert "leak" in audit(np.column_stack([X, target]) * unit, target, PARTS).codes
