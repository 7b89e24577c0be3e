"""REPORT: the main job on a table, and what it leaves behind: pictures, a page, numbers, a script."""

from __future__ import annotations

from groundstate.report.curves import plot_band, plot_landscape, plot_probabilities
from groundstate.report.folder import report, write
from groundstate.report.html import page
from groundstate.report.pictures import draw_all, draw_survey
from groundstate.report.schema import report_schema, validate
from groundstate.report.script import reproduce_script
from groundstate.report.simplex import plot_simplex
from groundstate.report.svg import Picture, inline_svg
from groundstate.study.densities import compare_densities
from groundstate.study.facts import fingerprint, report_facts
from groundstate.study.job import study
from groundstate.study.tune_table import tune_table
from groundstate.study.tuning import Search
from groundstate.study.unlabelled import Survey, survey, survey_facts
from groundstate.study.verdict import three_sentences

__all__ = [
    "Picture",
    "Search",
    "Survey",
    "compare_densities",
    "draw_all",
    "draw_survey",
    "fingerprint",
    "inline_svg",
    "page",
    "plot_band",
    "plot_landscape",
    "plot_probabilities",
    "plot_simplex",
    "report",
    "report_facts",
    "report_schema",
    "reproduce_script",
    "study",
    "survey",
    "survey_facts",
    "three_sentences",
    "tune_table",
    "validate",
    "write",
]
