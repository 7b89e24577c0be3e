"""Sections about the table, the model and the words of the page."""

from __future__ import annotations

from html import escape
from typing import Any

from groundstate.models.words import plain as plain_formula
from groundstate.report.cells import Marked, table_of, words_of
from groundstate.study.listed import left_out, together

_GLOSSARY = (
    (
        "Interval",
        "The range in which the true score lies with the stated confidence; few rows make it wide. "
        "Accuracy has Wilson's interval, everything else is resampled (bootstrap). Where rows are "
        "held back in turn it is wider than the rows alone say, because the fits behind them differ.",
    ),
    (
        "Cross-validation",
        "Rows are cut into parts; each part is predicted by a model that learned from the others, "
        "preparation of the columns included. Nested: the choice of the model and of its settings "
        "is made again inside, so that it cannot flatter the score.",
    ),
    (
        "≈",
        "Cannot be told apart from the best: the difference is no larger than chance explains "
        "(McNemar's test or a paired bootstrap, corrected for several comparisons).",
    ),
    (
        "Test rows",
        "Rows set aside before anything was learned and looked at once, when nothing was left to "
        "choose. Copies of a row are all on one side.",
    ),
    (
        "Skill",
        "Share of the loss of a constant answer that the model saves: 1 is perfect, 0 is no better.",
    ),
    ("Energy", "How badly a row and an answer fit together; the prediction is the lowest."),
)


def audit(facts: dict[str, Any]) -> str:
    """What the audit of the table found."""
    findings = facts["data"]["findings"]
    if facts["data"]["columns"] is None:
        return ""
    if not findings:
        return "<p>Nothing: no missing values, copies, constants, leaks or other traps.</p>"
    items = [
        f'<li><span class="tag {escape(severity)}">{escape(severity)}</span> {escape(finding)}.</li>'
        for severity, finding in together(findings)
    ]
    return "<ul>" + "\n".join(items) + "</ul>"


def model(facts: dict[str, Any]) -> str:
    """The chosen model, its settings and what it is made of."""
    model_of = facts["model"]
    parts = model_of.get("explanation")
    words = f": {parts['summary'][:1].lower()}{parts['summary'][1:]}" if parts else ""
    lines = [f"<p><b>{escape(model_of['name'])}</b>{escape(words)}.</p>"]
    if "columns_in" in model_of:
        lines.append(
            words_of(
                f"{model_of['columns_in']} columns of the table become "
                f"{model_of['numbers_in']:,} numbers for the model."
            )
        )
    members = model_of.get("members", [])
    if members:  # one table of what is averaged, and no settings of its own
        lines[0] = words_of("An ensemble: the weighted mean of the answers of these models.")
        shown = [(m["name"], f"{m['weight']:.0%}", _settings(m)) for m in members]
        lines.append(table_of(("model", "weight", "settings"), shown, (1,)))
    lines += [words_of(f"{note}.") for note in model_of.get("preparation", [])]
    if members:
        return "\n".join(lines)
    if parts:
        rows_of = [("energy", parts["energy"]), ("learning rule", parts["rule"])]
        rows_of += [("penalty", parts["penalty"])] if parts["penalty"] else []
        rows_of += [("solver", parts["solver"])]
        rows = [(kind, p["name"], plain_formula(p["formula"]), p["words"]) for kind, p in rows_of]
        rows += [
            ("inference", a["method"], f"{a['operation']} {a['free']}",
             "exact" if a["exact"] else "approximate")
            for a in parts["inference"]
        ]  # fmt: skip
        lines.append(table_of(("part", "name", "formula", "in words"), rows))
    settings = [
        (Marked(name, "code"), str(value)) for name, value in model_of["parameters"].items()
    ]
    lines.append(
        f"<details><summary>All {len(settings)} settings</summary>"
        f"{table_of(('setting', 'value'), settings)}</details>"
    )
    return "\n".join(lines)


def _settings(member: dict[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in member["parameters"].items() if v is not None)


def columns(facts: dict[str, Any]) -> str:
    """Every column with its kind."""
    table = facts["data"]
    if table["columns"] is None:  # rows that are no table
        return "".join(f"<p>{escape(note)}</p>" for note in table["notes"])
    notes = "".join(f"<li>{escape(note)}</li>" for note in table["notes"])
    listed = f"<ul>{notes}</ul>" if notes else ""
    if (facts.get("columns") or {}).get("profiles"):  # which say the same and more
        return listed
    rows = [
        (c["name"], c["kind"], f"{c['distinct']:,}", f"{c['missing']:,}", c["role"])
        for c in table["types"]
    ]
    header = ("column", "kind", "distinct values", "missing", "role")
    shown = table_of(header, rows[:200], (2, 3), stacked=False)
    if len(rows) > 20:
        shown = f"<details><summary>All {len(rows):,} columns</summary>{shown}</details>"
    more = words_of(f"and {len(rows) - 200} more columns") if len(rows) > 200 else ""
    return shown + more + listed


def examples(facts: dict[str, Any]) -> str:
    """Texts that were answered wrong with the highest probability."""
    found = facts.get("examples") or []
    rows = [(e["text"], e["truth"], f"{e['predicted']} ({e['probability']:.0%})") for e in found]
    return table_of(("text", "is", "taken for"), rows) if rows else ""


def skipped(facts: dict[str, Any]) -> str:
    """Parts that were left out."""
    items = "".join(f"<li>{escape(part)}</li>" for part in left_out(facts["skipped"]))
    return f"<ul>{items}</ul>" if items else ""


def glossary(facts: dict[str, Any]) -> str:
    """Words used on the page."""
    rows = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in _GLOSSARY)
    return f"<dl>{rows}</dl>"


def again(facts: dict[str, Any]) -> str:
    """How to get the same numbers."""
    versions = ", ".join(f"{name} {v}" for name, v in facts["reproduce"]["versions"].items())
    return (
        f"<pre>python reproduce.py\n{escape(facts['reproduce']['command'])}</pre>\n"
        f'<p class="words">Made with {escape(versions)}. SHA-256 of the table: '
        f"<code>{escape(facts['data']['hash'][:16])}…</code></p>"
    )
