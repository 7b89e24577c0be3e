"""How results print: a title, the numbers that matter, shapes instead of arrays; HTML in notebooks.

A result class inherits :class:`Displayed` and is done: it prints its dataclass fields in short.
``_facts`` chooses and names what is printed, ``_table`` adds rows under columns, and a class with a
``__str__`` of its own keeps it. Everything else here is what those two are made of.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

WIDTH = 100
_LONG = 60  # characters of one value
_FEW = 6  # numbers of a sequence that are shown one by one

Table = tuple[Sequence[str], Iterable[Sequence[object]]]  # names of columns, rows


class Displayed:
    """Short printing for result objects, the same on a terminal and in a notebook.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Draws(Displayed):
    ...     values: np.ndarray
    ...     accepted: float
    >>> Draws(np.zeros((500, 2)), 2 / 3)
    Draws: values (500, 2), accepted 0.6667

    With names of its own for the facts, and a table:

    >>> class Runs(Draws):
    ...     def _facts(self):
    ...         return {"draws": len(self.values), "accepted": f"{self.accepted:.0%}"}
    ...     def _table(self):
    ...         return ("coordinate", "mean"), [(0, 0.0), (1, 0.25)]
    >>> Runs(np.zeros((500, 2)), 2 / 3)
    Runs: draws 500, accepted 67%
    coordinate  mean
    0           0
    1           0.25
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:  # in the class itself, so that @dataclass leaves it
            cls.__repr__ = cls.__str__  # type: ignore[assignment, method-assign]

    def _facts(self) -> Mapping[str, object]:
        """What is printed, by name."""
        own: Any = self
        if not dataclasses.is_dataclass(own):
            return {}
        shown = [field.name for field in dataclasses.fields(own) if field.repr]
        return {name.replace("_", " "): getattr(self, name) for name in shown}

    def _table(self) -> Table | None:
        """Columns and rows printed under the facts."""
        return None

    def __str__(self) -> str:
        table = self._table()
        lines = summary_lines(type(self).__name__, self._facts())
        return "\n".join([*lines, *(text_table(*table) if table else ())])

    def _repr_html_(self) -> str:
        if type(self).__str__ is not Displayed.__str__:
            return f"<pre>{escape(str(self))}</pre>"
        table, facts = self._table(), self._facts()
        parts = [f"<p><b>{escape(type(self).__name__)}</b></p>"]
        if facts:
            parts.append(html_table(("", ""), facts.items()))
        return "\n".join([*parts, *([html_table(*table)] if table else [])])


def short(value: object) -> str:
    """A value in a few characters: four digits, shapes of arrays, numbers of items.

    Examples
    --------
    >>> import numpy as np
    >>> short(1 / 3), short(np.zeros((3, 2))), short([0.5, 0.25]), short(list(range(1000)))
    ('0.3333', '(3, 2)', '0.5 0.25', '1000 items')
    """
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return textwrap.shorten(value, _LONG, placeholder=" ...") if len(value) > _LONG else value
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return short(value.item()) if shape == () else f"{tuple(shape)}"  # type: ignore[attr-defined]
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name} {short(item)}" for name, item in list(value.items())[:_FEW])
        return inner if len(value) <= _FEW and len(inner) <= _LONG else f"{len(value)} items"
    if isinstance(value, (list, tuple, set, frozenset)) and type(value).__str__ is object.__str__:
        inner = " ".join(short(item) for item in list(value)[:_FEW])
        return inner if len(value) <= _FEW and len(inner) <= _LONG else f"{len(value)} items"
    text = str(value).partition("\n")[0]
    return text if len(text) <= _LONG else type(value).__name__


def span(values: Any) -> str:
    """The smallest and the largest of some numbers, one number where they agree.

    >>> import numpy as np
    >>> span(np.array([0.25, -1.0])), span(np.array([2.0, 2.0])), span(np.zeros(0))
    ('-1 to 0.25', '2', 'none')
    """
    if not math.prod(values.shape):
        return "none"
    low, high = short(values.min().item()), short(values.max().item())
    return low if low == high else f"{low} to {high}"


def summary_lines(title: str, facts: Mapping[str, object] | None = None) -> list[str]:
    """``title: name value, name value``, folded; what is None is left out.

    Examples
    --------
    >>> summary_lines("Minimum", {"energy": 0.125, "steps": 12, "x": [1.0, 2.0], "note": None})
    ['Minimum: energy 0.125, steps 12, x 1 2']
    """
    shown = [f"{name} {short(value)}" for name, value in (facts or {}).items() if value is not None]
    if not shown:
        return [title]
    return textwrap.wrap(f"{title}: {', '.join(shown)}", WIDTH, subsequent_indent="  ")


def text_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Rows under column names, aligned.

    Examples
    --------
    >>> text_table(("model", "accuracy"), [("Ridge", 0.9), ("SVC", 0.95)])
    ['model  accuracy', 'Ridge  0.9', 'SVC    0.95']
    """
    cells = [list(columns), *([short(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in cells]


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same as an HTML table; without a head where no column has a name.

    Examples
    --------
    >>> html_table(("a", "b"), [(1, "<")])
    '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>&lt;</td></tr></table>'
    """

    def line(tag: str, cells: Iterable[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

    head = line("th", columns) if any(columns) else ""
    body = "".join(line("td", (short(v) for v in row)) for row in rows)
    return f"<table>{head}{body}</table>"
