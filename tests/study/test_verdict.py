"""Sentences of the verdict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import typer

from groundstate.cli import fit
from groundstate.report import how_sure
from groundstate.study.facts import variation_facts
from groundstate.study.verdict import _compared, _how_good


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


@pytest.mark.parametrize(
    ("log_loss", "hi", "brier", "alone"),
    [
        (0.2, 0.3, 0.05, True),
        (0.2, 0.5, 0.05, True),
        (0.2, 0.5, 0.08, False),
        (0.5, 0.9, 0.05, False),
    ],
)
def test_probabilities_alone_may_be_better_and_everything_says_the_same(
    log_loss: float, hi: float, brier: float, alone: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    said: dict[str, Any] = {
        "task": "classification", "chosen": "GaussianNB",
        "design": {"metric": "accuracy", "level": 0.95},
        "comparison": {"metric": "accuracy", "chosen_by": "brier", "tied": []},
        "baselines": {
            "dummy": {"accuracy": {"value": 0.9}, "log_loss": {"value": 0.4}, "brier": {"value": 0.09}},
            "better_than_dummy": False,
        },
        "scores": {
            "accuracy": {"value": 0.9}, "log_loss": {"value": log_loss, "hi": hi},
            "brier": {"value": brier, "hi": brier + 0.02},
        },
        "diagnosis": {
            "metric": "zero_one", "sentence": "", "verdict": "good", "remedies": [],
            **{side: {"estimate": 0.1, "low": 0.0, "high": 0.2} for side in ("train", "test", "gap")},
        },
    }  # fmt: skip
    assert ("it found nothing" in how_sure.diagnosis(said)) != alone
    assert ("probabilities are better" in _compared(said)) == alone
    assert ("do not rely on it" in _compared(said)) != alone
    study: Any = SimpleNamespace(found=SimpleNamespace(leaks=()), better_than_dummy=False)
    with pytest.raises(typer.Exit) as left:
        fit._leave(study, False, said)
    note = capsys.readouterr().err
    assert left.value.exit_code == 3 and ("labels were not shown" in note) == alone
    assert ("no model was shown" in note) != alone


def test_advice_is_about_the_largest_source() -> None:
    spread = {"test": 0.01, "seed": 0.0, "train": 0.0, "advice": "more test rows"}
    still = variation_facts({**spread, "oob": {"values": [0.0, 0.1]}})
    moved = variation_facts({**spread, "seeds": {"values": [0.1, 0.2, 0.3]}})
    assert still is not None and still["train"] == 0.0 and moved is not None
    assert moved["seed"] == pytest.approx(0.1) and moved["advice"].startswith("average more seeds")


def test_a_linear_model_is_not_said_to_be_as_good_as_itself() -> None:
    def said(chosen: str, tied: list[str], *rows: str) -> str:
        test = [{"against": who, "p_holm": 1.0} for who in rows]
        entries = [{"name": who, "score": 0.9} for who in (chosen, *tied, "dummy")]
        return _compared({
            "task": "classification", "chosen": chosen, "design": {"metric": "accuracy", "level": 0.95},
            "baselines": {"dummy": {"accuracy": {"value": 0.5}}, "better_than_dummy": True},
            "candidates": {"entries": entries}, "comparison": {"tied": tied, "test": test},
            "scores": {"accuracy": {"value": 0.9}},
        })  # fmt: skip

    assert (
        said("LogisticRegression", [], "linear")
        == "Always answering the commonest class gives 50.0%."
    )
    both = said("KNeighborsClassifier", ["LogisticRegression"], "linear", "stump")
    assert "(linear)" not in both and "LogisticRegression and one question about one column" in both
    alone = said("KNeighborsClassifier", [], "linear")
    assert "a linear model of all columns (linear) does as well" in alone
    many = said("A", ["B", "C", "D", "E", "F"])
    assert "B, C, D and 2 others do as well" in many
