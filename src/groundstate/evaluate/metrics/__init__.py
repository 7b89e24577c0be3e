"""Metrics: scikit-learn's numbers by name, and what it lacks.

`report` gives all metrics of a task, `for_task` says which they are, `Metric` is one of them in the
form that can be resampled thousands of times a second.
"""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.evaluate.metrics.base import DEFAULT as DEFAULT
    from groundstate.evaluate.metrics.base import METRICS as METRICS
    from groundstate.evaluate.metrics.base import Metric as Metric
    from groundstate.evaluate.metrics.base import Task as Task
    from groundstate.evaluate.metrics.base import bounds_of as bounds_of
    from groundstate.evaluate.metrics.base import metric as metric
    from groundstate.evaluate.metrics.clusters import (
        adjusted_mutual_info_score as adjusted_mutual_info_score,
    )
    from groundstate.evaluate.metrics.clusters import adjusted_rand_score as adjusted_rand_score
    from groundstate.evaluate.metrics.clusters import (
        calinski_harabasz_score as calinski_harabasz_score,
    )
    from groundstate.evaluate.metrics.clusters import completeness_score as completeness_score
    from groundstate.evaluate.metrics.clusters import davies_bouldin_score as davies_bouldin_score
    from groundstate.evaluate.metrics.clusters import fowlkes_mallows_score as fowlkes_mallows_score
    from groundstate.evaluate.metrics.clusters import homogeneity_score as homogeneity_score
    from groundstate.evaluate.metrics.clusters import mutual_info_score as mutual_info_score
    from groundstate.evaluate.metrics.clusters import (
        normalized_mutual_info_score as normalized_mutual_info_score,
    )
    from groundstate.evaluate.metrics.clusters import rand_score as rand_score
    from groundstate.evaluate.metrics.clusters import silhouette_score as silhouette_score
    from groundstate.evaluate.metrics.clusters import v_measure_score as v_measure_score
    from groundstate.evaluate.metrics.counts import ConfusionAccumulator as ConfusionAccumulator
    from groundstate.evaluate.metrics.counts import confusion as confusion
    from groundstate.evaluate.metrics.counts import f1_of_macros as f1_of_macros
    from groundstate.evaluate.metrics.goodness import d2 as d2
    from groundstate.evaluate.metrics.goodness import mcfadden_r2 as mcfadden_r2
    from groundstate.evaluate.metrics.goodness import r2 as r2
    from groundstate.evaluate.metrics.overlap import dice as dice
    from groundstate.evaluate.metrics.overlap import hausdorff as hausdorff
    from groundstate.evaluate.metrics.overlap import iou as iou
    from groundstate.evaluate.metrics.overlap import mean_iou as mean_iou
    from groundstate.evaluate.metrics.overlap import pixel_accuracy as pixel_accuracy
    from groundstate.evaluate.metrics.predictive import PIT as PIT
    from groundstate.evaluate.metrics.predictive import Coverage as Coverage
    from groundstate.evaluate.metrics.predictive import coverage as coverage
    from groundstate.evaluate.metrics.predictive import crps_gaussian as crps_gaussian
    from groundstate.evaluate.metrics.predictive import crps_sample as crps_sample
    from groundstate.evaluate.metrics.predictive import interval_score as interval_score
    from groundstate.evaluate.metrics.predictive import pit as pit
    from groundstate.evaluate.metrics.proper import BrierParts as BrierParts
    from groundstate.evaluate.metrics.proper import Reliability as Reliability
    from groundstate.evaluate.metrics.proper import brier_parts as brier_parts
    from groundstate.evaluate.metrics.proper import ece as ece
    from groundstate.evaluate.metrics.proper import reliability as reliability
    from groundstate.evaluate.metrics.stream import AUCAccumulator as AUCAccumulator
    from groundstate.evaluate.metrics.stream import MeanAccumulator as MeanAccumulator
    from groundstate.evaluate.metrics.stream import RegressionAccumulator as RegressionAccumulator
    from groundstate.evaluate.metrics.tasks import MetricReport as MetricReport
    from groundstate.evaluate.metrics.tasks import TaskMetrics as TaskMetrics
    from groundstate.evaluate.metrics.tasks import empirical_risk as empirical_risk
    from groundstate.evaluate.metrics.tasks import for_task as for_task
    from groundstate.evaluate.metrics.tasks import is_mask as is_mask
    from groundstate.evaluate.metrics.tasks import report as report
    from groundstate.evaluate.metrics.tasks import task_of as task_of
    from groundstate.math.sequences import bleu as bleu
    from groundstate.math.sequences import span_f1 as span_f1
    from groundstate.math.sequences import spans as spans
    from groundstate.math.stats.delong import auc as auc
    from groundstate.math.stats.delong import auc_compare as auc_compare
    from groundstate.math.stats.delong import auc_interval as auc_interval
    from groundstate.math.stats.delong import auc_variance as auc_variance
    from groundstate.nn.detection.precision import DetectionAccumulator as DetectionAccumulator
    from groundstate.nn.detection.precision import DetectionScores as DetectionScores
    from groundstate.nn.detection.precision import (
        average_precision_detection as average_precision_detection,
    )

lazy(__name__)
