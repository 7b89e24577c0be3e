"""Three sentences: how good, compared with what, and what to mind."""

from __future__ import annotations

from typing import Any

from groundstate.study.candidates import DUMMY
from groundstate.study.numbers import is_share, label, show, show_range, title

_SERIOUS = {"serious": 0, "warning": 1}


def three_sentences(facts: dict[str, Any]) -> list[str]:
    """The result of a study in three sentences, from its facts."""
    return [_how_good(facts), _compared(facts), _mind(facts)]


def _how_good(facts: dict[str, Any]) -> str:
    name, target, design = facts["chosen"], facts["data"]["target"], facts["design"]
    metric, level = design["metric"], design["level"]
    score = facts["scores"][metric]
    as_share = "accuracy" if metric == "r2" else metric
    between = f"{level:.0%} interval {show_range(score['lo'], score['hi'], as_share)}"
    rows = f"{score['n']:,} rows it had never seen"
    if design["kind"] == "nested":
        rows = f"{score['n']:,} rows, each held back in turn"
    never = f"{rows} ({between})"
    if metric == "accuracy":
        return f"{name} predicts {target!r} right in {show(score['value'], metric)} of {never}."
    if metric == "r2":
        share = show(score["value"], as_share)
        if score["value"] < -1:
            return f"{name} misses {target!r} by more than the mean of all rows does, on {rows}."
        return f"{name} explains {share} of the variation of {target!r} in {never}."
    return (
        f"{name} predicts {target!r} with {label(metric)} {show(score['value'], metric)} "
        f"({title(metric)}) on {never}."
    )


def _compared(facts: dict[str, Any]) -> str:
    metric, name, tied = facts["design"]["metric"], facts["chosen"], facts["comparison"]["tied"]
    base = facts["baselines"][DUMMY]
    baseline = base[metric]["value"] if metric in base else None
    guess = "the commonest class" if facts["task"] == "classification" else "the mean"
    amount = show(baseline, metric)
    if not is_share(metric):
        amount = f"{'an ' if metric == 'r2' else ''}{label(metric)} of {amount}"
    if name == DUMMY:
        return f"No model did better than always answering {guess}: the columns do not help here."
    if not facts["baselines"]["better_than_dummy"]:
        return (
            f"It cannot be told apart from always answering {guess} ({amount}), so do not rely "
            "on it."
        )
    others = [other for other in tied if other not in (name, DUMMY)]
    against = f"Always answering {guess} gives {amount}"
    if others:
        verb = "performs" if len(others) == 1 else "perform"
        return f"{against}; {_and(others)} {verb} as well as far as these rows can tell."
    rivals = len(facts["design"]["models"]) > 2
    return f"{against}{'; every other candidate is measurably worse' if rivals else ''}."


def _mind(facts: dict[str, Any]) -> str:
    found = [f for f in facts["data"]["findings"] if f["severity"] in _SERIOUS]
    if not found:
        return "The audit of the table found nothing to worry about."
    worst = min(found, key=lambda finding: _SERIOUS[finding["severity"]])
    more = len(found) - 1
    rest = f" (and {more} more in the report)" if more else ""
    return f"Before you rely on it: {worst['sentence'].rstrip('.')}{rest}."


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
