"""Statistics: tests, intervals, the bootstrap, regions, comparisons, bounds.

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
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.linearity import linearity_test, natural_spline
from groundstate.math.stats.means import design_effect, intraclass_correlation, mean_interval
from groundstate.math.stats.multiple import adjust_pvalues
from groundstate.math.stats.nested import FTest, Residuals, nested_f
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
    "AccuracyReport",
    "Bootstrap",
    "FTest",
    "Interval",
    "Region",
    "Residuals",
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
    "cov",
    "design_effect",
    "effective_n",
    "eti",
    "hdr",
    "intraclass_correlation",
    "likelihood_ratio_test",
    "linearity_test",
    "mean_interval",
    "memorisation",
    "natural_spline",
    "nested_f",
    "nested_f_test",
    "power_ttest",
    "proportion_interval",
    "ttest",
    "ttest_from_stats",
    "two_sample",
    "wald_test",
]
