"""Image files to pixels, by Pillow, in threads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.rows import Reader, Rows
from groundstate.compute.tiles import pool
from groundstate.errors import DataError

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm"})
MODES = {1: "L", 3: "RGB"}
_GREY = frozenset({"1", "L", "LA", "La", "I;16", "I;16L", "I;16B"})
_DEEP = frozenset({"I", "F"})
_TURNED = frozenset({"JPEG", "MPO", "TIFF", "WEBP"})  # formats that say how the camera was held
_ORIENTATION = 274
_WORKERS = min(16, 2 * (os.cpu_count() or 1))
R = TypeVar("R")


@dataclass(frozen=True)
class Header:
    """What a file says about its picture before it is decoded."""

    size: tuple[int, int]  # height, width
    grey: bool
    alpha: bool


@dataclass(frozen=True)
class ImageReader(Reader):
    """Image files as arrays ``(channels, height, width)`` with values in [0, 1].

    Pictures are decoded in threads and turned as the camera was held. Transparency is dropped.

    Parameters
    ----------
    channels : 1 (grey) or 3 (red, green, blue)
    size : (height, width) to which pictures are resized, or None where all have one size
    """

    channels: int = 3
    size: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.channels not in MODES:
            raise DataError(f"channels must be 1 (grey) or 3 (colour), got {self.channels}")

    def read(self, paths: Sequence[str]) -> Rows:
        return torch.from_numpy(self.pixels(paths)).float() / 255

    def pixels(self, paths: Sequence[str]) -> NDArray[np.uint8]:
        """The pictures as whole numbers, ``(n, channels, height, width)``."""
        rows = in_threads(self._one, paths)
        shapes = {r.shape for r in rows}
        if len(shapes) > 1:
            raise DataError(
                f"the pictures have different sizes, such as {sorted(shapes)[:3]}; read them with "
                "ImageReader(size=(height, width))"
            )
        return np.stack(rows) if rows else np.zeros((0, self.channels, 0, 0), np.uint8)

    def _one(self, path: str) -> NDArray[np.uint8]:
        return opened(path, self._decoded)

    def _decoded(self, image: Any) -> NDArray[np.uint8]:
        from PIL import Image, ImageOps

        mode = MODES[self.channels]
        if image.mode.startswith("I;16"):  # Pillow would cut, not scale
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        if self.size is not None and image.format == "JPEG":
            image.draft(mode, (max(self.size),) * 2)  # decodes at an eighth to all of the size
        if image.format in _TURNED:
            image = ImageOps.exif_transpose(image)
        picture = image.convert(mode)
        if self.size is not None and picture.size != self.size[::-1]:
            picture = picture.resize(self.size[::-1], Image.Resampling.BILINEAR)
        pixels = np.asarray(picture, dtype=np.uint8)
        return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)

    def describe(self) -> str:
        size = "" if self.size is None else f" of {self.size[0]} x {self.size[1]} pixels"
        return f"pictures{size}"


def image_files(folder: str | Path, *, empty: bool = True) -> list[Path]:
    """The image files under a folder, in the order of their names."""
    if not empty and not Path(folder).exists():
        raise DataError(f"there is no file or folder {str(folder)!r}")
    found = sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in SUFFIXES)
    if not found and not empty:
        raise DataError(f"{str(folder)!r} holds no image files ({', '.join(sorted(SUFFIXES))})")
    return found


def headers(paths: Sequence[str]) -> list[Header]:
    """Sizes and kinds of pictures; only the beginnings of the files are read."""
    return in_threads(lambda path: opened(path, _header), paths)


def natural_channels(paths: Sequence[str], found: Sequence[Header]) -> int:
    """1 where all pictures are grey, else 3; what is converted is reported once."""
    grey = [p for p, h in zip(paths, found, strict=True) if h.grey]
    alpha = [p for p, h in zip(paths, found, strict=True) if h.alpha]
    channels = 1 if len(grey) == len(found) else 3
    if grey and channels == 3:
        _warn(grey, "grey among coloured pictures", "converted to colour")
    if alpha:
        _warn(alpha, "partly transparent", "converted: the transparency is dropped")
    return channels


def opened(path: str, use: Callable[[Any], R]) -> R:
    """What ``use`` makes of an open picture; ``DataError`` names the file that cannot be read."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise DataError(
            "reading image files needs Pillow; install it with pip install 'groundstate[vision]', "
            "or pass arrays (n, channels, height, width)"
        ) from error
    try:
        with Image.open(path) as image:
            if image.mode in _DEEP:
                raise DataError(
                    f"{path!r} has pixels of 32 bits (mode {image.mode!r}); save it with 8 or 16 "
                    "bits, or pass arrays (n, channels, height, width)"
                )
            return use(image)
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(
            f"there is no file {path!r}; pass paths of files that can be read"
        ) from error
    except Exception as error:  # damaged files make decoders raise anything
        named = isinstance(error, UnidentifiedImageError)  # it names the file again
        why = "" if named else f" ({error})"
        raise DataError(
            f"{path!r} cannot be read as a picture{why}; replace the file or take it out"
        ) from error


def in_threads(one: Callable[[str], R], paths: Sequence[str]) -> list[R]:
    """``one`` of every path, in order; Pillow decodes without the interpreter's lock."""
    if len(paths) < 2:
        return [one(path) for path in paths]
    return list(pool(os.getpid(), _WORKERS).map(one, paths))


def _header(image: Any) -> Header:
    width, height = image.size
    if image.format in _TURNED and image.getexif().get(_ORIENTATION, 1) in (5, 6, 7, 8):
        width, height = height, width
    alpha = image.mode in ("RGBA", "LA", "La", "PA") or "transparency" in image.info
    return Header((height, width), image.mode in _GREY, alpha)


def _warn(paths: Sequence[str], what: str, done: str) -> None:
    more = f" and {len(paths) - 1} more are" if len(paths) > 1 else " is"
    warnings.warn(f"{paths[0]!r}{more} {what}; {done}", UserWarning, stacklevel=3)
