"""Intervals of scores that were judged in folds."""

from __future__ import annotations

import pytest

from groundstate.math.stats.interval import Interval
from groundstate.study.held_out import by_folds


def test_few_rows_widen_intervals_of_losses_and_many_leave_them() -> None:
    plain = {"roc_auc": Interval(0.8, 0.7, 0.88), "log_loss": Interval(0.5, 0.4, 0.7)}
    few, many = by_folds(plain, 60), by_folds(plain, 1_000_000)
    wide = 2**0.5  # the variance is doubled at 60 rows
    assert few["roc_auc"].low == pytest.approx(0.8 - 0.1 * wide)
    assert few["log_loss"].high == pytest.approx(0.5 + 0.2 * wide)
    assert many["roc_auc"].low == pytest.approx(0.7, abs=1e-4)
    assert all(few[name].estimate == plain[name].estimate for name in plain)


def test_counts_of_right_answers_change_less_with_the_fit_than_losses_do() -> None:
    plain = {name: Interval(0.8, 0.7, 0.88) for name in ("accuracy", "f1_macro", "brier")}
    found = by_folds(plain, 80)
    assert found["accuracy"].low == found["f1_macro"].low == pytest.approx(0.8 - 0.1 * 1.25**0.5)
    unsure = by_folds(plain, 80, {"brier": 0.1})  # folds chose another model than all rows do
    assert unsure["accuracy"] == found["accuracy"] and unsure["brier"].low < 0.8 - 1.96 * 0.1
    assert found["brier"].low < found["accuracy"].low < 0.7


def test_no_interval_leaves_the_range_of_its_metric() -> None:
    found = by_folds(
        {"accuracy": Interval(0.99, 0.95, 1.0), "recall": Interval(0.02, 0.0, 0.2)}, 20
    )
    assert found["accuracy"].high == 1.0 and found["recall"].low == 0.0
