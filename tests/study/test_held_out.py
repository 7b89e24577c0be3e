"""Intervals of scores that were judged in folds."""

from __future__ import annotations

import pytest

from groundstate.math.stats.interval import Interval
from groundstate.study.held_out import by_folds


def test_few_rows_widen_intervals_most_and_the_choice_widens_them_at_any_number() -> None:
    plain = {"roc_auc": Interval(0.8, 0.7, 0.88), "log_loss": Interval(0.5, 0.4, 0.7)}
    few, many = by_folds(plain, 60), by_folds(plain, 1_000_000)
    wide, choice = (1 + 1 / 3 + 30 / 60) ** 0.5, (1 + 1 / 3) ** 0.5
    assert few["roc_auc"].low == pytest.approx(0.8 - 0.1 * wide)
    assert few["log_loss"].high == pytest.approx(0.5 + 0.2 * wide)
    assert many["roc_auc"].low == pytest.approx(0.8 - 0.1 * choice, abs=1e-4)
    assert all(few[name].estimate == plain[name].estimate for name in plain)


def test_every_score_is_widened_alike_and_more_where_folds_chose_another_model() -> None:
    plain = {name: Interval(0.8, 0.7, 0.88) for name in ("accuracy", "f1_macro", "brier")}
    found, unsure = by_folds(plain, 80), by_folds(plain, 80, {"brier": 0.1})
    assert found["accuracy"].low == found["f1_macro"].low == found["brier"].low < 0.7
    assert unsure["accuracy"] == found["accuracy"] and unsure["brier"].low < 0.8 - 1.96 * 0.1


def test_no_interval_leaves_the_range_of_its_metric() -> None:
    found = by_folds(
        {"accuracy": Interval(0.99, 0.95, 1.0), "recall": Interval(0.02, 0.0, 0.2)}, 20
    )
    assert found["accuracy"].high == 1.0 and found["recall"].low == 0.0
