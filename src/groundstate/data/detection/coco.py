"""Files of COCO: one JSON with pictures, annotations and categories."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from groundstate.data.detection.outlines import Outline
from groundstate.data.detection.truths import DetectionSet, Truth
from groundstate.data.images.decode import image_files
from groundstate.data.images.read import files_of
from groundstate.errors import DataError


def read_coco(annotations: str | Path, images: str | Path | None = None) -> DetectionSet:
    """Pictures and objects of a JSON file in COCO's form.

    Boxes ``[x, y, width, height]`` become corners, outlines masks. Annotations of crowds, which stand
    for no single object, are left out. Pictures without annotations stay, with no objects.

    Parameters
    ----------
    annotations : the JSON file
    images : folder of the pictures; by default the file's own folder and those beside it

    Returns
    -------
    DetectionSet with the names of the categories as labels
    """
    path = Path(annotations)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{str(path)!r} cannot be read as JSON: {error}") from error
    if not _is_coco(content):
        raise DataError(
            f"{str(path)!r} has no lists 'images', 'annotations' and 'categories', as COCO's files do"
        )
    names = {c["id"]: str(c["name"]) for c in content["categories"]}
    own: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for annotation in content["annotations"]:
        if not annotation.get("iscrowd", 0):
            own[annotation["image_id"]].append(annotation)
    known = {image["id"] for image in content["images"]}
    lost = next((i for i in own if i not in known), None)
    if lost is not None:
        raise DataError(f"{path.name!r} has objects in picture {lost!r}, which is not in 'images'")
    find = _Finder(path, images)
    paths = [find(image["file_name"]) for image in content["images"]]
    outlined = all(a.get("segmentation") for found in own.values() for a in found)
    truths = [_truth(image, own[image["id"]], names, path, outlined) for image in content["images"]]
    if not paths:
        raise DataError(f"{str(path)!r} names no pictures")
    return DetectionSet(files_of(paths), truths, tuple(names.values()))


def _is_coco(content: Any) -> bool:
    return isinstance(content, dict) and all(
        isinstance(content.get(key), list) for key in ("images", "annotations", "categories")
    )


def _truth(
    image: dict[str, Any],
    found: list[dict[str, Any]],
    names: dict[Any, str],
    path: Path,
    masks: bool,
) -> Truth:
    boxes, labels = [], []
    outlines: list[Outline] = []
    for a in found:
        if a["category_id"] not in names:
            raise DataError(
                f"annotation {a.get('id')} in {path.name!r} has the category {a['category_id']!r}, "
                "which is not in 'categories'"
            )
        x, y, width, height = (float(v) for v in a["bbox"])
        if not (width > 0 and height > 0):
            raise DataError(
                f"annotation {a.get('id')} of {image['file_name']!r} in {path.name!r} has a box of "
                f"{width:g} x {height:g} pixels; width and height must be positive"
            )
        boxes.append((x, y, x + width, y + height))
        labels.append(names[a["category_id"]])
        if masks:
            outlines.append(a["segmentation"])
    array = np.asarray(boxes, np.float32).reshape(-1, 4)
    size = (int(image["height"]), int(image["width"])) if "height" in image else None
    return Truth(array, labels, outlines if masks and size is not None else None, size)


class _Finder:
    """Where the pictures of a JSON file are."""

    def __init__(self, path: Path, images: str | Path | None) -> None:
        self.roots = [
            path.parent,
            path.parent / "images",
            path.parent.parent,
            path.parent.parent / "images",
        ]
        if images is not None:
            self.roots = [Path(images)]
        self.path = path
        self.by_name: dict[str, Path] | None = None

    def __call__(self, name: str) -> Path:
        for root in self.roots:
            if (root / name).is_file():
                return root / name
        if self.by_name is None:
            root = self.roots[0] if len(self.roots) == 1 else self.roots[2]
            self.by_name = {p.name: p for p in image_files(root)}
        found = self.by_name.get(Path(name).name)
        if found is None:
            raise DataError(
                f"{self.path.name!r} names the picture {name!r}, which is not in "
                f"{' or '.join(repr(str(r)) for r in self.roots)}; pass images= with its folder"
            )
        return found
