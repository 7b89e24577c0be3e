"""STUDY: table in; audit, design, selection, refit, one look at held-out rows, verdict out."""

from __future__ import annotations

from groundstate.study.assess import Assessment, assess
from groundstate.study.facts import fingerprint, report_facts
from groundstate.study.job import assess_tuned, run
from groundstate.study.tune_table import tune_table
from groundstate.study.tuning import Search
from groundstate.study.unlabelled.densities import compare_densities
from groundstate.study.unlabelled.survey import Survey, survey, survey_facts
from groundstate.study.verdict import three_sentences

__all__ = [
    "Assessment",
    "Search",
    "Survey",
    "assess",
    "assess_tuned",
    "compare_densities",
    "fingerprint",
    "report_facts",
    "run",
    "survey",
    "survey_facts",
    "three_sentences",
    "tune_table",
]
