"""What tests, intervals and weights are given: numbers, or one sentence on what they are instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from groundstate import stats
from groundstate.errors import DataError

GAP = [1.0, np.nan, 2.0, 3.0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: stats.anova(x, [1.0, 2.0]),
        lambda x: stats.ttest(x),
        lambda x: stats.mean_interval(x),
        lambda x: stats.bootstrap("mean", x, n_resamples=99),
        lambda x: stats.hill(x, 1),
        lambda x: stats.effective_n(x),
    ],
    ids=["anova", "ttest", "mean_interval", "bootstrap", "hill", "effective_n"],
)
def test_gaps_and_words_are_refused(ask: Callable[[Any], Any]) -> None:
    """anova and the bootstrap answered NaN, and called it "not rejected"."""
    with pytest.raises(DataError, match="missing or infinite values; leave those rows out"):
        ask(GAP)
    with pytest.raises(DataError, match="must be a list of numbers, got .*'a', 'b'"):
        ask(["a", "b"])


def test_a_test_without_an_answer_is_not_called_one() -> None:
    found = stats.anova([1.0, 1.0], [1.0, 1.0])
    assert math.isnan(found.pvalue)
    assert not found.reject()
    assert str(found).startswith("anova: these rows cannot tell whether 'all groups have the same")
    assert "rejected" not in str(found)


def test_weights_that_weigh_nothing() -> None:
    for weight in ([0.0, 0.0], [-1.0, 2.0]):
        with pytest.raises(DataError, match="at least 0, and positive somewhere"):
            stats.effective_n(weight)


def test_counts_out_of_range() -> None:
    with pytest.raises(ValueError, match="k must be at least 1 and below the 4 rows, got 7"):
        stats.hill([1.0, 2.0, 3.0, 4.0], 7)
    with pytest.raises(ValueError, match="n_resamples must be at least 1, got 0"):
        stats.bootstrap("mean", [1.0, 2.0], n_resamples=0)
