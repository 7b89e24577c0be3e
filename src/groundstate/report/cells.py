"""Tables of the page; every number carries the place in the facts that it was taken from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from groundstate.report.numbers import show


@dataclass(frozen=True)
class Keyed:
    """Text taken from a place in the facts."""

    key: str
    text: str


def at(told: dict[str, Any], key: str, name: str = "") -> Keyed:
    """The number at a place, shown for reading; ``name`` is its metric.

    >>> at({"scores": {"accuracy": {"value": 0.9}}}, "scores.accuracy.value", "accuracy").text
    '90.0%'
    """
    value: Any = told
    for part in key.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return Keyed(key, show(value, name))


def html_of(cell: Any) -> str:
    if isinstance(cell, Keyed):
        return f'<span data-key="{escape(cell.key)}">{escape(cell.text)}</span>'
    if isinstance(cell, tuple):
        return "".join(html_of(part) for part in cell)
    return escape(str(cell))


def table_of(
    header: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[int] = ()
) -> str:
    """A table of escaped cells; columns in ``numbers`` are aligned right."""
    right = ' class="n"'

    def cells(tag: str, row: Sequence[Any]) -> str:
        return "".join(
            f"<{tag}{right if i in numbers else ''}>{html_of(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', header)}</tr></thead>"
    return f'<div class="scroll"><table>{head}\n<tbody>\n{body}\n</tbody></table></div>'


def words_of(text: str) -> str:
    return f'<p class="words">{escape(text)}</p>'


def between(told: dict[str, Any], key: str, name: str, low: str = "lo", high: str = "hi") -> Any:
    return (at(told, f"{key}.{low}", name), " to ", at(told, f"{key}.{high}", name))


__all__ = ["Keyed", "at", "between", "html_of", "table_of", "words_of"]
