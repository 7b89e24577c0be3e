r"""The loss of a label at every position of a picture: cross-entropy, Dice, or both."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.losses.overlap import dice_rows
from groundstate.registry import rules

MASK_LOSSES = ("ce", "dice", "ce+dice")


@rules.register(
    formula=r"L = \frac1n\sum_p c_{y_p}(-\log p(y_p\mid x)) + \mathrm{Dice}(p, y)",
    make=lambda energy: MaskLoss(),
)
class MaskLoss(Rule):
    r""":math:`L = \frac1n\sum_p c_{y_p}\bigl(-\log p(y_p\mid x)\bigr) + \mathrm{Dice}(p, y)`. Lowers e
    of the label of every position and raises e of the other labels there.

    The mean runs over the n positions of a row that count; the Dice loss
    :math:`1 - 2\langle p, y\rangle/(\|p\|^2 + \|y\|^2)` is the mean over classes and does not let a
    large background outvote small things. Positions with the label ``ignore`` of the energy count in
    neither; a row without any other position has the loss 0.

    Parameters
    ----------
    name : "ce", "dice" or "ce+dice"
    class_weight : ``(K,)`` factors c of the cross-entropy of the classes, or None

    Examples
    --------
    >>> from groundstate.energy.spaces import label_grid
    >>> net = torch.nn.Conv2d(1, 2, 1)
    >>> _ = torch.nn.init.zeros_(net.weight), torch.nn.init.zeros_(net.bias)
    >>> energy = ClassEnergy(net, (1, 2, 2), label_grid(2, 2, 2), normalise=True, ignore=255)
    >>> batch = {"x": torch.zeros(1, 1, 2, 2), "y": torch.tensor([[[0, 1], [255, 255]]])}
    >>> [round(MaskLoss(name)(energy, batch).loss.item(), 4) for name in ("ce", "dice")]
    [0.6931, 0.3333]
    """

    over = "y"
    class_weight: Tensor | None

    def __init__(self, name: str = "ce+dice", class_weight: Tensor | None = None) -> None:
        super().__init__()
        if name not in MASK_LOSSES:
            raise ValueError(f"a loss of masks is one of {', '.join(MASK_LOSSES)}, got {name!r}")
        self.name = name
        self.register_buffer("class_weight", class_weight, persistent=False)

    def extra_repr(self) -> str:
        return repr(self.name)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if "y" not in batch or not isinstance(energy, ClassEnergy) or not energy.normalise:
            return (
                "a loss of masks needs labels y at positions and an energy "
                "ClassEnergy(..., normalise=True) that scores them"
            )
        return None

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        assert isinstance(energy, ClassEnergy)
        y = batch["y"].long()
        counts = (
            torch.ones_like(y, dtype=torch.bool) if energy.ignore is None else y != energy.ignore
        )
        log_p = energy.scores(batch["x"]).reshape(len(y), -1, energy.k)  # (B, P, K)
        y, counts = y.reshape(len(y), -1), counts.reshape(len(y), -1)
        own = torch.where(counts, y, 0)
        nll = -log_p.gather(-1, own[..., None]).squeeze(-1)
        if self.class_weight is not None:
            nll = nll * self.class_weight.to(nll)[own]
        ce = (nll * counts).sum(1) / counts.sum(1).clamp(min=1)
        loss = ce
        if self.name != "ce":
            known = counts[..., None]
            hot = torch.nn.functional.one_hot(own, energy.k) * known
            p = log_p.exp() * known
            overlap = dice_rows(p.transpose(1, 2), hot.transpose(1, 2).to(p.dtype))
            overlap = torch.where(counts.any(1), overlap, 0.0)
            loss = overlap if self.name == "dice" else ce + overlap
        return Terms(loss, lambda: (ce, ce - loss))
