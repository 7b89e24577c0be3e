"""A CSV file of boxes: one line for each object, with the name of its picture."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

from groundstate.data.detection.truths import DetectionSet, Truth
from groundstate.data.images.decode import headers, image_files
from groundstate.data.images.read import files_of
from groundstate.errors import DataError

PICTURE = ("image", "filename", "file", "path", "image_id", "picture")
LABEL = ("label", "class", "name", "category")
CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"))
SIDES = (("x", "y", "width", "height"), ("x", "y", "w", "h"))


def is_box_file(path: str | Path) -> bool:
    """Whether the first line of a CSV file names a picture, a label and a box."""
    file = Path(path)
    if file.suffix.lower() != ".csv" or not file.is_file():
        return False
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        head = lines.readline()
    names = {c.strip().strip('"').lower() for c in head.replace(";", ",").split(",")}
    boxes = any(set(four) <= names for four in (*CORNERS, *SIDES))
    return boxes and bool(names & set(PICTURE)) and bool(names & set(LABEL))


def read_box_file(path: str | Path, images: str | Path | None = None) -> DetectionSet:
    """Pictures and objects of a CSV file, pixels counted from 0 at the upper left corner.

    The columns are ``image``, ``label`` and ``x1, y1, x2, y2`` (or ``xmin, ymin, xmax, ymax``, or ``x, y,
    width, height``). A line whose box is empty, and a picture of the folder that no line names, say
    that there is nothing in the picture.

    Parameters
    ----------
    path : the CSV file
    images : folder of the pictures; by default the file's own folder and those in it
    """
    file = Path(path)
    root = file.parent if images is None else Path(images)
    pictures = image_files(root, empty=False)
    by_name = {p.name: p for p in pictures} | {str(p.relative_to(root)): p for p in pictures}
    by_name = {p.stem: p for p in pictures} | by_name
    boxes: dict[Path, list[tuple[float, ...]]] = defaultdict(list)
    labels: dict[Path, list[str]] = defaultdict(list)
    for i, (name, label, box) in enumerate(_lines(file), 2):
        picture = by_name.get(name) or by_name.get(Path(name).name)
        if picture is None:
            raise DataError(
                f"line {i} of {file.name!r} is about the picture {name!r}, which is not in {str(root)!r}"
            )
        if box is None:
            continue
        if not label:
            raise DataError(f"line {i} of {file.name!r} has a box without a label")
        if not (box[2] > box[0] and box[3] > box[1]):
            raise DataError(
                f"line {i} of {file.name!r} has a box without width or height: "
                f"{', '.join(f'{v:g}' for v in box)}"
            )
        boxes[picture].append(box)
        labels[picture].append(label)
    sizes = [h.size for h in headers([str(p) for p in pictures])]
    truths = [
        Truth(np.asarray(boxes[p], np.float32).reshape(-1, 4), list(labels[p]), None, size)
        for p, size in zip(pictures, sizes, strict=True)
    ]
    names = sorted({label for truth in truths for label in truth.labels})
    return DetectionSet(files_of(pictures), truths, tuple(names))


def _lines(file: Path) -> list[tuple[str, str, tuple[float, ...] | None]]:
    """Picture, label and corners of every line; None for the box of a line that has none."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{str(file)!r} cannot be read as text: {error}") from error
    head = text.split("\n", 1)[0]
    rows = csv.DictReader(text.splitlines(), delimiter=";" if ";" in head else ",")
    names = {str(n).strip().lower(): n for n in rows.fieldnames or ()}
    picture = next((names[n] for n in PICTURE if n in names), None)
    label = next((names[n] for n in LABEL if n in names), None)
    corners = next((four for four in CORNERS if set(four) <= set(names)), None)
    sides = next((four for four in SIDES if set(four) <= set(names)), None)
    if picture is None or label is None or (corners is None and sides is None):
        raise DataError(
            f"{str(file)!r} has the columns {', '.join(names) or 'none'}; expected image, label and "
            "x1, y1, x2, y2 (or x, y, width, height)"
        )
    found = []
    for i, row in enumerate(rows, 2):
        given = [str(row[names[n]] or "").strip() for n in corners or sides or ()]
        box: tuple[float, ...] | None = None
        if any(given):
            try:
                a, b, c, d = (float(v) for v in given)
            except ValueError:
                raise DataError(
                    f"line {i} of {file.name!r} has a box that is not four numbers: {', '.join(given)}"
                ) from None
            box = (a, b, c, d) if corners is not None else (a, b, a + c, b + d)
            if not np.isfinite(box).all():
                raise DataError(
                    f"line {i} of {file.name!r} has a box that is not four numbers: {', '.join(given)}"
                )
        found.append((str(row[picture] or "").strip(), str(row[label] or "").strip(), box))
    return found
