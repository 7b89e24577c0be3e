"""What the parts of a detector hand to each other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.rows import Objects, Ragged, sum_items
from groundstate.compute.rows.ragged import offsets_of
from groundstate.nn.detection.nms import batched_nms


@dataclass(frozen=True)
class Part:
    """One term of the energy of a batch of pictures.

    Attributes
    ----------
    total : Tensor, ``(B,)``
        Sum over the boxes of each picture.
    count : Tensor, ``(B,)``
        How many boxes it is taken over; a loss divides by their number.
    """

    total: Tensor
    count: Tensor


Parts = dict[str, Part]


@dataclass(frozen=True)
class Detected:
    """What a network found in one picture, the highest score first.

    Attributes
    ----------
    boxes : Tensor, ``(n, 4)``
    labels : Tensor of int64, ``(n,)``, from 1 on
    scores : Tensor, ``(n,)``
    masks : Tensor, ``(n, height, width)``, or None
        The probability of each pixel to belong to the object.
    """

    boxes: Tensor
    labels: Tensor
    scores: Tensor
    masks: Tensor | None = None

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True)
class Padded:
    """Boxes of a batch in one tensor.

    Attributes
    ----------
    boxes : Tensor, ``(B, P, 4)``
    real : Tensor of bool, ``(B, P)``, False where a box only fills up
    """

    boxes: Tensor
    real: Tensor

    @classmethod
    def of(cls, boxes: Ragged) -> Padded:
        """Those of rows of different length."""
        size = int(boxes.lengths.max()) if len(boxes) else 0
        place = torch.arange(size, device=boxes.device)
        return cls(boxes.padded(length=size), place < boxes.lengths[:, None])

    def join(self, other: Padded) -> Padded:
        """The boxes of both, picture by picture."""
        return Padded(
            torch.cat([self.boxes, other.boxes], 1), torch.cat([self.real, other.real], 1)
        )


def padded_labels(targets: Objects, size: int) -> Tensor:
    """The classes of the truths, ``(B, size)``, 0 where there is none."""
    return targets.labels.padded(length=size)


def per_row(values: Tensor, row: Tensor, rows: int) -> Tensor:
    """Sums of values ``(R,)`` whose rows ``(R,)`` do not decrease, ``(B,)``."""
    offsets = offsets_of(torch.bincount(row, minlength=rows))
    return sum_items(values, offsets)


def suppressed(
    boxes: Tensor, scores: Tensor, row: Tensor, group: Tensor, nms: float, most: int, rows: int
) -> tuple[Tensor, Tensor]:
    """Which boxes of a whole batch stay, picture by picture with the highest score first.

    Parameters
    ----------
    boxes, scores, row, group : ``(N, 4)``, ``(N,)``, the picture of each, and what thins itself
        out inside it: a class, or a map of a pyramid
    nms : overlap above which the lower score goes
    most : boxes of a picture at most
    rows : pictures

    Returns
    -------
    places ``(K,)``, and where each picture begins ``(rows + 1,)``
    """
    groups = int(group.max()) + 1 if group.numel() else 1
    kept = batched_nms(boxes, scores, row * groups + group, nms)
    kept = kept[row[kept].argsort(stable=True)]
    own = row[kept]
    begin = offsets_of(torch.bincount(own, minlength=rows))
    good = torch.arange(len(kept), device=kept.device) - begin[own] < most
    return kept[good], offsets_of(begin.diff().clamp(max=most))


def full(values: Tensor) -> Tensor:
    """Halves as float32: overlaps and losses need the digits."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
