"""Segmenter: files, volumes, class weights, other networks, and shapes that it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone

from groundstate import Segmenter
from groundstate.data import make_shapes
from groundstate.errors import ShapeError
from groundstate.evaluate.metrics import mean_iou
from groundstate.nn.augment import Affine, Augment
from groundstate.nn.zoo.unet import UNet

SMALL: dict[str, Any] = {
    "network_params": {"base": 4, "depth": 2}, "max_epochs": 2, "random_state": 0,
}  # fmt: skip


def written(root: Path, scenes: Any) -> Path:
    for part in ("images", "masks"):
        (root / part).mkdir(parents=True)
    for i, scene in enumerate(scenes):
        pixels = np.round(255 * scene.image).astype(np.uint8).transpose(1, 2, 0)
        Image.fromarray(pixels).save(root / "images" / f"{i:03}.png")
        Image.fromarray(scene.semantic.astype(np.uint8)).save(root / "masks" / f"{i:03}.png")
    return root


def test_folders_are_arrays(tmp_path: Path) -> None:
    scenes = make_shapes(20, 16, 1, random_state=0)
    root = written(tmp_path, scenes)
    pixels = np.round(255 * scenes.images).astype(np.uint8)
    model = Segmenter(**SMALL).fit(root)
    pair = Segmenter(**SMALL).fit(root / "images", root / "masks")
    arrays = Segmenter(**SMALL).fit(pixels, scenes.semantic)
    p = model.predict_proba(pixels)
    for other in (pair, arrays):
        np.testing.assert_allclose(other.predict_proba(pixels), p, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(root / "images"), p, atol=1e-5)
    assert model.score(root) == pytest.approx(model.score(pixels, scenes.semantic))
    (root / "images" / "020.png").write_bytes((root / "images" / "000.png").read_bytes())
    Image.new("L", (3, 3)).save(root / "masks" / "020.png")
    with pytest.raises(ShapeError, match=r"images/020.png' has 16 x 16 .*masks/020.png' 3 x 3"):
        Segmenter(**SMALL).fit(root)


def test_pictures_of_different_sizes(tmp_path: Path) -> None:
    one, two = make_shapes(8, 16, 1, random_state=0), make_shapes(8, (20, 18), 1, random_state=1)
    root = written(tmp_path, [*one, *two])
    model = Segmenter(**SMALL).fit(root)
    masks = model.predict(root / "images")
    assert isinstance(masks, list) and [m.shape for m in masks] == [(16, 16)] * 8 + [(20, 18)] * 8
    assert not any((m == 255).any() for m in masks)


def test_volumes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 1, 6, 8, 8)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)
    model = Segmenter(**{**SMALL, "network_params": {"base": 2, "depth": 1}}).fit(X, y)
    assert model.predict(X).shape == y.shape and model.network_.n_dim == 3
    assert model.predict_proba(X).shape == (24, 2, 6, 8, 8)
    tiled = clone(model).set_params(tile=(6, 32, 32)).fit(X, y)
    wide = rng.normal(size=(1, 1, 6, 40, 40)).astype(np.float32)
    np.testing.assert_allclose(
        tiled.predict_proba(wide)[..., :10, :10],
        model.predict_proba(wide)[..., :10, :10],
        atol=1e-5,
    )


def test_networks_modules_and_functions() -> None:
    scenes = make_shapes(10, 32, 1, random_state=0)
    X, y = scenes.images, scenes.semantic > 0

    def made(in_channels: int, num_classes: int) -> torch.nn.Module:
        return torch.nn.Conv2d(in_channels, num_classes, 3, padding=1)

    settings: dict[str, Any] = {"max_epochs": 1, "val_fraction": 0.0, "random_state": 0}
    fcn = {"backbone": "resnet18", "width": 4}
    for model in (
        Segmenter("fcn", network_params=fcn, **settings),
        Segmenter("hourglass", network_params={"n": 1, "base": 4, "depth": 2}, **settings),
        Segmenter(UNet(3, 2, base=2, depth=1), **settings),
        Segmenter(made, tile=16, **settings),
    ):
        assert model.fit(X, y).predict(X).shape == y.shape
    default = Segmenter(**settings)
    default.classes_ = np.arange(2)
    assert default._sizes(torch.zeros(1, 3, 32, 32), None)["depth"] == 4


def test_class_weights_and_augmentation() -> None:
    scenes = make_shapes(16, 16, 1, random_state=0)
    X, y = scenes.images, (scenes.semantic > 0).astype(int)
    model = Segmenter(**SMALL, class_weight="balanced", val_fraction=0.0).fit(X, y)
    pixels = np.bincount(y.ravel())
    np.testing.assert_allclose(model._factors, y.size / (2 * pixels))
    twice = Segmenter(
        **SMALL, class_weight=dict(enumerate(y.size / (2 * pixels))), val_fraction=0.0
    )
    np.testing.assert_allclose(twice.fit(X, y).predict_proba(X), model.predict_proba(X), atol=1e-5)
    with pytest.raises(ValueError, match=r"class_weight names \[7\]"):
        Segmenter(**SMALL, class_weight={7: 1.0}).fit(X, y)
    for augment in ("light", Augment([Affine(flip=0.5)])):
        found = Segmenter(**SMALL, augment=augment).fit(X, y)
        again = Segmenter(**SMALL, augment=augment).fit(X, y)
        np.testing.assert_array_equal(found.predict_proba(X), again.predict_proba(X))


@pytest.mark.slow
def test_shapes_are_found() -> None:
    """The mean IoU over background, circles, squares and triangles of new scenes is at least 0.9."""
    shapes: dict[str, Any] = {"n_objects": 1, "radius": (0.2, 0.35), "tilt": 0.0}
    train = make_shapes(300, 32, random_state=0, **shapes)
    test = make_shapes(100, 32, random_state=1, **shapes)
    model = Segmenter(
        network_params={"base": 8, "depth": 3}, max_epochs=20, lr=5e-3, schedule="onecycle",
        val_fraction=0.0, patience=None, random_state=0,
    )  # fmt: skip
    model.fit(train.images, train.semantic)
    found = mean_iou(test.semantic, model.predict(test.images), n_classes=4)["pooled"]
    assert found >= 0.9 and model.score(test.images, test.semantic) == pytest.approx(found)
