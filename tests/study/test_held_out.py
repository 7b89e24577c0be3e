"""Intervals of scores that were judged in folds."""

from __future__ import annotations

import pytest

from groundstate.math.stats.folds import ALWAYS, FITS
from groundstate.math.stats.interval import Interval
from groundstate.study.held_out import by_folds


def test_few_rows_widen_intervals_most_and_fits_widen_them_at_any_number() -> None:
    plain = {"roc_auc": Interval(0.8, 0.7, 0.88), "log_loss": Interval(0.5, 0.4, 0.7)}
    few, many = by_folds(plain, 60), by_folds(plain, 1_000_000)
    wide, always = (1 + ALWAYS + FITS / 60) ** 0.5, (1 + ALWAYS) ** 0.5
    assert few["roc_auc"].low == pytest.approx(0.8 - 0.1 * wide)
    assert few["log_loss"].high == pytest.approx(0.5 + 0.2 * wide)
    assert many["roc_auc"].low == pytest.approx(0.8 - 0.1 * always, abs=1e-4)
    assert all(few[name].estimate == plain[name].estimate for name in plain)


def test_every_score_is_widened_alike_and_continued_towards_the_configuration_that_was_chosen() -> (
    None
):
    plain = {name: Interval(0.8, 0.7, 0.88) for name in ("accuracy", "f1_macro", "brier")}
    found = by_folds(plain, 80)
    unsure = by_folds(plain, 80, {"brier": 0.1, "accuracy": -0.05})
    assert found["accuracy"].low == found["f1_macro"].low == found["brier"].low < 0.7
    assert unsure["f1_macro"] == found["f1_macro"]
    assert unsure["brier"].low == pytest.approx(found["brier"].low - 0.1)  # it had .7
    assert unsure["accuracy"].high == pytest.approx(found["accuracy"].high + 0.05)  # it had .85
    assert unsure["brier"].high == found["brier"].high
    assert unsure["accuracy"].low == found["accuracy"].low


def test_no_interval_leaves_the_range_of_its_metric() -> None:
    found = by_folds(
        {"accuracy": Interval(0.99, 0.95, 1.0), "recall": Interval(0.02, 0.0, 0.2)}, 20
    )
    assert found["accuracy"].high == 1.0 and found["recall"].low == 0.0
