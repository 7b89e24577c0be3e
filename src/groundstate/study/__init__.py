"""STUDY: table in; audit, design, selection, refit, one look at held-out rows, verdict out."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.study.assess import Assessment as Assessment
    from groundstate.study.assess import assess as assess
    from groundstate.study.facts import fingerprint as fingerprint
    from groundstate.study.facts import report_facts as report_facts
    from groundstate.study.job import assess_tuned as assess_tuned
    from groundstate.study.job import run as run
    from groundstate.study.tune_table import tune_table as tune_table
    from groundstate.study.tuning import Search as Search
    from groundstate.study.unlabelled.densities import compare_densities as compare_densities
    from groundstate.study.unlabelled.survey import Survey as Survey
    from groundstate.study.unlabelled.survey import survey as survey
    from groundstate.study.unlabelled.survey import survey_facts as survey_facts
    from groundstate.study.verdict import three_sentences as three_sentences

lazy(__name__)
