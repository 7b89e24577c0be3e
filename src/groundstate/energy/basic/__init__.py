"""Reference energies: small, complete, used by tests and docs; models build on them."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.energy.basic.bilinear import BilinearEnergy as BilinearEnergy
    from groundstate.energy.basic.centroid import CentroidEnergy as CentroidEnergy
    from groundstate.energy.basic.decoder import DecoderEnergy as DecoderEnergy
    from groundstate.energy.basic.latent_class import LatentClassEnergy as LatentClassEnergy
    from groundstate.energy.basic.linear import LinearEnergy as LinearEnergy
    from groundstate.energy.basic.linear_gaussian import (
        LinearGaussianEnergy as LinearGaussianEnergy,
    )
    from groundstate.energy.basic.net import NetEnergy as NetEnergy
    from groundstate.energy.basic.net_class import NetClassEnergy as NetClassEnergy
    from groundstate.energy.basic.squared import SquaredEnergy as SquaredEnergy
    from groundstate.energy.basic.table import TableEnergy as TableEnergy

lazy(__name__)
