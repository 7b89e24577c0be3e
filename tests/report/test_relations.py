"""Every number on a rendered page, and the relations between them, on eight tables.

The page is read as a browser builds it where one is installed, and by an HTML parser always.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.test_browser import BROWSER, _shown, _value

from groundstate.evaluate.intervals.variation import advice_of
from groundstate.report import page, report
from groundstate.study import assess_tuned
from groundstate.study.candidates import LINEAR
from groundstate.study.numbers import show
from groundstate.study.verdict import RECIPE

PRIVATE = (
    "rows that judge", "Rows that judged", "Whole(", "Real(", "Choice(", " nan ", " inf ",
)  # fmt: skip


def _noise(n: int, share: float) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 2))
    return {"a": x[:, 0], "b": x[:, 1], "y": np.where(rng.random(n) < share, "yes", "no")}


def _signal(n: int, cut: float) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 3))
    y = np.where(x[:, 0] + 0.4 * rng.normal(size=n) > cut, "fault", "fine")
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y}


def _prices() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    size, kind = rng.normal(size=160), rng.choice(["flat", "house", "barn"], 160)
    price = 3 * size + 4 * (kind == "house") + rng.normal(size=160)
    size[::11] = np.nan
    return {"size": size, "kind": kind, "y": price}


def _steps() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(180, 2))
    return {"a": x[:, 0], "b": x[:, 1], "y": np.digitize(x[:, 0], [-1.8, 1.8]).astype(str)}


NESTED = {"repeats": 2}
HELD = {"test": 0.3}
TABLES: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
    "iris": ("iris", None, "GaussianNB,LogisticRegression", NESTED),
    "wine": ("wine", None, "GaussianNB,KNeighborsClassifier", HELD),
    "diabetes": ("diabetes", None, "Ridge,KNeighborsRegressor", HELD),
    "prices": (_prices(), "y", "Ridge,DecisionTreeRegressor", NESTED),
    "noise": (_noise(120, 0.5), "y", "GaussianNB,DecisionTreeClassifier", NESTED),
    "rare": (_signal(240, 1.4), "y", "LogisticRegression,GaussianNB", NESTED),
    "rare noise": (_noise(200, 0.06), "y", "GaussianNB,KNeighborsClassifier", HELD),
    "steps": (_steps(), "y", "LogisticRegression,DecisionTreeClassifier", HELD),
}


class Page(HTMLParser):
    """Keyed numbers, paragraphs and words of a page, without its drawings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.keyed: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.headings: list[str] = []
        self.cards: dict[str, str] = {}
        self._inside: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("meta", "br", "link") or "svg" in [t for t, _ in self._inside]:
            if tag == "svg":
                self._inside.append((tag, {}))
            return
        self._inside.append((tag, dict(attrs)))
        if "data-key" in dict(attrs):
            self.keyed.append((str(dict(attrs)["data-key"]), ""))

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1][0] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._inside]
        if "svg" in tags or "style" in tags or not data.strip():
            return
        self.words.append(data)
        tag, attrs = self._inside[-1]
        if "data-key" in attrs:
            self.keyed[-1] = (self.keyed[-1][0], self.keyed[-1][1] + data)
        if tag in ("h2", "h3", "h4"):
            self.headings.append(data)
        if attrs.get("class") == "name":
            self.cards[data] = ""
        elif self.cards and "value" in [a.get("class") for _, a in self._inside]:
            self.cards[list(self.cards)[-1]] += data


LONG = ("iris", "prices", "noise")  # judged in turn, twice


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in TABLES],
)
def made(request: pytest.FixtureRequest) -> tuple[dict[str, Any], str]:
    source, target, models, options = TABLES[request.param]
    found = assess_tuned(source, target, models=models, tune=0, seeds=2, bootstrap=4, **options)
    facts, drawn = report(found)
    return facts, page(facts, drawn)


def test_numbers_of_a_page_agree(made: tuple[dict[str, Any], str]) -> None:
    facts, text = made
    check(facts, Page(text))


if BROWSER is not None:

    @pytest.mark.slow
    def test_numbers_agree_in_a_browser(made: tuple[dict[str, Any], str], tmp_path: Path) -> None:
        facts, text = made
        path = tmp_path / "report.html"
        path.write_text(text)
        check(facts, Page(_shown(path, "--dump-dom").stdout))


def number(text: str) -> float:
    """The number that a shown text means."""
    plain = text.replace("−", "-").replace(",", "")
    return float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)


def near(a: float, b: float, text: str = "") -> bool:
    """Equal within half of the last digit shown, and a little for rounding twice."""
    digits = len(text.partition(".")[2].rstrip("%"))
    unit = 10.0**-digits / (100 if text.endswith("%") else 1) if text else 1e-9
    return abs(a - b) <= 0.51 * unit + 1e-9 * abs(b) + (abs(b) * 0.006 if abs(b) >= 10 else 0)


def check(facts: dict[str, Any], found: Page) -> None:
    """Every relation that must hold between the numbers of a page."""
    keyed_numbers(facts, found)
    one_headline(facts, found)
    confusion(facts, found)
    constant(facts, found)
    candidates(facts, found)
    sureness(facts, found)
    advice(facts, found)
    rare(facts, found)
    assert not [phrase for phrase in PRIVATE if phrase in found.text]


def keyed_numbers(facts: dict[str, Any], found: Page) -> None:
    assert len(found.keyed) > 30
    for key, text in found.keyed:
        value = _value(facts, key)
        if value is None:
            assert text == "–"
        elif text == "below 0.001":
            assert value < 0.001
        else:
            shown = number(text)
            sign = -1 if ".change." in key else 1  # said as "lower by"
            assert near(shown, sign * value, text), (key, text, value)
    places = {key.rpartition(".")[0] for key, _ in found.keyed if key.endswith((".lo", ".low"))}
    for place in places:  # every interval holds its estimate
        row = _value(facts, place)
        low, high = row.get("lo", row.get("low")), row.get("hi", row.get("high"))
        middle = row.get("value", row.get("estimate", row.get("covered", row.get("difference"))))
        middle = row["score"] if middle is None and "score" in row else middle
        if None not in (low, middle, high):
            assert low - 1e-9 <= middle <= high + 1e-9, place


def one_headline(facts: dict[str, Any], found: Page) -> None:
    metric = facts["design"]["metric"]
    score = facts["scores"][metric]
    shown = show(score["value"], "accuracy" if metric == "r2" else metric)
    assert shown in facts["verdict"][0] and facts["verdict"][0] in found.text
    assert len({text for key, text in found.keyed if key == f"scores.{metric}.value"}) == 1
    assert next(iter(found.cards.values())) == show(score["value"], metric)
    mixed = len(facts["chosen_in_folds"]) > 1
    alone = "Always answering" if facts["chosen"] == "dummy" else facts["chosen"]
    assert facts["verdict"][0].startswith("The recipe" if mixed else alone)
    assert found.cards["Held-out rows"] == f"{score['n']:,}"


def confusion(facts: dict[str, Any], found: Page) -> None:
    if facts["task"] != "classification":
        assert "confusion" not in facts and "Right and wrong" not in found.headings
        assert not [
            f for f in facts["data"]["findings"] if f["code"] in ("imbalance", "tiny_classes")
        ]
        return
    counts = np.asarray(facts["confusion"]["counts"])
    assert np.array_equal(counts, facts["pictures"]["confusion"]["data"]["counts"])
    assert counts.sum() == facts["confusion"]["n"] == facts["design"]["judged"]
    assert np.trace(counts) == facts["confusion"]["right"]
    right, repeats = np.trace(counts) / counts.sum(), facts["confusion"]["repeats"]
    if repeats == 1:
        assert right == pytest.approx(facts["scores"]["accuracy"]["value"])
        share = np.diag(counts) / counts.sum(1)
        assert facts["scores"]["balanced_accuracy"]["value"] == pytest.approx(share.mean())
        if "recall" in facts["scores"]:
            at = facts["classes"].index(facts["design"]["positive"])
            assert facts["scores"]["recall"]["value"] == pytest.approx(share[at])
    else:
        assert f"means over the {repeats} repeats" in found.text
        assert show(right, "accuracy") in found.text


def constant(facts: dict[str, Any], found: Page) -> None:
    metric, base = facts["design"]["metric"], facts["baselines"]["dummy"]
    assert found.cards["Constant answer, without a model"] == show(base[metric]["value"], metric)
    test = {row["against"]: row for row in facts["comparison"]["test"]}
    by, skill = facts["comparison"]["metric"], facts["baselines"]["skill"]
    score, idle = facts["scores"][by]["value"], base[by]["value"]
    for name, row in test.items():  # of all repeats, as the scores are; R² is freed from its bias
        apart = score - facts["baselines"][name][by]["value"]
        assert row["difference"] == pytest.approx(apart, abs=0.01 if by == "r2" else 1e-9), name
    if by == "accuracy":
        assert skill["value"] == pytest.approx(1 - (1 - score) / (1 - idle), abs=0.02)
    elif by == "log_loss":
        assert skill["value"] == pytest.approx(1 - score / idle, abs=0.02)
    elif by == "r2":  # the same share twice: one number, one interval
        for end in ("value", "lo", "hi"):
            share = 1 - (1 - facts["scores"][by][end]) / (1 - idle)
            assert skill[end] == pytest.approx(share, abs=0.02 if end == "value" else 0.06), end
    better = facts["baselines"]["better_than_dummy"]
    assert ("not shown to be better than a constant" in found.text) == (not better)
    if "is better than a constant answer" in found.text:
        assert skill["lo"] > 0 and ("dummy" not in test or test["dummy"]["p_holm"] <= 0.05)
        if "log_loss" in base:
            assert facts["scores"]["log_loss"]["value"] <= base["log_loss"]["value"]
    if "roc_auc" in base:
        assert base["roc_auc"]["value"] == 0.5


def candidates(facts: dict[str, Any], found: Page) -> None:
    entries = {entry["name"]: entry for entry in facts["candidates"]["entries"]}
    metric = facts["candidates"]["metric"]
    constant = facts["baselines"]["dummy"][metric]["value"]
    assert entries["dummy"]["test_score"] == constant  # a row is about the model it names
    seen = {name for name, entry in entries.items() if entry["test_score"] is not None}
    one = facts["scores"][metric]
    if len(facts["chosen_in_folds"]) == 1:
        assert seen == {"dummy", facts["chosen"]} and RECIPE not in found.text
        assert entries[facts["chosen"]]["test_score"] == one["value"]
    else:  # folds chose others: the score is that of the recipe, which has a row of its own
        assert seen == {"dummy"}
        row = found.text[found.text.index(RECIPE) + len(RECIPE) :]
        assert row.split()[0] == show(one["value"], metric)
    if "every other candidate is measurably worse" in found.text:
        assert [name for name, e in entries.items() if e["tied_with_best"]] == [facts["chosen"]]
        rest = {row["against"] for row in facts["comparison"]["test"] if row["p_holm"] > 0.05}
        assert not rest or (rest == {"linear"} and facts["chosen"] in LINEAR.values())
    folds = facts["chosen_in_folds"]
    design = facts["design"]
    times = (design["outer_folds"] or 1) * design["repeats"]
    assert sum(folds.values()) == times
    assert "as good" in found.text or not any(
        e["tied_with_best"] and n != facts["chosen"] for n, e in entries.items()
    )


def sureness(facts: dict[str, Any], found: Page) -> None:
    moved = facts["variation"]
    if moved:
        drawn = facts["pictures"].get("refits", {}).get("data", {})
        assert ("other seeds" in drawn) == bool(moved["seed"])
        assert not ("other training rows" in drawn and moved["train"] == 0)
        idle = "no effect in" in found.text or "draws no random numbers" in found.text
        assert idle == (moved["seed"] == 0)
        assert ("no measurable effect in" in found.text) == (moved["train"] == 0)
        if "advice" in moved:  # which is about the largest of the numbers beside it
            parts = {n: moved.get(n) or 0.0 for n in ("test", "seed", "train", "interaction")}
            assert moved["advice"] == advice_of(parts) and moved["advice"] in found.text
    cover = (facts["calibration"] or {}).get("coverage")
    if cover:
        below = cover["covered"] < cover["wanted"]
        assert ("below the 90% promised" in found.text) == below
        assert ("measurably below" in found.text) == (cover["hi"] < cover["wanted"])
    curve = facts["curve"]
    if curve and curve["forecast"]:
        ahead = [p["estimate"] for p in curve["forecast"]["points"]]
        level = "no further gain from more rows" in found.text
        assert level == (ahead[0] >= curve["test"][-1]["estimate"])
    assert facts["ledger"]["looks"] == 1 or "looked at by" in found.text


def advice(facts: dict[str, Any], found: Page) -> None:
    told = facts["diagnosis"]
    if not told:
        return
    gap = told["test"]["estimate"] - told["train"]["estimate"]
    assert told["gap"]["estimate"] == pytest.approx(gap, rel=1e-6, abs=1e-9)
    if "learned their noise" in found.text:
        assert told["gap"]["low"] > 0
    helped = [r for r in told["remedies"] if r["fell"]]
    assert all(r["change"]["high"] < 0 for r in helped)
    assert ("What lowered the error" in found.text) == bool(helped)
    if "fits well" in found.text:
        assert facts["baselines"]["better_than_dummy"]


def rare(facts: dict[str, Any], found: Page) -> None:
    told = facts.get("rare")
    assert ("The rare class" in found.headings) == bool(told)
    assert len(facts["verdict"]) == (4 if told else 3)
    if not told:
        return
    assert told["share"] < 0.2 and re.search(r"Class '\w+' is rare", found.text)
    for row in told["thresholds"]:
        ratio = row["missed_costs"]
        assert row["threshold"] == pytest.approx(1 / (1 + ratio))
        assert row["never"] == pytest.approx(ratio * told["share_held_out"])
        assert row["always"] == pytest.approx(1 - told["share_held_out"])
    found_at = [row["found"] for row in told["thresholds"]]
    assert found_at == sorted(found_at)  # a lower threshold finds more
    assert told["average_precision"]["value"] >= told["share_held_out"] * 0.2
