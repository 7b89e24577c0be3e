"""Pictures with boxes from files of COCO, Pascal VOC and YOLO."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from groundstate.data.detection import read_coco, read_detection, read_voc, read_yolo
from groundstate.data.detection.outlines import drawn, run_lengths
from groundstate.data.detection.truths import Truth, truth_of
from groundstate.errors import DataError


def picture(path: Path, size: tuple[int, int] = (20, 30)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(path.name))
    Image.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8)).save(path)


def coco(root: Path, **changes: Any) -> Path:
    for name in ("a.png", "b.png"):
        picture(root / "images" / name)
    content: dict[str, Any] = {
        "images": [
            {"id": 7, "file_name": "a.png", "height": 20, "width": 30},
            {"id": 8, "file_name": "b.png", "height": 20, "width": 30},
        ],
        "categories": [{"id": 3, "name": "cat"}, {"id": 1, "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [2, 3, 10, 5],
             "segmentation": [[2, 3, 12, 3, 12, 8, 2, 8]], "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 1, "bbox": [0, 0, 4, 4],
             "segmentation": {"size": [20, 30], "counts": [0, 4, 16, 4, 576]}},
            {"id": 3, "image_id": 7, "category_id": 1, "bbox": [0, 0, 9, 9],
             "segmentation": [], "iscrowd": 1},
        ],
    }  # fmt: skip
    content.update(changes)
    path = root / "annotations" / "train.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def test_coco(tmp_path: Path) -> None:
    found = read_coco(coco(tmp_path))
    assert found.truths[0].boxes.tolist() == [[2, 3, 12, 8], [0, 0, 4, 4]]
    assert found.truths[0].labels == ["cat", "dog"] and found.classes == ("cat", "dog")
    assert len(found.truths[1]) == 0 and len(found) == 2  # a picture without objects; no crowd
    masks = found.truths[0].drawn((20, 30))
    assert masks is not None and masks[0, 3:8, 2:12].all() and masks[0].sum() == 50
    assert masks[1, :4, :2].all() and masks[1].sum() == 8
    assert repr(found) == "2 files of pictures, 2 objects" and found.counts() == {
        "cat": 1,
        "dog": 1,
    }


def test_coco_masks_follow_the_size_of_the_picture(tmp_path: Path) -> None:
    masks = read_coco(coco(tmp_path)).truths[0].drawn((10, 15))
    assert masks is not None and masks.shape == (2, 10, 15)
    assert masks[0, 2:4, 1:6].all() and 8 <= masks[0].sum() <= 18


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (
            {"id": 5, "image_id": 7, "category_id": 3, "bbox": [1, 1, 0, 4]},
            "annotation 5 of 'a.png'",
        ),
        ({"id": 5, "image_id": 7, "category_id": 9, "bbox": [1, 1, 2, 4]}, "category 9"),
        ({"id": 5, "image_id": 99, "category_id": 3, "bbox": [1, 1, 2, 4]}, "picture 99"),
    ],
)
def test_coco_annotations_that_are_wrong(tmp_path: Path, annotation: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_coco(coco(tmp_path, annotations=[annotation]))


def test_coco_files_that_are_wrong(tmp_path: Path) -> None:
    path = coco(tmp_path)
    path.write_text("{]")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        read_coco(path)
    path.write_text("{}")
    with pytest.raises(DataError, match="no lists 'images'"):
        read_coco(path)
    coco(tmp_path, images=[{"id": 7, "file_name": "lost.png", "height": 2, "width": 2}])
    with pytest.raises(DataError, match="names the picture 'lost.png'"):
        read_coco(path)


def voc(root: Path, body: str, name: str = "one", top: str = "") -> Path:
    picture(root / "JPEGImages" / f"{name}.png")
    file = root / "Annotations" / f"{name}.xml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"{top}<annotation><filename>{name}.png</filename><size><width>30</width>"
        f"<height>20</height></size>{body}</annotation>"
    )
    return file


OBJECT = (
    "<object><name>{}</name><difficult>{}</difficult><bndbox><xmin>{}</xmin><ymin>{}</ymin>"
    "<xmax>{}</xmax><ymax>{}</ymax></bndbox><part><name>head</name></part></object>"
)


def test_voc(tmp_path: Path) -> None:
    things = OBJECT.format("cat", 0, 1, 1, 10, 8) + OBJECT.format("dog", 1, 1, 1, 4, 4)
    voc(tmp_path, things)
    voc(tmp_path, "", "two")
    found = read_voc(tmp_path)
    assert found.truths[0].boxes.tolist() == [[0, 0, 10, 8]] and found.truths[0].labels == ["cat"]
    assert found.truths[0].size == (20, 30) and len(found.truths[1]) == 0
    assert read_voc(tmp_path, difficult=True).truths[0].labels == ["cat", "dog"]


def test_voc_refuses_entities_and_doctypes(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;">]>'
    voc(tmp_path, "<note>&c;</note>", top=bomb)
    with pytest.raises(DataError, match="document type or an entity"):
        read_voc(tmp_path)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (OBJECT.format("cat", 0, 5, 1, 2, 8), "object 0 of .* has the box 5, 1, 2, 8"),
        (OBJECT.format("cat", 0, "x", 1, 2, 8), "no box of numbers"),
        ("<object><name>cat</name></object>", "no box of numbers"),
        ("<object>", "cannot be read as XML"),
    ],
)
def test_voc_files_that_are_wrong(tmp_path: Path, body: str, said: str) -> None:
    voc(tmp_path, body)
    with pytest.raises(DataError, match=said):
        read_voc(tmp_path)


def test_voc_without_its_picture(tmp_path: Path) -> None:
    file = voc(tmp_path, "")
    (tmp_path / "JPEGImages" / "one.png").unlink()
    picture(tmp_path / "other.png")
    with pytest.raises(DataError, match=r"is about the picture 'one\.png'"):
        read_voc(tmp_path)
    assert file.is_file()


def yolo(root: Path, text: str, names: str | None = "cat\ndog\n") -> None:
    picture(root / "images" / "train" / "a.png")
    picture(root / "images" / "train" / "b.png")
    file = root / "labels" / "train" / "a.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    if names is not None:
        (root / "classes.txt").write_text(names)


def test_yolo(tmp_path: Path) -> None:
    yolo(tmp_path, "1 0.5 0.5 0.2 0.4\n0 0.1 0.25 0.2 0.5\n")
    found = read_yolo(tmp_path)
    assert np.allclose(found.truths[0].boxes, [[12, 6, 18, 14], [0, 0, 6, 10]])
    assert found.truths[0].labels == ["dog", "cat"] and len(found.truths[1]) == 0
    assert found.classes == ("cat", "dog")


def test_yolo_outlines(tmp_path: Path) -> None:
    yolo(tmp_path, "1 0.2 0.2 0.6 0.2 0.6 0.6 0.2 0.6\n", None)
    (tmp_path / "data.yaml").write_text("path: .\nnames:\n  0: cat\n  1: dog\n")
    truth = read_yolo(tmp_path).truths[0]
    assert np.allclose(truth.boxes, [[6, 4, 18, 12]]) and truth.labels == ["dog"]
    masks = truth.drawn((20, 30))
    assert masks is not None and masks[0].sum() == 12 * 8


@pytest.mark.parametrize("names", ["names: [cat, 'dog']\n", "names:\n- cat\n- dog\n"])
def test_yolo_names_in_yaml(tmp_path: Path, names: str) -> None:
    yolo(tmp_path, "1 0.5 0.5 0.2 0.4\n", None)
    (tmp_path / "data.yaml").write_text(names)
    assert read_yolo(tmp_path).truths[0].labels == ["dog"]


def test_yolo_without_names(tmp_path: Path) -> None:
    yolo(tmp_path, "4 0.5 0.5 0.2 0.4\n", None)
    assert read_yolo(tmp_path).truths[0].labels == [4]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 0.5 0.5 0.2\n", "line 1 of"),
        ("0 0.5 0.5 1.2 0.4\n", "shares from 0 to 1"),
        ("cat 0.5 0.5 0.2 0.4\n", "line 1 of"),
        ("\n0 0.5 0.5 0 0.4\n", "line 2 of .* without width or height"),
        ("7 0.5 0.5 0.2 0.4\n", "class 7, but there are 2 names"),
    ],
)
def test_yolo_lines_that_are_wrong(tmp_path: Path, text: str, said: str) -> None:
    yolo(tmp_path, text)
    with pytest.raises(DataError, match=said):
        read_yolo(tmp_path)


def test_a_folder_tells_its_form(tmp_path: Path) -> None:
    coco(tmp_path / "coco")
    voc(tmp_path / "voc", OBJECT.format("cat", 0, 1, 1, 10, 8))
    yolo(tmp_path / "yolo", "1 0.5 0.5 0.2 0.4\n")
    labels = [
        read_detection(tmp_path / name).truths[0].labels[0] for name in ("coco", "voc", "yolo")
    ]
    assert labels == ["cat", "cat", "dog"]
    assert read_detection(tmp_path / "coco" / "annotations" / "train.json").classes == (
        "cat",
        "dog",
    )
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="neither a JSON file of COCO"):
        read_detection(tmp_path / "empty")
    with pytest.raises(DataError, match="there is no folder"):
        read_detection(tmp_path / "nowhere")
    second = tmp_path / "coco" / "annotations" / "train2.json"
    second.write_text((tmp_path / "coco" / "annotations" / "train.json").read_text())
    with pytest.raises(DataError, match="several JSON files"):
        read_detection(tmp_path / "coco")


def test_run_lengths_as_numbers_and_as_text() -> None:
    """pycocotools 2.0: mask.encode(np.asfortranarray(mask))["counts"] is b"121O013"."""
    mask = [[0, 0, 1, 0], [1, 1, 1, 0], [1, 0, 0, 0]]
    numbers = [1, 2, 1, 1, 1, 2, 4]
    for counts in (numbers, "121O013", b"121O013"):
        assert run_lengths({"size": [3, 4], "counts": counts}).tolist() == mask
    with pytest.raises(DataError, match="do not fill a mask"):
        run_lengths({"size": [3, 4], "counts": [1, 2]})
    with pytest.raises(DataError, match="ends inside a number"):
        run_lengths({"size": [3, 4], "counts": "Q"})


def test_polygons_enclose_the_centres_of_pixels() -> None:
    whole = drawn([[[0, 0, 6, 0, 6, 4, 0, 4]]], (4, 6), (4, 6))
    assert whole.all()
    triangle = drawn([[[0, 0, 8, 0, 0, 8]]], (8, 8), (8, 8))[0]
    y, x = np.mgrid[:8, :8] + 0.5
    assert (triangle == (x + y < 8)).mean() > 0.85  # centres on the edge go either way
    hole = drawn([[[0, 0, 6, 0, 6, 4, 0, 4], [1, 1, 2, 1, 2, 2, 1, 2]]], (4, 6), (4, 6))[0]
    assert hole.all()  # parts of one object add


def test_truths_of_people() -> None:
    one = truth_of({"boxes": [[0, 0, 2, 2]], "labels": ["a"]}, 0)
    assert isinstance(one, Truth) and one.labels == ["a"] and one.masks is None
    assert truth_of(([], []), 0).boxes.shape == (0, 4)
    with pytest.raises(DataError, match="keys box"):
        truth_of({"box": 1}, 3)
    with pytest.raises(DataError, match="picture 3 has 1 boxes and 2 labels"):
        truth_of(([[0, 0, 1, 1]], [1, 2]), 3)
    with pytest.raises(DataError, match=r"masks of shape \(2, 4\)"):
        truth_of(([[0, 0, 1, 1]], [1], np.zeros((2, 4))), 3)
    with pytest.raises(DataError, match="are a int"):
        truth_of(3, 1)
