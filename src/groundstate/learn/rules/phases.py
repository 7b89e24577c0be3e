r"""The two phases of learning: what the data push down and what the model pushes up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, weighted_mean
from groundstate.learn.rules.softmin import NLL


@dataclass(frozen=True)
class Phases:
    """Gradients by parameter name; ``gradient`` is their difference, that of the mean loss."""

    positive: dict[str, Tensor]
    negative: dict[str, Tensor]

    @property
    def gradient(self) -> dict[str, Tensor]:
        return {name: p - self.negative[name] for name, p in self.positive.items()}


def phases(
    energy: Energy,
    batch: Batch,
    rule: Rule | None = None,
    *,
    weight: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Phases:
    r""":math:`\nabla L = \nabla F(\text{data}) - E_{\text{model}}[\nabla F]`, the two terms apart.

    :math:`F` is the free energy over the latents. Descent lowers the first and raises the second;
    they cancel when the model is the data.

    Parameters
    ----------
    energy : Energy
    batch : the data rows
    rule : Rule, default ``NLL()``
        Whose positive and contrast terms to differentiate.
    weight : ``(B,)``, optional
    generator : randomness of sampled contrasts

    Returns
    -------
    Phases : ``positive`` and ``negative`` by parameter name

    Examples
    --------
    >>> from groundstate.energy import TableEnergy
    >>> found = phases(TableEnergy(torch.zeros(2)), {"x": torch.tensor([0, 0, 1, 1])})
    >>> [g.tolist() for g in found.gradient.values()]  # data and model agree
    [[0.0, 0.0]]
    """
    rule = NLL() if rule is None else rule
    named = {n: p for n, p in energy.named_parameters() if p.requires_grad}
    with torch.enable_grad():
        terms = rule(energy, batch, generator=generator)
        positive = weighted_mean(terms.positive, weight)
        negative = weighted_mean(terms.contrast, weight)
    return Phases(_gradients(positive, named, keep=True), _gradients(negative, named))


def _gradients(value: Tensor, named: Mapping[str, Tensor], keep: bool = False) -> dict[str, Tensor]:
    if not value.requires_grad:
        return {name: torch.zeros_like(p) for name, p in named.items()}
    grads = torch.autograd.grad(value, list(named.values()), retain_graph=keep, allow_unused=True)
    return {
        name: torch.zeros_like(p) if g is None else g
        for (name, p), g in zip(named.items(), grads, strict=True)
    }
