r"""The common form of the rules: any negative source with any reduction."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.energy.base import Energy
from groundstate.infer.base import Method
from groundstate.learn.base import Batch, Latent, Terms
from groundstate.learn.losses.energies import check_margin
from groundstate.learn.rules.common import ContrastRule, Plan
from groundstate.learn.rules.inner import replace
from groundstate.learn.rules.negatives.sources import Reduce, Source, reduce


class Contrast(ContrastRule):
    r""":math:`L = e(\text{data}) - R`. Lowers e on the data, raises e on the negatives of a source.

    :math:`R` reduces the energies of the negatives to one number per row: their minimum, their
    mean, or their soft minimum at a temperature. The named rules are presets; this class spells
    out other pairs.

    Parameters
    ----------
    source : Source
        Where negatives come from; see ``groundstate.learn.rules.negatives.table``.
    reduction : "min", "mean" or a temperature
    m : float, optional
        A margin: :math:`L = \max(0, m + e - R)`.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Finite, Real
    >>> from groundstate.learn.rules.negatives.table import Wrong
    >>> class Line(Energy):
    ...     def forward(self, x, y):
    ...         return x[:, 0] * y
    >>> energy = Line(x=Real(1), y=Finite(3))
    >>> batch = {"x": torch.ones(2, 1), "y": torch.tensor([0, 1])}
    >>> Contrast(Wrong(), "min", m=1.5)(energy, batch).loss  # Margin(1.5)
    tensor([0.5000, 2.5000])
    """

    def __init__(
        self,
        source: Source,
        reduction: Reduce = "mean",
        *,
        m: float | None = None,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(over=over, latent=latent, approximate=approximate)
        self.source, self.reduction = source, reduction
        self.m = None if m is None else check_margin(m)
        self.is_objective = source.is_objective
        self.smooth = m is None and reduction not in ("min", 0)

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        positive = plan.positive(batch, generator)
        contrast = reduce(self.source.draw(plan, energy, batch, generator), self.reduction)
        loss = positive - contrast
        if self.m is not None:
            loss = functional.relu(self.m + loss)
        return Terms(
            loss,
            lambda: (positive, self._contrast_part(positive, contrast, loss)),
            exact=plan.exact,
            is_objective=self.is_objective,
        )

    def _contrast_part(self, positive: Tensor, contrast: Tensor, loss: Tensor) -> Tensor:
        return contrast if self.m is None else positive - loss

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        reason = super().reason_against(energy, batch)
        if reason is not None:
            return reason
        return self.source.reason_against(self._view(energy, batch), self.contrasted(energy))

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        return replace(plan, route="source", exact=plan.exact and self.source.exact)
