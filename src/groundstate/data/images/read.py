"""What people have as pictures: arrays of pixels, image files, folders of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.rows import Files, Pixels, Rows
from groundstate.data.images.decode import (
    SUFFIXES,
    ImageReader,
    headers,
    image_files,
    natural_channels,
)
from groundstate.data.images.formats import read_images
from groundstate.data.images.sets import ImageSet
from groundstate.data.reading import RowReader, as_list, is_array, real
from groundstate.errors import DataError


class ImageRows(RowReader):
    """Arrays ``(n, C, H, W)``, ``(n, H, W)`` or of volumes ``(n, C, D, H, W)``, paths of image files,
    or a folder of them.

    Arrays of uint8 stay so (``Pixels``) and count as values in [0, 1], as files do.
    """

    kind = "image"
    accepts = "an array (n, channels, height, width) or (n, height, width), image files or a folder"

    def takes(self, value: Any) -> bool:
        if isinstance(value, Pixels | ImageSet):
            return True
        if isinstance(value, Files):
            return isinstance(value.reader, ImageReader)
        if is_array(value, 4, 5):
            return True
        if isinstance(value, str | Path):
            return Path(value).is_dir() and bool(image_files(value))
        rows = as_list(value) or []
        return bool(rows) and all(
            isinstance(v, str | Path) and Path(v).suffix.lower() in SUFFIXES for v in rows[:100]
        )

    def read(self, value: Any) -> Rows:
        if isinstance(value, ImageSet):
            return value.rows
        if isinstance(value, Files | Pixels):
            return value
        if is_array(value, 3, 4, 5):
            return _pictures(value)
        if isinstance(value, str | Path):
            return files_of(image_files(value, empty=False))
        rows = as_list(value) or []
        if rows and all(isinstance(v, str | Path) for v in rows):
            return files_of(rows)
        if not rows:
            shape = getattr(value, "shape", None)
            got = type(value).__name__ if shape is None else f"shape {tuple(shape)}"
            raise DataError(f"got {got}, expected {self.accepts}")
        try:
            stacked = np.stack([np.asarray(v) for v in rows])
        except ValueError as error:
            raise DataError(f"pictures need one size: {error}") from error
        if stacked.ndim not in (3, 4, 5):
            raise DataError(f"got shape {stacked.shape}, expected {self.accepts}")
        return _pictures(stacked)

    def labelled(self, value: Any) -> tuple[Rows, Any] | None:
        if isinstance(value, str | Path) and Path(value).is_dir():
            value = read_images(value)["train"]
        return (value.rows, value.y) if isinstance(value, ImageSet) else None


def files_of(paths: Sequence[str | Path]) -> Files:
    """Image files in grey where all of them are grey, else in colour; what is converted is reported."""
    files = Files.of(paths)
    names: list[str] = files.paths.tolist()
    return Files(files.paths, ImageReader(natural_channels(names, headers(names))))


def _pictures(values: Any) -> Rows:
    if isinstance(values, Tensor) and values.dtype == torch.uint8:
        on_host = values.device.type == "cpu" and values.ndim < 5
        values = values.numpy() if on_host else values.float() / 255
    if isinstance(values, np.ndarray) and values.dtype == np.uint8:
        if values.ndim == 5:  # volumes
            return torch.from_numpy(values).float() / 255
        return Pixels(values if values.ndim == 4 else values[:, None])
    pixels = real(values)
    return pixels[:, None] if pixels.ndim == 3 else pixels
