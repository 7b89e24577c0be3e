"""Pictures with masks: a label for each pixel, in arrays or in files that share their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.rows import Files, Rows
from groundstate.data.images.cache import cached
from groundstate.data.images.decode import (
    ImageReader,
    headers,
    image_files,
    in_threads,
    natural_channels,
    opened,
)
from groundstate.data.reading import as_list
from groundstate.errors import DataError, ShapeError

IMAGES, MASKS, IGNORED = "images", "masks", 255


@dataclass(frozen=True)
class PaddedReader(ImageReader):
    """Image files in their own size, with zeros below and to the right up to ``size``."""

    def _decoded(self, image: Any) -> NDArray[np.uint8]:
        found = ImageReader(self.channels)._decoded(image)
        return found if self.size is None else _padded(found, self.size, 0)


def is_mask_folder(path: str | Path) -> bool:
    """Whether a folder holds ``images`` and ``masks``, itself or in ``train``."""
    return any((root / IMAGES).is_dir() and (root / MASKS).is_dir() for root in _roots(path))


def mask_folder(path: str | Path) -> tuple[Path, Path]:
    """The folders of pictures and of masks in ``path``, or in its folder ``train``."""
    for root in _roots(path):
        if (root / IMAGES).is_dir() and (root / MASKS).is_dir():
            return root / IMAGES, root / MASKS
    raise DataError(
        f"{str(path)!r} has no folders 'images' and 'masks'; put pictures and masks of the same "
        "names there, or pass both folders"
    )


def mask_parts(path: str | Path) -> dict[str, tuple[Path, Path]]:
    """Folders of pictures and of masks by part: of ``train``, ``val`` and ``test`` where there are such
    folders, else one pair under "train"."""
    root = Path(path)
    if (root / IMAGES).is_dir() and (root / MASKS).is_dir():
        return {"train": (root / IMAGES, root / MASKS)}
    found = {
        part: (root / part / IMAGES, root / part / MASKS)
        for part in ("train", "val", "test")
        if (root / part).is_dir()
    }
    lost = next((p for both in found.values() for p in both if not p.is_dir()), None)
    if lost is not None or "train" not in found:
        raise DataError(f"there is no folder {str(lost or root / 'train')!r} of pictures and masks")
    return found


def _roots(path: str | Path) -> tuple[Path, Path]:
    return Path(path), Path(path) / "train"


def masked_pictures(X: Any, y: Any = None, ignore: int = IGNORED) -> tuple[Any, Any]:
    """Pictures and masks as arrays or rows of one size.

    Files are paired by their names without endings. Where sizes differ, pictures get zeros below and
    to the right up to the largest, and masks there the label ``ignore``.

    Parameters
    ----------
    X : folder or list of image files, or arrays of one or of different sizes
    y : folder or list of mask files (PNG with class numbers, a palette, or black and white), or arrays;
        None where X is a folder with ``images`` and ``masks``
    ignore : label of pixels that do not count
    """
    if y is None and isinstance(X, str | Path):
        X, y = mask_folder(X)
    if _is_paths(X) and y is not None:
        return _of_files(X, y, ignore)
    pictures = _arrays(X)
    if pictures is None or y is None or len({p.shape for p in pictures}) < 2:
        return X, y
    masks = _arrays(y) or []
    if len(masks) != len(pictures):
        raise ShapeError(
            f"X has {len(pictures)} pictures, y has {len(masks)} masks; give one for each"
        )
    for i, (picture, mask) in enumerate(zip(pictures, masks, strict=True)):
        check_pair(f"picture {i}", picture.shape[1:], f"mask {i}", mask.shape)
    if len({p.shape[0] for p in pictures}) > 1 or len({p.ndim for p in pictures}) > 1:
        listed = sorted({p.shape for p in pictures})[:3]
        raise ShapeError(f"pictures need one number of channels and axes, got {listed}")
    size = tuple(int(s) for s in np.max([m.shape for m in masks], axis=0))
    return (
        np.stack([_padded(p, size, 0) for p in pictures]),
        np.stack([_padded(m, size, ignore) for m in masks]),
    )


def check_pair(picture: str, size: Sequence[int], mask: str, own: Sequence[int]) -> None:
    """Refuse a mask of another size than its picture, by their names."""
    if tuple(size) != tuple(own):
        raise ShapeError(
            f"{picture} has {_by(size)} pixels, its {mask} {_by(own)}; a mask has a label for each "
            "pixel of its picture"
        )


def read_masks(paths: Sequence[str]) -> list[NDArray[Any]]:
    """Labels of the pixels of mask files, ``(H, W)`` each: class numbers, or places in a palette.

    Where all files are black and white, without a palette, white (255) is the label 1.
    """
    found = in_threads(lambda path: opened(path, lambda image: _labels(path, image)), paths)
    masks = [labels for labels, _ in found]
    if any(palette for _, palette in found):
        return masks
    values = np.unique(np.concatenate([np.unique(mask) for mask in masks])) if masks else ()
    return [mask // IGNORED for mask in masks] if np.array_equal(values, [0, IGNORED]) else masks


def _labels(path: str, image: Any) -> tuple[NDArray[Any], bool]:
    if image.mode not in ("1", "L", "P", "I;16", "I;16B", "I;16L"):
        raise DataError(
            f"the mask {path!r} has colours (mode {image.mode!r}); a mask holds class numbers or places "
            "in a palette, as PNG of mode 'L' or 'P'"
        )
    found = np.asarray(image)
    return found.astype(np.uint8) if found.dtype == np.bool_ else found, image.mode == "P"


def _of_files(X: Any, y: Any, ignore: int) -> tuple[Rows, NDArray[Any]]:
    pictures = image_files(X, empty=False) if isinstance(X, str | Path) else list(map(Path, X))
    if _is_paths(y):
        given = image_files(y, empty=False) if isinstance(y, str | Path) else list(map(Path, y))
        names = [str(p) for p in paired(pictures, given)]
        masks = read_masks(names)
    else:
        names, masks = [f"mask {i}" for i in range(len(y))], [np.asarray(m) for m in y]
        if len(masks) != len(pictures):
            raise ShapeError(f"X has {len(pictures)} files, y has {len(masks)} masks")
    files = Files.of(pictures)
    paths: list[str] = files.paths.tolist()
    about = headers(paths)
    for path, header, name, mask in zip(paths, about, names, masks, strict=True):
        check_pair(f"picture {path!r}", header.size, f"mask {name!r}", mask.shape)
    size = tuple(int(s) for s in np.max([h.size for h in about], axis=0))
    reader = PaddedReader(natural_channels(paths, about), size)  # type: ignore[arg-type]
    labels = np.stack([_padded(m, size, ignore) for m in masks])
    return cached(Files(files.paths, reader)), labels


def paired(pictures: Sequence[Path], masks: Sequence[Path]) -> list[Path]:
    """The mask of every picture: the file of the same name without its ending."""
    by_stem: dict[str, Path] = {}
    for mask in masks:
        if mask.stem in by_stem:
            raise DataError(
                f"two masks have one name, {str(by_stem[mask.stem])!r} and {str(mask)!r}"
            )
        by_stem[mask.stem] = mask
    lost = next((p for p in pictures if p.stem not in by_stem), None)
    if lost is not None:
        raise DataError(
            f"the picture {str(lost)!r} has no mask: none of {len(masks)} mask files is called "
            f"{lost.stem!r}"
        )
    own = {p.stem for p in pictures}
    alone = next((m for m in masks if m.stem not in own), None)
    if alone is not None:
        raise DataError(f"the mask {str(alone)!r} has no picture called {alone.stem!r}")
    return [by_stem[p.stem] for p in pictures]


def _is_paths(value: Any) -> bool:
    if isinstance(value, str | Path):
        return True
    rows = as_list(value)
    return bool(rows) and all(isinstance(v, str | Path) for v in rows or [])


def _arrays(value: Any) -> list[NDArray[Any]] | None:
    """A list of arrays; None for anything else."""
    if not isinstance(value, list | tuple) or not value:
        return None
    if not all(isinstance(v, np.ndarray | Tensor) for v in value):
        return None
    return [v.detach().cpu().numpy() if isinstance(v, Tensor) else v for v in value]


def _padded(values: NDArray[Any], size: Sequence[int], fill: int) -> NDArray[Any]:
    short = [n - own for n, own in zip(size, values.shape[-len(size) :], strict=True)]
    if not any(short):
        return values
    lead = [(0, 0)] * (values.ndim - len(size))
    return np.pad(values, [*lead, *((0, s) for s in short)], constant_values=fill)


def _by(size: Sequence[int]) -> str:
    return " x ".join(map(str, size))


def picture_list(X: Any) -> list[Any] | None:
    """Pictures of different sizes one by one, ``(1, C, *spatial)`` each; None where all have one size.

    Files in a folder or a list are looked at before they are read.
    """
    arrays = _arrays(X)
    if arrays is not None:
        different = len({a.shape for a in arrays}) > 1
        return [torch.from_numpy(np.array(a))[None] for a in arrays] if different else None
    if not _is_paths(X):
        return None
    paths = [str(p) for p in (image_files(X, empty=False) if isinstance(X, str | Path) else X)]
    about = headers(paths)
    if len({h.size for h in about}) == 1:
        return None
    reader = ImageReader(natural_channels(paths, about))
    return [Files.of([p], reader) for p in paths]
