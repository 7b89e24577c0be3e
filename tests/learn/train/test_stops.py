"""One count of epochs without an improvement, against the rules it replaces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from groundstate.learn.stops import Patience


def plateau(values: list[float], tol: float, patience: int) -> int | None:
    """The trainer's rule, written out: relative, strict, the best follows."""
    best, stale = math.inf, 0
    for t, v in enumerate(values):
        stale = 0 if v < best - tol * max(1.0, abs(v)) else stale + 1
        best = min(best, v)
        if stale >= patience:
            return t
    return None


def rests(values: list[float], tol: float, patience: int) -> int | None:
    """scikit-learn's rule, written out: absolute, inclusive, more than so many epochs."""
    best, stale = math.inf, 0
    for t, v in enumerate(values):
        stale = stale + 1 if not v <= best - tol else 0
        best = min(best, v)
        if stale > patience:
            return t
    return None


def first(stop: Patience, values: list[float]) -> int | None:
    return next((t for t, v in enumerate(values) if stop([v])[0]), None)


@pytest.mark.parametrize("seed", range(5))
def test_the_rules_of_trainer_and_estimators(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    values = (3 * np.exp(-np.arange(40) / 5) + 0.05 * drawn.standard_normal(40)).round(2).tolist()
    for tol, patience in ((0.01, 2), (0.05, 3), (0.0, 4)):
        assert first(Patience(tol=tol, patience=patience, relative=True), values) == plateau(
            values, tol, patience
        )
        assert first(Patience(tol=tol, patience=patience + 1, inclusive=True), values) == rests(
            values, tol, patience
        )


def test_members_are_counted_each_for_itself() -> None:
    falling, flat = np.linspace(1, 0, 9), np.ones(9)
    stop = Patience(2, tol=0.01, patience=3)
    done = [stop(torch.tensor([a, b])).tolist() for a, b in zip(falling, flat, strict=True)]
    assert done[2:4] == [[False, False], [False, True]] and not any(d[0] for d in done)


def test_a_member_that_does_not_run_keeps_its_best() -> None:
    stop = Patience(2, patience=5)
    stop([1.0, 1.0])
    stop([0.0, 0.0], np.array([True, False]))
    assert stop.best.tolist() == [0.0, 1.0] and stop.better.tolist() == [True, False]


def test_small_gains_count_from_where_the_last_large_one_was() -> None:
    values = [1.0, 0.95, 0.9, 0.85]
    assert first(Patience(tol=0.1, patience=2), values) == 2  # the best creeps along
    assert first(Patience(tol=0.1, patience=2, creeping=False), values) == 2
    slow = [1.0, 0.94, 0.88, 0.82, 0.76]
    assert first(Patience(tol=0.1, patience=2, creeping=False), slow) is None


def test_no_number_is_no_improvement_and_none_never_stops() -> None:
    stop = Patience(tol=0.1, patience=2, relative=True)
    assert [bool(stop([v])[0]) for v in (math.nan, math.inf)] == [False, True]
    assert first(Patience(tol=None, patience=1), [1.0] * 9) is None
    assert first(Patience(patience=math.inf), [1.0] * 9) is None


def test_goes_on_from_a_state_also_of_early_files() -> None:
    one, other = Patience(3, patience=2), Patience(3, patience=2)
    one([1.0, 2.0, 3.0])
    other.load(one.state())
    assert one([1.0, 1.0, 3.0]).tolist() == other([1.0, 1.0, 3.0]).tolist()
    other.load([torch.tensor([0.5]), torch.tensor([1])])
    assert other.best.tolist() == [0.5] and other([1.0])[0]
    other.load([0.25, 0])
    assert other.best.tolist() == [0.25]


@pytest.mark.parametrize(
    "settings", [{}, {"inclusive": True}, {"creeping": False}, {"relative": True}, {"tol": None}]
)
def test_one_member_counts_as_many_do(settings: dict[str, Any]) -> None:
    settings = {"tol": 0.05, "patience": 3, **settings}
    one, two = Patience(1, **settings), Patience(2, **settings)
    values = np.random.default_rng(0).normal(size=200).round(2)
    for v in [*values, np.inf, -np.inf, np.inf]:
        assert one(v)[0] == two([v, v])[0]
        for name in ("best", "stale", "better", "improved"):
            assert getattr(one, name)[0] == getattr(two, name)[1], name
