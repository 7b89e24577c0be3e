r"""Pseudo-likelihood: every coordinate given all others."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Terms
from groundstate.learn.rules.common import ContrastRule
from groundstate.registry import rules


@rules.register(
    formula=r"L = -\sum_i \log p(x_i \mid x_{-i})", make=lambda energy: PseudoLikelihood()
)
class PseudoLikelihood(ContrastRule):
    r""":math:`L = -\sum_i\log p(x_i \mid x_{-i})`. Lowers e on the data, raises e of every row that
    differs from a data row in one coordinate.

    Needs no normaliser: each term is a sum over the values of one coordinate. Convex where e is
    linear in θ, and consistent: with many rows it finds the θ of maximum likelihood. Needs an energy
    that declares ``sites``.

    Parameters
    ----------
    over : the variable; None takes x

    Examples
    --------
    >>> from groundstate.energy.graphical.factor_graph import FactorGraphEnergy
    >>> pair = FactorGraphEnergy([2, 2], [(0, 1)], "ising")
    >>> PseudoLikelihood()(pair, {"x": torch.ones(1, 2)}).loss  # nothing is known: 2 log 2
    tensor([1.3863], grad_fn=<SumBackward1>)
    """

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        reason = self._names_reason(energy, batch)
        if reason is not None:
            return reason
        over = self.contrasted(energy)
        if len(over) != 1 or energy.ability("sites", *over) is None:
            return (
                f"{type(energy).__name__} declares no sites for {', '.join(map(repr, over))}: "
                "energies of the values of each coordinate given the others"
            )
        return self._latent_reason(energy, batch)

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        (name,) = plan.over
        sites = energy.ability("sites", name)
        assert sites is not None
        e = sites(**batch)  # (B, D, K)
        here = e.gather(2, batch[name].long()[:, :, None])[:, :, 0]
        normaliser = torch.logsumexp(-e, 2)
        loss: Tensor = (here + normaliser).sum(1)
        return Terms(loss, lambda: (here.sum(1), -normaliser.sum(1)), exact=True)
