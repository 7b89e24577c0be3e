"""Sections on how sure the score is, what single answers are worth, and why it is not better."""

from __future__ import annotations

from html import escape
from typing import Any

from groundstate.report.cells import Keyed, at, between, html_of, table_of, words_of
from groundstate.study.numbers import label, show
from groundstate.study.verdict import probabilities_alone

_SHARES = ("zero_one", "share of wrong answers")


def calibration(facts: dict[str, Any]) -> str:
    """Whether probabilities, sets and intervals keep what they promise."""
    sure = facts.get("calibration") or {}
    lines = []
    for words in facts["skipped"]:
        if words.startswith("calibration: "):
            plain = words.removeprefix("calibration: ")
            lines.append(html_of((f"{plain[0].upper()}{plain[1:]}.",)))
    if "ece" in sure:
        lines.append(html_of(("On average the probabilities are ", at(facts, "calibration.ece", "accuracy"),
                            " away from what happens (expected calibration error, ",
                            f"{_about(sure['about'])}).")))  # fmt: skip
    cover = sure.get("coverage")
    if cover:
        what = "Sets of classes" if cover["kind"] == "set" else "Intervals"
        unit = " classes" if cover["kind"] == "set" else ""
        size: Any = ("; mean size ", at(facts, "calibration.coverage.mean_size"), unit)
        comment = cover.get("words")
        lines.append(html_of((f"{what} for single rows, made to hold the truth in {cover['wanted']:.0%} of "
                            "rows (conformal), held it in ",
                            at(facts, "calibration.coverage.covered", "accuracy"), " (",
                            between(facts, "calibration.coverage", "accuracy"), ")",
                            f", {comment}" if comment else "",
                            *(size if cover["mean_size"] is not None else ()), ".")))  # fmt: skip
    return "".join(f"<p>{line}</p>" for line in lines)


def _about(what: str) -> str:
    return what if what.startswith("the ") else f"of class {what}"


def rare(facts: dict[str, Any]) -> str:
    """A rare class: found, right, and from which probability on to call it."""
    found = facts.get("rare")
    if not found:
        return ""
    name = found["class"]
    parts: list[Any] = [
        f"{name} has ", at(facts, "rare.share", "accuracy"), " of the rows. Of it ",
        at(facts, "rare.recall.value", "recall"), " is found (",
        between(facts, "rare.recall", "recall"), ")",
    ]  # fmt: skip
    if found["called"] or found["recall"]["value"]:
        parts += ["; of the rows called it ", at(facts, "rare.precision.value", "precision"),
                  " are (", between(facts, "rare.precision", "precision"), ")."]  # fmt: skip
    else:
        parts.append("; no row is called it.")
    if "average_precision" in found:
        parts += [" Average precision is ", at(facts, "rare.average_precision.value"), " (",
                  between(facts, "rare.average_precision", ""), "), by chance ",
                  at(facts, "rare.share_held_out"), "."]  # fmt: skip
    text = f"<p>{html_of(tuple(parts))}</p>"
    if "thresholds" not in found:
        return text
    rows = []
    for i, row in enumerate(found["thresholds"]):
        key = f"rare.thresholds.{i}"
        right = at(facts, f"{key}.right", "accuracy") if row["right"] is not None else "none called"
        rows.append((f"{row['missed_costs']} ×", at(facts, f"{key}.threshold", "accuracy"),
                     at(facts, f"{key}.found", "accuracy"), right, at(facts, f"{key}.mean_cost"),
                     at(facts, f"{key}.never"), at(facts, f"{key}.always")))  # fmt: skip
    head = ("a miss costs", "call it from", "found", "right", "mean cost", "never", "always")
    words = (
        f"For several prices of a missed {name}, in false alarms: the probability from which calling "
        "it costs least, what that finds, and the mean cost of a row beside never and always "
        "calling it. Give your own prices with --cost-fp and --cost-fn."
    )
    repeats = facts["design"].get("repeats") or 1
    if repeats > 1:
        words += (
            f" These rows are those of the first repeat; the shares above are means over {repeats}."
        )
    return text + table_of(head, rows, (1, 2, 3, 4, 5, 6)) + words_of(words)


def decision(facts: dict[str, Any]) -> str:
    """What mistakes cost at the prices given."""
    if not facts.get("decision"):
        return ""
    named = {
        "mean_cost": "at the best threshold",
        "at_one_half": "at one half",
        "always_yes": "always yes",
        "always_no": "always no",
    }
    rows = [(words, at(facts, f"decision.{name}")) for name, words in named.items()]
    head = html_of(("Answer ", facts["decision"]["positive"], " from a probability of ",
                  at(facts, "decision.threshold"), " on."))  # fmt: skip
    return f"<p>{head}</p>" + table_of(("rule", "mean cost of a row"), rows, (1,))


def variation(facts: dict[str, Any]) -> str:
    """How far the score moves with what was left to chance."""
    moved = facts.get("variation")
    if not moved:
        return ""
    named = {"test": "held-out rows", "seed": "seed", "train": "training rows"}
    kind = "accuracy" if moved["loss"] in _SHARES else ""
    rows: list[Any] = []
    for name, words in named.items():
        if name == "seed" and moved.get("seeds", {}).get("deterministic"):
            rows.append((words, "none: a fit draws no random numbers"))
        elif name == "seed" and moved[name] == 0 and "seeds" in moved:
            rows.append((words, f"no effect in {len(moved['seeds']['values'])} fits"))
        elif name == "train" and moved[name] == 0 and "oob" in moved:
            rows.append((words, f"no measurable effect in {len(moved['oob']['values'])} fits"))
        elif moved[name] is not None:
            rows.append((words, at(facts, f"variation.{name}", kind)))
    return table_of(("drawn anew", f"standard deviation of the {moved['loss']}"), rows, (1,))


def bound(facts: dict[str, Any]) -> str:
    """A guarantee, where there is one."""
    found = facts.get("bound")
    if not found or found["value"] is None:
        return ""
    return f"<p>{escape(found['words'][:1].upper() + found['words'][1:])}.</p>"


def ledger(facts: dict[str, Any]) -> str:
    """How often the held-out rows were looked at, where it was more than once."""
    found = facts["ledger"]
    wide = None if found is None else found.get("simultaneous")
    if not wide or found["clean"]:
        return ""
    metric = wide["metric"]
    return "<p>" + html_of((f"These rows have been looked at by {found['looks']} models; for all of them "
                          f"at once the interval of {label(metric)} is ",
                          between(facts, "ledger.simultaneous", metric),
                          ", and the best of them gains about ",
                          at(facts, "ledger.simultaneous.optimism"), " by luck.")) + "</p>"  # fmt: skip


def curve(facts: dict[str, Any]) -> str:
    """Loss at the largest number of training rows tried, and what more rows would bring."""
    found = facts.get("curve")
    if not found or found["forecast"] is None:
        return ""
    kind = "accuracy" if found["metric"] in _SHARES else ""
    last, points = len(found["n"]) - 1, found["forecast"]["points"]
    here = found["test"][last]
    if not points or points[0]["estimate"] >= here["estimate"]:
        level = html_of((
            "From its learning curve no further gain from more rows can be foreseen: fits to "
            f"{found['n'][last]:,} rows have a loss of ", at(facts, f"curve.test.{last}.estimate", kind), " (",
            between(facts, f"curve.test.{last}", kind, "low", "high"), ").",
        ))  # fmt: skip
        return f"<p>{level}</p>"
    rows = [(f"{found['n'][last]:,} (measured)", at(facts, f"curve.test.{last}.estimate", kind),
             between(facts, f"curve.test.{last}", kind, "low", "high"))]  # fmt: skip
    for i, point in enumerate(points):
        key = f"curve.forecast.points.{i}"
        rows.append((f"{point['n']:,} (forecast)", at(facts, f"{key}.estimate", kind),
                     between(facts, key, kind, "low", "high")))  # fmt: skip
    words = (
        "Measured with few cuts of the rows, not with the folds of the scores above, from which it "
        "therefore differs by chance; its interval says by how much."
    )
    table = table_of(("training rows", label(found["metric"]), "interval"), rows, (1,))
    return f"{table}\n{words_of(words)}"


def diagnosis(facts: dict[str, Any]) -> str:
    """Losses on seen and new rows, and what was tried against the gap."""
    found = facts.get("diagnosis")
    if not found:
        return ""
    kind = "accuracy" if found["metric"] in _SHARES else ""
    named = {"train": "rows it learned from", "test": "new rows", "gap": "difference"}
    rows = [
        (words, at(facts, f"diagnosis.{name}.estimate", kind),
         between(facts, f"diagnosis.{name}", kind, "low", "high"))
        for name, words in named.items()
    ]  # fmt: skip
    table = table_of(("on", label(found["metric"]), "interval"), rows, (1,))
    words = words_of(
        f"Cross-validation of {facts['chosen']} with its final settings; the score at the top also "
        "pays for choosing and tuning, so the two may differ a little."
    )
    sentence = found["sentence"]
    if found["test"]["estimate"] == 0:
        sentence = "It makes no mistake on new rows."
    if found["verdict"] == "good" and not facts["baselines"]["better_than_dummy"]:
        sentence = "It errs as much on its own rows as on new ones: "
        sentence += (
            "the labels gain nothing from the columns, the probabilities do."
            if probabilities_alone(facts)
            else "it found nothing in the columns."
        )
    text = f"<p>{escape(sentence)}</p>{table}{words}"
    lines: dict[Any, list[str]] = {True: [], None: [], False: []}
    for i, remedy in enumerate(found["remedies"]):
        lines[remedy["fell"]].append(_remedy(facts, i, remedy, kind))
    if lines[True]:
        text += f"<p>What lowered the error on new rows:</p><ul>{''.join(lines[True])}</ul>"
    if lines[None]:
        text += f"<p>What could be tried:</p><ul>{''.join(lines[None])}</ul>"
    if lines[False]:
        names = ", ".join(dict.fromkeys(r["name"] for r in found["remedies"] if r["fell"] is False))
        text += f"<p>Tried without a measurable gain on new rows: {escape(names)}.</p>"
    return text


def _remedy(facts: dict[str, Any], i: int, remedy: dict[str, Any], kind: str) -> str:
    by: Any = ""
    change = remedy.get("change")
    if remedy["fell"] and change:
        key = f"diagnosis.remedies.{i}.change"
        low, high = (Keyed(f"{key}.{e}", show(-change[e], kind)) for e in ("high", "low"))
        by = html_of((" (lower by ", Keyed(f"{key}.estimate", show(-change["estimate"], kind)),
                      ", ", low, " to ", high, ")"))  # fmt: skip
    if remedy["name"] == "more data" and by:
        return f"<li>more rows: fits to all of them err less than fits to half{by}</li>"
    return f"<li>{escape(remedy['name'])}{by}: <code>{escape(remedy['command'])}</code></li>"
