"""Estimation: moments, tails, maximum likelihood, covariance, bias and variance of estimators."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.stats.estimation.bias import EstimatorReport as EstimatorReport
    from groundstate.math.stats.estimation.bias import estimator_report as estimator_report
    from groundstate.math.stats.estimation.covariance import StreamingCov as StreamingCov
    from groundstate.math.stats.estimation.covariance import corr_interval as corr_interval
    from groundstate.math.stats.estimation.losses import LossAsNLL as LossAsNLL
    from groundstate.math.stats.estimation.losses import loss_as_nll as loss_as_nll
    from groundstate.math.stats.estimation.mle import MLE as MLE
    from groundstate.math.stats.estimation.mle import fit_mle as fit_mle
    from groundstate.math.stats.estimation.moments import mean_abs_dev as mean_abs_dev
    from groundstate.math.stats.estimation.moments import moments as moments
    from groundstate.math.stats.estimation.tails import TailReport as TailReport
    from groundstate.math.stats.estimation.tails import hill as hill
    from groundstate.math.stats.estimation.tails import tail_report as tail_report

lazy(__name__)
