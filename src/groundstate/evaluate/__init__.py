"""EVALUATE: splits, metrics, scores with intervals, comparisons, the leaderboard."""

from __future__ import annotations

from groundstate.evaluate.assess import Assessment, assess
from groundstate.evaluate.compare import (
    Comparison,
    corrected_t,
    holm,
    indistinguishable,
    mcnemar,
    paired_bootstrap,
    tied_with_best,
)
from groundstate.evaluate.goodness import d2, mcfadden_r2, r2
from groundstate.evaluate.inference import InferenceTable, inference
from groundstate.evaluate.intervals import Interval, bootstrap, interval, student, wilson
from groundstate.evaluate.leaderboard import Entry, Leaderboard
from groundstate.evaluate.metrics import METRICS, Metric, metric
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.scoring import all_scores, score
from groundstate.evaluate.splits import Split, folds, train_test

__all__ = [
    "METRICS",
    "Assessment",
    "Comparison",
    "Entry",
    "InferenceTable",
    "Interval",
    "Leaderboard",
    "Metric",
    "Prediction",
    "Split",
    "all_scores",
    "assess",
    "bootstrap",
    "corrected_t",
    "d2",
    "folds",
    "holm",
    "indistinguishable",
    "inference",
    "interval",
    "mcfadden_r2",
    "mcnemar",
    "metric",
    "paired_bootstrap",
    "r2",
    "score",
    "student",
    "tied_with_best",
    "train_test",
    "wilson",
]
