"""Statistics: estimation, Monte Carlo, tests, intervals, the bootstrap, regions, comparisons, bounds.

What scipy does is scipy's, wrapped into results that say what was tested and how sure it is.
"""

from __future__ import annotations

from groundstate.math.stats import bounds
from groundstate.math.stats.anova import anova, likelihood_ratio_test, nested_f_test, wald_test
from groundstate.math.stats.bootstrap import Bootstrap, bootstrap
from groundstate.math.stats.compare import compare_models
from groundstate.math.stats.cov import cov
from groundstate.math.stats.credible import Region, eti, hdr
from groundstate.math.stats.delong import auc, auc_compare, auc_interval, auc_variance
from groundstate.math.stats.estimation import (
    MLE,
    EstimatorReport,
    LossAsNLL,
    StreamingCov,
    TailReport,
    corr_interval,
    estimator_report,
    fit_mle,
    hill,
    loss_as_nll,
    mean_abs_dev,
    moments,
    tail_report,
)
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.linearity import linearity_test, natural_spline
from groundstate.math.stats.means import design_effect, intraclass_correlation, mean_interval
from groundstate.math.stats.montecarlo import (
    Expectation,
    GradientEstimate,
    ImportanceEstimate,
    StandardizedMeans,
    expect_mc,
    grad_mc,
    importance,
    running_mean,
    standardized_means,
)
from groundstate.math.stats.multiple import adjust_pvalues
from groundstate.math.stats.proportions import (
    AccuracyReport,
    accuracy_report,
    effective_n,
    proportion_interval,
)
from groundstate.math.stats.result import TestResult
from groundstate.math.stats.ttest import power_ttest, ttest, ttest_from_stats
from groundstate.math.stats.twosample import memorisation, two_sample

__all__ = [
    "MLE",
    "AccuracyReport",
    "Bootstrap",
    "EstimatorReport",
    "Expectation",
    "GradientEstimate",
    "ImportanceEstimate",
    "Interval",
    "LossAsNLL",
    "Region",
    "StandardizedMeans",
    "StreamingCov",
    "TailReport",
    "TestResult",
    "accuracy_report",
    "adjust_pvalues",
    "anova",
    "auc",
    "auc_compare",
    "auc_interval",
    "auc_variance",
    "bootstrap",
    "bounds",
    "compare_models",
    "corr_interval",
    "cov",
    "design_effect",
    "effective_n",
    "estimator_report",
    "eti",
    "expect_mc",
    "fit_mle",
    "grad_mc",
    "hdr",
    "hill",
    "importance",
    "intraclass_correlation",
    "likelihood_ratio_test",
    "linearity_test",
    "loss_as_nll",
    "mean_abs_dev",
    "mean_interval",
    "memorisation",
    "moments",
    "natural_spline",
    "nested_f_test",
    "power_ttest",
    "proportion_interval",
    "running_mean",
    "standardized_means",
    "tail_report",
    "ttest",
    "ttest_from_stats",
    "two_sample",
    "wald_test",
]
