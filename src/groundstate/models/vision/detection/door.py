"""Pictures and the objects in them, as a detector takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.rows import Files, Objects, Pixels, Rows, count, resized
from groundstate.data.detection import DetectionSet, Truth, read_detection
from groundstate.data.detection.truths import check_boxes, truth_of
from groundstate.data.images.decode import ImageReader, headers
from groundstate.errors import DataError, ShapeError

Size = tuple[int, int]
QUANTILES = (0.1, 0.35, 0.65, 0.9)  # of the sides of objects: sizes of anchors on four maps


def pictures_and_truths(X: Any, y: Any) -> tuple[Any, list[Truth]]:
    """Pictures and what is in them: of a folder, a set that was read, a list of rows, or X and y."""
    if y is None and isinstance(X, str | Path):
        X = read_detection(X)
    if y is None and isinstance(X, DetectionSet):
        return X.rows, X.truths
    if y is None:
        if not isinstance(X, list | tuple) or not all(_is_row(row) for row in X):
            raise DataError(
                "a detector learns from a folder in the form of COCO, VOC or YOLO, from a list of "
                "(image, boxes, labels) or (image, boxes, labels, masks), or from images and "
                f"y, a list of (boxes, labels); got {type(X).__name__} without y"
            )
        return [row[0] for row in X], [truth_of(tuple(row[1:]), i) for i, row in enumerate(X)]
    if isinstance(y, DetectionSet):
        y = y.truths
    if isinstance(y, Objects):
        return X, _truths_of(y)
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise DataError(
            f"y must be a list with the objects of each picture, got {type(y).__name__}"
        )
    return X, [truth_of(one, i) for i, one in enumerate(y)]


def _truths_of(objects: Objects) -> list[Truth]:
    """Rows of objects whose numbers of classes are the labels."""
    ends = objects.boxes.offsets.tolist()
    boxes, labels = objects.boxes.values.cpu().numpy(), objects.labels.values.tolist()
    masks = None if objects.masks is None else objects.masks.values.cpu().numpy()
    return [
        Truth(boxes[a:b], labels[a:b], None if masks is None else masks[a:b])
        for a, b in pairwise(ends)
    ]


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple) and len(row) in (3, 4)


def uniform(X: Any, size: Size | None) -> tuple[Any, list[Size] | None]:
    """Pictures of one size where they are arrays of several, and the sizes that they had.

    Files are not read here; their sizes are, where they are to be changed.
    """
    if isinstance(X, list | tuple) and X and not isinstance(X[0], str | Path):
        arrays = [_picture(x, i) for i, x in enumerate(X)]
        sizes = [(int(a.shape[1]), int(a.shape[2])) for a in arrays]
        if len(set(sizes)) > 1:
            if size is None:
                raise DataError(
                    f"the pictures have different sizes, such as {sorted(set(sizes))[:3]}; pass "
                    "size=(height, width), to which pictures and boxes are scaled"
                )
            arrays = [resized(a[None].float(), size)[0] for a in arrays]
        return torch.stack(arrays) if _all_torch(X) else torch.stack(arrays).numpy(), sizes
    return X, None


def _all_torch(X: Sequence[Any]) -> bool:
    return all(isinstance(x, Tensor) for x in X)


def _picture(x: Any, i: int) -> Tensor:
    found = x if isinstance(x, Tensor) else torch.from_numpy(np.array(x))
    found = found / 255 if found.dtype == torch.uint8 else found
    found = found[None] if found.ndim == 2 else found
    if found.ndim != 3:
        raise ShapeError(
            f"picture {i} has shape {tuple(found.shape)}; expected (channels, height, width)"
        )
    return found


def sizes_of(rows: Rows) -> list[Size]:
    """Height and width of every picture, before it is scaled."""
    if isinstance(rows, Files):
        return [h.size for h in headers(rows.paths.tolist())]
    if isinstance(rows, Pixels):
        height, width = rows.values.shape[2:]
    else:
        assert isinstance(rows, Tensor)
        height, width = rows.shape[2:]
    return [(int(height), int(width))] * count(rows)


def one_size(sizes: Sequence[Size], size: Size | None) -> Size:
    """The size that pictures are scaled to: the one asked for, or the one they have."""
    if size is not None:
        return size
    sizes = [(h, w) for part in current().gather_plain(list(set(sizes))) for h, w in part]
    if len(set(sizes)) != 1:
        raise DataError(
            f"the pictures have different sizes, such as {sorted(set(sizes))[:3]}; pass "
            "size=(height, width), to which pictures and boxes are scaled"
        )
    return sizes[0]


def scaled_rows(rows: Rows, size: Size) -> Rows:
    """Pictures of one size; those in files when they are read."""
    if isinstance(rows, Files) and isinstance(rows.reader, ImageReader):
        return replace(rows, reader=replace(rows.reader, size=size))
    if isinstance(rows, Pixels):
        return replace(rows, size=size)
    return resized(rows, size) if isinstance(rows, Tensor) else rows


def objects_of(
    truths: Sequence[Truth], sizes: Sequence[Size], size: Size, classes: NDArray[Any], masks: bool
) -> Objects:
    """Boxes, numbers of classes from 1 on and masks, in pictures of one size."""
    number = {label: i + 1 for i, label in enumerate(classes.tolist())}
    _check_pixels(truths)
    found = []
    for i, (truth, (height, width)) in enumerate(zip(truths, sizes, strict=True)):
        strange = next((label for label in truth.labels if label not in number), None)
        if strange is not None:
            raise ValueError(
                f"picture {i} has an object of the class {strange!r}; the model knows "
                f"{classes.tolist()}"
            )
        if masks and truth.masks is None and len(truth):
            raise DataError(
                f"picture {i} has boxes without masks, which method='mask' learns from; give masks, or "
                "use method='faster'"
            )
        check_boxes(truth, (height, width), str(i))
        _check_masks(truth, (height, width), i)
        scale = np.array([size[1] / width, size[0] / height] * 2, np.float32)
        labels = [number[label] for label in truth.labels]
        drawn = truth.drawn(size) if masks else None
        if masks and drawn is None:
            drawn = np.zeros((0, *size), np.uint8)
        found.append((truth.boxes * scale, np.array(labels, np.int64), drawn))
    return Objects.of(found)


def _check_pixels(truths: Sequence[Truth]) -> None:
    boxes = [truth.boxes for truth in truths if len(truth)]
    if boxes and max(float(b.max()) for b in boxes) <= 1:
        raise DataError(
            "all boxes lie between 0 and 1, as shares of the picture do; a box is x1, y1, x2, y2 in pixels, so "
            "multiply by its width and height"
        )


def _check_masks(truth: Truth, size: Size, i: int) -> None:
    masks = truth.masks
    if isinstance(masks, np.ndarray) and len(masks) and masks.shape[1:] != tuple(size):
        raise ShapeError(
            f"picture {i} has {size[0]} x {size[1]} pixels, its masks {masks.shape[1]} x "
            f"{masks.shape[2]}; a mask has the size of its picture"
        )


def class_names(truths: Sequence[Truth]) -> NDArray[Any]:
    """All labels of the objects, sorted."""
    own = sorted({label for truth in truths for label in truth.labels}, key=str)
    labels = {label for part in current().gather_plain(own) for label in part}
    if not labels:
        raise ValueError("no picture holds an object; a detector needs some to learn from")
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        raise ValueError(f"labels are names or numbers, not both: {sorted(map(str, labels))[:5]}")
    return np.array(sorted(labels))


def with_sizes(truths: list[Truth], sizes: list[Size]) -> list[Truth]:
    """Objects that know the size of their picture."""
    return [replace(truth, size=size) for truth, size in zip(truths, sizes, strict=True)]


def side_quantiles(sides: NDArray[Any], weight: NDArray[Any]) -> tuple[float, ...]:
    """Sides below which so much of the weight lies; a weight of 2 is the object twice."""
    order = np.argsort(sides, kind="stable")
    cumulative = weight[order].cumsum()
    at = np.searchsorted(cumulative, np.array(QUANTILES) * cumulative[-1])
    return tuple(float(v) for v in sides[order][np.minimum(at, len(sides) - 1)])
