"""Tables of the page; every number carries the place in the facts that it was taken from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from groundstate.study.numbers import show


@dataclass(frozen=True)
class Marked:
    """Text in an element: ``b``, ``code``, or a span of a class."""

    text: str
    tag: str = "b"
    kind: str = ""


@dataclass(frozen=True)
class Keyed:
    """Text taken from a place in the facts."""

    key: str
    text: str


def at(facts: dict[str, Any], key: str, name: str = "") -> Keyed:
    """The number at a place, shown for reading; ``name`` is its metric.

    >>> at({"scores": {"accuracy": {"value": 0.9}}}, "scores.accuracy.value", "accuracy").text
    '90.0%'
    """
    value: Any = facts
    for part in key.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return Keyed(key, show(value, name))


def html_of(cell: Any) -> str:
    if isinstance(cell, Keyed):
        return f'<span data-key="{escape(cell.key)}">{escape(cell.text)}</span>'
    if isinstance(cell, Marked):
        kind = f' class="{escape(cell.kind)}"' if cell.kind else ""
        return f"<{cell.tag}{kind}>{escape(cell.text)}</{cell.tag}>"
    if isinstance(cell, Range):
        return '<span class="range">' + "".join(html_of(part) for part in cell) + "</span>"
    if isinstance(cell, tuple):
        return "".join(html_of(part) for part in cell)
    return escape(str(cell))


class Range(tuple[Any, ...]):
    """Parts of a cell that stay on one line."""


def table_of(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    numbers: Sequence[int] = (),
    best: int | None = None,
    stacked: bool = True,
) -> str:
    """A table of escaped cells.

    Parameters
    ----------
    numbers : columns that are aligned right
    best : the row to stress
    stacked : on a phone a row becomes a card with the headers beside its cells
    """

    def cells(tag: str, row: Sequence[Any]) -> str:
        out = []
        for i, cell in enumerate(row):
            kind = ' class="n"' if i in numbers else ""
            facts = f' data-label="{escape(header[i])}"' if tag == "td" else ""
            shown = html_of(cell)
            if shown or not stacked or tag == "th":
                out.append(f"<{tag}{kind}{facts}>{shown}</{tag}>")
            else:
                out.append(f'<{tag} class="none"></{tag}>')
        return "".join(out)

    stressed = ' class="best"'
    body = "\n".join(
        f"<tr{stressed if i == best else ''}>{cells('td', row)}</tr>" for i, row in enumerate(rows)
    )
    head = f"<thead><tr>{cells('th', header)}</tr></thead>"
    kind = ' class="stacked"' if stacked and len(header) > 2 else ""
    return f'<div class="scroll"><table{kind}>{head}\n<tbody>\n{body}\n</tbody></table></div>'


def words_of(text: str) -> str:
    return f'<p class="words">{escape(text)}</p>'


def between(facts: dict[str, Any], key: str, name: str, low: str = "lo", high: str = "hi") -> Any:
    return Range((at(facts, f"{key}.{low}", name), " to ", at(facts, f"{key}.{high}", name)))
