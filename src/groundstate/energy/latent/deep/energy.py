r"""The energy of a decoded code, :math:`e(x, z) = -\log p(x \mid z) - \log p(z)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.latent.deep.priors import NormalPrior, Prior
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.distributions.operations import fresh
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.heads.likelihoods import GaussianLikelihood, Likelihood


def _example() -> DeepLatentEnergy:
    return DeepLatentEnergy(MLP(1, (6,), 2, "tanh"), GaussianLikelihood(2, 0.5), NormalPrior(1))


@registered(r"e(x, z) = -\log p_\theta(x \mid z) - \log p(z)", _example)
class DeepLatentEnergy(Energy):
    r"""A code z, a network that decodes it and a likelihood around what it says,
    :math:`e(x, z) = -\log p_\theta(x \mid g(z)) - \log p(z)`.

    Normalised over x and z together: draws are ancestral, z from the prior and x around g(z). With a
    condition y, :math:`e(x, y, z) = -\log p(x \mid z, y) - \log p(z \mid y)`. The distribution
    of z given x has no closed form; encoders, importance sampling and Markov chains approximate it.

    Parameters
    ----------
    decoder : network from ``(B, k)``, or ``(B, k + q)`` with a condition, to the ``n_outputs``
        numbers of the likelihood
    likelihood : what these numbers say about a row, see ``groundstate.nn.heads.likelihoods``
    prior : distribution of the code, see ``groundstate.energy.latent.deep.priors``
    condition : length q of the context y; 0 is none

    Examples
    --------
    >>> e = DeepLatentEnergy(MLP(2, (8,), 3), GaussianLikelihood(3), NormalPrior(2))
    >>> e(x=torch.zeros(4, 3), z=torch.zeros(4, 2)).shape
    torch.Size([4])
    >>> e.ancestral(5)["x"].shape
    torch.Size([5, 3])
    """

    def __init__(
        self, decoder: nn.Module, likelihood: Likelihood, prior: Prior, condition: int = 0
    ) -> None:
        spaces = {"x": Real(likelihood.d), "z": Real(prior.k)}
        if condition:
            spaces["y"] = Real(condition)
        super().__init__(**spaces)
        if prior.conditional and not condition:
            raise ValueError("a prior p(z | y) needs a condition: pass its length as condition=")
        self.decoder, self.likelihood, self.prior = decoder, likelihood, prior
        self.condition = condition
        self.normalised = frozenset({"x", "z"} if likelihood.is_normalised else ())

    def config(self) -> dict[str, Any]:
        return {
            "decoder": self.decoder, "likelihood": self.likelihood, "prior": self.prior,
            "condition": self.condition,
        }  # fmt: skip

    def decode(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        """The decoder's numbers ``(B, n_outputs)`` of codes ``(B, k)``."""
        if self.condition:
            if y is None:
                raise ShapeError(f"this model has a condition of {self.condition} numbers: pass y")
            z = torch.cat([z, y], 1)
        out: Tensor = self.decoder(z)
        return out

    def reconstruction(self, x: Tensor, z: Tensor, y: Tensor | None = None) -> Tensor:
        r""":math:`-\log p(x \mid z, y)`, ``(B,)``."""
        loss: Tensor = self.likelihood(self.decode(z, y), x)
        return loss

    def forward(self, x: Tensor, z: Tensor, y: Tensor | None = None) -> Tensor:
        return self.reconstruction(x, z, y) - self.prior.log_prob(z, y)

    @offers.conditional("x", when=lambda energy: energy.likelihood.is_normalised)
    def around(self, z: Tensor, y: Tensor | None = None, T: float = 1.0) -> Distribution:
        if T != 1:
            raise Unsupported(f"the distribution of x given z is known at T=1, got T={T}")
        return self.likelihood.distribution(self.decode(z, y))

    def ancestral(
        self,
        n: int,
        *,
        y: Tensor | None = None,
        T: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> dict[str, Tensor]:
        """Exact joint draws: z from the prior, x from the likelihood. ``T`` widens the prior by √T."""
        generator = fresh(generator)
        with torch.no_grad():
            z = self.prior.draw(n, y, T=T, generator=generator)
            drawn = {"x": self.likelihood.sample(self.decode(z, y), generator), "z": z}
        return drawn if y is None else {**drawn, "y": y}
