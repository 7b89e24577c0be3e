"""A matplotlib figure as SVG for the inside of a page: same figure, same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from groundstate.report.style import RC, VARIABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """One picture of a report: a short name, a heading, what to see in it, and the drawing.

    ``data`` are the numbers behind it, by name.
    """

    name: str
    title: str
    caption: str
    svg: str
    data: dict[str, Any] = field(default_factory=dict)


def inline_svg(name: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> str:
    """Draw a figure and return it as an ``<svg>`` element without outside references.

    Parameters
    ----------
    name : salt of the element ids, so that two pictures of one page do not share any
    size : width and height in inches
    draw : draws on an empty figure
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**RC, "svg.hashsalt": f"groundstate {name}"}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _embeddable(out.getvalue(), name)


def _embeddable(svg: str, name: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)  # known to every browser inside a page
    svg = re.sub(r'(<svg[^>]*?)\swidth="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?)\sheight="[^"]*"', r"\1", svg, count=1)
    # ids such as figure_1 and axes_1 come in every picture
    svg = re.sub(r'\bid="([a-z][\w.]*_\d+)"', rf'id="{name}-\1"', svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg.strip()


__all__ = ["Picture", "inline_svg"]
