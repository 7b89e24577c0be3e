"""REPORT: what a finished study leaves behind: pictures, a page, numbers, a script."""

from __future__ import annotations

from groundstate.report.curves import plot_band, plot_landscape, plot_probabilities
from groundstate.report.folder import report, write
from groundstate.report.html import page
from groundstate.report.pictures import draw_all, draw_survey
from groundstate.report.schema import report_schema, validate
from groundstate.report.script import reproduce_script
from groundstate.report.simplex import plot_simplex
from groundstate.report.svg import Picture, inline_svg

__all__ = [
    "Picture",
    "draw_all",
    "draw_survey",
    "inline_svg",
    "page",
    "plot_band",
    "plot_landscape",
    "plot_probabilities",
    "plot_simplex",
    "report",
    "report_schema",
    "reproduce_script",
    "validate",
    "write",
]
