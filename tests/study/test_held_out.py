"""Intervals of scores that were judged in folds."""

from __future__ import annotations

import pytest

from groundstate.math.stats.interval import Interval
from groundstate.study.held_out import by_folds


def test_few_rows_widen_an_interval_and_many_leave_it() -> None:
    plain = {"accuracy": Interval(0.8, 0.7, 0.88), "log_loss": Interval(0.5, 0.4, 0.7)}
    few, many = by_folds(plain, 80), by_folds(plain, 1_000_000)
    wide = 2**0.5  # the variance is doubled at 80 rows
    assert few["accuracy"].low == pytest.approx(0.8 - 0.1 * wide)
    assert few["log_loss"].high == pytest.approx(0.5 + 0.2 * wide)
    assert many["accuracy"].low == pytest.approx(0.7, abs=1e-4)
    assert all(few[name].estimate == plain[name].estimate for name in plain)


def test_no_interval_leaves_the_range_of_its_metric() -> None:
    found = by_folds(
        {"accuracy": Interval(0.99, 0.95, 1.0), "recall": Interval(0.02, 0.0, 0.2)}, 20
    )
    assert found["accuracy"].high == 1.0 and found["recall"].low == 0.0
