"""Files of YOLO: one text for each picture, numbers from 0 to 1."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from groundstate.data.detection.outlines import Outline
from groundstate.data.detection.truths import DetectionSet, Truth
from groundstate.data.images.decode import headers, image_files
from groundstate.data.images.read import files_of
from groundstate.errors import DataError

_NAMES = ("classes.txt", "obj.names", "data.yaml", "dataset.yaml", "data.yml", "dataset.yml")


def read_yolo(folder: str | Path) -> DetectionSet:
    """Pictures of a folder with a text file for each, in ``labels`` or beside them.

    A line is ``class cx cy width height`` in shares of the picture's sides, or ``class x y x y ...``,
    an outline. Names of classes come from ``classes.txt``, ``obj.names`` or ``names`` in a YAML file;
    without one the numbers are the labels. A picture without a text file has no objects.
    """
    root = Path(folder)
    pictures = image_files(root, empty=False)
    names = _names(root)
    sizes = [h.size for h in headers([str(p) for p in pictures])]
    texts = {p: q for p in pictures if (q := _text_of(p)) is not None}
    if not texts:
        raise DataError(
            f"{str(root)!r} holds no text files of its pictures, in 'labels' or beside them"
        )
    truths = [
        _truth(texts[p], size, names)
        if p in texts
        else Truth(np.zeros((0, 4), np.float32), [], None, size)
        for p, size in zip(pictures, sizes, strict=True)
    ]
    if any(t.masks is None and len(t) for t in truths):  # masks of all objects, or of none
        truths = [Truth(t.boxes, t.labels, None, t.size) for t in truths]
    elif any(t.masks for t in truths):
        truths = [Truth(t.boxes, t.labels, t.masks or [], t.size) for t in truths]
    return DetectionSet(files_of(pictures), truths, tuple(names) if names else None)


def _text_of(picture: Path) -> Path | None:
    """``images/train/a.jpg`` has ``labels/train/a.txt``; any picture may have ``a.txt`` beside it."""
    parts = picture.parts
    places = [picture.with_suffix(".txt")]
    if "images" in parts:
        at = len(parts) - 1 - parts[::-1].index("images")
        places.append(Path(*parts[:at], "labels", *parts[at + 1 :]).with_suffix(".txt"))
    return next((p for p in places if p.is_file()), None)


def _truth(file: Path, size: tuple[int, int], names: list[str] | None) -> Truth:
    height, width = size
    boxes, labels = [], []
    outlines: list[Outline] = []
    for i, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        label, numbers = _numbers(line, file, i)
        if names is not None and label >= len(names):
            raise DataError(
                f"line {i} of {str(file)!r} has class {label}, but there are {len(names)} names"
            )
        if len(numbers) == 4:
            x, y, w, h = numbers
            box = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        else:
            points = np.asarray(numbers).reshape(-1, 2)
            box = (*points.min(0), *points.max(0))
            outlines.append([(points * [width, height]).ravel().tolist()])
        if not (box[2] > box[0] and box[3] > box[1]):
            raise DataError(
                f"line {i} of {str(file)!r} has a box without width or height: {line.strip()!r}"
            )
        boxes.append((box[0] * width, box[1] * height, box[2] * width, box[3] * height))
        labels.append(label if names is None else names[label])
    masks = outlines if outlines and len(outlines) == len(boxes) else None
    return Truth(np.asarray(boxes, np.float32).reshape(-1, 4), labels, masks, size)


def _numbers(line: str, file: Path, i: int) -> tuple[int, list[float]]:
    fields = line.split()
    try:
        label, numbers = int(fields[0]), [float(v) for v in fields[1:]]
    except ValueError:
        numbers, label = [], -1
    good = len(numbers) == 4 or (len(numbers) >= 6 and len(numbers) % 2 == 0)
    if label < 0 or not good or not all(-1e-6 <= v <= 1 + 1e-6 for v in numbers):
        raise DataError(
            f"line {i} of {str(file)!r} is {line.strip()!r}; expected a class number and cx, cy, width, "
            "height (or an outline x, y, x, y, ...) as shares from 0 to 1"
        )
    return label, numbers


def _names(root: Path) -> list[str] | None:
    for name in _NAMES:
        for place in (root, root.parent):
            file = place / name
            if not file.is_file():
                continue
            text = file.read_text(encoding="utf-8")
            found = _yaml_names(text) if file.suffix in (".yaml", ".yml") else text.split("\n")
            found = [n.strip() for n in found if n.strip()]
            if found:
                return found
    return None


def _yaml_names(text: str) -> list[str]:
    """The list under ``names``: ``[a, b]``, lines ``- a``, or lines ``0: a``."""
    inline = re.search(r"^names:\s*\[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    if inline:
        return [_bare(n) for n in inline.group(1).split(",")]
    block = re.search(r"^names:[ \t]*\n((?:[ \t]+.*\n?|-[ \t].*\n?)+)", text, re.MULTILINE)
    if not block:
        return []
    lines = [line.strip() for line in block.group(1).splitlines() if line.strip()]
    if all(re.match(r"\d+\s*:", line) for line in lines):
        pairs = sorted((int(k), v) for k, v in (line.split(":", 1) for line in lines))
        return [_bare(v) for _, v in pairs]
    return [_bare(line.removeprefix("-")) for line in lines]


def _bare(name: str) -> str:
    return name.strip().strip("'\"")
