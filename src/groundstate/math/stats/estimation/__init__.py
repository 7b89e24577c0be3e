"""Estimation: moments, tails, maximum likelihood, covariance, bias and variance of estimators."""

from groundstate.math.stats.estimation.bias import EstimatorReport, estimator_report
from groundstate.math.stats.estimation.covariance import StreamingCov, corr_interval
from groundstate.math.stats.estimation.losses import LossAsNLL, loss_as_nll
from groundstate.math.stats.estimation.mle import MLE, fit_mle
from groundstate.math.stats.estimation.moments import mean_abs_dev, moments
from groundstate.math.stats.estimation.tails import TailReport, hill, tail_report

__all__ = [
    "MLE",
    "EstimatorReport",
    "LossAsNLL",
    "StreamingCov",
    "TailReport",
    "corr_interval",
    "estimator_report",
    "fit_mle",
    "hill",
    "loss_as_nll",
    "mean_abs_dev",
    "moments",
    "tail_report",
]
