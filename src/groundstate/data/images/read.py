"""What people have as pictures: arrays of pixels, image files, folders of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from groundstate.compute.rows import Files, Reader, Rows
from groundstate.data.reading import RowReader, as_list, is_array, real
from groundstate.errors import DataError

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm"})
_MODES = {1: "L", 3: "RGB"}


@dataclass(frozen=True)
class ImageReader(Reader):
    """Image files as arrays ``(channels, height, width)`` with values in [0, 1].

    Parameters
    ----------
    channels : 1 (grey) or 3 (red, green, blue)
    size : (height, width) to which pictures are resized, or None where all have one size
    """

    channels: int = 3
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.channels not in _MODES:
            raise DataError(f"channels must be 1 (grey) or 3 (colour), got {self.channels}")

    def read(self, paths: Sequence[str]) -> Rows:
        rows = [self._one(path) for path in paths]
        shapes = {r.shape for r in rows}
        if len(shapes) > 1:
            raise DataError(
                f"the pictures have different sizes, such as {sorted(shapes)[:3]}; read them with "
                "ImageReader(size=(height, width))"
            )
        pixels = np.stack(rows) if rows else np.zeros((0, self.channels, 0, 0), np.uint8)
        return torch.from_numpy(pixels).float() / 255

    def _one(self, path: str) -> Any:
        try:
            from PIL import Image, UnidentifiedImageError
        except ImportError as error:
            raise DataError(
                "reading image files needs Pillow; install it with pip install 'groundstate[vision]', "
                "or pass arrays (n, channels, height, width)"
            ) from error
        try:
            with Image.open(path) as image:
                picture = image.convert(_MODES[self.channels])
                if self.size is not None:
                    picture = picture.resize(self.size[::-1])
        except (OSError, UnidentifiedImageError) as error:
            raise DataError(f"{path!r} cannot be read as a picture: {error}") from error
        pixels = np.asarray(picture, dtype=np.uint8)
        return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)

    def describe(self) -> str:
        size = "" if self.size is None else f" of {self.size[0]} x {self.size[1]} pixels"
        return f"pictures{size}"


class ImageRows(RowReader):
    """Arrays ``(n, C, H, W)`` or ``(n, H, W)``, paths of image files, or a folder of them."""

    kind = "image"
    accepts = "an array (n, channels, height, width) or (n, height, width), image files or a folder"

    def takes(self, value: Any) -> bool:
        if isinstance(value, Files):
            return isinstance(value.reader, ImageReader)
        if is_array(value, 4):
            return True
        if isinstance(value, str | Path):
            return Path(value).is_dir() and bool(image_files(value))
        rows = as_list(value) or []
        return bool(rows) and all(
            isinstance(v, str | Path) and Path(v).suffix.lower() in SUFFIXES for v in rows[:100]
        )

    def read(self, value: Any) -> Rows:
        if isinstance(value, Files):
            return value
        if is_array(value, 3, 4):
            pixels = real(value)
            return pixels if pixels.ndim == 4 else pixels[:, None]
        if isinstance(value, str | Path):
            found = image_files(value)
            if not found:
                raise DataError(
                    f"{str(value)!r} holds no image files ({', '.join(sorted(SUFFIXES))})"
                )
            return Files.of(found, ImageReader())
        rows = as_list(value) or []
        if rows and all(isinstance(v, str | Path) for v in rows):
            return Files.of(rows, ImageReader())
        try:
            pixels = real(np.stack([np.asarray(v) for v in rows]))
        except ValueError as error:
            raise DataError(f"pictures need one size: {error}") from error
        if pixels.ndim not in (3, 4):
            raise DataError(f"got shape {tuple(pixels.shape)}, expected {self.accepts}")
        return pixels if pixels.ndim == 4 else pixels[:, None]


def image_files(folder: str | Path) -> list[Path]:
    """The image files under a folder, in the order of their names."""
    return sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in SUFFIXES)


def labelled_images(folder: str | Path, reader: Reader | None = None) -> tuple[Files, list[str]]:
    """Pictures in folders that are named after their classes, and these names."""
    paths = image_files(folder)
    if not paths:
        raise DataError(f"{str(folder)!r} holds no image files ({', '.join(sorted(SUFFIXES))})")
    return Files.of(paths, reader or ImageReader()), [p.parent.name for p in paths]
