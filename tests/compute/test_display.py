"""Result objects print short, on a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from groundstate.compute.display import Displayed, Table, html_table, short


@dataclass(frozen=True)
class Found(Displayed):
    values: object
    risk: float
    notes: str | None = None
    hidden: object = field(default=None, repr=False)


@dataclass(frozen=True)
class Named(Found):
    def _facts(self) -> Mapping[str, object]:
        return {"a <b>": self.risk}

    def _table(self) -> Table:
        return ("k", "v"), [("x", 1)]


@dataclass(frozen=True)
class Own(Displayed):
    risk: float

    def __str__(self) -> str:
        return f"risk < {self.risk}"


def test_arrays_print_as_shapes_and_numbers_with_four_digits() -> None:
    found = Found(np.zeros((1000, 50)), 1 / 3, hidden=object())
    assert repr(found) == str(found) == "Found: values (1000, 50), risk 0.3333"
    assert repr(Found(torch.zeros(2, 3), 0.5)) == "Found: values (2, 3), risk 0.5"


def test_facts_and_a_table_of_its_own_also_in_html() -> None:
    found = Named(None, 0.25)
    assert repr(found) == "Named: a <b> 0.25\nk  v\nx  1"
    html = found._repr_html_()
    assert "a &lt;b&gt;" in html and "<th>k</th>" in html and "0.25" in html


def test_a_text_of_its_own_is_kept_everywhere() -> None:
    assert repr(Own(2.0)) == "risk < 2.0"
    assert Own(2.0)._repr_html_() == "<pre>risk &lt; 2.0</pre>"


def test_long_values_become_sizes() -> None:
    assert short(list(range(1000))) == "1000 items"
    assert short({str(i): i for i in range(20)}) == "20 items"
    assert len(short("word " * 100)) < 70
    assert short(np.float32(0.5)) == "0.5" and short(torch.tensor(2)) == "2"
    assert max(map(len, repr(Found(["x" * 9] * 5, 0.1, "n" * 50)).splitlines())) <= 100


def test_a_table_without_names_has_no_head() -> None:
    assert "<th>" not in html_table(("", ""), [("a", 1)])
