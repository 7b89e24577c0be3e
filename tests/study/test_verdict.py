"""Sentences of the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from groundstate.study.verdict import _how_good


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
