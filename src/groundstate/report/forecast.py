"""The page of a study of series: the verdict, and every series with its future and the band."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.models.sequences.forecaster_role import Forecast
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
    shown = range(min(SHOWN, len(found.table.rows)))
    ahead = "\n".join(_figure(found, i, found.made, found.steps) for i in shown)
    looks = "\n".join(_figure(found, i, found.look, 0) for i in shown)
    errors = "".join(
        f"<tr><td>{escape(_named(found, name))}</td><td>{value:.4g}</td></tr>"
        for name, value in sorted(found.errors.items(), key=lambda entry: entry[1])
    )
    title = f"The next {found.steps} items"
    notes = "".join(f"<p>{escape(note[0].upper() + note[1:])}.</p>" for note in found.notes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} – groundstate</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n"
        f'<p class="sub">{escape(_about(found))}</p>\n'
        f'<div class="verdict"><p>{escape(found.verdict)}</p></div>\n{notes}</header>\n'
        f'<section><h2>Forecasts</h2><div class="figures">{ahead}</div></section>\n'
        f"<section><h2>The end, as it was forecast before it was known</h2>"
        f'<div class="figures">{looks}</div></section>\n'
        "<section><h2>Candidates</h2><table><tr><th>model</th><th>mean absolute error before the end"
        f"</th></tr>{errors}</table></section>\n</main>\n</body>\n</html>\n"
    )


def _about(found: ForecastStudy) -> str:
    lengths, n = found.table.rows.lengths, len(found.table.rows)
    low, high = int(lengths.min()), int(lengths.max())
    series = "one series" if n == 1 else f"{n:,} series"
    items = f"{low:,} items" if low == high else f"{low:,} to {high:,} items"
    columns = found.table.names
    each = f" of {len(columns)} columns" if len(columns) > 1 else ""
    repeats = f"; they repeat themselves after {found.season} items" if found.season > 1 else ""
    return f"{series} of {items}{each}: {', '.join(columns)}{repeats}"


def _named(found: ForecastStudy, name: str) -> str:
    settings = ", ".join(f"{k}={v}" for k, v in found.settings.get(name, {}).items())
    return f"{name}({settings})" if settings else name


def _figure(found: ForecastStudy, i: int, made: Forecast, after: int) -> str:
    """The end of a series with a forecast of the ``after`` items behind it, or of its last ones."""
    rows, steps = found.table.rows, found.steps
    series = rows.values[rows.offsets[i] : rows.offsets[i + 1]].numpy()
    name = "" if found.table.ids is None else str(found.table.ids[i])
    shown = min(len(series), max(4 * steps, 40))
    columns = getattr(found.model, "target_", [0])
    past: Any = np.arange(-shown + 1, 1)
    ahead: Any = np.arange(1, steps + 1) - (0 if after else steps)
    dates, axis = found.dates[i], "items from now"
    if dates is not None and found.table.times is not None:
        known = found.table.times[rows.offsets[i] : rows.offsets[i + 1]]
        past, axis = known[-shown:], ""
        ahead = np.array(dates, "M8[us]") if after else known[-steps:]

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(columns), 1, squeeze=False, sharex=True)[:, 0]
        for j, (ax, column) in enumerate(zip(axes, columns)):
            ax.plot(past, series[-shown:, column], color="C0", lw=1)
            ax.fill_between(
                ahead, made.lower[i, :, j], made.upper[i, :, j], color="C1", alpha=0.25, lw=0
            )
            ax.plot(ahead, made.mean[i, :, j], color="C1", lw=1.2)
            ax.set(ylabel=found.table.names[column])
        axes[-1].set(xlabel=axis)
        if not axis:
            axes[-1].tick_params(axis="x", labelrotation=20)

    svg = inline_svg(f"forecast {i} {after}", (5.0, 0.4 + 2.2 * len(columns)), draw)
    heading = escape(name or "The series")
    caption = f"blue what came, orange the forecast and its band of {made.level:.0%}"
    if dates is not None and after:
        caption += f"; {dates[0]} to {dates[-1]}"
    return f"<figure><h4>{heading}</h4>\n{svg}\n<figcaption>{caption}</figcaption></figure>"
