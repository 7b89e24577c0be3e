r"""Fenchel-Young losses: cross-entropy's relatives that can reach exactly zero."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.infer.base import Method
from groundstate.learn.base import Batch, Latent, Reduction, Terms, reduced
from groundstate.learn.rules.common import ContrastRule, Plan, listable, table_of, terms_of
from groundstate.learn.rules.inner import replace
from groundstate.math.distributions.simplex import fenchel_young
from groundstate.registry import rules


def fenchel_young_loss(
    e: Tensor, y: Tensor, alpha: float = 1.5, T: float = 1.0, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`L = e_y - \min_p\,[p^\top e - T H_\alpha(p)] \ge 0` on a table of energies.

    Parameters
    ----------
    e : Tensor, ``(B, K)``
        Energies, low is good.
    y : Tensor, ``(B,)`` int64
        Targets; −1 marks a missing one, whose loss is 0.
    alpha : float ≥ 1, default=1.5
        1 is cross-entropy, 2 the sparsemax loss.
    T : float > 0, default=1.0
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> e = torch.tensor([[1.0, 2.0, 3.0]]).repeat(2, 1)
    >>> fenchel_young_loss(e, torch.tensor([0, 1]), alpha=2.0, reduction="none")
    tensor([0., 1.])
    """
    return reduced(_rows(e, y, alpha, T), reduction)


def _rows(e: Tensor, y: Tensor, alpha: float, T: float) -> Tensor:
    return fenchel_young(e, y.clamp(min=0), alpha, T).masked_fill(y < 0, 0.0)


@rules.register(
    formula=r"L = e_y - \min_p\,[p^\top e - T H_\alpha(p)]", make=lambda energy: FenchelYoung()
)
class FenchelYoung(ContrastRule):
    r""":math:`L = e_y - \min_p\,[p^\top e - T H_\alpha(p)]`. Lowers e on the target, raises e on
    the values that entmax gives weight.

    The gradient is :math:`1_y - \operatorname{entmax}_\alpha(-e/T)`. With α = 1 it is ``SoftMin``;
    above 1 values far behind get exactly no weight, and the loss is exactly 0 once the target is
    far enough ahead.

    Parameters
    ----------
    alpha : float ≥ 1, default=1.5
    T : float > 0, default=1.0
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> batch = {"x": torch.zeros(1, 2), "y": torch.tensor([0])}
    >>> terms = FenchelYoung(alpha=2.0)(LinearEnergy(2, 2), batch)
    >>> [round(v, 4) for v in terms.loss.tolist()]
    [0.25]
    """

    def __init__(
        self,
        alpha: float = 1.5,
        T: float = 1.0,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(over=over, latent=latent, approximate=approximate)
        if not alpha >= 1:
            raise ValueError(f"alpha must be at least 1, got {alpha}")
        if not T > 0:
            raise ValueError(f"temperature must be positive here, got T={T}; T=0 is Perceptron")
        self.alpha, self.T = float(alpha), float(T)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}, T={self.T}"

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        e, y = plan.energies(batch)
        loss = _rows(e, y, self.alpha, self.T)
        return terms_of(e, y, loss, plan.exact)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        reason = super().reason_against(energy, batch)
        if reason is not None:
            return reason
        over = self.contrasted(energy)
        if self.variational is not None:
            return "a bound on the target alone leaves no distribution over the values; use SoftMin"
        if listable(self._view(energy, batch), over):
            return None
        return f"the values of {', '.join(over)} cannot be listed, which entmax needs; use SoftMin"

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        return replace(plan, route="table", table=table_of(plan.view, plan.over[0]))
