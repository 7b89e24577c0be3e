r"""The loss of autoencoders, :math:`L = -\log p(x \mid g(f(\tilde x))) + \Omega(f(\tilde x))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.latent.deep.autoencoder import AutoencoderEnergy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.rules.codes.penalties import CodePenalty
from groundstate.nn.blocks.corrupt import Corruption
from groundstate.registry import rules


@rules.register(
    formula=r"L = -\log p(x \mid g(f(\tilde x))) + \Omega(f(\tilde x))",
    make=lambda energy: Reconstruction(),
)
class Reconstruction(Rule):
    r""":math:`L = -\log p(x \mid g(f(\tilde x))) + \Omega(f(\tilde x))`. Lowers the energy of rows at the
    code of their encoder and raises nothing: a narrow code, noise or a penalty must keep the networks
    from learning the identity.

    For an ``AutoencoderEnergy``. The distribution of codes plays no part.

    Parameters
    ----------
    corruption : ``Corruption``, optional
        What the encoder sees in the place of its inputs; the target stays clean.
    penalty : ``CodePenalty``, optional

    Examples
    --------
    >>> from torch import nn
    >>> from groundstate.energy.latent.deep.priors import NormalPrior
    >>> from groundstate.nn.heads.likelihoods import SquaredError
    >>> energy = AutoencoderEnergy(nn.Linear(3, 2), nn.Linear(2, 3), SquaredError(3), NormalPrior(2))
    >>> Reconstruction()(energy, {"x": torch.zeros(5, 3)}).loss.shape
    torch.Size([5])
    """

    def __init__(
        self, corruption: Corruption | None = None, penalty: CodePenalty | None = None
    ) -> None:
        super().__init__()
        self.corruption, self.penalty = corruption, penalty
        self.needs_gradient = penalty is not None and penalty.differentiates

    def config(self) -> dict[str, Any]:
        return {"corruption": self.corruption, "penalty": self.penalty}

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        noisy = self.corruption is not None and self.corruption.level > 0
        return not noisy and (self.penalty is None or self.penalty.exact)

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        return ("x",)

    def contrast_is_constant(self, energy: Energy) -> bool:
        return True

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not isinstance(energy, AutoencoderEnergy):
            return "it has no encoder; use an AutoencoderEnergy, or NLL for the energy as it is"
        missing = [name for name in ("x", "y") if name in energy.spaces and name not in batch]
        return f"the batch holds no {missing[0]!r}, which the encoder reads" if missing else None

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        return self._terms(energy, batch, None, generator)

    def mean(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None = None,
        total: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Callable[[], Terms]]:
        terms = self._terms(energy, batch, weight, generator)
        if weight is None:
            return terms.loss.mean(), lambda: terms
        return torch.dot(terms.loss.to(weight.dtype), weight) / total, lambda: terms

    def _terms(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None,
        generator: torch.Generator | None,
    ) -> Terms:
        if not isinstance(energy, AutoencoderEnergy):
            self.require(energy, batch)
        assert isinstance(energy, AutoencoderEnergy)
        x, y = batch["x"], batch.get("y")
        inputs = energy.inputs(x, y)
        if self.corruption is not None:
            rows = energy.likelihood.n_inputs
            worse = self.corruption(inputs[:, :rows], generator)
            inputs = torch.cat([worse, inputs[:, rows:]], 1) if energy.condition else worse
        loss, code = self._codes(energy, inputs, weight, generator)
        loss = energy.reconstruction(x, code, y) + loss
        exact = self.is_exact(energy, batch)
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), exact=exact)

    def _codes(
        self,
        energy: AutoencoderEnergy,
        inputs: Tensor,
        weight: Tensor | None,
        generator: torch.Generator | None,
    ) -> tuple[Tensor | float, Tensor]:
        """What the codes cost, and the codes."""
        if self.penalty is None:
            return 0.0, energy.encoder(inputs)
        if not self.penalty.differentiates:
            z: Tensor = energy.encoder(inputs)
            return self.penalty(z, inputs, energy.encoder, weight, generator), z
        with torch.enable_grad():  # held-out rows are scored without gradients in θ
            inputs = inputs.detach().requires_grad_(True)
            z = energy.encoder(inputs)
            return self.penalty(z, inputs, energy.encoder, weight, generator), z
