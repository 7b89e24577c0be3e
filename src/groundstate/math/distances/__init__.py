"""Distances: between rows by name, between sets, in units of a cloud, along data."""

from groundstate.math.distances import curse
from groundstate.math.distances.adaptive_normal import LocallyAdaptiveNormal
from groundstate.math.distances.axioms import MetricReport, check_metric
from groundstate.math.distances.exponential import exp_map, log_map
from groundstate.math.distances.geodesics import Geodesic, geodesic
from groundstate.math.distances.hausdorff import Hausdorff, hausdorff
from groundstate.math.distances.local_metric import LocalMetric
from groundstate.math.distances.mahalanobis import chi2_pvalue, mahalanobis
from groundstate.math.distances.riemannian import (
    ConstantMetric,
    PullbackMetric,
    RiemannianMetric,
    pullback_metric,
)

__all__ = [
    "ConstantMetric",
    "Geodesic",
    "Hausdorff",
    "LocalMetric",
    "LocallyAdaptiveNormal",
    "MetricReport",
    "PullbackMetric",
    "RiemannianMetric",
    "check_metric",
    "chi2_pvalue",
    "curse",
    "exp_map",
    "geodesic",
    "hausdorff",
    "log_map",
    "mahalanobis",
    "pullback_metric",
]
