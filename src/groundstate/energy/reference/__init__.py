"""Reference energies: small, complete, used by tests and docs; models build on them."""

from groundstate.energy.reference.bilinear import BilinearEnergy
from groundstate.energy.reference.centroid import CentroidEnergy
from groundstate.energy.reference.chain import ChainEnergy
from groundstate.energy.reference.decoder import DecoderEnergy
from groundstate.energy.reference.latent_class import LatentClassEnergy
from groundstate.energy.reference.linear import LinearEnergy
from groundstate.energy.reference.linear_gaussian import LinearGaussianEnergy
from groundstate.energy.reference.net import NetEnergy
from groundstate.energy.reference.net_class import NetClassEnergy
from groundstate.energy.reference.squared import SquaredEnergy
from groundstate.energy.reference.table import TableEnergy

__all__ = [
    "BilinearEnergy",
    "CentroidEnergy",
    "ChainEnergy",
    "DecoderEnergy",
    "LatentClassEnergy",
    "LinearEnergy",
    "LinearGaussianEnergy",
    "NetClassEnergy",
    "NetEnergy",
    "SquaredEnergy",
    "TableEnergy",
]
