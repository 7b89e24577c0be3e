"""One contract for every segmenter of the registry: masks in, masks of the same size out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

import groundstate
from groundstate.data import make_shapes
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate.metrics import iou
from groundstate.registry import models

NAMES = [row.name for row in models if row.role == "segmenter"]
SCENES = make_shapes(24, 16, 1, random_state=0)
X, Y = SCENES.images, np.where(SCENES.semantic > 0, 4, 1)


def small(name: str, **settings: Any) -> Any:
    given = {
        "network_params": {"base": 4, "depth": 2},
        "max_epochs": 3,
        "random_state": 0,
        **settings,
    }
    return models[name].obj(**given)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def state(model: Any) -> list[torch.Tensor]:
    return list(model.energy_.state_dict().values())


def test_there_is_one() -> None:
    assert NAMES and all(models[name].task == "segmentation" for name in NAMES)


def test_answers(name: str) -> None:
    model = small(name).fit(X, Y)
    masks, p = model.predict(X), model.predict_proba(X)
    assert masks.shape == Y.shape and set(np.unique(masks)) <= {1, 4}
    assert model.classes_.tolist() == [1, 4]
    assert p.shape == (24, 2, 16, 16)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-5)
    np.testing.assert_array_equal(model.classes_[p.argmax(1)], masks)
    np.testing.assert_array_equal(model.infer({"x": X}, "y"), masks)
    index = np.searchsorted(model.classes_, Y)
    nll = -np.log(np.take_along_axis(p, index[:, None], 1)).sum((1, 2, 3))
    np.testing.assert_allclose(model.energy(X, Y), nll, rtol=1e-3)
    pooled = iou(index, np.searchsorted(model.classes_, masks), n_classes=2, pool="pooled")
    assert model.score(X, Y) == pytest.approx(pooled.mean())
    assert model.energy(X, masks).max() <= model.energy(X, Y).max() + 1e-4  # the least of all masks


def test_ignored_pixels_change_nothing(name: str) -> None:
    hidden = Y.copy()
    hidden[:, :4] = 255
    model = small(name, val_fraction=0.0).fit(X, hidden)
    assert model.classes_.tolist() == [1, 4] and not (model.predict(X) == 255).any()
    assert (model.energy(X, np.full_like(Y, 255)) == 0).all()
    np.testing.assert_allclose(
        model.energy(X, hidden) + model.energy(X, np.where(hidden == 255, Y, 255)),
        model.energy(X, Y), rtol=1e-4,
    )  # fmt: skip
    assert 0 <= model.score(X, hidden) <= 1


def test_arrays_tensors_lists_and_bytes(name: str) -> None:
    model = small(name).fit(X, Y)
    tensors = small(name).fit(torch.from_numpy(X), torch.from_numpy(Y))
    listed = small(name).fit(list(X), list(Y))
    for other in (tensors, listed):
        assert all(torch.equal(a, b) for a, b in zip(state(model), state(other), strict=True))
    found = tensors.predict(torch.from_numpy(X))
    assert isinstance(found, torch.Tensor) and (found.numpy() == model.predict(X)).all()
    pixels = np.round(255 * X).astype(np.uint8)
    p = model.predict_proba(pixels)
    np.testing.assert_allclose(p, model.predict_proba(pixels.astype(np.float32) / 255), atol=1e-5)


def test_sizes_that_were_not_learned(name: str) -> None:
    model = small(name).fit(X, Y)
    large = make_shapes(2, (40, 28), 1, random_state=1).images
    assert model.predict(large).shape == (2, 40, 28)
    both = model.predict([X[0], large[0]])
    assert isinstance(both, list) and [m.shape for m in both] == [(16, 16), (40, 28)]
    np.testing.assert_array_equal(both[1], model.predict(large)[0])
    whole = model.predict_proba(large)
    tiled = clone(model).set_params(tile=32).fit(X, Y)
    np.testing.assert_allclose(
        tiled.predict_proba(large)[..., :8, :8], whole[..., :8, :8], atol=1e-5
    )


def test_saved_and_gone_on(name: str, tmp_path: Any) -> None:
    model = small(name, tile=16).fit(X, Y)
    loaded = groundstate.load(model.save(tmp_path / "model.gs"))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.tile == 16 and loaded.score(X, Y) == model.score(X, Y)
    one = small(name).partial_fit(X, Y, classes=[1, 4, 9])
    assert one.classes_.tolist() == [1, 4, 9] and one.predict_proba(X[:1]).shape[1] == 3
    one.partial_fit(X[:5], np.full_like(Y[:5], 9))
    with pytest.raises(ValueError, match=r"labels not seen in fit: \[7\]"):
        one.partial_fit(X[:5], np.full_like(Y[:5], 7))


def test_bad_input(name: str) -> None:
    model = small(name)
    with pytest.raises(ShapeError, match="picture 0 has 16 x 16 pixels, its mask 0 15 x 16"):
        model.fit(X, Y[:, 1:])
    with pytest.raises(ShapeError, match=r"need masks \(24, 16, 16\), .* got y of shape \(24,\)"):
        model.fit(X, Y[:, 0, 0])
    with pytest.raises(ShapeError, match="picture 3 has 16 x 16 pixels, its mask 3 9 x 16"):
        model.fit(X, [*Y[:3], Y[3, :9], *Y[4:]])
    with pytest.raises(ShapeError, match="X has 24 pictures, y has 23 masks"):
        model.fit(X, Y[1:])
    with pytest.raises(DataError, match=r"one label alone, \[0\], beside 255"):
        model.fit(X, np.where(Y == 4, 255, 0))
    with pytest.raises(DataError, match="whole numbers"):
        model.fit(X, Y / 3)
    with pytest.raises(DataError, match="whole numbers, one class each; got <U1"):
        model.fit(X, np.full(Y.shape, "a"))
    with pytest.raises(DataError, match="row 2 of X holds NaN"):
        model.fit(np.where(np.arange(24)[:, None, None, None] == 2, np.nan, X), Y)
    with pytest.raises(ValueError, match="requires y"):
        model.fit(X)
    fitted = small(name).fit(X, Y)
    with pytest.raises(ShapeError, match="channels and number of axes must agree"):
        fitted.predict(X[:, :1])
    with pytest.raises(ValueError, match=r"labels not seen in fit: \[3\]"):
        fitted.energy(X, np.full_like(Y, 3))
    with pytest.raises(ShapeError, match="use 'unet', 'fcn' or 'hourglass'"):
        small(name, network="cnn", network_params=None).fit(X, Y)
