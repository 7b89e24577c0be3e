"""Sets of objects as rows: the boxes in a picture, their classes and, where there are any, masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.rows.ragged import Ragged, offsets_of
from groundstate.compute.rows.record import Record
from groundstate.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Objects(Record):
    """A set of objects for each of n pictures; a picture may hold none.

    Parameters
    ----------
    boxes : Ragged, items ``(4,)``
        Corners x1, y1, x2, y2 in pixels, with x1 < x2 and y1 < y2; the width is x2 − x1.
    labels : Ragged of int64, items ``()``
        Classes from 1 on; 0 is the background.
    masks : Ragged of uint8, items ``(height, width)``, or None
        1 where a pixel of the picture belongs to the object.

    Examples
    --------
    >>> objects = Objects.of([([[0, 0, 4, 4], [2, 2, 6, 8]], [1, 2]), ([], [])])
    >>> objects
    2 pictures with 0 to 2 boxes
    >>> objects[0].boxes.values[1].tolist(), objects.counts.tolist()
    ([2.0, 2.0, 6.0, 8.0], [2, 0])
    """

    boxes: Ragged
    labels: Ragged
    masks: Ragged | None = None

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Self:
        """From ``(boxes, labels)`` or ``(boxes, labels, masks)`` per picture.

        ``DataError`` names the picture and the box that is not one.
        """
        found = [_one(i, row) for i, row in enumerate(rows)]
        offsets = offsets_of(torch.tensor([len(b) for b, _, _ in found], dtype=torch.int64))
        boxes = torch.cat([b for b, _, _ in found]) if found else torch.zeros(0, 4)
        labels = torch.cat([c for _, c, _ in found]) if found else torch.zeros(0).long()
        drawn = [m for b, _, m in found if m is not None]
        if not drawn:
            return cls(Ragged(boxes, offsets), Ragged(labels, offsets))
        lost = next((i for i, (b, _, m) in enumerate(found) if m is None and len(b)), None)
        if lost is not None:
            raise DataError(f"picture {lost} has boxes without masks; give masks of all or of none")
        sizes = {tuple(m.shape[1:]) for m in drawn}
        if len(sizes) > 1:
            raise DataError(f"masks need the one size of the pictures, got {sorted(sizes)[:3]}")
        return cls(
            Ragged(boxes, offsets), Ragged(labels, offsets), Ragged(torch.cat(drawn), offsets)
        )

    @property
    def counts(self) -> Tensor:
        """Boxes of each picture, ``(n,)``."""
        return self.boxes.lengths

    def describe(self) -> str:
        masks = "" if self.masks is None else " and masks of {} x {}".format(*self.masks.item_shape)
        return f"{len(self)} pictures with {self.boxes._sizes('boxes')}{masks}"


def _one(i: int, row: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor | None]:
    """Boxes, labels and masks of picture i, checked."""
    boxes = _tensor(row[0]).float().reshape(-1, 4)
    labels = _tensor(row[1]).long().reshape(-1)
    if len(boxes) != len(labels):
        raise DataError(
            f"picture {i} has {len(boxes)} boxes and {len(labels)} labels; give one for each"
        )
    good = torch.isfinite(boxes).all(1) & (boxes[:, 2:] > boxes[:, :2]).all(1)
    if not bool(good.all()):
        j = int((~good).nonzero()[0])
        raise DataError(
            f"box {j} of picture {i} is {boxes[j].tolist()}; a box is x1, y1, x2, y2 with x1 < x2 "
            "and y1 < y2"
        )
    if len(row) < 3 or row[2] is None:
        return boxes, labels, None
    masks = _tensor(row[2])
    masks = (masks != 0).to(torch.uint8)
    if masks.ndim != 3 or len(masks) != len(boxes):
        raise DataError(
            f"picture {i} has {len(boxes)} boxes and masks of shape {tuple(masks.shape)}; give "
            f"({len(boxes)}, height, width)"
        )
    return boxes, labels, masks


def _tensor(values: Any) -> Tensor:
    return values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
