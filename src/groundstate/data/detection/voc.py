"""Files of Pascal VOC: one XML for each picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from groundstate.data.detection.truths import DetectionSet, Truth
from groundstate.data.images.decode import image_files
from groundstate.data.images.read import files_of
from groundstate.errors import DataError

_LARGEST = 2**22  # bytes of a file about one picture


def read_voc(folder: str | Path, *, difficult: bool = False) -> DetectionSet:
    """Pictures of a folder with an XML file for each, beside them or in ``Annotations``.

    VOC counts pixels from 1 and includes the last one, so that a box (1, 1, 10, 10) becomes
    (0, 0, 10, 10). The parser refuses document types and entities, which could make a small file
    expand without end or read others.

    Parameters
    ----------
    folder : with ``Annotations`` and ``JPEGImages``, or pictures and XML files side by side
    difficult : whether objects that are marked as difficult are kept
    """
    root = Path(folder)
    found = sorted(root.rglob("*.xml"))
    if not found:
        raise DataError(f"{str(root)!r} holds no XML files of pictures")
    pictures = {p.name: p for p in image_files(root)}
    stems = {p.stem: p for p in pictures.values()}
    paths, truths = [], []
    for file in found:
        tree = _parse(file)
        name = _text(tree, "filename")
        picture = pictures.get(Path(name).name) if name else None
        picture = picture or stems.get(file.stem)
        if picture is None:
            raise DataError(
                f"{str(file)!r} is about the picture {name or file.stem!r}, which is not in {str(root)!r}"
            )
        paths.append(picture)
        truths.append(_truth(tree, file, difficult))
    names = sorted({str(label) for truth in truths for label in truth.labels})
    return DetectionSet(files_of(paths), truths, tuple(names))


Node = dict[str, Any]  # tag: a text, or a list of nodes by tag


def _parse(file: Path) -> Node:
    """The elements of a file as nested dicts of lists; text under ``""``."""
    content = file.read_bytes()
    if len(content) > _LARGEST:
        raise DataError(f"{str(file)!r} has {len(content)} bytes, too many to be about one picture")
    stack: list[Node] = [{}]

    def start(tag: str, _: Any) -> None:
        node: Node = {}
        stack[-1].setdefault(tag, []).append(node)
        stack.append(node)

    def refuse(*_: Any) -> None:
        raise DataError(f"{str(file)!r} declares a document type or an entity, which is not read")

    def text(characters: str) -> None:
        stack[-1][""] = stack[-1].get("", "") + characters

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop() and None
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataError(f"{str(file)!r} cannot be read as XML: {error}") from error
    return next((nodes[0] for tag, nodes in stack[0].items() if tag), {})


def _text(node: Node, tag: str) -> str:
    found = node.get(tag)
    return str(found[0].get("", "")).strip() if found else ""


def _truth(tree: Node, file: Path, difficult: bool) -> Truth:
    boxes, labels = [], []
    for i, thing in enumerate(tree.get("object", [])):
        if not difficult and _text(thing, "difficult") == "1":
            continue
        try:
            corners = thing["bndbox"][0]
            x1, y1, x2, y2 = (float(_text(corners, t)) for t in ("xmin", "ymin", "xmax", "ymax"))
        except (KeyError, ValueError) as error:
            raise DataError(
                f"object {i} of {str(file)!r} has no box of numbers xmin, ymin, xmax, ymax"
            ) from error
        if not (x2 >= x1 and y2 >= y1):
            raise DataError(
                f"object {i} of {str(file)!r} has the box {x1:g}, {y1:g}, {x2:g}, {y2:g}; xmax and "
                "ymax must not be smaller than xmin and ymin"
            )
        boxes.append((x1 - 1, y1 - 1, x2, y2))
        labels.append(_text(thing, "name"))
    size = tree.get("size")
    known = (
        (int(_text(size[0], "height") or 0), int(_text(size[0], "width") or 0)) if size else (0, 0)
    )
    return Truth(
        np.asarray(boxes, np.float32).reshape(-1, 4), labels, None, known if all(known) else None
    )
