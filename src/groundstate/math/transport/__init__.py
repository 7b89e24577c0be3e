"""Optimal transport: exact plans, Sinkhorn, barycentres and displacement interpolation."""

from groundstate.math.transport.barycenter import Measure, barycenter, geodesic
from groundstate.math.transport.exact import Transport, emd
from groundstate.math.transport.sinkhorn import Sinkhorn, sinkhorn

__all__ = ["Measure", "Sinkhorn", "Transport", "barycenter", "emd", "geodesic", "sinkhorn"]
