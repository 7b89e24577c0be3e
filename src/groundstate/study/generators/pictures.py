"""A folder of pictures as an array of one size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from groundstate.compute.rows import count, part, to_device
from groundstate.data.images.formats import read_images
from groundstate.data.rows import rows_of
from groundstate.errors import DataError

SIZE = 32  # pixels of an edge at most
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")


def read_pictures(folder: Path) -> tuple[NDArray[Any], list[str]]:
    """Pictures ``(n, C, H, W)`` in [0, 1], large ones made smaller, and what was done."""
    files = sorted(str(f) for f in folder.rglob("*") if f.suffix.lower() in SUFFIXES)
    if files:
        pictures = list(_each(rows_of(files, "image").rows))
    else:  # sets that come in files of their own
        pictures = [p for own in read_images(folder).values() for p in _each(own.rows)]
    if not pictures:
        raise DataError(f"{folder} holds no pictures")
    height = min(SIZE, min(p.shape[1] for p in pictures))
    width = min(SIZE, min(p.shape[2] for p in pictures))
    channels = min(p.shape[0] for p in pictures)
    same = all(tuple(p.shape[1:]) == (height, width) for p in pictures)
    notes = [] if same else [f"pictures were made {height} x {width} pixels"]
    made = [p[:channels] if same else _resized(p[:channels], height, width) for p in pictures]
    return np.stack([p.numpy() for p in made]), notes


def _each(rows: Any) -> Iterator[torch.Tensor]:
    """Pictures ``(C, H, W)`` in [0, 1], one by one."""
    for i in range(count(rows)):
        one: Any = to_device(part(rows, i, i + 1), torch.device("cpu"))
        picture = one[0]
        yield picture.float() if picture.is_floating_point() else picture.float() / 255


def _resized(picture: torch.Tensor, height: int, width: int) -> torch.Tensor:
    if picture.shape[1] >= height and picture.shape[2] >= width:
        return adaptive_avg_pool2d(picture, (height, width))
    return interpolate(picture[None], (height, width), mode="bilinear", align_corners=False)[0]
