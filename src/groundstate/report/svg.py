"""A matplotlib figure as SVG for the inside of a page: same figure, same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from groundstate.compute.display import Displayed
from groundstate.report.style import RC, VARIABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture(Displayed):
    """One picture of a report: a short name, a heading, what to see in it, and the drawing.

    ``data`` are the numbers behind it, by name; a ``wide`` picture has a line of the page to itself.
    """

    name: str
    title: str
    caption: str
    svg: str
    data: dict[str, Any] = field(default_factory=dict)
    wide: bool = False


# a picture of this width has readable letters on a phone, and two fit side by side on a screen
WIDTH = 5.0


def inline_svg(
    name: str, size: tuple[float, float], draw: Callable[[Figure], None], wide: bool = False
) -> str:
    """Draw a figure and return it as an ``<svg>`` element without outside references.

    Parameters
    ----------
    name : salt of the element ids, so that two pictures of one page do not share any
    size : width and height in inches; the width is at most ``WIDTH`` unless ``wide``
    draw : draws on an empty figure
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**RC, "svg.hashsalt": f"groundstate {name}"}), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from font")  # the browser has its own
        width = size[0] if wide else min(size[0], WIDTH)
        figure = Figure(figsize=(width, size[1]), layout="constrained")
        draw(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _embeddable(out.getvalue(), name)


def _embeddable(svg: str, name: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)  # known to every browser inside a page
    # letters grow no larger than those of the page, and shrink with a small screen
    reach = 1.3333 * float(re.search(r'<svg[^>]*?\swidth="([\d.]+)', svg)[1])  # type: ignore[index]
    svg = re.sub(
        r'(<svg[^>]*?)\swidth="[^"]*"', rf'\1 style="max-width:{reach:.0f}px"', svg, count=1
    )
    svg = re.sub(r'(<svg[^>]*?)\sheight="[^"]*"', r"\1", svg, count=1)
    # ids such as figure_1 and axes_1 come in every picture
    svg = re.sub(r'\bid="([a-z][\w.]*_\d+)"', rf'id="{name}-\1"', svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg.strip()
