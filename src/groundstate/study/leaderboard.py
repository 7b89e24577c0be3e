"""Where the candidates stand after the one look."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.board.ranked_table import Standings
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.predictions import Prediction
from groundstate.math.stats.interval import Interval
from groundstate.study import held_out
from groundstate.study.candidates import DUMMY
from groundstate.study.question import Question
from groundstate.study.selection import Developed


def standing(
    developed: Developed,
    measure: Metric,
    question: Question,
    merged: dict[str, dict[str, Interval]],
    truth: NDArray[Any],
    predictions: dict[str, Prediction],
    weight: NDArray[np.float64],
    key: Key,
) -> tuple[Standings, dict[str, Any]]:
    """The board with scores on held-out rows, and the chosen model against the others."""
    board, name = developed.ranking.board, developed.chosen
    for who in (DUMMY, name):
        seen = merged[who][measure.name]
        board = board.with_entry(
            who, test_score=seen.estimate, test_low=seen.low, test_high=seen.high
        )
    level = question.settings.level
    on_test = held_out.compared(
        measure, truth, name, predictions, weight=weight, level=level, key=key.fold("on test")
    )
    return board, {
        "metric": measure.name,
        "chosen": name,
        "tied": list(board.tied),
        "test": on_test,
    }


def one_fit(developed: Developed, begun: float, count: int) -> float:
    """Seconds of one fit of the chosen model."""
    known = developed.ranking.board[developed.chosen].fit_seconds
    return known or (time.perf_counter() - begun) / max(count, 1)
