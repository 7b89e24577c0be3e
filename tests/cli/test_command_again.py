"""The command that a report prints gives exactly the settings that ran."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
import typer

from groundstate import data
from groundstate.cli.app import app
from groundstate.study.facts import command
from groundstate.study.job import settings_of
from groundstate.study.question import Settings

# they change where results go, how many processes work and what is drawn, but no number
NO_NUMBER = {"out", "ledger", "strict", "workers", "json", "no_progress"}
OTHER_JOBS = {"edges", "forecast", "new_rows"}  # rows that are no table, series, generators
GIVEN: dict[str, Any] = {
    "seed": 7, "test": 0.3, "folds": 4, "level": 0.9, "metric": "log_loss", "device": "cpu",
    "design": "nested", "repeats": 3, "seeds": 0, "bootstrap": 0, "budget": 90.0, "groups": "g",
    "time": "t", "weights": "w", "positive": "yes", "cost_fp": 1.0, "cost_fn": 9.0, "tune": 0,
    "params": {"C": 3.0, "name": "it's"}, "without": ("Ridge", "learning curve", "#3"),
}  # fmt: skip

# switches, where a study has them
GIVEN |= {name: True for name in ("quick", "thorough") if hasattr(Settings(), name)}


def parsed(line: str) -> dict[str, Any]:
    words = shlex.split(line)
    assert words[:2] == ["groundstate", "fit"]
    fit = typer.main.get_command(app).commands["fit"]  # type: ignore[attr-defined]
    return dict(fit.make_context("fit", words[2:]).params)


def said(**given: Any) -> dict[str, Any]:
    settings = replace(Settings(metric="accuracy", spec="GaussianNB,SVC", tune=10), **given)
    return parsed(command(data.load("iris"), settings))


@pytest.mark.parametrize("name", GIVEN)
def test_every_setting_is_said(name: str) -> None:
    options, value = said(**{name: GIVEN[name]}), GIVEN[name]
    if name == "params":
        assert settings_of("SVC", options["params"]) == ("SVC", value)
    elif name == "without":
        assert tuple(options[name].split(",")) == value
    elif name in ("test", "budget"):
        assert float(options[name]) == value
    else:
        assert options[name] == value


def test_a_quick_study_without_a_clock_is_said() -> None:
    options = said(quick=True, thorough=True)
    assert options["quick"] and not options["thorough"] and options["budget"] == "none"


def test_nothing_else_can_be_asked() -> None:
    """A new option of fit has to be said by the command too, or be known to change no number."""
    options = set(said())
    assert options - NO_NUMBER - OTHER_JOBS - {"table", "target", "model"} <= set(GIVEN), (
        "say the new option in groundstate.study.facts.command"
    )


def test_usual_settings_stay_unsaid() -> None:
    line = command(data.load("iris"), Settings(metric="accuracy", spec="SVC", tune=10))
    assert line == (
        "groundstate fit iris --target target --model SVC --metric accuracy --seed 0 --tune 10"
    )
