"""The report as one HTML file that needs nothing else: no scripts, fonts or pictures from outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from groundstate.report.headline import cards
from groundstate.report.sections import SECTIONS
from groundstate.report.style import CSS
from groundstate.report.svg import Picture


def page(facts: dict[str, Any], pictures: Sequence[Picture]) -> str:
    """The page for the facts of an assessment (or of a survey) and its pictures."""
    table = facts["data"]
    heading = f"Predicting {table['target']}" if table["target"] else "What the table looks like"
    about = [table["name"], table["description"] or facts["task"], f"{table['rows']:,} rows"]
    about += [] if table["columns"] is None else [f"{table['columns']} columns"]
    figures = {picture.name: _figure(picture) for picture in pictures}
    chapters: dict[str, list[str]] = {}
    for section in SECTIONS:
        content = section.write(facts)
        drawn = [figures.pop(name) for name in section.pictures if name in figures]
        if content or drawn:
            part = _section(section.heading, content, section.words, drawn)
            chapters.setdefault(section.chapter, []).append(part)
    links = "".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name in chapters)
    body = [
        f"<header>\n<h1>{escape(heading)}</h1>",
        f'<p class="sub">{escape(" · ".join(about))}</p>',
        *_progress(facts),
        '<div class="verdict">'
        + "".join(f"<p>{escape(s)}</p>" for s in facts["verdict"])
        + "</div>",
        cards(facts),
        f'<nav aria-label="Chapters">{links}</nav>\n</header>',
        *(_chapter(name, parts) for name, parts in chapters.items()),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(heading)} – groundstate</title>\n<style>{CSS}</style>\n</head>\n<body>\n"
        "<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def _progress(facts: dict[str, Any]) -> list[str]:
    """What a page that is written before the end still waits for, or was left out for time."""
    rest = facts.get("unfinished") or []
    if not rest:
        return []
    words = "left out for time" if facts.get("stage", "done") == "done" else "in progress"
    return [f'<p class="progress">{words.capitalize()}: {escape("; ".join(rest))}.</p>']


def _anchor(name: str) -> str:
    return "chapter-" + name.lower().replace(" ", "-")


def _chapter(name: str, parts: list[str]) -> str:
    inside = "\n".join(parts)
    return f'<section id="{_anchor(name)}">\n<h2>{escape(name)}</h2>\n{inside}\n</section>'


def _section(heading: str, content: str, words: str, drawn: list[str]) -> str:
    """Text under a heading, then pictures; pictures alone need no heading but their own."""
    note = f'\n<p class="words">{escape(words)}</p>' if words else ""
    text = f"<h3>{escape(heading)}</h3>\n{content}{note}\n" if content else ""
    shown = '<div class="figures">' + "\n".join(drawn) + "</div>" if drawn else ""
    return f'<div class="part">\n{text}{shown}\n</div>'


def _figure(picture: Picture) -> str:
    wide = ' class="wide"' if picture.wide else ""
    return (
        f'<figure{wide} role="img" aria-label="{escape(picture.title)}">'
        f"<h4>{escape(picture.title)}</h4>\n{picture.svg}\n"
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )
