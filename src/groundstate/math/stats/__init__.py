"""Statistics: estimation, Monte Carlo, tests, intervals, the bootstrap, regions, comparisons, bounds.

What scipy does is scipy's, wrapped into results that say what was tested and how sure it is.
"""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.stats import bounds as bounds
    from groundstate.math.stats.anova import anova as anova
    from groundstate.math.stats.anova import likelihood_ratio_test as likelihood_ratio_test
    from groundstate.math.stats.anova import nested_f_test as nested_f_test
    from groundstate.math.stats.anova import wald_test as wald_test
    from groundstate.math.stats.bootstrap import Bootstrap as Bootstrap
    from groundstate.math.stats.bootstrap import bootstrap as bootstrap
    from groundstate.math.stats.compare import compare_models as compare_models
    from groundstate.math.stats.cov import cov as cov
    from groundstate.math.stats.credible import Region as Region
    from groundstate.math.stats.credible import eti as eti
    from groundstate.math.stats.credible import hdr as hdr
    from groundstate.math.stats.delong import auc as auc
    from groundstate.math.stats.delong import auc_compare as auc_compare
    from groundstate.math.stats.delong import auc_interval as auc_interval
    from groundstate.math.stats.delong import auc_variance as auc_variance
    from groundstate.math.stats.estimation import MLE as MLE
    from groundstate.math.stats.estimation import EstimatorReport as EstimatorReport
    from groundstate.math.stats.estimation import LossAsNLL as LossAsNLL
    from groundstate.math.stats.estimation import StreamingCov as StreamingCov
    from groundstate.math.stats.estimation import TailReport as TailReport
    from groundstate.math.stats.estimation import corr_interval as corr_interval
    from groundstate.math.stats.estimation import estimator_report as estimator_report
    from groundstate.math.stats.estimation import fit_mle as fit_mle
    from groundstate.math.stats.estimation import hill as hill
    from groundstate.math.stats.estimation import loss_as_nll as loss_as_nll
    from groundstate.math.stats.estimation import mean_abs_dev as mean_abs_dev
    from groundstate.math.stats.estimation import moments as moments
    from groundstate.math.stats.estimation import tail_report as tail_report
    from groundstate.math.stats.interval import Interval as Interval
    from groundstate.math.stats.linearity import linearity_test as linearity_test
    from groundstate.math.stats.linearity import natural_spline as natural_spline
    from groundstate.math.stats.means import design_effect as design_effect
    from groundstate.math.stats.means import intraclass_correlation as intraclass_correlation
    from groundstate.math.stats.means import mean_interval as mean_interval
    from groundstate.math.stats.montecarlo import Expectation as Expectation
    from groundstate.math.stats.montecarlo import GradientEstimate as GradientEstimate
    from groundstate.math.stats.montecarlo import ImportanceEstimate as ImportanceEstimate
    from groundstate.math.stats.montecarlo import StandardizedMeans as StandardizedMeans
    from groundstate.math.stats.montecarlo import expect_mc as expect_mc
    from groundstate.math.stats.montecarlo import grad_mc as grad_mc
    from groundstate.math.stats.montecarlo import importance as importance
    from groundstate.math.stats.montecarlo import running_mean as running_mean
    from groundstate.math.stats.montecarlo import standardized_means as standardized_means
    from groundstate.math.stats.multiple import adjust_pvalues as adjust_pvalues
    from groundstate.math.stats.proportions import AccuracyReport as AccuracyReport
    from groundstate.math.stats.proportions import accuracy_report as accuracy_report
    from groundstate.math.stats.proportions import effective_n as effective_n
    from groundstate.math.stats.proportions import proportion_interval as proportion_interval
    from groundstate.math.stats.result import TestResult as TestResult
    from groundstate.math.stats.ttest import power_ttest as power_ttest
    from groundstate.math.stats.ttest import ttest as ttest
    from groundstate.math.stats.ttest import ttest_from_stats as ttest_from_stats
    from groundstate.math.stats.twosample import memorisation as memorisation
    from groundstate.math.stats.twosample import two_sample as two_sample

lazy(__name__)
