"""The sections of the page, as a list: what each is written from, its pictures, plain words.

Every number carries the place in ``report.json`` that it was taken from (``data-key``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from groundstate.evaluate.candidates import DUMMY
from groundstate.report import about
from groundstate.report.cells import Keyed, at, between, html_of, table_of, words_of
from groundstate.report.numbers import show, title

_BASELINES = {
    DUMMY: "always the same answer",
    "stump": "one question about one column",
    "linear": "a straight line through all columns",
}


@dataclass(frozen=True)
class Section:
    """A heading, what writes it (empty leaves it out), the pictures it shows, words under it."""

    heading: str
    write: Callable[[dict[str, Any]], str]
    pictures: tuple[str, ...] = ()
    words: str = ""


def _board(told: dict[str, Any]) -> str:
    board = told["candidates"]
    metric, rows = board["metric"], []
    for i, entry in enumerate(board["entries"]):
        key = f"candidates.entries.{i}"
        best = entry["name"] == told["chosen"]
        mark = "chosen" if best else "≈" if entry["tied_with_best"] else ""
        seen: Any = ""
        if entry["test_score"] is not None:
            seen = (at(told, f"{key}.test_score", metric), " (",
                    *between(told, key, metric, "test_low", "test_high"), ")")  # fmt: skip
        rows.append((mark, entry["name"], at(told, f"{key}.score", metric),
                     between(told, key, metric, "low", "high"), seen,
                     "; ".join(entry["notes"])))  # fmt: skip
    level = f"{board['level']:.0%} interval"
    header = ("", "model", f"{metric}, validated", level, "judged rows", "notes")
    better = "higher" if board["greater_is_better"] else "lower"
    base = (
        f" {DUMMY} is what to beat: it ignores the columns."
        if DUMMY in told["design"]["models"]
        else ""
    )
    said = (
        f"{metric} is the {title(metric)}; {better} is better. Candidates with their usual settings "
        f"were compared on {told['design']['candidates_compared_on']} of "
        f"{told['design']['development']:,} rows, seed {told['design']['seed']}.{base}"
    )
    return table_of(header, rows, (2,)) + "\n" + words_of(said)


def _scores(told: dict[str, Any]) -> str:
    base = told.get("baselines", {}).get(DUMMY, {})
    rows = []
    for name in told["scores"]:
        key = f"scores.{name}"
        dummy: Any = at(told, f"baselines.{DUMMY}.{name}.value", name) if name in base else ""
        rows.append((name, at(told, f"{key}.value", name), between(told, key, name), dummy,
                     title(name)))  # fmt: skip
    header = ("metric", told["chosen"], f"{told['design']['level']:.0%} interval", DUMMY, "meaning")
    if not base:
        header, rows = header[:3] + header[4:], [row[:3] + row[4:] for row in rows]  # type: ignore[assignment,misc]
    return table_of(header, rows, (1, 3) if base else (1,)) + "\n" + words_of(_how_judged(told))


def _how_judged(told: dict[str, Any]) -> str:
    design, ledger = told["design"], told["ledger"]
    if design["kind"] == "nested":
        folds = told.get("chosen_in_folds", {})
        picked = ", ".join(f"{name} {count}×" for name, count in folds.items())
        return (
            f"Every one of the {design['judged']:,} rows was predicted once by a recipe that had "
            f"not seen it ({design['outer_folds']} parts; {design['reason']}). The recipe chose "
            f"{picked}; the model in the folder learned from all rows."
        )
    looks = ledger["looks"]
    first = "the first look at them" if ledger["clean"] else f"looked at by {looks} models so far"
    return (
        f"{design['judged']:,} test rows, {first}. Looks that are not in the ledger do not count."
    )


def _baselines(told: dict[str, Any]) -> str:
    if "baselines" not in told:
        return ""
    metric, rows = told["design"]["metric"], []
    for name, words in _BASELINES.items():
        if metric in told["baselines"].get(name, {}):
            key = f"baselines.{name}.{metric}"
            rows.append((name, at(told, f"{key}.value", metric), between(told, key, metric), words))
    table = table_of(("baseline", metric, "interval", "what it is"), rows, (1,))
    skill = html_of(("Skill ", at(told, "baselines.skill.value"), " (",
                   *between(told, "baselines.skill", ""), ")"))  # fmt: skip
    good = (
        "better than" if told["baselines"]["better_than_dummy"] else "not shown to be better than"
    )
    return f"{table}\n<p>{skill}: the model is {good} a constant answer.</p>"


def _comparison(told: dict[str, Any]) -> str:
    found = told["comparison"]
    if not found["test"]:
        return ""
    rows = []
    for i, row in enumerate(found["test"]):
        key = f"comparison.test.{i}"
        rows.append((f"{told['chosen']} − {row['against']}", at(told, f"{key}.difference"),
                     between(told, key, ""), at(told, f"{key}.p_holm"), row["method"]))  # fmt: skip
    header = ("difference on the judged rows", found["metric"], "interval", "p, corrected", "test")
    return table_of(header, rows, (1, 3))


def _calibration(told: dict[str, Any]) -> str:
    sure = told.get("calibration")
    if not sure:
        return ""
    lines = []
    if "ece" in sure:
        lines.append(html_of(("On average the probabilities are ", at(told, "calibration.ece", "accuracy"),
                            " away from what happens (expected calibration error, ",
                            f"{sure['about']}).")))  # fmt: skip
    cover = sure.get("coverage")
    if cover:
        what = "sets of classes" if cover["kind"] == "set" else "intervals"
        unit = " classes" if cover["kind"] == "set" else ""
        size: Any = ("; mean size ", at(told, "calibration.coverage.mean_size"), unit)
        lines.append(html_of((f"Conformal {what} made to hold the truth in {cover['wanted']:.0%} of rows "
                            "held it in ", at(told, "calibration.coverage.covered", "accuracy"), " (",
                            *between(told, "calibration.coverage", "accuracy"), ")",
                            *(size if cover["mean_size"] is not None else ()), ".")))  # fmt: skip
    return "".join(f"<p>{line}</p>" for line in lines)


def _decision(told: dict[str, Any]) -> str:
    if not told.get("decision"):
        return ""
    named = {
        "mean_cost": "at the best threshold",
        "at_one_half": "at one half",
        "always_yes": "always yes",
        "always_no": "always no",
    }
    rows = [(words, at(told, f"decision.{name}")) for name, words in named.items()]
    head = html_of(("Say ", told["decision"]["positive"], " from a probability of ",
                  at(told, "decision.threshold"), " on."))  # fmt: skip
    return f"<p>{head}</p>" + table_of(("rule", "mean cost of a row"), rows, (1,))


def _variation(told: dict[str, Any]) -> str:
    moved = told.get("variation")
    if not moved:
        return ""
    named = {"test": "which rows judge", "seed": "the seed", "train": "which rows it learned from"}
    rows = [(words, at(told, f"variation.{name}")) for name, words in named.items()]
    return table_of(("source", f"standard deviation of the {moved['loss']}"), rows, (1,))


def _curve(told: dict[str, Any]) -> str:
    curve = told.get("curve")
    if not curve or curve["forecast"] is None:
        return ""
    rows = []
    for i, point in enumerate(curve["forecast"]["points"]):
        key = f"curve.forecast.points.{i}"
        rows.append((f"{point['n']:,}", at(told, f"{key}.estimate"),
                     between(told, key, "", "low", "high")))  # fmt: skip
    return table_of(("training rows", "loss forecast", "interval"), rows, (0, 1))


def _diagnosis(told: dict[str, Any]) -> str:
    found = told.get("diagnosis")
    if not found:
        return ""
    named = {"train": "rows it learned from", "test": "new rows", "gap": "gap"}
    rows = [
        (words, at(told, f"diagnosis.{name}.estimate"),
         between(told, f"diagnosis.{name}", "", "low", "high"))
        for name, words in named.items()
    ]  # fmt: skip
    helped = {True: "helped", False: "did not help", None: "not tried"}
    remedies = "".join(
        f"<li>{escape(r['name'])} ({helped[r['fell']]}): <code>{escape(r['command'])}</code></li>"
        for r in found["remedies"]
    )
    table = table_of(("loss on", found["metric"], "interval"), rows, (1,))
    what = f"<p>{escape(found['sentence'])}</p>{table}"
    return what + (f"<p>What could be tried:</p><ul>{remedies}</ul>" if remedies else "")


def _tuning(told: dict[str, Any]) -> str:
    found = told.get("tuning")
    if not found:
        return ""
    rows = []
    for name, words in found["space"].items():
        share: Any = ""
        if name in found["importance"]:
            share = Keyed(f"tuning.importance.{name}", show(found["importance"][name], "accuracy"))
        best = found["best"].get(name)
        rows.append((name.removeprefix("estimator__"), words, show(best) if isinstance(best, float)
                     else str(best), share))  # fmt: skip
    tried = f"{len(found['trials'])} settings of {found['model']} tried: {found['words']}."
    return f"<p>{escape(tried)}</p>" + table_of(
        ("setting", "searched", "best", "importance"), rows, (3,)
    )


def _bound(told: dict[str, Any]) -> str:
    found = told.get("bound")
    return f"<p>{escape(found['words'])}.</p>" if found else ""


def _ledger(told: dict[str, Any]) -> str:
    found = told["ledger"]
    wide = found.get("simultaneous")
    if not wide or found["clean"]:
        return ""
    metric = wide["metric"]
    return "<p>" + html_of((f"These rows have been looked at by {found['looks']} models; for all of them "
                          f"at once the interval of {metric} is ",
                          *between(told, "ledger.simultaneous", metric),
                          ", and the best of them gains about ",
                          at(told, "ledger.simultaneous.optimism"), " by luck.")) + "</p>"  # fmt: skip


SECTIONS = (
    Section("How good it is", _scores, ("confusion", "predicted")),
    Section("Candidates, best first", _board, ("scores",)),
    Section("Beside simple answers", _baselines),
    Section("Measured differences", _comparison),
    Section("Finding a class", lambda told: "", ("roc", "precision_recall")),
    Section("What is left over", lambda told: "", ("residuals",)),
    Section("How sure single answers are", _calibration, ("reliability", "coverage")),
    Section("What mistakes cost", _decision),
    Section("How far the score moves", _variation, ("refits", "sources"),
            "Standard deviations: about two thirds of repetitions lie within one."),
    Section("More rows?", _curve, ("learning_curve",)),
    Section("Diagnosis", _diagnosis),
    Section("Tuning", _tuning, ("tuning",)),
    Section("A guarantee", _bound),
    Section("Looks at the test rows", _ledger),
    Section("The rows", lambda told: "", ("rows",)),
    Section("Energies", lambda told: "", ("energy",)),
    Section("The least typical rows", about.outliers),
    Section("What the audit found", about.audit),
    Section("The chosen model", about.model, ("weights", "learning")),
    Section("Columns", about.columns, ("missing",)),
    Section("Left out", about.skipped),
    Section("Words", about.glossary),
    Section("The same numbers again", about.again),
)  # fmt: skip

__all__ = ["SECTIONS", "Section"]
