r"""Two views of every row should be alike, and unlike those of other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.losses.contrastive import nt_xent
from groundstate.learn.rules.views.distinct import distinct
from groundstate.nn.augment import Augment, Noise
from groundstate.registry import rules


@rules.register(
    formula=r"L = -\mathrm{sim}_{ip}/\tau + \log\sum_{j \ne i}e^{\mathrm{sim}_{ij}/\tau}",
    make=lambda energy: TwoViews(Augment([Noise(0.1)])),
)
class TwoViews(Rule):
    r""":math:`L_i = -\mathrm{sim}_{ip}/\tau + \log\sum_{j \ne i}e^{\mathrm{sim}_{ij}/\tau}`. Lowers e between
    the two views of a row, raises it between views of different rows.

    Views are drawn by ``augment`` in every step; the similarity is the cosine of ``energy.project``. Under
    several processes a view is held against those of all of them.

    Parameters
    ----------
    augment : module with ``forward(x, generator)``
    shape : of one row, where flat rows are pictures
    temperature : τ

    Examples
    --------
    >>> from groundstate.energy.networks.embedding import EmbeddingEnergy
    >>> energy = EmbeddingEnergy(2, 2, nn.Identity())
    >>> rule = TwoViews(Augment([Noise(0.0)]), temperature=1.0)
    >>> rule(energy, {"x": torch.eye(2)}).loss
    tensor([0.5514, 0.5514])
    """

    def __init__(
        self,
        augment: nn.Module,
        shape: Sequence[int] | None = None,
        temperature: float = 0.5,
    ) -> None:
        super().__init__()
        self.augment, self.temperature = augment, float(temperature)
        self.shape = None if shape is None else tuple(shape)

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        x, _, place = distinct(batch["x"])
        if len(x) < 2:  # nothing to be held against
            loss = 0.0 * batch["x"].flatten(1).sum(1)
            return Terms(loss, lambda: (loss, loss), exact=False)
        views = [self._view(x, generator) for _ in range(2)]
        project: Any = energy.project
        z1, z2 = project(torch.cat(views)).chunk(2)
        each = nt_xent(z1, z2, reduction="none", temperature=self.temperature, gather=self.training)
        loss = each[place]

        def parts() -> tuple[Tensor, Tensor]:
            near = nn.functional.cosine_similarity(z1, z2, dim=1)[place]
            positive = -near / self.temperature
            return positive, positive - loss

        return Terms(loss, parts, exact=False)

    def _view(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        if self.shape is None:
            found: Tensor = self.augment(x, generator)
            return found
        changed: Tensor = self.augment(x.reshape(len(x), *self.shape), generator)
        return changed.reshape(len(x), -1)

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not hasattr(energy, "project"):
            return "it has no embedding of rows; use an EmbeddingEnergy"
        absent = [name for name in ("x",) if name not in batch]
        return f"the batch holds no {absent[0]!r}, which the rule learns from" if absent else None

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        return ()
