"""Every result prints in a few lines."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from groundstate import evaluate, study
from groundstate.compute.display import Displayed
from groundstate.evaluate import Entry, Prediction, Standings
from groundstate.study.assess import Assessment
from groundstate.study.unlabelled.survey import Survey

SHORT = {"Entry", "Interval", "Metric"}  # a few numbers each: the form of dataclasses will do
RESULTS = [
    name
    for name, value in vars(evaluate).items()
    if dataclasses.is_dataclass(value) and name not in SHORT
]


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_the_short_form(name: str) -> None:
    assert issubclass(getattr(evaluate, name), Displayed)


def test_studies_have_it_too() -> None:
    assert issubclass(Assessment, Displayed) and issubclass(Survey, Displayed)
    assert callable(study)


def test_answers_for_many_rows_print_as_shapes() -> None:
    answers = Prediction(np.zeros(10_000, int), np.full((10_000, 3), 1 / 3), classes=np.arange(3))
    assert repr(answers) == "Prediction: values (10000,), probability (10000, 3), classes (3,)"


def test_a_ranking_prints_as_a_table() -> None:
    board = Standings((Entry("a", 0.8, 0.7, 0.9), Entry("b", 0.9, 0.8, 1.0, test_score=0.85,
                       test_low=0.8, test_high=0.9)), "accuracy")  # fmt: skip
    assert repr(board).split("\n") == [
        "Standings: candidates 2, metric accuracy, level 0.95",
        "model  accuracy          held-out rows",
        "b      0.9 (0.8 to 1)    0.85 (0.8 to 0.9)",
        "a      0.8 (0.7 to 0.9)",
    ]
    assert "<th>held-out rows</th>" in board._repr_html_()
