"""Fixed filters, morphing, hand-made features, and a look inside a network."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import torch
from sklearn.datasets import load_digits
from torch import nn

import groundstate as gs
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.models.vision import HOG, filters, morph
from groundstate.models.vision.filters import butterworth_response
from groundstate.nn import init_, summary

RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(11, 14))


def test_edges() -> None:
    half = np.repeat([[10.0, 10, 10, 0, 0, 0]], 6, axis=0)
    assert (filters.prewitt(half, mode="valid") == [0, 30, 30, 0]).all()
    for name in ("prewitt", "sobel"):
        ours, theirs = getattr(filters, name), getattr(scipy.ndimage, name)
        for axis in (-1, -2):
            for mode in ("reflect", "nearest", "constant", "wrap"):  # scipy's sign is the other
                assert np.allclose(ours(IMAGE, axis, mode), -theirs(IMAGE, axis, mode=mode))
        assert np.allclose(ours(np.full((5, 6), 3.0)), 0)
    assert np.allclose(filters.laplace(IMAGE), scipy.ndimage.laplace(IMAGE))
    assert np.allclose(filters.laplace(np.full((5, 6), 3.0)), 0)
    for sigma in (0.7, 2.0):
        truth = scipy.ndimage.gaussian_filter(IMAGE, sigma)
        assert np.allclose(filters.gaussian(IMAGE, sigma), truth)
    batch = torch.as_tensor(np.stack([IMAGE, 2 * IMAGE]))[:, None].requires_grad_()
    out = filters.sobel(batch)
    assert out.shape == batch.shape and out.requires_grad
    with pytest.raises(ValueError, match="mode is one of"):
        filters.sobel(IMAGE, mode="mirror")
    with pytest.raises(ValueError, match="axis is"):
        filters.sobel(IMAGE, axis=0)
    with pytest.raises(ShapeError, match="two axes"):
        filters.laplace([1.0, 2.0])
    with pytest.raises(ValueError, match="sigma"):
        filters.gaussian(IMAGE, 0)


def test_butterworth() -> None:
    low, high = (filters.butterworth(IMAGE, 0.1, 3, h) for h in (False, True))
    assert np.allclose(low + high, IMAGE, atol=1e-12)
    assert np.allclose(filters.butterworth(np.full((6, 8), 2.0), 0.1), 0, atol=1e-12)
    H = butterworth_response(1, 40, 0.25, 3)
    assert float(H[0, 10]) == pytest.approx(0.5)  # H(c) = ½
    root = butterworth_response(1, 40, 0.25, 3, squared=False)
    assert torch.allclose(root.square(), H)
    padded = filters.butterworth(IMAGE, 0.1, npad=4)
    assert padded.shape == IMAGE.shape
    with pytest.raises(ValueError, match=r"\(0, 0.5\]"):
        filters.butterworth(IMAGE, 0.6)
    with pytest.raises(ValueError, match="image"):
        filters.butterworth(np.full((3, 3), np.nan))


def test_morphing_begins_and_ends_with_the_images() -> None:
    a, b = RNG.random((3, 12, 15)), RNG.random((3, 12, 15))
    p, q = [[3, 4], [10, 6]], [[5, 5], [9, 8]]
    assert np.allclose(morph(a, b, p, q, 0.0), a) and np.allclose(morph(a, b, p, q, 1.0), b)
    same = morph(a, b, p, p, 0.25)
    assert np.allclose(same, 0.75 * a + 0.25 * b)  # landmarks at rest: a dissolve
    spot = np.zeros((12, 15))
    spot[4, 3] = 1
    moved = np.zeros((12, 15))
    moved[8, 9] = 1
    middle = morph(spot, moved, [[3, 4]], [[9, 8]], 0.5)
    assert np.unravel_index(middle.argmax(), middle.shape) == (6, 6)
    with pytest.raises(ShapeError, match="come in pairs"):
        morph(a, b, p, q[:1], 0.5)
    with pytest.raises(ShapeError, match="of one shape"):
        morph(a, b[:1], p, q, 0.5)
    with pytest.raises(ValueError, match="pixels of the image"):
        morph(a, b, [[99, 0]], [[0, 0]], 0.5)
    with pytest.raises(ValueError, match="t is in"):
        morph(a, b, p, q, 2.0)


def test_hog_is_scikit_images() -> None:
    """Recorded from skimage.feature.hog(image, 4, (6, 6), (2, 2)), scikit-image 0.26."""
    image = np.add.outer(np.arange(24.0) ** 2 % 17, np.arange(24.0) * 3 % 11)
    found = HOG(4, 6, 2).fit_transform(image[None])
    first = [
        0.251217309, 0.304878555, 0.304878555, 0.130390468, 0.280553759, 0.304878555, 0.304878555,
        0.158620761, 0.124887827, 0.304878555, 0.304878555, 0.124887827, 0.143554566, 0.304878555,
        0.304878555, 0.143554566,
    ]  # fmt: skip
    assert found.shape == (1, 9 * 16)
    assert np.allclose(found[0, :16], first, atol=1e-6)
    assert found.sum() == pytest.approx(34.44120672754731, abs=1e-5)


def test_hog_moves_with_its_cells() -> None:
    image = np.zeros((1, 48, 48))
    image[0, 17:23, 18:22] = RNG.random((6, 4))
    moved = np.roll(image, (8, 8), (1, 2))
    f, g = (HOG().fit_transform(x).reshape(4, 4, -1) for x in (image, moved))
    assert np.allclose(f[:3, :3], g[1:, 1:], atol=1e-12)


def test_hog_in_a_pipeline_and_its_errors() -> None:
    digits = load_digits()
    X, y = np.kron(digits.images, np.ones((4, 4))), digits.target
    features = HOG(9, 8, 2).fit_transform(X[:600])
    model = gs.LinearSVC(random_state=0).fit(features[:400], y[:400])
    assert model.score(features[400:], y[400:600]) > 0.8
    with pytest.raises(ShapeError, match="fewer than a block"):
        HOG().fit(np.zeros((1, 16, 16)))
    with pytest.raises(ShapeError, match="takes images"):
        HOG().fit(np.zeros((3, 4)))
    with pytest.raises(DataError, match="NaN"):
        HOG().fit(np.full((1, 32, 32), np.nan))
    with pytest.raises(ShapeError, match="was fitted to"):
        HOG().fit(np.zeros((1, 32, 32))).transform(np.zeros((1, 40, 32)))
    with pytest.raises(ValueError, match="positive integers"):
        HOG(orientations=0).fit(np.zeros((1, 32, 32)))


def test_a_look_inside_a_network() -> None:
    net = init_(nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 4, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    ))  # fmt: skip
    g = torch.Generator().manual_seed(0)
    x = torch.rand(64, 1, 20, 20, generator=g)
    maps = gs.explain.feature_maps(net, x)
    shapes = {r.name: r.output_shape for r in summary(net, (1, 20, 20)).rows}
    assert all(tuple(m.shape[1:]) == shapes[name] for name, m in maps.items())
    assert list(maps) == ["0", "1", "2", "3", "4", "5"]
    assert torch.equal(gs.explain.filters(net), net[0].weight)
    for unit in range(4):
        best = gs.explain.maximise_activation(net, "3", unit, (1, 20, 20))
        assert float(best.min()) >= 0 and float(best.max()) <= 1
        own = gs.explain.feature_maps(net, best)["3"][:, unit].mean()
        assert own > maps["3"][:, unit].flatten(1).mean(1).max()  # beats every image
    with pytest.raises(Unsupported, match="no convolution"):
        gs.explain.filters(nn.Linear(2, 2))
    with pytest.raises(Unsupported, match="is no convolution but ReLU"):
        gs.explain.filters(net, "1")
    with pytest.raises(ShapeError, match="unit=9"):
        gs.explain.maximise_activation(net, "3", 9, (1, 20, 20))


def test_a_look_inside_an_estimator() -> None:
    X = RNG.random((60, 1, 8, 8)).astype(np.float32)
    X[:30, :, :4] += 1
    model = gs.ImageClassifier(
        "cnn", {"channels": (4,), "head": "flatten"}, max_epochs=2, random_state=0
    ).fit(X, np.repeat(["top", "bottom"], 30))  # fmt: skip
    net = model.energy_.net
    maps = gs.explain.feature_maps(model, X)
    shapes = {r.name: r.output_shape for r in summary(net, (1, 8, 8)).rows}
    assert maps and all(tuple(m.shape[1:]) == shapes[name] for name, m in maps.items())
    assert torch.equal(gs.explain.filters(model), gs.explain.filters(net))
    layer = next(name for name in maps if isinstance(net.get_submodule(name), nn.Conv2d))
    for unit in range(4):
        best = gs.explain.maximise_activation(model, layer, unit, high=2.0)
        own = gs.explain.feature_maps(model, best)[layer][:, unit].mean()
        assert own > maps[layer][:, unit].flatten(1).mean(1).max()  # beats every picture
    with pytest.raises(ShapeError, match="give the shape"):
        gs.explain.maximise_activation(net, layer, 0)
    with pytest.raises(Unsupported, match="looking inside needs"):
        gs.explain.filters(gs.Ridge())
