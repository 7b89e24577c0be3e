"""Normalising flows: invertible maps with known volume change, and densities made of them."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.nn.flows.autoregressive import Autoregressive as Autoregressive
    from groundstate.nn.flows.continuous import Continuous as Continuous
    from groundstate.nn.flows.continuous import Velocity as Velocity
    from groundstate.nn.flows.coupling import Coupling as Coupling
    from groundstate.nn.flows.flow import Flow as Flow
    from groundstate.nn.flows.flow import StandardNormal as StandardNormal
    from groundstate.nn.flows.images import ImageCoupling as ImageCoupling
    from groundstate.nn.flows.images import LinearLU as LinearLU
    from groundstate.nn.flows.images import Multiscale as Multiscale
    from groundstate.nn.flows.masked import MaskedMLP as MaskedMLP
    from groundstate.nn.flows.named import CNF as CNF
    from groundstate.nn.flows.named import FLOWS as FLOWS
    from groundstate.nn.flows.named import IAF as IAF
    from groundstate.nn.flows.named import MAF as MAF
    from groundstate.nn.flows.named import NICE as NICE
    from groundstate.nn.flows.named import NSF as NSF
    from groundstate.nn.flows.named import Glow as Glow
    from groundstate.nn.flows.named import PlanarFlow as PlanarFlow
    from groundstate.nn.flows.named import RadialFlow as RadialFlow
    from groundstate.nn.flows.named import RealNVP as RealNVP
    from groundstate.nn.flows.planar import Planar as Planar
    from groundstate.nn.flows.planar import Radial as Radial
    from groundstate.nn.flows.transform import ActNorm as ActNorm
    from groundstate.nn.flows.transform import Compose as Compose
    from groundstate.nn.flows.transform import Inverse as Inverse
    from groundstate.nn.flows.transform import Permutation as Permutation
    from groundstate.nn.flows.transform import Scale as Scale
    from groundstate.nn.flows.transform import Transform as Transform
    from groundstate.nn.flows.univariate import rational_quadratic as rational_quadratic

lazy(__name__)
