"""The head of the page: the score in large letters, on a scale with its interval and the baseline."""

from __future__ import annotations

from typing import Any

from groundstate.evaluate.metrics import bounds_of
from groundstate.report.cells import Marked, at, between, html_of
from groundstate.study.candidates import DUMMY
from groundstate.study.numbers import label, title


def cards(facts: dict[str, Any]) -> str:
    """Cards with the main numbers: the score, what it is compared with, what judged it."""
    metric, level = facts["design"]["metric"], facts["design"]["level"]
    key = f"scores.{metric}"
    base = facts.get("baselines", {})
    known = metric in base.get(DUMMY, {})
    mark = (Marked("", "span", "key"), "constant answer") if known else ()
    shown = [
        _card(
            f"{label(metric)}: {title(metric)}", at(facts, f"{key}.value", metric),
            (f"{level:.0%} interval ", between(facts, key, metric), *mark), _scale(facts, metric),
            "main",
        )
    ]  # fmt: skip
    if known:
        shown.append(
            _card("Constant answer, without a model", at(facts, f"baselines.{DUMMY}.{metric}.value",
                  metric), ("what any model has to beat",))
        )  # fmt: skip
    if "skill" in base and base["skill"]["value"] is not None:
        shown.append(
            _card("Skill: share of the constant answer’s loss saved",
                  at(facts, "baselines.skill.value", "accuracy"),
                  (between(facts, "baselines.skill", "accuracy"),))
        )  # fmt: skip
    if facts.get("groups"):
        each = facts["groups"]
        many = f"{min(each):,} to {max(each):,}" if len(each) > 6 else ""
        sizes = many or " + ".join(f"{n:,}" for n in each)
        shown.append(_card("Groups found", str(len(facts["groups"])), (f"{sizes} rows",)))
    judged = facts["design"]["judged"]
    how = "each held back in turn" if facts["design"]["kind"] == "nested" else "never seen before"
    shown.append(_card("Held-out rows", f"{judged:,}", (how,)))
    return '<div class="cards">' + "\n".join(shown) + "</div>"


def _card(name: str, value: Any, below: tuple[Any, ...], more: str = "", kind: str = "") -> str:
    return (
        f'<div class="card {kind}"><p class="name">{html_of(name)}</p>'
        f'<p class="value">{html_of(value)}</p>{more}<p class="below">{html_of(below)}</p></div>'
    )


def _scale(facts: dict[str, Any], metric: str) -> str:
    """The score, its interval and the constant answer on one line."""
    score = facts["scores"][metric]
    base = facts.get("baselines", {}).get(DUMMY, {}).get(metric, {}).get("value")
    points = [p for p in (score["lo"], score["value"], score["hi"], base) if p is not None]
    if score["lo"] is None or score["hi"] is None or len(points) < 3:
        return ""
    low, high = min(points), max(points)
    pad = 0.06 * (high - low or 1.0)
    low, high = low - pad, high + pad
    if bounds_of(metric)[1] == 1:
        low, high = min(0.0, low), 1.0

    def place(value: float) -> float:
        return 100 * (value - low) / (high - low)

    left, right = place(score["lo"]), place(score["hi"])
    tick = "" if base is None else f'<i class="base" style="left:{place(base):.2f}%"></i>'
    return (
        f'<div class="scale" aria-hidden="true">{tick}'
        f'<i class="band" style="left:{left:.2f}%;width:{max(right - left, 0.4):.2f}%"></i>'
        f'<i class="dot" style="left:{place(score["value"]):.2f}%"></i></div>'
    )
