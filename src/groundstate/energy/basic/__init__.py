"""Reference energies: small, complete, used by tests and docs; models build on them."""

from groundstate.energy.basic.bilinear import BilinearEnergy
from groundstate.energy.basic.centroid import CentroidEnergy
from groundstate.energy.basic.decoder import DecoderEnergy
from groundstate.energy.basic.latent_class import LatentClassEnergy
from groundstate.energy.basic.linear import LinearEnergy
from groundstate.energy.basic.linear_gaussian import LinearGaussianEnergy
from groundstate.energy.basic.net import NetEnergy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.energy.basic.squared import SquaredEnergy
from groundstate.energy.basic.table import TableEnergy

__all__ = [
    "BilinearEnergy",
    "CentroidEnergy",
    "DecoderEnergy",
    "LatentClassEnergy",
    "LinearEnergy",
    "LinearGaussianEnergy",
    "NetClassEnergy",
    "NetEnergy",
    "SquaredEnergy",
    "TableEnergy",
]
