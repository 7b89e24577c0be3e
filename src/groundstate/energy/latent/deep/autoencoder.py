r"""A code that an encoder says, :math:`e(x, z) = -\log p(x \mid g(z)) - \log p(z)`, :math:`z = f(x)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.energy.latent.deep.priors import FullMixturePrior, NormalPrior, Prior
from groundstate.energy.registering import registered
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.heads.likelihoods import GaussianLikelihood, Likelihood


def _example() -> AutoencoderEnergy:
    nets = MLP(2, (4,), 1, "tanh"), MLP(1, (4,), 2, "tanh")
    return AutoencoderEnergy(*nets, GaussianLikelihood(2, 0.5), NormalPrior(1))


@registered(r"e(x, z) = -\log p_\theta(x \mid g(z)) - \log p(z), \quad z = f_\theta(x)", _example)
class AutoencoderEnergy(DeepLatentEnergy):
    r"""``DeepLatentEnergy`` with an encoder :math:`z = f_\theta(x)` that is as much a parameter as the
    decoder. The distribution of codes is fitted afterwards (``settle``), so it is no bound on
    :math:`\log p(x)` that learning raises.

    Parameters
    ----------
    encoder : network from ``likelihood.inputs(x)``, joined with y, to ``(B, k)``
    decoder, likelihood, prior, condition : see ``DeepLatentEnergy``

    Examples
    --------
    >>> e = AutoencoderEnergy(nn.Linear(3, 2), nn.Linear(2, 3), GaussianLikelihood(3), NormalPrior(2))
    >>> e.encode(torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        likelihood: Likelihood,
        prior: Prior,
        condition: int = 0,
    ) -> None:
        super().__init__(decoder, likelihood, prior, condition)
        self.encoder = encoder

    def config(self) -> dict[str, Any]:
        return {"encoder": self.encoder, **super().config()}

    def inputs(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """What the encoder reads, ``(B, n_inputs + q)``."""
        rows = self.likelihood.inputs(x)
        if not self.condition:
            return rows
        return torch.cat([rows, rows.new_zeros(len(rows), self.condition) if y is None else y], 1)

    def encode(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Codes ``(B, k)``."""
        z: Tensor = self.encoder(self.inputs(x, y))
        return z

    @torch.no_grad()
    def settle(self, z: Tensor, weight: Tensor | None = None) -> None:
        """Let the distribution of codes be the normal one with the moments of ``z``, ``(n, k)``."""
        kept, w = z.double(), None if weight is None else weight.double()[:, None]
        mean = kept.mean(0) if w is None else (w * kept).sum(0) / w.sum()
        away = kept - mean
        cov = away.T @ (away if w is None else w * away) / (len(z) if w is None else w.sum())
        tiny = 1e-6 * (cov.diagonal().mean() + 1e-6)
        root = torch.linalg.cholesky(cov + tiny * torch.eye(len(cov)).to(cov))
        parts = (root.new_ones(1), mean[None], root[None])
        self.prior = FullMixturePrior(*(part.to(z.dtype) for part in parts)).train(self.training)
