"""What mixtures of Gaussians know of their components, as views of θ."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.models.learned import Learned
from groundstate.models.mixtures.answers import MixtureAnswers


class GaussianAnswers(MixtureAnswers):
    """Weights, means and covariances of a ``GaussianMixtureEnergy``."""

    covariance_type: str

    weights_ = Learned(
        lambda model: model.energy_.log_weights.exp(),
        lambda model, pi: model.energy_.logits.copy_(pi.log()),
    )
    means_ = Learned(lambda model: model.energy_.mu)
    precisions_cholesky_ = Learned(
        lambda model: model._factors(), lambda model, U: model.energy_.U.copy_(U)
    )
    covariances_ = Learned(
        lambda model: model.energy_.covariances().to(model.energy_.mu.dtype),
        instead="set precisions_cholesky_",
    )
    precisions_ = Learned(lambda model: model._precisions(), instead="set precisions_cholesky_")

    def _factors(self) -> Any:
        U: Any = self.energy_.U
        return U.triu() if U.ndim > 1 and self._whole else U.abs()

    def _precisions(self) -> Any:
        factors = self._factors()
        return factors @ factors.mT if self._whole else factors.square()

    @property
    def _whole(self) -> bool:
        return self.covariance_type in ("full", "tied")

    def _component_entropies(self) -> Tensor:
        energy = self.energy_
        assert isinstance(energy, GaussianMixtureEnergy)
        d = energy.mu.shape[1]
        return 0.5 * d * (1 + math.log(2 * math.pi)) - energy.log_det().detach()
