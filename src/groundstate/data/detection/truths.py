"""What is in a picture, as files and people say it, before classes have numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from groundstate.compute.rows import Files, Rows, count, describe
from groundstate.data.detection.outlines import Outline, drawn
from groundstate.data.images.decode import headers
from groundstate.errors import DataError

F32 = NDArray[np.float32]
SLACK = 1.0  # pixels that rounding may put a box beyond the border


@dataclass(frozen=True, repr=False)
class Truth:
    """The objects of one picture.

    Attributes
    ----------
    boxes : (m, 4) float32, x1, y1, x2, y2 in pixels of the picture
    labels : list of m names or numbers
    masks : (m, H, W) array, non-zero inside an object; or a list of m outlines; or None
    size : (height, width) of the picture, None where it is not known
    """

    boxes: F32
    labels: list[Any]
    masks: NDArray[Any] | list[Outline] | None = None
    size: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        return f"Truth({dict(Counter(map(str, self.labels)))})"

    def drawn(self, size: tuple[int, int]) -> NDArray[np.uint8] | None:
        """Masks in a picture of this height and width, uint8 ``(m, height, width)``."""
        if self.masks is None:
            return None
        if isinstance(self.masks, list):
            assert self.size is not None
            return drawn(self.masks, self.size, size)
        masks = np.asarray(self.masks) != 0
        if masks.shape[1:] == tuple(size) or not len(masks):
            return masks.astype(np.uint8).reshape(len(masks), *size)
        found = functional.interpolate(torch.from_numpy(masks[:, None].astype(np.float32)), size)
        return found[:, 0].numpy().astype(np.uint8)


@dataclass(frozen=True, repr=False)
class DetectionSet:
    """Pictures and what is in them; a detector takes it in the place of X.

    Attributes
    ----------
    rows : ``Files``, ``Pixels`` or tensor ``(n, C, H, W)``
    truths : list of n
    classes : names of all classes, where the files say them
    """

    rows: Rows
    truths: list[Truth]
    classes: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return count(self.rows)

    def counts(self) -> dict[str, int]:
        """Objects of each class."""
        found = Counter(str(label) for truth in self.truths for label in truth.labels)
        return {name: found[name] for name in (self.classes or sorted(found))}

    def __repr__(self) -> str:
        return f"{describe(self.rows)}, {sum(map(len, self.truths))} objects"


def check_inside(found: DetectionSet) -> None:
    """Refuse a box that leaves its picture by more than a pixel, by the name of its file."""
    rows = found.rows
    names = rows.paths.tolist() if isinstance(rows, Files) else None
    unknown = [i for i, t in enumerate(found.truths) if t.size is None and len(t)]
    if names is None:
        return
    sizes = {i: t.size for i, t in enumerate(found.truths)}
    if unknown:
        about = headers([names[i] for i in unknown])
        sizes |= {i: h.size for i, h in zip(unknown, about, strict=True)}
    for i, truth in enumerate(found.truths):
        size = sizes[i]
        if size is None or not len(truth):
            continue
        check_boxes(truth, size, repr(names[i]))


def check_boxes(truth: Truth, size: tuple[int, int], picture: str) -> None:
    """Refuse a box that leaves a picture of (height, width) by more than a pixel."""
    height, width = size
    if not len(truth):
        return
    low, high = truth.boxes[:, :2].min(1), truth.boxes[:, 2:] - [width, height]
    out = (low < -SLACK) | (high.max(1) > SLACK)
    if out.any():
        box = ", ".join(f"{v:g}" for v in truth.boxes[out.argmax()])
        raise DataError(
            f"the picture {picture} has {width} x {height} pixels and a box outside of them: {box} "
            "(x1, y1, x2, y2)"
        )


def truth_of(value: Any, i: int) -> Truth:
    """A dict with boxes, labels and masks, a tuple of them, or a ``Truth``, as a ``Truth``."""
    if isinstance(value, Truth):
        return value
    if isinstance(value, Mapping):
        if not {"boxes", "labels"} <= set(value):
            raise DataError(
                f"the objects of picture {i} have the keys {', '.join(map(str, value))}; boxes and "
                "labels are needed, masks may be there"
            )
        value = (value["boxes"], value["labels"], value.get("masks"))
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) not in (2, 3):
        raise DataError(
            f"the objects of picture {i} are a {type(value).__name__}; expected (boxes, labels), "
            "(boxes, labels, masks) or a dict of these"
        )
    boxes = np.asarray(_array(value[0]), dtype=np.float32)
    if boxes.size % 4 or (boxes.ndim > 1 and boxes.size and boxes.shape[-1] != 4):
        raise DataError(
            f"the boxes of picture {i} have shape {boxes.shape}; expected (m, 4), each x1, y1, x2, y2"
        )
    boxes = boxes.reshape(-1, 4)
    given = _array(value[1])
    labels = given.reshape(-1).tolist() if isinstance(given, np.ndarray) else list(given)
    masks = None if len(value) < 3 or value[2] is None else np.asarray(_array(value[2]))
    if len(labels) != len(boxes):
        raise DataError(
            f"picture {i} has {len(boxes)} boxes and {len(labels)} labels; give one for each"
        )
    if masks is not None and (masks.ndim != 3 or len(masks) != len(boxes)):
        raise DataError(
            f"picture {i} has {len(boxes)} boxes and masks of shape {masks.shape}; give "
            f"({len(boxes)}, height, width)"
        )
    return Truth(boxes, labels, masks)


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
