"""Sentences of the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from groundstate.study.facts import variation_facts
from groundstate.study.verdict import _how_good, _same_answers


@pytest.mark.parametrize(
    ("value", "words"), [(0.5, "explains 50"), (-1e60, "misses 'y' by more than the mean")]
)
def test_variation_explained(value: float, words: str) -> None:
    told: dict[str, Any] = {
        "chosen": "Ridge",
        "data": {"target": "y"},
        "design": {"metric": "r2", "level": 0.95, "kind": "holdout"},
        "scores": {"r2": {"value": value, "lo": value - 1, "hi": value + 0.1, "n": 20}},
    }
    said = _how_good(told)
    assert words in said and len(said) < 160


def test_advice_is_about_the_largest_source() -> None:
    spread = {"test": 0.01, "seed": 0.0, "train": 0.0, "advice": "more test rows"}
    still = variation_facts({**spread, "oob": {"values": [0.0, 0.1]}})
    moved = variation_facts({**spread, "seeds": {"values": [0.1, 0.2, 0.3]}})
    assert still is not None and still["train"] == 0.0 and moved is not None
    assert moved["seed"] == pytest.approx(0.1) and moved["advice"].startswith("average more seeds")


def test_a_linear_model_is_not_said_to_be_as_good_as_itself() -> None:
    same = {"difference": -9e-16, "lo": 0.0, "hi": 0.0, "p": 1.0}
    near = {"difference": 0.01, "lo": -0.02, "hi": 0.04, "p": 0.3}
    assert _same_answers(same) and not _same_answers(near)
