"""A folder of pictures with boxes, in whichever of the four forms it is."""

from __future__ import annotations

import json
from pathlib import Path

from groundstate.data.detection.coco import read_coco
from groundstate.data.detection.lines import is_box_file, read_box_file
from groundstate.data.detection.truths import DetectionSet, check_inside
from groundstate.data.detection.voc import read_voc
from groundstate.data.detection.yolo import read_yolo
from groundstate.data.images.decode import image_files
from groundstate.errors import DataError

_PARTS = {"train": ("train",), "val": ("val", "valid"), "test": ("test",)}


def is_detection_folder(path: str | Path) -> bool:
    """Whether a folder, or its folder ``train``, holds boxes of pictures in one of the forms."""
    return any(_annotations(root) or _box_files(root) or _beside_pictures(root)
               for root in (Path(path), Path(path) / "train") if root.is_dir())  # fmt: skip


def read_detection_parts(path: str | Path) -> dict[str, DetectionSet]:
    """Pictures with boxes by part, where a folder has folders ``train``, ``val`` and ``test``, or JSON
    files of these names; else all of them under "train".
    """
    root = Path(path)
    inside = {p.name.lower(): p for p in root.iterdir() if p.is_dir()} if root.is_dir() else {}
    places = {part: inside[n] for part, names in _PARTS.items() for n in names if n in inside}
    if "train" in places and not _annotations(root) and not _box_files(root):
        return {part: read_detection(folder) for part, folder in places.items()}
    files = _annotations(root) if root.is_dir() else []
    named = {part: p for part, names in _PARTS.items() for p in files
             if any(n in p.stem.lower() for n in names)}  # fmt: skip
    if "train" in named and len(named) > 1:
        return {part: read_detection(p) for part, p in named.items()}
    return {"train": read_detection(root)}


def read_detection(path: str | Path) -> DetectionSet:
    """Pictures and their objects from a folder, a JSON file or a CSV file.

    ``DataError`` names the first box that leaves its picture.

    =====  ===================================================================================
    COCO   a JSON file with ``images``, ``annotations`` and ``categories``, in the folder or in
           ``annotations``; of several, the one whose name has "train" in it
    CSV    a file with the columns image, label, x1, y1, x2, y2; see ``read_box_file``
    VOC    XML files, beside the pictures or in ``Annotations``
    YOLO   text files, beside the pictures or in ``labels``
    =====  ===================================================================================
    """
    found = _read(Path(path))
    check_inside(found)
    return found


def _read(root: Path) -> DetectionSet:
    if root.is_file() and root.suffix == ".json":
        return read_coco(root)
    if root.is_file() and root.suffix == ".csv":
        return read_box_file(root)
    if not root.is_dir():
        raise DataError(f"there is no folder {str(root)!r}; pass one with pictures and their boxes")
    annotations = _annotations(root)
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
    lines = _box_files(root)
    if len(lines) > 1:
        listed = ", ".join(p.name for p in lines)
        raise DataError(f"{str(root)!r} holds several CSV files of boxes ({listed}); pass one")
    if lines:
        return read_box_file(lines[0], root)
    if next(root.rglob("*.xml"), None) is not None:
        return read_voc(root)
    if next(root.rglob("*.txt"), None) is not None:
        return read_yolo(root)
    raise DataError(
        f"{str(root)!r} holds neither a JSON file of COCO, a CSV file of boxes, XML files of Pascal "
        "VOC nor text files of YOLO; pass a folder of these, or images and a list of (boxes, labels)"
    )


def _annotations(root: Path) -> list[Path]:
    places = (root, root / "annotations")
    return [p for place in places for p in sorted(place.glob("*.json")) if _looks_like_coco(p)]


def _box_files(root: Path) -> list[Path]:
    places = (root, root / "annotations")
    return [p for place in places for p in sorted(place.glob("*.csv")) if is_box_file(p)]


def _beside_pictures(root: Path) -> bool:
    """Whether XML or text files have the names of pictures."""
    stems = {p.stem for p in image_files(root)}
    return any(p.stem in stems for ending in ("*.xml", "*.txt") for p in root.rglob(ending))


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
