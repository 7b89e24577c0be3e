"""Small helpers for messages: lists in words, and the nearest known name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def listing(names: Iterable[object], limit: int = 12) -> str:
    """Names joined for a sentence, cut after `limit`.

    >>> listing(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    known = [repr(name) for name in names]
    if len(known) <= limit:
        return ", ".join(known) if known else "none"
    return f"{', '.join(known[:limit])} and {len(known) - limit} more"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a clause, or nothing.

    >>> did_you_mean("iriss", ["iris", "wine"])
    " (did you mean 'iris'?)"
    """
    folded = {k.lower(): k for k in known}
    near = get_close_matches(name.lower()[:200], list(folded), n=1, cutoff=0.6)
    return f" (did you mean {folded[near[0]]!r}?)" if near else ""


def count(n: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "row"), count(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
