"""The sections of the page, as a list: what each is written from, its pictures, plain words.

Every number carries the place in ``report.json`` that it was taken from (``data-key``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from groundstate.report import about, unlabelled
from groundstate.report.cells import Keyed, Marked, at, between, html_of, table_of, words_of
from groundstate.study.candidates import DUMMY
from groundstate.study.numbers import label, show, title

_BASELINES = {
    DUMMY: "always the same answer",
    "stump": "one question about one column",
    "linear": "a straight line through all columns",
}
_TESTS = {"mcnemar": "McNemar"}
_MISTAKES = 8  # pairs of classes taken for each other most often


@dataclass(frozen=True)
class Section:
    """A chapter, a heading, what writes it (empty leaves it out), its pictures, words under it."""

    chapter: str
    heading: str
    write: Callable[[dict[str, Any]], str]
    pictures: tuple[str, ...] = ()
    words: str = ""


def _nothing(facts: dict[str, Any]) -> str:
    return ""


def _board(facts: dict[str, Any]) -> str:
    board = facts["candidates"]
    metric, rows = board["metric"], []
    seen, noted = (any(e[name] for e in board["entries"]) for name in ("test_score", "notes"))
    for i, entry in enumerate(board["entries"]):
        key = f"candidates.entries.{i}"
        best = entry["name"] == facts["chosen"]
        mark = " chosen" if best else " ≈ as good" if entry["tied_with_best"] else ""
        row: list[Any] = [
            (entry["name"], Marked(mark, "span", "mark") if mark else ""),
            at(facts, f"{key}.score", metric),
            between(facts, key, metric, "low", "high"),
        ]
        if seen:
            here: Any = ""
            if entry["test_score"] is not None:
                here = (at(facts, f"{key}.test_score", metric), " (",
                        between(facts, key, metric, "test_low", "test_high"), ")")  # fmt: skip
            row.append(here)
        rows.append(row + (["; ".join(entry["notes"])] if noted else []))
    header = ["model", f"{label(metric)}, validated", f"{board['level']:.0%} interval"]
    header += (["held-out rows"] if seen else []) + (["notes"] if noted else [])
    better = "higher" if board["greater_is_better"] else "lower"
    base = (
        f" {DUMMY} is what to beat: it ignores the columns."
        if DUMMY in facts["design"]["models"]
        else ""
    )
    words = (
        f"{label(metric)} is the {title(metric)}; {better} is better. Candidates with their usual "
        f"settings were compared on {facts['design']['candidates_compared_on']} of "
        f"{facts['design']['development']:,} rows, seed {facts['design']['seed']}.{base}"
    )
    first = [entry["name"] for entry in board["entries"]].index(facts["chosen"])
    return table_of(header, rows, (1,), first) + "\n" + words_of(words)


def _scores(facts: dict[str, Any]) -> str:
    base = facts.get("baselines", {}).get(DUMMY, {})
    rows = []
    for name in facts["scores"]:
        key = f"scores.{name}"
        row: list[Any] = [
            (Marked(label(name)), Marked(_meaning(facts, name), "span", "meaning")),
            at(facts, f"{key}.value", name),
            between(facts, key, name),
        ]
        if base:
            row.append(at(facts, f"baselines.{DUMMY}.{name}.value", name) if name in base else "")
        rows.append(row)
    header = ["measure", facts["chosen"], f"{facts['design']['level']:.0%} interval"]
    header += ["constant answer"] if base else []
    words = words_of(_how_judged(facts))
    if "jackknife" in facts["scores"].get("r2", {}).get("method", ""):
        words += words_of(
            "R² divides by the spread of the rows that judge, which makes it a little low on few "
            "rows; the value here is freed from that (jackknife), so it differs in the third digit "
            "from the plain ratio of these rows."
        )
    return table_of(header, rows, (1, 3)) + "\n" + words


def _meaning(facts: dict[str, Any], name: str) -> str:
    """What a metric is, with the class it is about."""
    classes = facts.get("classes", [])
    about = facts["design"].get("positive") or (classes[1] if len(classes) == 2 else "")
    return title(name).replace("the second class", f"class {about}" if about else "one class")


def _mistakes(facts: dict[str, Any]) -> str:
    drawn = facts.get("pictures", {}).get("confusion")
    if drawn is None or len(drawn["data"]["classes"]) < 3:
        return ""
    counts, classes = drawn["data"]["counts"], drawn["data"]["classes"]
    wrong = [(n, i, j) for i, row in enumerate(counts) for j, n in enumerate(row) if n and i != j]
    worst = sorted(wrong, key=lambda w: (-w[0], w[1], w[2]))[:_MISTAKES]
    rows = []
    for n, i, j in worst:
        times = Keyed(f"pictures.confusion.data.counts.{i}.{j}", f"{n:,}")
        rows.append((classes[i], classes[j], times, f"{n / sum(counts[i]):.0%} of {classes[i]}"))
    header = ("true class", "taken for", "rows", "share")
    return table_of(header, rows, (2,)) if rows else ""


def _how_judged(facts: dict[str, Any]) -> str:
    design, ledger = facts["design"], facts["ledger"]
    if design["kind"] == "nested":
        folds = facts.get("chosen_in_folds", {})
        picked = ", ".join(f"{name} {count}×" for name, count in folds.items())
        return (
            f"Every one of the {design['judged']:,} rows was predicted once by a recipe that had "
            f"not seen it ({design['outer_folds']} parts; {design['reason']}). The recipe chose "
            f"{picked}; the model in the folder learned from all rows."
        )
    if ledger is None:
        return f"{design['judged']:,} test rows. Earlier looks at them, if any, were not counted."
    looks = ledger["looks"]
    first = "the first look at them" if ledger["clean"] else f"looked at by {looks} models so far"
    return (
        f"{design['judged']:,} test rows, {first}. Looks that are not in the ledger do not count."
    )


def _baselines(facts: dict[str, Any]) -> str:
    if "baselines" not in facts:
        return ""
    metric, rows = facts["design"]["metric"], []
    for name, words in _BASELINES.items():
        if metric in facts["baselines"].get(name, {}):
            key = f"baselines.{name}.{metric}"
            rows.append(
                (name, at(facts, f"{key}.value", metric), between(facts, key, metric), words)
            )
    table = table_of(("baseline", label(metric), "interval", "what it is"), rows, (1,))
    skill = html_of(("Skill ", at(facts, "baselines.skill.value"), " (",
                   between(facts, "baselines.skill", ""), "), the share of the constant answer’s "
                   "loss that the model saves"))  # fmt: skip
    good = (
        "better than" if facts["baselines"]["better_than_dummy"] else "not shown to be better than"
    )
    return f"{table}\n<p>{skill}: the model is {good} a constant answer.</p>"


def _comparison(facts: dict[str, Any]) -> str:
    found = facts["comparison"]
    if not found["test"]:
        return ""
    rows = []
    for i, row in enumerate(found["test"]):
        key = f"comparison.test.{i}"
        rows.append((f"{facts['chosen']} − {row['against']}", at(facts, f"{key}.difference"),
                     between(facts, key, ""), at(facts, f"{key}.p_holm", "p"),
                     _TESTS.get(row["method"], row["method"])))  # fmt: skip
    header = ("on held-out rows", label(found["metric"]), "interval", "p, corrected", "test")
    return table_of(header, rows, (1, 3))


def _calibration(facts: dict[str, Any]) -> str:
    sure = facts.get("calibration") or {}
    lines = []
    for words in facts["skipped"]:
        if words.startswith("calibration: "):
            plain = words.removeprefix("calibration: ")
            lines.append(html_of((f"{plain[0].upper()}{plain[1:]}.",)))
    if "ece" in sure:
        lines.append(html_of(("On average the probabilities are ", at(facts, "calibration.ece", "accuracy"),
                            " away from what happens (expected calibration error, ",
                            f"{sure['about']}).")))  # fmt: skip
    cover = sure.get("coverage")
    if cover:
        what = "sets of classes" if cover["kind"] == "set" else "intervals"
        unit = " classes" if cover["kind"] == "set" else ""
        size: Any = ("; mean size ", at(facts, "calibration.coverage.mean_size"), unit)
        lines.append(html_of((f"Conformal {what} made to hold the truth in {cover['wanted']:.0%} of rows "
                            "held it in ", at(facts, "calibration.coverage.covered", "accuracy"), " (",
                            between(facts, "calibration.coverage", "accuracy"), ")",
                            *(size if cover["mean_size"] is not None else ()), ".")))  # fmt: skip
    return "".join(f"<p>{line}</p>" for line in lines)


def _decision(facts: dict[str, Any]) -> str:
    if not facts.get("decision"):
        return ""
    named = {
        "mean_cost": "at the best threshold",
        "at_one_half": "at one half",
        "always_yes": "always yes",
        "always_no": "always no",
    }
    rows = [(words, at(facts, f"decision.{name}")) for name, words in named.items()]
    head = html_of(("Say ", facts["decision"]["positive"], " from a probability of ",
                  at(facts, "decision.threshold"), " on."))  # fmt: skip
    return f"<p>{head}</p>" + table_of(("rule", "mean cost of a row"), rows, (1,))


def _variation(facts: dict[str, Any]) -> str:
    moved = facts.get("variation")
    if not moved:
        return ""
    named = {"test": "which rows judge", "seed": "the seed", "train": "which rows it learned from"}
    rows = [(words, at(facts, f"variation.{name}")) for name, words in named.items()]
    return table_of(("depends on", f"standard deviation of the {moved['loss']}"), rows, (1,))


def _curve(facts: dict[str, Any]) -> str:
    curve = facts.get("curve")
    if not curve or curve["forecast"] is None:
        return ""
    rows = []
    for i, point in enumerate(curve["forecast"]["points"]):
        key = f"curve.forecast.points.{i}"
        rows.append((f"{point['n']:,}", at(facts, f"{key}.estimate"),
                     between(facts, key, "", "low", "high")))  # fmt: skip
    head = ("training rows", f"{label(curve['metric'])}, forecast", "interval")
    return table_of(head, rows, (1,))


def _diagnosis(facts: dict[str, Any]) -> str:
    found = facts.get("diagnosis")
    if not found:
        return ""
    named = {"train": "rows it learned from", "test": "new rows", "gap": "gap"}
    rows = [
        (words, at(facts, f"diagnosis.{name}.estimate"),
         between(facts, f"diagnosis.{name}", "", "low", "high"))
        for name, words in named.items()
    ]  # fmt: skip
    helped = {True: "helped", False: "did not help", None: "not tried"}
    remedies = "".join(
        f"<li>{escape(r['name'])} ({helped[r['fell']]}): <code>{escape(r['command'])}</code></li>"
        for r in found["remedies"]
    )
    table = table_of(("on", label(found["metric"]), "interval"), rows, (1,))
    what = f"<p>{escape(found['sentence'])}</p>{table}"
    return what + (f"<p>What could be tried:</p><ul>{remedies}</ul>" if remedies else "")


def _tuning(facts: dict[str, Any]) -> str:
    found = facts.get("tuning")
    if not found:
        return ""
    rows = []
    for name, words in found["space"].items():
        share: Any = ""
        if name in found["importance"]:
            share = Keyed(f"tuning.importance.{name}", show(found["importance"][name], "accuracy"))
        best = found["best"].get(name)
        rows.append((Marked(name.removeprefix("estimator__"), "code"), _searched(words),
                     show(best) if isinstance(best, float) else str(best), share))  # fmt: skip
    tried = f"{len(found['trials'])} settings of {found['model']} tried: {found['words']}."
    return f"<p>{escape(tried)}</p>" + table_of(
        ("setting", "searched", "best", "importance"), rows, (3,)
    )


def _searched(words: str) -> str:
    """A range of settings for reading.

    >>> _searched("Real(low=0.0001, high=10000.0, log=True, step=None, prior=None)")
    '0.0001 to 10000, evenly in powers of ten'
    """
    ends = re.match(r"(?:Real|Integer)\(low=([^,]+), high=([^,]+), log=(\w+)", words)
    if ends is None:
        return words
    low, high = (f"{float(end):g}" for end in ends.groups()[:2])
    return f"{low} to {high}" + (", evenly in powers of ten" if ends[3] == "True" else "")


def _bound(facts: dict[str, Any]) -> str:
    found = facts.get("bound")
    return f"<p>{escape(found['words'][:1].upper() + found['words'][1:])}.</p>" if found else ""


def _ledger(facts: dict[str, Any]) -> str:
    if facts["ledger"] is None:
        return ""
    found = facts["ledger"]
    wide = found.get("simultaneous")
    if not wide or found["clean"]:
        return ""
    metric = wide["metric"]
    return "<p>" + html_of((f"These rows have been looked at by {found['looks']} models; for all of them "
                          f"at once the interval of {label(metric)} is ",
                          between(facts, "ledger.simultaneous", metric),
                          ", and the best of them gains about ",
                          at(facts, "ledger.simultaneous.optimism"), " by luck.")) + "</p>"  # fmt: skip


_GOOD, _SURE, _WHY = "How good it is", "How sure that is", "Why not better"
_TRIED, _ROWS, _MADE = "What was compared", "The table", "The model and the words"
SECTIONS = (
    Section(_GOOD, "Scores", _scores, ("confusion", "predicted", "residuals", "rows", "energy")),
    Section(_GOOD, "Most frequent mistakes", _mistakes),
    Section(_GOOD, "Beside simple answers", _baselines),
    Section(_GOOD, "The surest mistakes", about.examples),
    Section(_GOOD, "Rows to look at", _nothing, ("taken_for", "mistakes", "unsure", "graph")),
    Section(_GOOD, "Finding a class", _nothing, ("roc", "precision_recall")),
    Section(_GOOD, "What mistakes cost", _decision),
    Section(_GOOD, "Groups", unlabelled.groups),
    Section(_GOOD, "Maps", unlabelled.maps),
    Section(_GOOD, "The least typical rows", unlabelled.outliers),
    Section(_GOOD, "Filling missing cells", unlabelled.filling),
    Section(_SURE, "Single answers", _calibration, ("reliability", "coverage")),
    Section(_SURE, "How far the score moves", _variation, ("refits", "sources"),
            "Standard deviations: about two thirds of repetitions lie within one."),
    Section(_SURE, "A guarantee", _bound),
    Section(_SURE, "Looks at the test rows", _ledger),
    Section(_WHY, "Diagnosis", _diagnosis),
    Section(_WHY, "More rows?", _curve, ("learning_curve",)),
    Section(_TRIED, "Candidates, best first", _board, ("scores",)),
    Section(_TRIED, "Measured differences", _comparison, (),
            "Differences of the score on the same rows; p is the chance of one at least as large "
            "when the two are equally good, corrected for looking at several."),
    Section(_TRIED, "Tuning", _tuning, ("tuning",)),
    Section(_ROWS, "What the audit found", about.audit),
    Section(_ROWS, "Columns", about.columns, ("missing",)),
    Section(_ROWS, "Left out", about.skipped),
    Section(_MADE, "The chosen model", about.model, ("weights", "learning")),
    Section(_MADE, "Words", about.glossary),
    Section(_MADE, "The same numbers again", about.again),
)  # fmt: skip
