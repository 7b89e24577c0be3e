"""Objects in pictures, from whatever people have to boxes in their own pixels and labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone

import groundstate
from groundstate import ObjectDetector
from groundstate.compute.rows import Objects
from groundstate.data import make_shapes
from groundstate.data.detection import DetectionSet, Truth
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.models.vision.detection.door import class_names, objects_of, side_quantiles
from groundstate.models.vision.detection.scores import mean_precision
from groundstate.nn.augment import Augment
from groundstate.nn.detection.parts import Detected

NAMES = np.array(["circle", "square", "triangle"])
TINY: dict[str, Any] = {
    "network_params": {"fpn": 8, "hidden": 16, "levels": 2, "sizes": (10, 16, 24),
                       "proposals": (30, 20), "anchors_sampled": 32, "regions_sampled": 16},
    "max_epochs": 1, "batch_size": 4, "val_fraction": 0, "random_state": 0,
}  # fmt: skip


def scenes(n: int = 8, size: int = 32) -> tuple[np.ndarray, list[Any]]:
    found = make_shapes(n, size=size, n_objects=(0, 2), random_state=1)
    rows = zip(found.boxes, found.labels, found.masks, strict=True)
    return found.images, [(b, NAMES[c - 1], m) for b, c, m in rows]


def tiny(method: str = "faster", **settings: Any) -> ObjectDetector:
    params = {**TINY, **settings}
    if method == "rcnn":
        params["network_params"] = {"crop": 16, "hidden": 8, "proposals": 30, "regions_sampled": 8}
    if method == "fast":
        params["network_params"] = {"hidden": 16, "proposals": 30, "regions_sampled": 16}
    if method == "mask":
        params["network_params"] = {**params["network_params"], "mask": 4}
    return ObjectDetector(method, **params)


def same(a: Any, b: Any) -> bool:
    one, two = a.energy_.state_dict(), b.energy_.state_dict()
    return all(torch.equal(one[k], two[k]) for k in one)


@pytest.mark.parametrize("method", ["rcnn", "fast", "faster", "mask"])
def test_answers_in_the_words_of_the_user(method: str, tmp_path: Path) -> None:
    X, y = scenes()
    model = tiny(method, score_threshold=0.0).fit(X, y)
    found = model.predict(X[:3])
    assert len(found) == 3 and model.classes_.tolist() == NAMES.tolist()
    for one in found:
        n = len(one["boxes"])
        assert one["boxes"].shape == (n, 4) and one["scores"].shape == (n,) and n > 0
        assert set(one["labels"]) <= set(NAMES) and (np.diff(one["scores"]) <= 0).all()
        assert (one["boxes"] >= 0).all() and (one["boxes"] <= 32).all()
        if method == "mask":
            assert one["masks"].shape == (n, 32, 32) and one["masks"].dtype == bool
    loaded = groundstate.load(model.save(tmp_path / "model.gs"))
    for a, b in zip(found, loaded.predict(X[:3]), strict=True):
        assert all(np.array_equal(a[k], b[k]) for k in a) and a.keys() == b.keys()
    e = model.energy(X, y)
    assert e.shape == (len(X),) and (e > 0).all() and np.allclose(loaded.energy(X, y), e)


def test_the_same_from_all_that_people_have(tmp_path: Path) -> None:
    X, y = scenes()
    plain = [(b, c) for b, c, _ in y]
    first = tiny().fit(X, plain)
    dicts = [{"boxes": b, "labels": c} for b, c in plain]
    rows = [(image, b, c) for image, (b, c) in zip(X, plain, strict=True)]
    held = DetectionSet(torch.from_numpy(X), [Truth(b, c.tolist()) for b, c in plain])
    for given in ((X, dicts), (rows,), (held,), (list(X), plain)):
        assert same(first, tiny().fit(*given))


def test_same_seed_same_weights_and_another_other_ones() -> None:
    X, y = scenes()
    first = tiny().fit(X, y)
    assert same(first, tiny().fit(X, y)) and not same(first, tiny(random_state=1).fit(X, y))


def test_a_folder_of_coco(tmp_path: Path) -> None:
    X, y = scenes()
    images, annotations = [], []
    for i, (x, (boxes, labels, masks)) in enumerate(zip(X, y, strict=True)):
        Image.fromarray((x.transpose(1, 2, 0) * 255).astype(np.uint8)).save(tmp_path / f"{i}.png")
        images.append({"id": i, "file_name": f"{i}.png", "height": 32, "width": 32})
        for b, label, m in zip(boxes, labels, masks, strict=True):
            runs = np.diff(np.flatnonzero(np.diff([1 - m.T.ravel()[0], *m.T.ravel(), 2])))
            counts = [0, *runs.tolist()] if m[0, 0] else runs.tolist()
            annotations.append({
                "id": len(annotations), "image_id": i,
                "category_id": int(np.flatnonzero(label == NAMES)[0]),
                "bbox": [float(v) for v in (b[0], b[1], b[2] - b[0], b[3] - b[1])],
                "segmentation": {"size": [32, 32], "counts": counts},
            })  # fmt: skip
    categories = [{"id": i, "name": name} for i, name in enumerate(NAMES.tolist())]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "annotations.json").write_text(json.dumps(content))
    model = tiny("mask").fit(tmp_path)
    eight_bits = (X * 255).astype(np.uint8)
    assert model.classes_.tolist() == NAMES.tolist() and model.size_ == (32, 32)
    assert np.allclose(model.energy(tmp_path), model.energy(eight_bits, y), rtol=1e-3)
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for a, b in zip(model.predict(paths), model.predict(eight_bits[:3]), strict=True):
        assert np.allclose(a["boxes"], b["boxes"], atol=1e-4)


def test_pictures_are_scaled_and_boxes_come_back_in_their_own_pixels() -> None:
    X, y = scenes(6)
    big = [np.kron(x, np.ones((1, 2, 2), np.float32)) for x in X[:3]]
    mixed = [*big, *X[3:]]
    doubled = [(b * 2, c, np.kron(m, np.ones((1, 2, 2))) > 0) for b, c, m in y[:3]]
    objects = [*doubled, *y[3:]]
    model = tiny("mask", size=(32, 32), score_threshold=0.0).fit(mixed, objects)
    assert model.size_ == (32, 32)
    small, large = model.predict(X[:1])[0], model.predict(big[:1])[0]
    assert np.allclose(large["boxes"][0], 2 * small["boxes"][0], atol=1.0)
    assert large["boxes"].max() > 40
    assert large["masks"].shape[1:] == (64, 64)
    with pytest.raises(DataError, match="different sizes"):
        tiny().fit(mixed, objects)


def test_truths_are_scaled_with_their_picture() -> None:
    truth = Truth(np.array([[2, 4, 10, 12]], np.float32), ["a"], np.ones((1, 20, 40)))
    found = objects_of([truth], [(20, 40)], (40, 20), np.array(["a", "b"]), True)
    assert found.boxes.values.tolist() == [[1, 8, 5, 24]] and found.labels.values.tolist() == [1]
    assert found.masks is not None and found.masks.item_shape == (40, 20)


def test_torch_in_torch_out() -> None:
    X, y = scenes()
    numbers = [(b, np.searchsorted(NAMES, c)) for b, c, _ in y]
    model = tiny(score_threshold=0.0).fit(torch.from_numpy(X), numbers)
    found = model.predict(torch.from_numpy(X[:1]))[0]
    assert all(isinstance(v, torch.Tensor) for v in found.values())
    assert set(found["labels"].tolist()) <= {0, 1, 2}
    assert isinstance(model.energy(torch.from_numpy(X), numbers), torch.Tensor)


def test_pictures_without_objects_and_answers_without_objects() -> None:
    X, y = scenes()
    empty = [(np.zeros((0, 4)), np.zeros(0), np.zeros((0, 32, 32))) for _ in range(3)]
    model = tiny("mask", score_threshold=0.999).fit(X, [*empty, *y[3:]])
    found = model.predict(X[:1])[0]
    assert found["boxes"].shape == (0, 4) and found["labels"].shape == (0,)
    assert found["masks"].shape == (0, 32, 32)
    with pytest.raises(ValueError, match="no picture holds an object"):
        tiny().fit(X[:3], empty)


def test_going_on_with_more_rows() -> None:
    X, y = scenes()
    model = tiny().fit(X, y)
    before = {k: v.clone() for k, v in model.energy_.state_dict().items()}
    model.partial_fit(X[:4], y[:4])
    assert any(not torch.equal(v, before[k]) for k, v in model.energy_.state_dict().items())
    with pytest.raises(ValueError, match="picture 0 has an object of the class 'cow'"):
        model.partial_fit(X[:1], [([[1, 1, 9, 9]], ["cow"])])


@pytest.mark.parametrize(
    ("X", "y", "error", "said"),
    [
        (np.zeros((2, 3, 32, 32)), None, DataError, "learns from a folder"),
        (np.zeros((2, 3, 32, 32)), [([], [])], DataError, "X has 2 pictures, y the objects of 1"),
        (np.zeros((1, 3, 32, 32)), [([[5, 5, 5, 9]], ["a"])], DataError, "box 0 of picture 0"),
        (np.zeros((1, 3, 32, 32)), [([[1, 1, 5, np.nan]], ["a"])], DataError, "box 0 of picture 0"),
        (np.zeros((1, 3, 32, 32)), 3, DataError, "must be a list"),
        (np.full((1, 3, 32, 32), np.nan), [([[1, 1, 5, 9]], ["a"])], DataError, "row 0 of X holds NaN"),
        ([np.zeros(3)], [([[1, 1, 5, 9]], ["a"])], ShapeError, "picture 0 has shape"),
        (np.zeros((1, 3, 32, 32)), [([[20, 20, 60, 30]], ["a"])], DataError, "pixels and a box outside"),
        (np.zeros((1, 3, 32, 32)), [([[-5, 2, 6, 9]], ["a"])], DataError, "box outside of them: -5, 2, 6, 9"),
        (np.zeros((1, 3, 32, 32)), [([[0.1, 0.2, 0.5, 0.9]], ["a"])], DataError, "multiply by its width"),
        (np.zeros((1, 3, 32, 32)), [([[1, 2, 3]], ["a"])], DataError, r"picture 0 have shape \(1, 3\)"),
        (np.zeros((1, 3, 32, 32)), [([[1, 1, 5, 9], [1, 1, 5, 9]], ["a", 3])], ValueError, "labels"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(X: Any, y: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        tiny().fit(X, y)


def test_scenes_move_with_their_objects_and_weights_are_repetitions() -> None:
    X, y = scenes()
    weight = np.array([2, 1, 1, 2, 1, 1, 1, 1])
    index = np.repeat(np.arange(8), weight)
    rows = [y[i] for i in index]
    assert same(tiny("mask").fit(X, y, weight), tiny("mask").fit(X[index], rows))
    assert not same(tiny().fit(X, y), tiny(augment="none").fit(X, y))
    with pytest.raises(Unsupported, match="not mixed"):
        tiny(augment=Augment([], mixup=0.2)).fit(X, y)


def test_held_out_pictures_are_judged_by_what_is_found() -> None:
    X, y = scenes(12)
    model = tiny(val_fraction=0.4, max_epochs=3).fit(X, y)
    seen = model.history_.extra["validation"]
    assert len(seen) == 3 and all(0 <= value <= 1 for value in seen)
    energy = model.energy_
    objects = objects_of(
        [Truth(b, c.tolist()) for b, c, _ in y], [(32, 32)] * 12, (32, 32), NAMES, False
    )
    assert 0 <= mean_precision(energy, {"x": torch.from_numpy(X), "y": objects}, None, size=4) <= 1

    class Oracle(torch.nn.Module):
        at = 0

        def detect(self, x: torch.Tensor) -> list[Detected]:
            own = [objects[self.at + i] for i in range(len(x))]
            self.at += len(x)
            return [
                Detected(o.boxes.values, o.labels.values, torch.ones(len(o.boxes.values)))
                for o in own
            ]

        def placement(self) -> tuple[torch.device, torch.dtype]:
            return torch.device("cpu"), torch.float32

    rows: Any = {"x": torch.from_numpy(X), "y": objects}
    perfect: Any = Oracle()
    assert mean_precision(perfect, rows, torch.ones(12), size=5) == pytest.approx(1.0)
    nothing: Any = {"x": torch.zeros(1, 3, 32, 32), "y": Objects.of([([], [])])}
    assert mean_precision(energy, nothing, None, size=4) == -np.inf


@pytest.mark.slow
def test_few_pictures_are_enough() -> None:
    """Shapes of eighty pictures are found in new ones by the plain call."""
    train, test = (make_shapes(n, 64, (1, 2), random_state=s) for n, s in ((80, 20), (50, 21)))
    objects = [
        [(b, c) for b, c in zip(made.boxes, made.labels, strict=True)] for made in (train, test)
    ]
    model = ObjectDetector(random_state=0).fit(train.images, objects[0])
    assert model.average_precision(test.images, objects[1]).ap50 > 0.75


def test_masks_that_are_missing_or_of_another_size() -> None:
    X, y = scenes(3)
    boxes = [([[1, 1, 9, 9]], ["a"])] * 3
    with pytest.raises(DataError, match="boxes without masks"):
        tiny("mask").fit(X, boxes)
    with pytest.raises(ShapeError, match="a mask has the size of its picture"):
        tiny("mask").fit(X, [([[1, 1, 9, 9]], ["a"], np.ones((1, 8, 8)))] * 3)
    with pytest.raises(ValueError, match="method"):
        tiny("magic").fit(X, y)


def test_labels_are_names_or_numbers() -> None:
    with pytest.raises(ValueError, match="names or numbers, not both"):
        class_names([Truth(np.zeros((2, 4), np.float32), ["a", 1])])


def test_anchors_follow_the_objects() -> None:
    sides = np.array([10.0, 20.0, 30.0, 40.0])
    assert side_quantiles(sides, np.ones(4)) == (10.0, 20.0, 30.0, 40.0)
    weight = np.array([1.0, 2.0, 0.0, 3.0])
    assert side_quantiles(sides, weight) == side_quantiles(
        np.repeat(sides, weight.astype(int)), np.ones(6)
    )
    X, y = scenes()
    model = clone(tiny()).set_params(network_params=None, max_epochs=1).fit(X, y)
    assert (
        len(model.anchor_sizes_) == 4 and 5 < model.anchor_sizes_[0] <= model.anchor_sizes_[3] < 20
    )


def test_objects_of_rows_are_truths_too() -> None:
    X, y = scenes()
    objects = Objects.of([(b, np.searchsorted(NAMES, c) + 1) for b, c, _ in y])
    assert tiny().fit(X, objects).classes_.tolist() == [1, 2, 3]


def test_a_residual_network_as_backbone() -> None:
    X, y = scenes(2)
    settings = {"hidden": 16, "proposals": (20, 10), "fpn": 8, "levels": 2, "sizes": (12, 24, 48)}
    model = ObjectDetector(
        backbone=groundstate.nn.zoo.resnet.ResNet((1, 1), stem="cifar", width=4),
        network_params=settings, max_epochs=1, batch_size=2, val_fraction=0, random_state=0,
    )  # fmt: skip
    assert len(model.fit(X, y).predict(X)) == 2


class Perfect(ObjectDetector):
    """Finds what is there."""

    known: Any = None

    def predict(self, X: Any) -> list[dict[str, Any]]:
        at = {x.tobytes(): i for i, x in enumerate(self.known[0])}
        rows = [self.known[1][at[np.asarray(x).tobytes()]] for x in X]
        return [
            {"boxes": b, "labels": c, "scores": np.ones(len(b)), "masks": m} for b, c, m in rows
        ]


def test_score_is_the_mean_average_precision() -> None:
    X, y = scenes()
    model = tiny("mask").fit(X, y)
    found = model.average_precision(X, y)
    assert model.score(X, y) == found.ap and 0 <= found.ap <= 1
    weight = np.arange(len(X)) % 3
    index = np.repeat(np.arange(len(X)), weight)
    assert model.score(X, y, weight) == model.score(X[index], [y[i] for i in index])
    with pytest.raises(ValueError, match="whole numbers"):
        model.score(X, y, weight + 0.5)
    perfect = Perfect("mask")
    perfect.known, perfect.size_ = (X, y), (32, 32)
    assert perfect.score(X, y) == 1.0 and perfect.average_precision(X, y, masks=True).ap == 1.0
