"""REPORT: what a finished study leaves behind: pictures, a page, numbers, a script."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.report.curves import plot_band as plot_band
    from groundstate.report.curves import plot_landscape as plot_landscape
    from groundstate.report.curves import plot_probabilities as plot_probabilities
    from groundstate.report.folder import report as report
    from groundstate.report.folder import write as write
    from groundstate.report.html import page as page
    from groundstate.report.pictures import draw_all as draw_all
    from groundstate.report.pictures import draw_survey as draw_survey
    from groundstate.report.schema import report_schema as report_schema
    from groundstate.report.schema import validate as validate
    from groundstate.report.script import reproduce_script as reproduce_script
    from groundstate.report.simplex import plot_simplex as plot_simplex
    from groundstate.report.svg import Picture as Picture
    from groundstate.report.svg import inline_svg as inline_svg

lazy(__name__)
