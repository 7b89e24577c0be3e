"""What functions of regions take, brought into one form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import DataError, ShapeError
from groundstate.math.arrays import as_tensor


def arguments(
    features: Any, boxes: Any, size: int | tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor, tuple[int, int], bool]:
    """Maps, the image of every region, its corners, (height, width); whether arrays came in."""
    maps = as_tensor(features, "features", finite=False)
    if maps.ndim != 4:
        raise ShapeError(f"features need shape (B, C, H, W), got {tuple(maps.shape)}")
    rows, columns = (size, size) if isinstance(size, int) else size
    if min(rows, columns) < 1:
        raise ValueError(f"size needs positive numbers (height, width), got {size}")
    if isinstance(boxes, list | tuple):
        image, corners = _listed(boxes, maps)
    else:
        table = as_tensor(boxes, "boxes", maps, finite=False)
        if table.ndim != 2 or table.shape[1] != 5:
            raise ShapeError(
                f"boxes need shape (R, 5), the image's index and corners, got {tuple(table.shape)}; "
                "or pass a list with (n, 4) for each image"
            )
        image, corners = table[:, 0].long(), table[:, 1:]
        first, last = _extremes(table)
        if not 0 <= first <= last < max(len(maps), 1):
            raise DataError(
                f"boxes name images {first} to {last}, but features hold {len(maps)} images, counted "
                "from 0"
            )
    exact = torch.float64 if maps.dtype == torch.float64 else torch.float32
    return (
        maps,
        image,
        corners.detach().to(exact),
        (rows, columns),
        not isinstance(features, Tensor),
    )


def _extremes(table: Tensor) -> tuple[int, int]:
    """First and last image that boxes ``(R, 5)`` name; all numbers are finite. One wait for a device."""
    if not len(table):
        return 0, 0
    low, high = torch.stack(table.detach().aminmax(dim=0)).tolist()
    if not all(math.isfinite(value) for value in (*low, *high)):
        raise ValueError("boxes holds NaN or infinity; drop or fill these entries before calling")
    return int(low[0]), int(high[0])


def _listed(boxes: Sequence[Any], maps: Tensor) -> tuple[Tensor, Tensor]:
    """The image of every region of a list, and all corners."""
    if len(boxes) != len(maps):
        raise ShapeError(f"boxes need a list of {len(maps)}, one for each image, got {len(boxes)}")
    each = [as_tensor(found, f"boxes[{i}]", maps) for i, found in enumerate(boxes)]
    for i, found in enumerate(each):
        if found.ndim != 2 or found.shape[1] != 4:
            raise ShapeError(f"boxes[{i}] need shape (n, 4), got {tuple(found.shape)}")
    number = torch.arange(len(each), device=maps.device)
    counts = torch.tensor([len(found) for found in each], device=maps.device)
    total = sum(len(found) for found in each)
    return number.repeat_interleave(counts, output_size=total), torch.cat(each)
