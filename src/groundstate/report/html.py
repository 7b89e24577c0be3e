"""The report as one HTML file that needs nothing else: no scripts, fonts or pictures from outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from groundstate.report.sections import SECTIONS
from groundstate.report.style import CSS
from groundstate.report.svg import Picture


def page(told: dict[str, Any], pictures: Sequence[Picture]) -> str:
    """The page for the facts of an assessment (or of a survey) and its pictures."""
    table = told["data"]
    heading = f"Predicting {table['target']}" if table["target"] else "What the table looks like"
    size = f"{table['rows']:,} rows, {table['columns']} columns"
    about = f"{table['name']}: {table['description'] or told['task']}. {size}."
    figures = {picture.name: _figure(picture) for picture in pictures}
    parts = []
    for section in SECTIONS:
        content = section.write(told)
        drawn = "\n".join(figures.pop(name) for name in section.pictures if name in figures)
        if content or drawn:
            parts.append(_section(section.heading, content, section.words, drawn))
    body = [
        f"<h1>{escape(heading)}</h1>",
        f'<p class="sub">{escape(about)}</p>',
        '<div class="verdict">'
        + "".join(f"<p>{escape(s)}</p>" for s in told["verdict"])
        + "</div>",
        *parts,
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(heading)} – groundstate</title>\n<style>{CSS}</style>\n</head>\n<body>\n"
        "<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def _section(heading: str, content: str, words: str, drawn: str) -> str:
    said = f'\n<p class="words">{escape(words)}</p>' if words else ""
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}{said}\n{drawn}\n</section>"


def _figure(picture: Picture) -> str:
    return (
        f'<figure role="img" aria-label="{escape(picture.title)}">'
        f"<h3>{escape(picture.title)}</h3>\n{picture.svg}\n"
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


__all__ = ["page"]
