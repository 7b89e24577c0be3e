"""The report as one HTML file that needs nothing else: no scripts, fonts or pictures from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from groundstate.models.words import plain as plain_formula
from groundstate.report.candidates import DUMMY
from groundstate.report.numbers import show, show_range, title
from groundstate.report.style import CSS
from groundstate.report.svg import Picture

_WORDS = (
    (
        "Interval",
        "The range in which the true score lies with the stated confidence; few rows make it wide. "
        "Accuracy has Wilson's interval, everything else is resampled (bootstrap).",
    ),
    (
        "Cross-validation",
        "The training rows are cut into parts; each part is predicted by a model that learned from "
        "the others, preparation of the columns included.",
    ),
    (
        "≈",
        "Cannot be told apart from the best: the difference is no larger than chance explains "
        "(McNemar's test or a paired bootstrap, corrected for several comparisons).",
    ),
    (
        "Test rows",
        "Rows set aside before anything was learned and looked at once, when nothing was left to "
        "choose. Copies of a row are all on one side. The saved model learned from the training "
        "rows only.",
    ),
    ("Energy", "How badly a row and an answer fit together; the prediction is the lowest."),
)


def page(told: dict[str, Any], pictures: Sequence[Picture]) -> str:
    """The page for the facts of a study (or of a survey) and its pictures."""
    table = told["table"]
    heading = f"Predicting {table['target']}" if table["target"] else "What the table looks like"
    size = f"{table['rows']:,} rows, {table['columns']} columns"
    about = f"{table['name']}: {table['description'] or told['task']}. {size}."
    body = [
        f"<h1>{escape(heading)}</h1>",
        f'<p class="sub">{escape(about)}</p>',
        '<div class="verdict">'
        + "".join(f"<p>{escape(s)}</p>" for s in told["verdict"])
        + "</div>",
        _section("Candidates, best first", _board(told), _rows_told(told)),
        _section("On the test rows", _test(told), _test_words(told)),
        *(_figure(picture) for picture in pictures),
        _section("The least typical rows", _outliers(told.get("outliers", []))),
        _section("What the audit found", _audit(told["audit"])),
        _section("The chosen model", _model(told["model"])),
        _section("Columns", _schema(table)),
        _section("Words", _glossary()),
        _section("The same numbers again", _again(told)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(heading)} – groundstate</title>\n<style>{CSS}</style>\n</head>\n<body>\n"
        "<main>\n" + "\n".join(part for part in body if part) + "\n</main>\n</body>\n</html>\n"
    )


def _section(heading: str, content: str, words: str = "") -> str:
    if not content:
        return ""
    said = f'\n<p class="words">{escape(words)}</p>' if words else ""
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}{said}\n</section>"


def _table(
    header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()
) -> str:
    """A table of escaped cells; columns in ``numbers`` are aligned right."""

    right = ' class="n"'

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{right if i in numbers else ''}>{escape(str(cell))}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', header)}</tr></thead>"
    return f'<div class="scroll"><table>{head}\n<tbody>\n{body}\n</tbody></table></div>'


def _board(told: dict[str, Any]) -> str:
    board = told["leaderboard"]
    metric, rows = board["metric"], []
    for entry in board["entries"]:
        best = entry["name"] == told["chosen"]
        mark = "chosen" if best else "≈" if entry["tied_with_best"] else ""
        test = ""
        if entry["test_score"] is not None:
            between = show_range(entry["test_low"], entry["test_high"], metric)
            test = f"{show(entry['test_score'], metric)} ({between})"
        rows.append(
            (
                mark,
                entry["name"],
                show(entry["score"], metric),
                show_range(entry["low"], entry["high"], metric),
                test,
                "; ".join(entry["notes"]),
            )
        )
    level = f"{board['level']:.0%} interval"
    header = ("", "model", f"{metric}, cross-validated", level, "test rows", "notes")
    return _table(header, rows, (2,))


def _rows_told(told: dict[str, Any]) -> str:
    metric, settings = told["leaderboard"]["metric"], told["settings"]
    better = "higher" if told["leaderboard"]["greater_is_better"] else "lower"
    base = (
        f" {DUMMY} is what to beat: it ignores the columns." if DUMMY in settings["models"] else ""
    )
    return (
        f"{metric} is the {title(metric)}; {better} is better. {told['rows']['train']:,} training "
        f"rows in {settings['cv']} parts, seed {settings['seed']}.{base}"
    )


def _test(told: dict[str, Any]) -> str:
    scores, base = told["test"]["scores"], told["test"].get("baseline", {})
    rows = [
        (
            name,
            show(value["score"], name),
            show_range(value["low"], value["high"], name),
            show(base[name]["score"], name) if name in base else "",
            title(name),
        )
        for name, value in scores.items()
    ]
    header = (
        "metric",
        told["chosen"],
        f"{told['settings']['level']:.0%} interval",
        DUMMY,
        "meaning",
    )
    if not base:
        return _table([*header[:3], header[4]], [(*row[:3], row[4]) for row in rows], (1,))
    return _table(header, rows, (1, 3))


def _test_words(told: dict[str, Any]) -> str:
    return f"{told['rows']['test']:,} rows, looked at once (test_looks: {told['test_looks']})."


def _figure(picture: Picture) -> str:
    return (
        f"<section>\n<h2>{escape(picture.title)}</h2>\n"
        f'<figure role="img" aria-label="{escape(picture.title)}">{picture.svg}\n'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>\n</section>"
    )


def _outliers(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    return _table(("row", "energy"), [(f"{r['row']:,}", show(r["energy"])) for r in rows], (0, 1))


def _audit(findings: list[dict[str, Any]]) -> str:
    if not findings:
        return "<p>Nothing: no missing values, copies, constants, leaks or other traps.</p>"
    items = [
        f'<li><span class="tag {escape(f["severity"])}">{escape(f["severity"])}</span> '
        f"{escape(f['sentence'])}.</li>"
        for f in findings
    ]
    return "<ul>" + "\n".join(items) + "</ul>"


def _model(model: dict[str, Any]) -> str:
    given = ", ".join(f"{k}={v!r}" for k, v in model["parameters"].items() if v is not None)
    lines = [
        f"<p>{escape(model['name'])}({escape(given)}), learned from {model['columns_in']} columns "
        f"turned into {model['numbers_in']} numbers.</p>"
    ]
    lines += [f'<p class="words">{escape(note)}.</p>' for note in model["preparation"]]
    told = model.get("explanation")
    if told:
        parts = [("energy", told["energy"]), ("learning rule", told["rule"])]
        parts += [("penalty", told["penalty"])] if told["penalty"] else []
        parts += [("solver", told["solver"])]
        rows = [(kind, p["name"], plain_formula(p["formula"]), p["words"]) for kind, p in parts]
        rows += [
            ("inference", a["method"], f"{a['operation']} {a['free']}", _sure(a["exact"]))
            for a in told["inference"]
        ]
        lines.append(_table(("part", "name", "formula", "in words"), rows))
    return "\n".join(lines)


def _sure(exact: bool) -> str:
    return "exact" if exact else "approximate"


def _schema(table: dict[str, Any]) -> str:
    rows = [
        (c["name"], c["kind"], f"{c['distinct']:,}", f"{c['missing']:,}", c["role"])
        for c in table["schema"]
    ]
    shown = _table(("column", "kind", "distinct values", "missing", "role"), rows[:200], (2, 3))
    more = f'<p class="words">and {len(rows) - 200} more columns</p>' if len(rows) > 200 else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in table["notes"])
    return shown + more + (f"<ul>{notes}</ul>" if notes else "")


def _glossary() -> str:
    rows = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in _WORDS)
    return f"<dl>{rows}</dl>"


def _again(told: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {v}" for name, v in told["versions"].items())
    return (
        "<pre>python reproduce.py</pre>\n"
        f'<p class="words">Made with {escape(versions)}. SHA-256 of the table: '
        f"<code>{escape(told['table']['sha256'][:16])}…</code></p>"
    )


__all__ = ["page"]
