"""The sections of the page, as a list: what each is written from, its pictures, plain words.

Every number carries the place in ``report.json`` that it was taken from (``data-key``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from groundstate.report import about, how_sure, unlabelled, why
from groundstate.report.cells import Keyed, Marked, at, between, html_of, table_of, words_of
from groundstate.study.candidates import DUMMY
from groundstate.study.numbers import is_share, label, show, title
from groundstate.study.verdict import RECIPE, credited, probabilities_alone

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
    header = ["model", f"{label(metric)}, cross-validated", f"{board['level']:.0%} interval"]
    if facts["design"]["candidates_compared_on"] != "folds":
        header[1] = f"{label(metric)}, validation rows"
    if seen and credited(facts) != facts["chosen"]:  # folds chose others: no model's score is its
        key = f"scores.{metric}"
        here = (at(facts, f"{key}.value", metric), " (", between(facts, key, metric), ")")
        rows.append([RECIPE, "", "", here] + ([""] if noted else []))
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
    repeats = facts["design"].get("repeats") or 1
    if facts["design"]["kind"] == "nested" and repeats > 1:
        words += (
            f" Those scores are of the first cut of the rows; scores on held-out rows are means over all "
            f"{repeats} cuts, with the intervals of the top of the page."
        )
    if facts["task"] == "density":
        words += (
            " Chosen is the one with the fewest parameters among those within one standard error of the "
            "best; ≈ marks those that a paired bootstrap cannot tell from the best."
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
    header = ["measure", credited(facts), f"{facts['design']['level']:.0%} interval"]
    header += ["constant answer"] if base else []
    words = words_of(_how_judged(facts)) + _first_repeat(facts)
    if "jackknife" in facts["scores"].get("r2", {}).get("method", ""):
        words += words_of(
            "R² divides by the spread of the held-out rows, which makes it a little low on few "
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
        times, parts = design.get("repeats") or 1, design["outer_folds"]
        often = {1: "once", 2: "twice"}.get(times, f"{times} times")
        picked = ", ".join(f"{name} {count}×" for name, count in folds.items())
        who = f"It chose {picked}" if len(folds) > 1 else f"It always chose {facts['chosen']}"
        return (
            f"Every one of the {design['judged']:,} rows was predicted {often} by a recipe that had "
            f"not seen it ({parts} parts{_each(times)}; {design['reason']}). {who}; the model in the "
            f"folder, {facts['chosen']}, learned from all rows."
        )
    if ledger is None:
        return f"{design['judged']:,} test rows. Earlier looks at them, if any, were not counted."
    looks = ledger["looks"]
    first = "the first look at them" if ledger["clean"] else f"looked at by {looks} models so far"
    return (
        f"{design['judged']:,} test rows, {first}. Looks that are not in the ledger do not count."
    )


def _each(times: int) -> str:
    return "" if times == 1 else f", cut anew {times} times"


def _first_repeat(facts: dict[str, Any]) -> str:
    """Why the table of right and wrong need not give the score at the top."""
    table = facts.get("confusion")
    repeats = facts["design"].get("repeats") or 1
    if not table and repeats > 1:
        return words_of(
            f"Scores are means over the {repeats} repeats; the pictures and the intervals for single "
            "rows show the first of them."
        )
    if not table or table["repeats"] == 1:
        return ""
    return "<p class=\"words\">" + html_of((f"Scores are means over the {table['repeats']} repeats; the table "
           "of right and wrong, the curves and the answers for single rows show the first of them, "
           "in which ", Keyed("confusion.right", f"{table['right']:,}"), " of ",
           Keyed("confusion.n", f"{table['n']:,}"), " rows are right (",
           at(facts, "confusion.accuracy", "accuracy"), ").")) + "</p>"  # fmt: skip


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
    if facts["baselines"].get("skill", {}).get("value") is None:
        return table
    skill = html_of(("Skill ", at(facts, "baselines.skill.value", "accuracy"), " (",
                   between(facts, "baselines.skill", "accuracy"), "), the share of the constant "
                   "answer’s loss that the model saves"))  # fmt: skip
    by = facts["comparison"]["metric"]
    named = "" if by == metric else f"by its {label(by)} "
    good = f"{named}the model is better than a constant answer"
    if not facts["baselines"]["better_than_dummy"]:
        good = f"{named}the model is not shown to be better than a constant answer"
        if probabilities_alone(facts):
            good = "the labels are not shown to be better than a constant answer, the probabilities are"
        elif facts["baselines"]["skill"]["lo"] > 0:
            good += " by the paired test, which decides"
    elif facts["baselines"].get("worse_probabilities"):
        good = "the labels are better than a constant answer, the probabilities (log loss) are not"
    return f"{table}\n<p>{skill}: {good}.</p>"


def _comparison(facts: dict[str, Any]) -> str:
    found = facts["comparison"]
    if not found["test"]:
        return ""
    rows, by = [], "" if is_share(found["metric"]) else found["metric"]
    for i, row in enumerate(found["test"]):
        if row["against"] != DUMMY and row["lo"] == row["difference"] == row["hi"] == 0:
            continue  # the same model under another name
        key = f"comparison.test.{i}"
        rows.append((f"{credited(facts)} − {row['against']}", at(facts, f"{key}.difference", by),
                     between(facts, key, by), at(facts, f"{key}.p_holm", "p"),
                     _TESTS.get(row["method"], row["method"])))  # fmt: skip
    header = ("on held-out rows", label(found["metric"]), "interval", "p, corrected", "test")
    return table_of(header, rows, (1, 3))


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
    most = 4 if found["importance"] else 3
    header = ("setting", "searched", "best tried", "importance")[:most]
    return f"<p>{escape(tried)}</p>" + table_of(header, [row[:most] for row in rows], (3,))


def _searched(words: str) -> str:
    """A range of settings for reading.

    >>> _searched("Real(low=0.0001, high=10000.0, log=True, step=None, prior=None)")
    '0.0001 to 10000, evenly in powers of ten'
    >>> _searched("Whole(low=20, high=80, log=False, step=1, prior=None)")
    '20 to 80'
    >>> _searched("Choice(choices=('a', None))")
    'a or None'
    """
    ends = re.match(r"(?:Real|Whole)\(low=([^,]+), high=([^,]+), log=(\w+)", words)
    if ends is not None:
        low, high = (f"{float(end):g}" for end in ends.groups()[:2])
        return f"{low} to {high}" + (", evenly in powers of ten" if ends[3] == "True" else "")
    choices = re.match(r"Choice\(choices=\((.*?),?\)\)$", words, re.S)
    if choices is None:
        return words
    return " or ".join(part.strip().strip("'\"") for part in choices[1].split(", "))


_GOOD, _SURE, _WHY = "How good it is", "How sure that is", "Why not better"
_LOOKS = "What the model looks at"
_TRIED, _ROWS, _MADE = "What was compared", "The table", "The model and the words"
SECTIONS = (
    Section(_GOOD, "Scores", _scores, ("confusion", "predicted", "residuals", "rows", "energy")),
    Section(_GOOD, "Most frequent mistakes", _mistakes),
    Section(_GOOD, "Beside simple answers", _baselines),
    Section(_GOOD, "The surest mistakes", about.examples),
    Section(_GOOD, "Rows to look at", _nothing,
            ("taken_for", "mistakes", "unsure", "graph", "worst", "typical")),
    Section(_GOOD, "The rare class", how_sure.rare),
    Section(_GOOD, "Finding a class", _nothing, ("roc", "precision_recall")),
    Section(_GOOD, "What mistakes cost", how_sure.decision),
    Section(_GOOD, "Groups", unlabelled.groups),
    Section(_GOOD, "Maps", unlabelled.maps),
    Section(_GOOD, "The least typical rows", unlabelled.outliers),
    Section(_GOOD, "Filling missing cells", unlabelled.filling),
    Section(_SURE, "Single answers", how_sure.calibration, ("reliability", "coverage")),
    Section(_SURE, "How far the score moves", how_sure.variation, ("refits", "sources"),
            "Standard deviations: about two thirds of repetitions lie within one."),
    Section(_SURE, "A guarantee", how_sure.bound),
    Section(_SURE, "Looks at the test rows", how_sure.ledger),
    Section(_LOOKS, "Important columns", why.importance, ("importance", "dependence")),
    Section(_WHY, "Diagnosis", how_sure.diagnosis),
    Section(_WHY, "More rows?", how_sure.curve, ("learning_curve",)),
    Section(_TRIED, "Candidates, best first", _board, ("scores",)),
    Section(_TRIED, "Measured differences", _comparison, (),
            "Differences of the score on the same rows; p is the chance of one at least as large "
            "when the two are equally good, corrected for looking at several; an interval is that of one "
            "difference alone."),
    Section(_TRIED, "Tuning", _tuning, ("tuning",)),
    Section(_ROWS, "What the audit found", about.audit),
    Section(_ROWS, "How it was read", about.columns),
    Section(_ROWS, "Columns", why.profiles, ("profiles", "missing")),
    Section(_ROWS, "Left out", about.skipped),
    Section(_MADE, "The chosen model", about.model, ("weights", "learning")),
    Section(_MADE, "Words", about.glossary),
    Section(_MADE, "The same numbers again", about.again),
)  # fmt: skip
