"""Folders of pictures, one for each class: ``root/[train, val, test]/class/*.png``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch import Tensor

from groundstate.compute.rows import Files
from groundstate.data.images.cache import cached
from groundstate.data.images.decode import (
    SUFFIXES,
    Header,
    ImageReader,
    headers,
    image_files,
    natural_channels,
)
from groundstate.data.images.masks import is_mask_folder
from groundstate.data.images.sets import ImageSet, channel_moments
from groundstate.errors import DataError

PARTS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
LARGEST = 224  # longest side, where the pictures have different sizes


class ImageFolder:
    """Pictures in folders that are named after their classes, with or without parts.

    The layouts are ``root/train/cat/1.png`` (also ``val`` and ``test``; ImageNet's) and
    ``root/cat/1.png``, which is all training. Classes are the names of the folders, sorted.

    Parameters
    ----------
    root : folder
    size : (height, width), a side, or None for the size that all pictures have; where they differ
        that is the median of their sizes, at most 224 on the longer side
    channels : 1 (grey), 3 (colour) or None for grey where all pictures are; others are converted
        with a warning
    cache : "auto", a folder or None; see ``groundstate.data.images.cache``

    Attributes
    ----------
    parts : dict of ImageSet, by "train", "val", "test"
    classes : tuple of str
    size, channels : of every picture

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as root:
    ...     for name in ("cat", "dog"):
    ...         (pathlib.Path(root) / name).mkdir()
    ...         Image.new("RGB", (5, 4)).save(pathlib.Path(root) / name / "1.png")
    ...     ImageFolder(root).train
    2 pictures of 3 x 4 x 5 in 8 bits, 2 classes
    """

    def __init__(
        self,
        root: str | Path,
        *,
        size: int | tuple[int, int] | None = None,
        channels: int | None = None,
        cache: str | Path | None = "auto",
    ) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise DataError(f"there is no folder {str(root)!r}; pass one that holds class folders")
        if is_mask_folder(root):
            raise DataError(
                f"{str(root)!r} holds 'images' and 'masks', labels of pixels; give it to "
                "groundstate.Segmenter().fit"
            )
        found = {part: _labelled(folder) for part, folder in _parts(self.root).items()}
        self.classes = tuple(sorted({label for _, label in found["train"]}))
        _check(found, self.classes)
        paths = [str(path) for rows in found.values() for path, _ in rows]
        about = headers(paths)
        self.channels = natural_channels(paths, about) if channels is None else channels
        self.size = (
            common_size(about) if size is None else (size, size) if isinstance(size, int) else size
        )
        reader = ImageReader(self.channels, self.size)
        self.parts: dict[str, ImageSet] = {}
        for part, rows in found.items():
            files = Files.of([path for path, _ in rows], reader)
            labels = np.array([label for _, label in rows], dtype=np.str_)
            self.parts[part] = ImageSet(cached(files, cache), labels, self.classes)

    @property
    def train(self) -> ImageSet:
        return self.parts["train"]

    @property
    def val(self) -> ImageSet:
        return self._part("val")

    @property
    def test(self) -> ImageSet:
        return self._part("test")

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the channels of the training part, ``(C,)`` each."""
        return channel_moments(self.train.rows)

    def _part(self, name: str) -> ImageSet:
        if name not in self.parts:
            raise DataError(f"{str(self.root)!r} has no folder {name!r} of pictures")
        return self.parts[name]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(one)}" for name, one in self.parts.items())
        size = f"{self.channels} x {self.size[0]} x {self.size[1]}"
        return f"{len(self.classes)} classes of pictures of {size}: {sizes}"


def is_image_folder(path: str | Path) -> bool:
    """Whether a folder holds folders of classes with image files in them."""
    root = Path(path)
    if not root.is_dir():
        return False
    try:
        rows = [row for folder in _parts(root).values() for row in _labelled(folder)]
    except DataError:
        return False
    return bool(rows)


def _parts(root: Path) -> dict[str, Path]:
    inside = {p.name.lower(): p for p in root.iterdir() if p.is_dir()}
    found = {
        part: inside[name] for part, names in PARTS.items() for name in names if name in inside
    }
    if not found:
        return {"train": root}
    if "train" not in found:
        raise DataError(
            f"{str(root)!r} has {', '.join(p.name for p in found.values())} but no folder 'train'"
        )
    return found


def _labelled(folder: Path) -> list[tuple[Path, str]]:
    """Pictures with the folder directly below, their class."""
    rows = []
    for inside in sorted(folder.iterdir()):
        if inside.name.startswith((".", "__")):
            continue
        if inside.is_file() and inside.suffix.lower() in SUFFIXES:
            raise DataError(
                f"{str(inside)!r} is in no class folder; put pictures into folders named after "
                "their classes"
            )
        if inside.is_dir():
            paths = image_files(inside)
            if not paths:
                raise DataError(
                    f"the class folder {str(inside)!r} holds no image files "
                    f"({', '.join(sorted(SUFFIXES))}); fill or remove it"
                )
            rows += [(path, inside.name) for path in paths]
    if not rows:
        raise DataError(f"{str(folder)!r} holds no class folders with image files")
    return rows


def _check(found: dict[str, list[tuple[Path, str]]], classes: tuple[str, ...]) -> None:
    if len(classes) < 2:
        raise DataError(f"one class alone, {classes[0]!r}: there is nothing to tell apart")
    for part, rows in found.items():
        new = next(((p, c) for p, c in rows if c not in classes), None)
        if new is not None:
            raise DataError(
                f"{str(new[0])!r} of {part} is of class {new[1]!r}, which the training part lacks"
            )


def common_size(about: list[Header]) -> tuple[int, int]:
    """The size of all pictures; where they differ the median, at most 224 on the longer side."""
    sizes = np.array([h.size for h in about])
    if (sizes == sizes[0]).all():
        return int(sizes[0, 0]), int(sizes[0, 1])
    middle = np.median(sizes, 0)
    height, width = np.maximum(1, np.round(middle * min(1.0, LARGEST / middle.max()))).astype(int)
    return int(height), int(width)
