r"""A bound for rows whose label is known, and one for rows whose label is not (Kingma's M2).

.. math:: L(x, y) = -\log p(y) - \mathrm{ELBO}(x \mid y) - \alpha\log q(y \mid x), \qquad
    U(x) = \sum_y q(y \mid x)\bigl[-\log p(y) - \mathrm{ELBO}(x \mid y) + \log q(y \mid x)\bigr]
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.infer.variational.codes import CodeFamily
from groundstate.learn.base import Batch, Terms
from groundstate.learn.rules.bounds.negative_elbo import NegativeELBO


class SemiSupervisedELBO(NegativeELBO):
    r"""``NegativeELBO`` of rows with one-hot labels y, of which zeros are unknown and summed over.

    A second network says :math:`q(y \mid x)`; it learns from the rows with a label by cross-entropy
    and from all others by the bound, so that rows without a label sharpen it too.

    Parameters
    ----------
    encoder : from ``likelihood.inputs(x)`` joined with y to the numbers of q(z | x, y)
    classifier : from ``likelihood.inputs(x)`` to the logits of q(y | x)
    log_prior : log p(y), ``(K,)``
    family, n, beta, warm_up, free_bits, objective, grad
        See ``NegativeELBO``.
    alpha : float, default=1.0
        Weight of the cross-entropy of known labels.

    Examples
    --------
    >>> from groundstate.energy.latent.deep.priors import NormalPrior
    >>> from groundstate.nn.heads.likelihoods import GaussianLikelihood
    >>> energy = DeepLatentEnergy(nn.Linear(4, 3), GaussianLikelihood(3), NormalPrior(2), condition=2)
    >>> rule = SemiSupervisedELBO(nn.Linear(5, 4), nn.Linear(3, 2), torch.zeros(2))
    >>> y = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    >>> rule(energy, {"x": torch.zeros(2, 3), "y": y}).loss.shape
    torch.Size([2])
    """

    log_prior: Tensor

    def __init__(
        self,
        encoder: nn.Module | None,
        classifier: nn.Module,
        log_prior: Tensor,
        family: CodeFamily | None = None,
        *,
        alpha: float = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(encoder, family, **settings)
        if not alpha >= 0:
            raise ValueError(f"alpha weighs a cross-entropy and cannot be negative, got {alpha}")
        self.classifier, self.alpha = classifier, float(alpha)
        self.register_buffer("log_prior", torch.as_tensor(log_prior))

    def config(self) -> dict[str, Any]:
        return {
            **super().config(), "classifier": self.classifier, "log_prior": self.log_prior,
            "alpha": self.alpha,
        }  # fmt: skip

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        self.require(energy, batch)
        assert isinstance(energy, DeepLatentEnergy)
        x, y = batch["x"], batch["y"]
        known = y.sum(1) > 0
        log_q = self.classifier(energy.likelihood.inputs(x)).log_softmax(1)  # (B, K)
        loss = x.new_empty(len(x))
        if bool(known.any()):
            own, label = x[known], y[known]
            bound = self.loss(energy, own, label, generator)
            loss[known] = bound - (label * (self.log_prior + self.alpha * log_q[known])).sum(1)
        if not bool(known.all()):
            loss[~known] = self._summed(energy, x[~known], log_q[~known], generator)
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), exact=False)

    def _summed(
        self,
        energy: DeepLatentEnergy,
        x: Tensor,
        log_q: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        """U(x), ``(B,)``: all labels of all rows in one pass."""
        rows, k = log_q.shape
        labels = torch.eye(k, dtype=x.dtype, device=x.device).repeat(rows, 1)
        each = self.loss(energy, x.repeat_interleave(k, 0), labels, generator).view(rows, k)
        return (log_q.exp() * (each - self.log_prior + log_q)).sum(1)
