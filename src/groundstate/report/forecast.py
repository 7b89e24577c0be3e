"""The page of a study of series: the verdict, and every series with its future and the band."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.report.style import CSS
from groundstate.report.svg import inline_svg
from groundstate.study.forecast import ForecastStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 12  # series on the page; the table holds all

_SCRIPT = '''"""Gives the numbers of this report again: python reproduce.py [SERIES]."""

import json
import sys

from groundstate.study.forecast import study_forecast

source = sys.argv[1] if len(sys.argv) > 1 else {source!r}
found = study_forecast(source, {steps}, ledger=None, **{settings!r})
print(json.dumps(found.facts(), indent=2))
'''


def forecast_script(source: str, steps: int, options: Mapping[str, Any]) -> str:
    """The text of ``reproduce.py``; it counts no further look at the end of the series."""
    settings = {k: v for k, v in options.items() if k != "ledger" and v is not None}
    return _SCRIPT.format(source=source, steps=steps, settings=settings)


def forecast_page(found: ForecastStudy) -> str:
    """One HTML file that needs nothing else."""
    figures = "\n".join(_figure(found, i) for i in range(min(SHOWN, len(found.table.rows))))
    errors = "".join(
        f"<tr><td>{escape(name)}</td><td>{value:.4g}</td></tr>"
        for name, value in found.errors.items()
    )
    title = f"The next {found.steps} items"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} – groundstate</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n"
        f'<p class="sub">{escape(found.table.rows.describe())}</p>\n'
        f'<div class="verdict"><p>{escape(found.verdict)}</p></div>\n</header>\n'
        f'<section><h2>Forecasts</h2><div class="figures">{figures}</div></section>\n'
        "<section><h2>Candidates</h2><table><tr><th>model</th><th>mean absolute error before the end"
        f"</th></tr>{errors}</table></section>\n</main>\n</body>\n</html>\n"
    )


def _figure(found: ForecastStudy, i: int) -> str:
    rows, made = found.table.rows, found.made
    series = rows.values[rows.offsets[i] : rows.offsets[i + 1]].numpy()
    name = "" if found.table.ids is None else str(found.table.ids[i])
    shown = min(len(series), max(4 * found.steps, 40))
    columns = getattr(found.model, "target_", [0])

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(columns), 1, squeeze=False)[:, 0]
        past, ahead = np.arange(-shown + 1, 1), np.arange(1, found.steps + 1)
        for j, (ax, column) in enumerate(zip(axes, columns)):
            ax.plot(past, series[-shown:, column], color="C0", lw=1)
            low, high = made.lower[i, :, j], made.upper[i, :, j]
            ax.fill_between(ahead, low, high, color="C1", alpha=0.25)
            ax.plot(ahead, made.mean[i, :, j], color="C1")
            ax.set(ylabel=found.table.names[column])
        axes[-1].set(xlabel="items from now")

    svg = inline_svg(f"forecast {i}", (5.0, 2.2 * len(columns)), draw)
    heading = escape(name or "The series")
    caption = f"what came, the forecast, and the band of {found.made.level:.0%}"
    dates = found.dates[i]
    if dates is not None:
        caption += f"; {dates[0]} to {dates[-1]}"
    return f"<figure><h4>{heading}</h4>\n{svg}\n<figcaption>{caption}</figcaption></figure>"
