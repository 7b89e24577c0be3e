r"""Experts that must all agree, and experts that take turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.distributions import Distribution

from groundstate.energy.base import Energy
from groundstate.energy.basic.density import DensityEnergy
from groundstate.energy.compose.mixtures import Mixture
from groundstate.energy.compose.sums import Sum
from groundstate.errors import Unsupported


def as_energy(expert: Any) -> Energy:
    """An energy of an expert: itself, that of a distribution, or that of a fitted estimator."""
    if isinstance(expert, Energy):
        return expert
    if isinstance(expert, Distribution):
        return DensityEnergy(expert)
    found = getattr(expert, "energy_", None)
    if isinstance(found, Energy):
        return found
    raise TypeError(
        "an expert is an energy, a torch distribution or a fitted estimator, got "
        f"{type(expert).__name__}"
    )


class ProductOfExperts(Sum):
    r"""All experts must agree: :math:`\log\tilde p(x) = \sum_j\log\varphi_j(x)`, so that energies add.

    One expert that finds x impossible vetoes it. The product is sharper than its experts and has in
    general no normaliser in closed form; of Gaussian experts it is a Gaussian, whose precision is
    the sum of theirs.

    Parameters
    ----------
    experts : energies, torch distributions or fitted estimators

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> p = ProductOfExperts([Normal(0 * one, one), Normal(one, one)]).distribution()
    >>> p.mean.tolist(), round(float(p.variance), 6), round(float(p.entropy()), 6)
    ([[0.5]], 0.5, 1.072365)
    """

    def __init__(self, experts: Sequence[Any]) -> None:
        if not len(experts):
            raise ValueError("a product needs at least one expert")
        super().__init__(*(as_energy(e) for e in experts))

    def config(self) -> dict[str, Any]:
        return {"experts": list(self.parts)}

    def log_prob(self, x: Tensor) -> Tensor:
        """Up to a constant, ``(B,)``; ``distribution`` has the constant where it is known."""
        return -self(x=x)

    def distribution(self) -> Distribution:
        """The normalised product where it has a closed form, as for Gaussian experts."""
        known = self.ability("conditional", "x")
        if known is None:
            raise Unsupported(
                "this product has no closed form; use infer.sample for draws and infer.log_partition "
                "with method=Annealed() or Quadrature() for its normaliser"
            )
        found: Distribution = known()
        return found


class MixtureOfExperts(Mixture):
    r"""Experts take turns: :math:`p(x) = \sum_k\pi_k\,p_k(x)`, each normalised first.

    No expert can veto. The entropy is at least the mean of the experts',
    :math:`H(p) \ge \sum_k\pi_k H(p_k)`.

    Parameters
    ----------
    experts : energies, torch distributions or fitted estimators, whose log Z is exact
    weights : :math:`\pi`, positive; equal unless given

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> p = MixtureOfExperts([Normal(0 * one, one), Normal(4 * one, one)], [0.25, 0.75])
    >>> round(float(p.log_prob(torch.zeros(1, 1, dtype=torch.float64)).exp().detach()), 4)
    0.0998
    """

    def __init__(
        self, experts: Sequence[Any], weights: Sequence[float] | Tensor | None = None
    ) -> None:
        super().__init__([as_energy(e) for e in experts], weights)

    def config(self) -> dict[str, Any]:
        return {"experts": list(self.parts), "weights": self.log_weights.detach().exp().tolist()}

    def log_prob(self, x: Tensor) -> Tensor:
        """Normalised, ``(B,)``."""
        return -self(x=x)
