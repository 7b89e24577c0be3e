"""The page: self-contained, with every number of report.json, drawn the same every time."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from groundstate import data
from groundstate.report import Picture, inline_svg, page, report
from groundstate.report.pictures import missing_map
from groundstate.study import assess_tuned
from groundstate.study.numbers import show
from groundstate.study.verdict import three_sentences


@pytest.fixture(scope="module", params=["iris", "holes"])
def made(request: pytest.FixtureRequest) -> tuple[dict[str, Any], list[Picture], str]:
    if request.param == "iris":
        found = assess_tuned(
            "iris", models="LogisticRegression,LinearSVC", test=0.25, tune=3, seeds=2, bootstrap=4
        )
    else:
        rng = np.random.default_rng(0)
        x = rng.normal(size=150)
        y = 2 * x + rng.normal(size=150)
        x[::9] = np.nan
        words = np.where(y > 0, "<b>up & away</b>", "down")
        found = assess_tuned(
            {"x<script>": x, "word": words, "y": y}, "y", models="Ridge", repeats=2, seeds=2,
            bootstrap=4,
        )  # fmt: skip
    told, drawn = report(found)
    return told, drawn, page(told, drawn)


def test_nothing_comes_from_outside(made: Any) -> None:
    _, _, text = made
    assert not re.search(r"https?:|//[a-z]|@import|<script|<link|<img|<iframe", text)
    for target in re.findall(r'(?:href|src)="([^"]*)"', text):
        assert target.startswith("#")
    assert set(re.findall(r"url\(([^)]{1})", text)) <= {"#"}


class _Tags(HTMLParser):
    VOID = {"meta", "br", "path", "use", "rect", "line", "circle"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_tags_are_balanced_and_content_is_escaped(made: Any) -> None:
    told, _, text = made
    parser = _Tags()
    parser.feed(text)
    assert parser.open == []
    if told["data"]["target"] == "y":
        assert "x&lt;script&gt;" in text


def test_page_tells_every_score(made: Any) -> None:
    told, _, text = made
    metric = told["candidates"]["metric"]
    for entry in told["candidates"]["entries"]:
        assert entry["name"] in text and show(entry["score"], metric) in text
    for name, value in told["scores"].items():
        assert f'<span data-key="scores.{name}.value">{show(value["value"], name)}</span>' in text
        assert f'<span data-key="scores.{name}.hi">{show(value["hi"], name)}</span>' in text


def test_every_picture_is_also_data(made: Any) -> None:
    told, drawn, _ = made
    assert list(told["pictures"]) == [picture.name for picture in drawn]
    assert all(picture["data"] for picture in told["pictures"].values())


def test_verdict_comes_first_in_three_sentences(made: Any) -> None:
    told, _, text = made
    body = text[text.index("<main>") :]
    assert len(told["verdict"]) == 3
    assert body.index('class="verdict"') < body.index("<table")


def test_light_dark_phone_and_paper(made: Any) -> None:
    _, _, text = made
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem", "viewport"):
        assert rule in text
    # pictures take their colours from the page
    assert "var(--accent)" in text[text.index("<svg") :]
    assert not re.search(r"#[1-6]0000[1-6]", text)


def test_every_picture_has_words_and_ids_of_its_own(made: Any) -> None:
    told, drawn, text = made
    names = [picture.name for picture in drawn]
    assert len(set(names)) == len(names) >= 4
    assert all(p.title and p.caption and p.svg.startswith("<svg") for p in drawn)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert ("confusion" in names) == (told["task"] == "classification")
    assert ("predicted" in names) == (told["task"] == "regression")
    assert ("missing" in names) == (told["task"] == "regression")


def test_same_facts_same_bytes(made: Any) -> None:
    told, drawn, text = made
    assert page(told, drawn) == text

    def draw(figure: Any) -> None:
        figure.subplots().plot([1, 2], [3, 4])

    assert inline_svg("a", (3, 2), draw) == inline_svg("a", (3, 2), draw)


def test_drawing_leaves_global_state_alone() -> None:
    import matplotlib
    from matplotlib._pylab_helpers import Gcf

    before = dict(matplotlib.rcParams)
    inline_svg("a", (3, 2), lambda figure: None)
    assert dict(matplotlib.rcParams) == before and not Gcf.figs


def test_missing_map_is_drawn_only_where_something_is_missing() -> None:
    assert missing_map(data.load("iris")) is None
    drawn = missing_map(data.read({"a": [1.0, None, 3.0], "b": [1, 2, 3]}))
    assert drawn is not None and "a (33%)" in drawn.svg and "b (" not in drawn.svg


def _told(**changes: Any) -> dict[str, Any]:
    score = {"value": 0.9, "lo": 0.8, "hi": 0.95, "method": "wilson", "n": 40}
    base = {"value": 0.5, "lo": 0.4, "hi": 0.6, "method": "wilson", "n": 40}
    told: dict[str, Any] = {
        "task": "classification",
        "chosen": "A",
        "comparison": {"tied": ["A"]},
        "candidates": {"entries": [{"name": name} for name in ("A", "B", "dummy")]},
        "data": {"target": "y", "findings": []},
        "design": {
            "kind": "holdout",
            "metric": "accuracy",
            "level": 0.95,
            "models": ["A", "B", "dummy"],
        },
        "scores": {"accuracy": score},
        "baselines": {"dummy": {"accuracy": base}, "better_than_dummy": True},
    }
    return {**told, **changes}


def test_verdict_in_words() -> None:
    assert three_sentences(_told()) == [
        "A predicts 'y' right in 90.0% of 40 rows it had never seen (95% interval 80.0% to 95.0%).",
        "Always answering the commonest class gives 50.0%; every other candidate is measurably "
        "worse.",
        "The audit of the table found nothing to worry about.",
    ]
    tied = three_sentences(_told(comparison={"tied": ["A", "B"]}))[1]
    assert tied.endswith("B does as well as far as these rows can tell.")
    worse = {**_told()["baselines"], "better_than_dummy": False}
    assert "do not rely on it" in three_sentences(_told(baselines=worse))[1]
    nested = {**_told()["design"], "kind": "nested"}
    assert "40 rows, each held back in turn" in three_sentences(_told(design=nested))[0]
    assert "No model did better" in three_sentences(_told(chosen="dummy"))[1]
    alone = {"entries": [{"name": "dummy"}]}
    assert "longer --budget" in three_sentences(_told(chosen="dummy", candidates=alone))[1]


def test_verdict_names_the_worst_finding() -> None:
    findings = [
        {"severity": "warning", "sentence": "a small thing"},
        {"severity": "serious", "sentence": "a large thing"},
        {"severity": "info", "sentence": "nothing"},
    ]
    said = three_sentences(_told(data={"target": "y", "findings": findings}))[2]
    assert said == "Before you rely on it: a large thing (and 1 more in the report)."


def test_a_model_is_not_compared_with_itself_under_another_name() -> None:
    from groundstate.report.sections import _comparison

    def row(against: str, by: float) -> dict[str, Any]:
        return {"against": against, "difference": by, "lo": by, "hi": by, "p": 1.0, "p_holm": 1.0,
                "method": "paired bootstrap"}  # fmt: skip

    found = [row("linear", 0.0), row("dummy", 0.0), row("stump", 0.25)]
    facts = {"comparison": {"metric": "r2", "test": found}, "chosen": "Ridge"}
    shown = _comparison(facts)
    assert "linear" not in shown and "dummy" in shown and "0.250" in shown
    assert 'data-key="comparison.test.2.difference"' in shown


def test_letters_that_matplotlib_cannot_draw_are_left_to_the_browser() -> None:
    svg = inline_svg("letters", (3, 2), lambda figure: figure.text(0.5, 0.5, "温度") and None)
    assert "温度" in svg  # and no warning, which would be an error here
