"""A folder of pictures with boxes, in whichever of the three forms it is."""

from __future__ import annotations

import json
from pathlib import Path

from groundstate.data.detection.coco import read_coco
from groundstate.data.detection.truths import DetectionSet
from groundstate.data.detection.voc import read_voc
from groundstate.data.detection.yolo import read_yolo
from groundstate.errors import DataError


def read_detection(path: str | Path) -> DetectionSet:
    """Pictures and their objects from a folder or a JSON file.

    =====  ===================================================================================
    COCO   a JSON file with ``images``, ``annotations`` and ``categories``, in the folder or in
           ``annotations``; of several, the one whose name has "train" in it
    VOC    XML files, beside the pictures or in ``Annotations``
    YOLO   text files, beside the pictures or in ``labels``
    =====  ===================================================================================
    """
    root = Path(path)
    if root.is_file() and root.suffix == ".json":
        return read_coco(root)
    if not root.is_dir():
        raise DataError(f"there is no folder {str(root)!r}; pass one with pictures and their boxes")
    found = [p for place in (root, root / "annotations") for p in sorted(place.glob("*.json"))]
    annotations = [p for p in found if _looks_like_coco(p)]
    if len(annotations) > 1:
        of_training = [p for p in annotations if "train" in p.stem.lower()]
        if len(of_training) != 1:
            listed = ", ".join(p.name for p in annotations)
            raise DataError(
                f"{str(root)!r} holds several JSON files ({listed}); pass the path of one"
            )
        annotations = of_training
    if annotations:
        return read_coco(annotations[0])
    if next(root.rglob("*.xml"), None) is not None:
        return read_voc(root)
    if next(root.rglob("*.txt"), None) is not None:
        return read_yolo(root)
    raise DataError(
        f"{str(root)!r} holds neither a JSON file of COCO, XML files of Pascal VOC nor text files of "
        "YOLO; pass a folder of these, or images and a list of (boxes, labels)"
    )


def _looks_like_coco(path: Path) -> bool:
    """By its keys; a large file is not parsed for that."""
    with path.open(encoding="utf-8", errors="replace") as file:
        start = file.read(2**16)
    if all(f'"{key}"' in start for key in ("images", "annotations")):
        return True
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        return False
    return isinstance(content, dict) and {"images", "annotations"} <= set(content)
