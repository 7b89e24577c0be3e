"""Distances: between rows by name, between sets, in units of a cloud, along data."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.distances import curse as curse
    from groundstate.math.distances.adaptive_normal import (
        LocallyAdaptiveNormal as LocallyAdaptiveNormal,
    )
    from groundstate.math.distances.axioms import MetricReport as MetricReport
    from groundstate.math.distances.axioms import check_metric as check_metric
    from groundstate.math.distances.exponential import exp_map as exp_map
    from groundstate.math.distances.exponential import log_map as log_map
    from groundstate.math.distances.geodesics import Geodesic as Geodesic
    from groundstate.math.distances.geodesics import geodesic as geodesic
    from groundstate.math.distances.hausdorff import Hausdorff as Hausdorff
    from groundstate.math.distances.hausdorff import hausdorff as hausdorff
    from groundstate.math.distances.local_metric import LocalMetric as LocalMetric
    from groundstate.math.distances.mahalanobis import chi2_pvalue as chi2_pvalue
    from groundstate.math.distances.mahalanobis import mahalanobis as mahalanobis
    from groundstate.math.distances.riemannian import ConstantMetric as ConstantMetric
    from groundstate.math.distances.riemannian import PullbackMetric as PullbackMetric
    from groundstate.math.distances.riemannian import RiemannianMetric as RiemannianMetric
    from groundstate.math.distances.riemannian import pullback_metric as pullback_metric

lazy(__name__)
