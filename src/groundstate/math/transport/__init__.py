"""Optimal transport: exact plans, Sinkhorn, barycentres and displacement interpolation."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.transport.barycenter import Measure as Measure
    from groundstate.math.transport.barycenter import barycenter as barycenter
    from groundstate.math.transport.barycenter import geodesic as geodesic
    from groundstate.math.transport.exact import Transport as Transport
    from groundstate.math.transport.exact import emd as emd
    from groundstate.math.transport.sinkhorn import Sinkhorn as Sinkhorn
    from groundstate.math.transport.sinkhorn import sinkhorn as sinkhorn

lazy(__name__)
