r"""Learning where to look: a balanced sample of the boxes of an energy of objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.rows import Objects, Ragged
from groundstate.compute.rows.ragged import content_words, offsets_of
from groundstate.energy.base import Energy
from groundstate.energy.networks.detection import DetectionEnergy
from groundstate.errors import Unsupported
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.nn.augment import Augment
from groundstate.nn.detection.sampling import row_words, uniforms

SEEN, SMALLEST = 0.3, 2.0  # share of a box inside, and pixels of a side, below which it is left out


class BalancedSample(Rule):
    r"""Lowers the energy of the objects at a balanced sample of boxes, and raises it at all other
    classes of these, since the class energies are normalised.

    .. math:: L = \sum_p \frac{\sum_i w_i\sum_{b\in S_i} e_{pib}}{\sum_i w_i |S_{pi}|}

    Most boxes of a picture are background; of all the loss would learn to see nothing else. Every
    term p of the energy (objectness, offsets, classes, masks) is divided by the number of its boxes
    in the whole batch. Which boxes are sampled depends on the generator and on the content of a row,
    so that a weight of 2 is the row twice.

    Parameters
    ----------
    mirror : float
        Share of the pictures that are mirrored left to right in a step, with their boxes and masks.
        How many boxes are sampled is a setting of the network.
    augment : Augment, optional
        Further random changes of the pictures in a step; boxes and masks move with them.

    Examples
    --------
    >>> from groundstate.compute.rows import Objects
    >>> from groundstate.nn.detection.rcnn import FasterRCNN
    >>> net = FasterRCNN(3, fpn=16, sizes=(8, 16, 32), levels=2, hidden=32)
    >>> energy = DetectionEnergy(net, (3, 32, 32), 2)
    >>> y = Objects.of([([[4, 4, 16, 16]], [1]), ([], [])])
    >>> BalancedSample()(energy, {"x": torch.zeros(2, 3, 32, 32), "y": y}).loss.shape
    torch.Size([2])
    """

    smooth = False

    def __init__(self, mirror: float = 0.0, augment: Augment | None = None) -> None:
        super().__init__()
        if augment is not None and augment.mixes:
            raise Unsupported("pictures with objects are not mixed; use mixup=0 and cutmix=0")
        if not 0 <= mirror <= 1:
            raise ValueError(f"mirror is a share of the pictures, from 0 to 1, got {mirror}")
        self.mirror, self.augment = mirror, augment

    def extra_repr(self) -> str:
        return f"mirror={self.mirror}"

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not isinstance(energy, DetectionEnergy):
            return "it is no energy of sets of objects; use a DetectionEnergy"
        missing = [name for name in ("x", "y") if name not in batch]
        return f"the batch holds no {missing[0]!r}, pictures and their objects" if missing else None

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        self.require(energy, batch)
        totals, counts = self._parts(energy, batch, generator)
        loss = (totals / counts.sum(1, keepdim=True).clamp(min=1) * counts.shape[1]).sum(0)
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), exact=False)

    def mean(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None = None,
        total: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Callable[[], Terms]]:
        self.require(energy, batch)
        totals, counts = self._parts(energy, batch, generator)
        w = torch.ones_like(totals[0]) if weight is None else weight.to(totals.dtype)
        number = current().sum((counts * w).sum(1))  # of the boxes that all processes sampled
        loss = ((totals * w).sum(1) / number.clamp(min=1e-12)).sum()
        if weight is not None and current().world == 1:
            loss = loss * (w.sum() / total)  # a part of the rows counts by its share
        return loss, lambda: self.forward(energy, batch, generator=generator)

    def _parts(
        self, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Sums and numbers of boxes by term and row, ``(P, B)`` each."""
        assert isinstance(energy, DetectionEnergy)
        x: Any = batch["x"]
        y: Any = batch["y"]
        if generator is None:
            key = torch.zeros(1, dtype=torch.int64, device=y.device)
        else:
            key = torch.randint(
                -(2**63), 2**63 - 1, (1,), generator=generator, device=generator.device
            )
        words = row_words(content_words(y.boxes), key)
        if self.mirror and generator is not None:
            x, y = mirrored(x, y, uniforms(words, 1, stream=2)[:, 0] < self.mirror)
        if self.augment is not None and generator is not None:
            x, y = augmented(x, y, self.augment, generator)
        parts = energy.parts(x, y, words).values()
        totals = torch.stack([part.total for part in parts])
        return totals, torch.stack([part.count for part in parts]).to(totals.dtype)


def mirrored(x: Tensor, y: Objects, which: Tensor) -> tuple[Tensor, Objects]:
    """Some pictures and their objects with left and right exchanged.

    >>> y = Objects.of([([[1, 2, 4, 5]], [1])])
    >>> mirrored(torch.zeros(1, 3, 8, 10), y, torch.tensor([True]))[1].boxes.values.tolist()
    [[6.0, 2.0, 9.0, 5.0]]
    """
    own = which[y.boxes.row]
    boxes, width = y.boxes.values, x.shape[3]
    turned = torch.stack([width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]], 1)
    masks = y.masks
    if masks is not None:
        seen = torch.where(own[:, None, None], masks.values.flip(2), masks.values)
        masks = masks.like(seen)
    moved = Objects(y.boxes.like(torch.where(own[:, None], turned, boxes)), y.labels, masks)
    return torch.where(which[:, None, None, None], x.flip(3), x), moved


def augmented(
    x: Tensor, y: Objects, augment: Augment, generator: torch.Generator
) -> tuple[Tensor, Objects]:
    """Pictures changed at random with their objects; those that leave the picture are left out."""
    boxes, row = y.boxes.values, y.boxes.row
    counts = y.counts.tolist()
    masks = None if y.masks is None else y.masks.values.split(counts)
    views = augment.together(x, masks=masks, boxes=boxes.split(counts), generator=generator)
    assert views.boxes is not None and views.visible is not None
    moved, visible = torch.cat(views.boxes), torch.cat(views.visible)
    keep = (visible >= SEEN) & ((moved[:, 2:] - moved[:, :2]) >= SMALLEST).all(1)
    offsets = offsets_of(torch.bincount(row[keep], minlength=len(x)))

    def kept(values: Tensor) -> Ragged:
        return Ragged._of(values[keep], offsets)

    drawn = None if views.masks is None else kept(torch.cat(list(views.masks)))
    return views.images, Objects(kept(moved), kept(y.labels.values), drawn)
