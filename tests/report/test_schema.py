"""Every report follows its schema, whatever the target is like."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from groundstate.errors import DataError
from groundstate.report import page, report, report_schema, validate
from groundstate.study import assess_tuned, survey

QUICK: Any = {"seeds": 2, "bootstrap": 3, "repeats": 1}


def _classes(k: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    return {"a": y + 0.2 * rng.normal(size=n), "b": rng.normal(size=n), "y": [f"c{v}" for v in y]}


CASES: dict[str, Any] = {
    "two classes": lambda: assess_tuned(
        _classes(2, 120), "y", models="GaussianNB", tune=3, **QUICK
    ),
    "fifty classes": lambda: assess_tuned(
        _classes(50, 300), "y", models="GaussianNB", test=0.3, **QUICK
    ),
    "no probabilities": lambda: assess_tuned(
        _classes(2, 120), "y", models="LinearSVC", test=0.3, **QUICK
    ),
    "regression": lambda: assess_tuned("diabetes", models="Ridge", test=0.3, **QUICK),
    "no target": lambda: survey("rings", models="GaussianMixture"),
}


@pytest.mark.parametrize("case", CASES)
def test_report_validates_and_renders(case: str) -> None:
    told, drawn = report(CASES[case]())
    told = json.loads(json.dumps(told, allow_nan=False))
    validate(told)
    text = page(told, drawn)
    assert told["verdict"][0].split()[0] in text and "nan" not in text.lower().split()
    if case == "two classes":
        assert {"roc", "precision_recall", "reliability", "coverage"} <= set(told["pictures"])
        assert {"sources", "learning_curve", "tuning"} <= set(told["pictures"])
        still = told["variation"]["train"] == 0  # few rows of two clouds far apart are ever wrong
        assert still or "refits" in told["pictures"]
        assert ("no measurable effect in" in text) == still
    if case == "no probabilities":
        assert told["calibration"] is None and "reliability" not in told["pictures"]
        why = [words for words in told["skipped"] if words.startswith("calibration: LinearSVC")]
        assert len(why) == 1 and "--metric log_loss" in why[0]
        assert text.count("LinearSVC names and ranks classes but gives no probabilities") == 2
    else:
        assert not any(words.startswith("calibration") for words in told["skipped"])
    if case == "regression":
        assert {"residuals", "coverage", "predicted"} <= set(told["pictures"])


def test_departures_are_named() -> None:
    told, _ = report(
        assess_tuned(_classes(2, 60), "y", models="GaussianNB", test=0.3, seeds=0, bootstrap=0)
    )
    assert set(report_schema()["required"]) <= set(told)
    with pytest.raises(DataError, match=r"report\.scores\.accuracy lacks lo"):
        validate({**told, "scores": {"accuracy": {"value": 1.0}}})
    with pytest.raises(DataError, match="report.task is one of"):
        validate({**told, "task": "guessing"})
