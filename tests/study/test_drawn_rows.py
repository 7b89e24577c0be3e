"""The main job for pictures with masks and with boxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

import groundstate
from groundstate.cli.app import app
from groundstate.compute.random import Key
from groundstate.data.detection.read import read_detection
from groundstate.errors import DataError
from groundstate.evaluate.metrics.drawn import JudgedBoxes, JudgedMasks, drawn_intervals
from groundstate.study.rows.source import read_source

TINY = {"network_params": {"base": 4, "depth": 2}, "max_epochs": 12, "lr": 0.02, "loss": "ce",
        "val_fraction": 0.0}  # fmt: skip


def scenes(n: int = 24, side: int = 16) -> list[tuple[np.ndarray[Any, Any], tuple[int, ...]]]:
    """Dark pictures with one bright square each, and its corners."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n):
        pixels = rng.integers(0, 60, (side, side, 3), dtype=np.uint8)
        x, y = rng.integers(0, side - 8, 2)
        pixels[y : y + 8, x : x + 8] += np.uint8(180)
        found.append((pixels, (int(x), int(y), int(x) + 8, int(y) + 8)))
    return found


def with_masks(root: Path, n: int = 24) -> Path:
    for name in ("images", "masks"):
        (root / name).mkdir(parents=True)
    for i, (pixels, (x1, y1, x2, y2)) in enumerate(scenes(n)):
        mask = np.zeros(pixels.shape[:2], np.uint8)
        mask[y1:y2, x1:x2] = 7
        Image.fromarray(pixels).save(root / "images" / f"{i:02d}.png")
        Image.fromarray(mask).save(root / "masks" / f"{i:02d}.png")
    return root


def with_boxes(root: Path, n: int = 24, side: int = 16) -> Path:
    root.mkdir(parents=True)
    lines = ["image,label,x1,y1,x2,y2"]
    for i, (pixels, box) in enumerate(scenes(n, side)):
        Image.fromarray(pixels).save(root / f"{i:02d}.png")
        lines.append(f"{i:02d}.png,square,{','.join(map(str, box))}")
    (root / "boxes.csv").write_text("\n".join(lines) + "\n")
    return root


def as_coco(root: Path, n: int = 24) -> Path:
    (root / "images").mkdir(parents=True)
    content: dict[str, Any] = {
        "images": [], "annotations": [], "categories": [{"id": 1, "name": "square"}]
    }  # fmt: skip
    for i, (pixels, (x1, y1, x2, y2)) in enumerate(scenes(n)):
        Image.fromarray(pixels).save(root / "images" / f"{i:02d}.png")
        content["images"].append({"id": i, "file_name": f"{i:02d}.png", "height": 16, "width": 16})
        content["annotations"].append(
            {"id": i, "image_id": i, "category_id": 1, "bbox": [x1, y1, x2 - x1, y2 - y1]}
        )
    (root / "annotations.json").write_text(json.dumps(content))
    return root


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def test_masks_from_the_command_line(tmp_path: Path) -> None:
    root, out, settings = with_masks(tmp_path / "cells"), tmp_path / "out", tmp_path / "s.json"
    settings.write_text(json.dumps(TINY))
    words = ["fit", str(root), "--params", str(settings), "--device", "cpu", "--out", str(out)]
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads((out / "report.json").read_text())
    assert facts["task"] == "segmentation" and facts["chosen"] == "Segmenter"
    iou = facts["scores"]["iou"]
    assert 0.7 < iou["lo"] <= iou["value"] <= iou["hi"] <= 1 and iou["n"] == 5
    assert (
        facts["baselines"]["dummy"]["iou"]["value"] < 0.5
        and facts["baselines"]["better_than_dummy"]
    )
    assert facts["ledger"]["looks"] == 1 and facts["ledger"]["recorded"]
    assert (tmp_path / "cells.ledger.jsonl").is_file()
    page = (out / "report.html").read_text()
    assert "The worst pictures" in page and "mask by the model" in page
    assert "the commonest label for every pixel" in facts["verdict"][1]
    told = run("predict", str(out / "model.gs"), str(root), "--out", str(tmp_path / "drawn"))
    assert told.exit_code == 0, told.output
    model = groundstate.load(out / "model.gs")
    drawn = np.asarray(Image.open(tmp_path / "drawn" / "03.png"))
    assert np.array_equal(drawn, model.predict([root / "images" / "03.png"])[0])
    assert set(np.unique(drawn)) <= {0, 7}
    refused = run("predict", str(out / "model.gs"), str(root))
    assert refused.exit_code == 2 and "--out FOLDER" in refused.output
    again = run(*words[:2], "--params", str(settings), "--seed", "1", "--device", "cpu",
                "--metric", "rmse", "--out", str(out))  # fmt: skip
    assert again.exit_code == 2 and "there are iou, dice, pixel_accuracy" in again.output


def test_boxes_from_the_command_line(tmp_path: Path) -> None:
    root, out, settings = with_boxes(tmp_path / "shots", 20), tmp_path / "out", tmp_path / "s.json"
    settings.write_text(json.dumps({"max_epochs": 1, "val_fraction": 0.0}))
    words = ["--params", str(settings), "--device", "cpu", "--out", str(out), "--json"]
    done = run("fit", str(root), *words)
    assert done.exit_code in (0, 3), done.output
    facts = json.loads((out / "report.json").read_text())
    assert facts["task"] == "detection" and facts["chosen"] == "ObjectDetector"
    assert facts["baselines"]["dummy"]["ap50"]["value"] == 0
    assert set(facts["scores"]) == {"ap50", "ap", "ar"}
    assert "objects as they were marked" in (out / "report.html").read_text()
    file = tmp_path / "found.csv"
    told = run("predict", str(out / "model.gs"), str(root), "--out", str(file))
    assert told.exit_code == 0, told.output
    lines = pl.read_csv(file)
    assert lines.columns == ["image", "label", "score", "x1", "y1", "x2", "y2"]
    model = groundstate.load(out / "model.gs")
    paths = sorted(root.glob("*.png"))
    assert lines.height == sum(len(found["boxes"]) for found in model.predict(paths))


def test_the_same_boxes_in_coco_and_csv(tmp_path: Path) -> None:
    one = read_source(with_boxes(tmp_path / "csv"))
    two = read_source(as_coco(tmp_path / "coco"))
    assert one.task == two.task == "detection" and one.hash == two.hash
    assert one.notes[0].endswith("24 objects")
    with pytest.raises(DataError, match="what is predicted, the objects; leave --target kind out"):
        read_source(tmp_path / "csv", "kind")


def test_parts_that_judge(tmp_path: Path) -> None:
    for part, n in (("train", 20), ("test", 6)):
        with_masks(tmp_path / "masks" / part, n)
        as_coco(tmp_path / "coco" / part, n)
    for kind in ("masks", "coco"):
        source = read_source(tmp_path / kind)
        assert source.judges is not None and source.judges.tolist() == list(range(20, 26))


def test_pictures_of_different_sizes_are_scaled(tmp_path: Path) -> None:
    root = with_boxes(tmp_path / "shots", 6)
    Image.new("RGB", (20, 18)).save(root / "wide.png")  # no line: nothing in it
    source = read_source(root)
    assert source.settings["size"] == (16, 16) and len(source.y[6]) == 0


def test_scores_of_masks_are_those_of_the_estimator() -> None:
    rng = np.random.default_rng(0)
    truth, told = rng.integers(0, 3, (2, 12, 6, 6))
    judged = JudgedMasks.of(truth, told, 3)
    from groundstate.evaluate.metrics.overlap import iou

    found = judged.scores(np.ones((1, 12)))["iou"][0]
    assert found == pytest.approx(float(iou(truth, told, pool="pooled").mean()), abs=1e-12)
    twice = judged.scores(np.r_[[np.full(12, 2.0)], np.eye(12)[:1]])["iou"]
    assert twice[0] == pytest.approx(found, abs=1e-12)
    scores, draws = drawn_intervals(judged, 0.95, Key.of(0))
    assert scores["iou"].low < found < scores["iou"].high and len(draws["iou"]) == 400


def test_scores_of_boxes_are_average_precision() -> None:
    from groundstate.nn.detection.precision import average_precision_detection

    rng = np.random.default_rng(1)
    truths, told = [], []
    for i in range(10):
        corner = rng.uniform(0, 20, (i % 4, 2))
        boxes = np.c_[corner, corner + 8]
        truths.append({"boxes": boxes, "labels": np.full(len(boxes), "cat")})
        moved = boxes + rng.normal(0, 1.5, boxes.shape)
        told.append({**truths[-1], "boxes": moved, "scores": rng.random(len(boxes))})
    whole = average_precision_detection(truths, told)
    judged = JudgedBoxes.of(truths, told)
    found = judged.scores(np.ones((1, 10)))
    assert found["ap50"][0] == whole.ap50 and found["ap"][0] == whole.ap
    both = average_precision_detection(truths * 2, told * 2)
    assert judged.scores(np.full((1, 10), 2.0))["ap"][0] == pytest.approx(both.ap, abs=1e-12)


BAD_LINES = [
    ("00.png,square,2,2,30,9", "has 16 x 16 pixels and a box outside of them: 2, 2, 30, 9"),
    ("00.png,square,9,2,3,9", "line 2 of 'boxes.csv' has a box without width or height"),
    ("00.png,square,a,2,3,9", "line 2 of 'boxes.csv' has a box that is not four numbers"),
    ("lost.png,square,1,2,3,9", "line 2 of 'boxes.csv' is about the picture 'lost.png'"),
    ("00.png,,1,2,3,9", "line 2 of 'boxes.csv' has a box without a label"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_bad_boxes(line: str, message: str, tmp_path: Path) -> None:
    root = with_boxes(tmp_path / "shots", 3)
    (root / "boxes.csv").write_text(f"image,label,x1,y1,x2,y2\n{line}\n")
    with pytest.raises(DataError, match=message):
        read_detection(root)
    done = run("fit", str(root))
    assert done.exit_code == 2 and "Traceback" not in done.output


def test_bad_masks_and_pictures(tmp_path: Path) -> None:
    root = with_masks(tmp_path / "cells")
    (root / "masks" / "05.png").unlink()
    done = run("fit", str(root))
    assert done.exit_code == 2 and "05.png' has no mask" in " ".join(done.output.split())
    Image.new("RGB", (16, 16)).save(root / "masks" / "05.png")
    with pytest.raises(DataError, match="has colours"):
        read_source(root)
    Image.new("L", (16, 16)).save(root / "masks" / "05.png")
    (root / "images" / "05.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="cannot be read as a picture"):
        read_source(root)
    few = with_masks(tmp_path / "few", 5)
    done = run("fit", str(few))
    assert done.exit_code == 2 and "too few" in done.output


def test_sides_instead_of_corners(tmp_path: Path) -> None:
    root = with_boxes(tmp_path / "shots", 2)
    (root / "boxes.csv").write_text("filename;class;x;y;w;h\n00.png;cat;1;2;3;4\n01.png;;;;;\n")
    found = read_detection(root)
    assert found.truths[0].boxes.tolist() == [[1, 2, 4, 6]] and len(found.truths[1]) == 0
