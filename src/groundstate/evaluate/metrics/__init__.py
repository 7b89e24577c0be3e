"""Metrics: scikit-learn's numbers by name, and what it lacks.

`report` gives all metrics of a task, `for_task` says which they are, `Metric` is one of them in the
form that can be resampled thousands of times a second.
"""

from __future__ import annotations

from groundstate.evaluate.metrics.base import DEFAULT, METRICS, Metric, Task, bounds_of, metric
from groundstate.evaluate.metrics.counts import ConfusionAccumulator, confusion, f1_of_macros
from groundstate.evaluate.metrics.goodness import d2, mcfadden_r2, r2
from groundstate.evaluate.metrics.overlap import dice, hausdorff, iou, mean_iou
from groundstate.evaluate.metrics.predictive import (
    PIT,
    Coverage,
    coverage,
    crps_gaussian,
    crps_sample,
    interval_score,
    pit,
)
from groundstate.evaluate.metrics.proper import (
    BrierParts,
    Reliability,
    brier_parts,
    ece,
    reliability,
)
from groundstate.evaluate.metrics.stream import (
    AUCAccumulator,
    MeanAccumulator,
    RegressionAccumulator,
)
from groundstate.evaluate.metrics.tasks import (
    MetricReport,
    TaskMetrics,
    empirical_risk,
    for_task,
    is_mask,
    report,
    task_of,
)
from groundstate.math.stats.delong import auc, auc_compare, auc_interval, auc_variance

__all__ = [
    "DEFAULT",
    "METRICS",
    "PIT",
    "AUCAccumulator",
    "BrierParts",
    "ConfusionAccumulator",
    "Coverage",
    "MeanAccumulator",
    "Metric",
    "MetricReport",
    "RegressionAccumulator",
    "Reliability",
    "Task",
    "TaskMetrics",
    "auc",
    "bounds_of",
    "auc_compare",
    "auc_interval",
    "auc_variance",
    "brier_parts",
    "confusion",
    "coverage",
    "crps_gaussian",
    "crps_sample",
    "d2",
    "dice",
    "ece",
    "empirical_risk",
    "f1_of_macros",
    "for_task",
    "hausdorff",
    "interval_score",
    "iou",
    "is_mask",
    "mcfadden_r2",
    "mean_iou",
    "metric",
    "pit",
    "r2",
    "reliability",
    "report",
    "task_of",
]
