"""The page of a leaderboard: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundstate.evaluate.board.leaderboard import Place

FULL = "Every submission was given its score on all rows, so the first place is too good."
REPORTED = {
    "full": FULL,
    "ladder": "An answer is the best score so far; it moves only for a gain beyond chance.",
    "split": "Answers come from public rows; private ones decide in the end.",
}
REVEALED = {
    "full": FULL,
    "ladder": "Answers moved only for gains beyond chance; this is the score on all rows.",
    "split": "Answers came from public rows; this table is from private ones.",
}


def ranked_table(places: Sequence[Place]) -> str:
    """Places with their intervals, for those who may see scores."""
    return _table(
        ("Rank", "Name", "Score", "Interval", "Group"),
        (
            (
                f"{p.ranks[0]}" if p.ranks[0] == p.ranks[1] else f"{p.ranks[0]}–{p.ranks[1]}",
                p.name,
                f"{p.score.estimate:.4f}",
                f"{p.score.low:.4f} to {p.score.high:.4f}",
                str(p.group),
            )
            for p in places
        ),
    )


def answers_table(shown: Mapping[str, float], greater_is_better: bool) -> str:
    """What was reported to submissions, the best first, equal answers with one rank."""
    sign = -1.0 if greater_is_better else 1.0
    order = sorted(shown, key=lambda name: (sign * shown[name], name))
    values = [shown[name] for name in order]
    return _table(
        ("Rank", "Name", "Answer"),
        ((str(values.index(shown[n]) + 1), n, f"{shown[n]:.4f}") for n in order),
    )


def page(title: str, parts: Iterable[str]) -> str:
    """The whole page."""
    return _PAGE.format(title=escape(title), body="\n".join(parts))


def paragraph(text: str) -> str:
    """One paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #8884; }}
</style>
<h1>{title}</h1>
{body}
</html>
"""
