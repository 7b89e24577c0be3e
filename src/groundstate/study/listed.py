"""Findings and parts left out as short lists: what is alike stands together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_ALONE = 2  # notes of one kind that are listed one by one


def left_out(parts: Sequence[str]) -> list[str]:
    """Parts that were left out; those with the same remedy, in brackets at their end, as one.

    >>> left_out(["refits (--thorough)", "drift: no test rows", "curves (--thorough)"])
    ['refits; curves (--thorough)', 'drift: no test rows']
    """
    by: dict[str, list[str]] = {}
    for part in parts:
        words, bracket, remedy = part.rpartition(" (")
        alike = bracket and part.endswith(")")
        by.setdefault(remedy if alike else part, []).append(words if alike else part)
    return [f"{'; '.join(p)} ({r}" if p != [r] else r for r, p in by.items()]


def together(findings: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Severity and sentence of findings; many mild ones of a kind are one that names the columns.

    >>> holes = [{"code": "missing", "severity": "info", "sentence": f"1% of {c!r} is missing",
    ...           "columns": [c]} for c in "abc"]
    >>> together(holes)
    [('info', "1% of 'a' is missing; likewise 'b', 'c'")]
    """
    lines: list[tuple[str, str]] = []
    seen: set[str] = set()
    for one in findings:
        alike = [f for f in findings if f["code"] == one["code"] and f["severity"] == "info"]
        if one["severity"] != "info" or len(alike) <= _ALONE:
            lines.append((one["severity"], one["sentence"]))
        elif one["code"] not in seen:
            seen.add(one["code"])
            rest = list(dict.fromkeys(repr(c) for f in alike[1:] for c in f["columns"]))
            more = f"; likewise {', '.join(rest)}" if rest else f" (and {len(alike) - 1} more)"
            lines.append((one["severity"], one["sentence"] + more))
    return lines
