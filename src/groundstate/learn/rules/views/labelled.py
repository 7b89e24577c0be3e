r"""Rows of one label should be near each other, and far from others."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.energy.base import Energy
from groundstate.errors import DataError
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.losses.contrastive import supcon
from groundstate.learn.losses.triplet import Mine, mine_triplets, triplet
from groundstate.learn.rules.views.distinct import distinct
from groundstate.registry import rules

LOSSES = ("triplet", "contrastive", "supcon")


@rules.register(
    formula=r"L = \operatorname{mean}\,[d(x, x_p) - d(x, x_n) + m]_+",
    make=lambda energy: LabelledContrast(),
)
class LabelledContrast(Rule):
    r""":math:`L_i = \operatorname{mean}\,[\,d(x_i, x_p) - d(x_i, x_n) + m\,]_+`. Lowers e between rows of one
    label, raises it between rows of two, as triplets, pairs or a softmax.

    Parameters
    ----------
    loss : "triplet"; "contrastive", :math:`d^2` of equal labels and :math:`(m - d)_+^2` of others;
        "supcon", the softmax over all rows of a batch
    miner : triplets of a batch: "all", "hard" or "semihard"
    margin : m
    temperature : of "supcon"

    Examples
    --------
    >>> from torch import nn
    >>> from groundstate.energy.networks.embedding import EmbeddingEnergy
    >>> energy = EmbeddingEnergy(1, 1, nn.Identity())
    >>> x = torch.tensor([[0.0], [1.0], [1.5], [9.0]])
    >>> rule = LabelledContrast(miner="hard")
    >>> rule(energy, {"x": x, "y": torch.tensor([0, 0, 1, 1])}).loss
    tensor([0.5000, 1.5000, 8.0000, 0.5000])
    """

    def __init__(
        self,
        loss: str = "triplet",
        miner: Mine = "semihard",
        margin: float = 1.0,
        temperature: float = 0.1,
    ) -> None:
        super().__init__()
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
        self.loss, self.miner = loss, miner
        self.margin, self.temperature = float(margin), float(temperature)
        self.smooth = loss == "supcon"

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        embed: Any = energy.embed
        x, y, place = distinct(batch["x"], batch["y"])
        loss = getattr(self, f"_{self.loss}")(embed(x), y)[place]
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), exact=True)

    def _triplet(self, z: Tensor, y: Tensor) -> Tensor:
        rows = mine_triplets(z, y, self.miner, margin=self.margin)
        if not len(rows):
            return 0.0 * z.sum(1)
        a, p, n = (z[rows[:, i]] for i in range(3))
        each = triplet(a, p, n, reduction="none", margin=self.margin)
        zero = torch.zeros_like(z[:, 0])
        count = zero.index_add(0, rows[:, 0], torch.ones_like(each))
        return zero.index_add(0, rows[:, 0], each) / count.clamp(min=1)

    def _contrastive(self, z: Tensor, y: Tensor) -> Tensor:
        d2 = (z[:, None] - z).square().sum(-1)
        same = y[:, None] == y
        itself = torch.eye(len(y), dtype=torch.bool, device=y.device)
        d = torch.where(d2 > 0, d2, 1.0).sqrt() * (d2 > 0)  # the root has no slope at 0
        each = torch.where(same, d2, functional.relu(self.margin - d).square())
        near = (each * (same & ~itself)).sum(1) / (same & ~itself).sum(1).clamp(min=1)
        far = (each * ~same).sum(1) / (~same).sum(1).clamp(min=1)
        return near + far

    def _supcon(self, z: Tensor, y: Tensor) -> Tensor:
        try:
            return supcon(z, y, reduction="none", temperature=self.temperature)
        except DataError:  # of a small batch, all labels differ
            return 0.0 * z.sum(1)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not hasattr(energy, "embed"):
            return "it has no embedding of rows; use an EmbeddingEnergy"
        absent = [name for name in ("x", "y") if name not in batch]
        return f"the batch holds no {absent[0]!r}, which the rule learns from" if absent else None

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        return ()
