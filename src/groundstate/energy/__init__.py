"""PARAMETRISE: the energy contract, spaces, abilities, and energies by form."""

from groundstate.energy.base import Capability, Energy, batch_size, shapes_of
from groundstate.energy.compose import Given, Marginal, Minimal, Mixture, Scaled, Sum, mixture
from groundstate.energy.exact import exact_free_energy, exact_minimum, marginal_way, minimum_way
from groundstate.energy.local import ChainRuleEnergy
from groundstate.energy.offers import Offer, offers
from groundstate.energy.reference import (
    BilinearEnergy,
    CentroidEnergy,
    ChainEnergy,
    DecoderEnergy,
    LatentClassEnergy,
    LinearEnergy,
    LinearGaussianEnergy,
    NetClassEnergy,
    NetEnergy,
    SquaredEnergy,
    TableEnergy,
)
from groundstate.energy.spaces import Binary, Finite, Real, Sequence, Simplex, Space
from groundstate.energy.step import StepState
from groundstate.math.free import free_energy

__all__ = [
    "BilinearEnergy",
    "Binary",
    "Capability",
    "CentroidEnergy",
    "ChainEnergy",
    "ChainRuleEnergy",
    "DecoderEnergy",
    "Energy",
    "Finite",
    "Given",
    "LatentClassEnergy",
    "LinearEnergy",
    "LinearGaussianEnergy",
    "Marginal",
    "Minimal",
    "Mixture",
    "NetClassEnergy",
    "NetEnergy",
    "Offer",
    "Real",
    "Scaled",
    "Sequence",
    "Simplex",
    "Space",
    "SquaredEnergy",
    "StepState",
    "Sum",
    "TableEnergy",
    "batch_size",
    "exact_free_energy",
    "exact_minimum",
    "free_energy",
    "marginal_way",
    "minimum_way",
    "mixture",
    "offers",
    "shapes_of",
]
