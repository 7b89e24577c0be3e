"""ImageClassifier: pictures in, labels out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from torch import nn

import groundstate
from groundstate import ImageClassifier
from groundstate.compute.rows import Pixels
from groundstate.data import ImageFolder, channel_moments, read_images
from groundstate.errors import DataError, ShapeError
from groundstate.learn import Checkpoint
from groundstate.models.vision.choice import chosen
from groundstate.nn import architectures
from groundstate.nn.augment import Affine, Augment

N = 48


def pictures(n: int = N, c: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bars that lie or stand, 12 x 12 pixels, uint8."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 60, (n, c, 12, 12), dtype=np.uint8)
    y = np.arange(n) % 2
    for i in range(n):
        at = rng.integers(2, 8)
        if y[i]:
            X[i, :, :, at : at + 3] += 180
        else:
            X[i, :, at : at + 3] += 180
    return X, np.array(["lying", "standing"])[y]


def small(**settings: Any) -> ImageClassifier:
    given = {
        "network": "cnn", "network_params": {"channels": (8, 8)}, "max_epochs": 3, "batch_size": 16,
        "lr": 1e-2, "random_state": 0, "device": "cpu",
    }  # fmt: skip
    return ImageClassifier(**{**given, **settings})


def state(model: Any) -> dict[str, torch.Tensor]:
    return dict(model.energy_.state_dict())


def same(a: Any, b: Any) -> bool:
    one, two = state(a), state(b)
    return list(one) == list(two) and all(torch.equal(one[k], two[k]) for k in one)


@pytest.fixture(scope="module")
def fitted() -> ImageClassifier:
    X, y = pictures(96)
    return small(max_epochs=25).fit(X, y)


def write(root: Path, parts: dict[str, int], c: int = 1) -> Path:
    for part, n in parts.items():
        X, y = pictures(n, c, seed=len(part))
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            path = root / part / label / f"{i:03d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(x[0] if c == 1 else x.transpose(1, 2, 0)).save(path)
    return root


def test_learns_and_answers(fitted: ImageClassifier) -> None:
    X, y = pictures(60, seed=3)
    assert fitted.score(X, y) > 0.95
    assert fitted.classes_.tolist() == ["lying", "standing"]
    proba = fitted.predict_proba(X)
    assert proba.shape == (60, 2) and np.allclose(proba.sum(1), 1, atol=1e-5)
    e = fitted.energies(X)
    assert np.allclose(np.exp(-e) / np.exp(-e).sum(1, keepdims=True), proba, atol=1e-5)
    assert (fitted.predict(X) == fitted.classes_[e.argmin(1)]).all()


def test_pictures_of_8_bits_are_values_in_0_1(fitted: ImageClassifier) -> None:
    X, _ = pictures(10)
    real = X.astype(np.float32) / 255
    assert np.allclose(fitted.predict_proba(X), fitted.predict_proba(real), atol=1e-6)
    assert np.allclose(fitted.predict_proba(X[:, 0]), fitted.predict_proba(X), atol=1e-6)
    both = fitted.predict_proba(torch.from_numpy(real))
    assert isinstance(both, torch.Tensor)
    mean, std = channel_moments(Pixels(pictures(96)[0]))
    assert np.allclose(fitted.mean_, mean) and np.allclose(fitted.std_, std)


def test_folder_round_trip(tmp_path: Path) -> None:
    root = write(tmp_path / "bars", {"train": 64, "test": 20})
    model = small(max_epochs=20).fit(root)
    assert model.classes_.tolist() == ["lying", "standing"]
    assert model.score(root) > 0.9  # of the part test
    assert model.score(ImageFolder(root).test) == model.score(root)
    train = read_images(root)["train"]
    assert same(model, small(max_epochs=20).fit(train.rows, train.y))
    assert same(model, small(max_epochs=20).fit(train))
    labels = model.predict(root / "test")
    files = sorted((root / "test").rglob("*.png"))
    assert (labels == model.predict(files)).all() and len(labels) == 20
    model.save(tmp_path / "kept.gs")
    again = groundstate.load(tmp_path / "kept.gs")
    assert (again.predict_proba(root / "test") == model.predict_proba(root / "test")).all()
    assert again.form_ == model.form_ and np.array_equal(again.mean_, model.mean_)


def test_weights_seeds_and_order() -> None:
    X, y = pictures()
    weight = 1.0 + (np.arange(N) % 3 == 0)
    index = np.repeat(np.arange(N), weight.astype(int))
    for augment in ("light", "strong"):
        model = small(augment=augment)
        one = clone(model).fit(X, y, sample_weight=weight)
        assert same(one, clone(model).fit(X[index], y[index]))
        order = np.random.default_rng(1).permutation(N)
        assert same(clone(model).fit(X, y), clone(model).fit(X[order], y[order]))
    assert not same(small().fit(X, y), small(random_state=1).fit(X, y))
    assert not same(small().fit(X, y), small(augment="none").fit(X, y))


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    X, y = pictures()

    class Stop(groundstate.learn.callbacks.Callback):
        def on_step(self, run: Any) -> None:
            if run.total_steps == 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(callbacks=[Checkpoint(tmp_path, every_steps=1), Stop()]).fit(X, y)
    resumed = small(callbacks=[Checkpoint(tmp_path)]).fit(X, y)
    assert same(resumed, small().fit(X, y))


def test_partial_fit() -> None:
    X, y = pictures(96)
    model = small()
    for _ in range(15):
        for part in (slice(0, 48), slice(48, 96)):
            model.partial_fit(X[part], y[part], classes=["lying", "standing"])
    assert model.score(X, y) > 0.9


def test_small_pictures_get_the_stem_for_them() -> None:
    X, y = pictures()
    model = small(network="resnet18", network_params={"width": 4}, max_epochs=1).fit(X, y)
    assert model.network_.conv1.kernel_size == (3, 3)
    model = small(network="resnet18", network_params={"width": 4}, max_epochs=1, image_size=64)
    assert model.fit(X, y).network_.conv1.kernel_size == (7, 7)
    assert model.form_.size == (64, 64) and model.predict(X[:, :, :9]).shape == (N,)
    chosen = {"width": 4, "stem": "imagenet"}
    model = small(network="resnet18", network_params=chosen, max_epochs=1, image_size=32)
    assert model.fit(X, y).network_.conv1.kernel_size == (7, 7)


def test_other_colours_are_converted_with_a_warning(fitted: ImageClassifier) -> None:
    X, _ = pictures(12, 3)
    with pytest.warns(UserWarning, match="coloured; they are converted to the 1 channels"):
        assert fitted.predict(X).shape == (12,)
    with pytest.raises(ShapeError, match="takes 1 channels, the pictures have 5"):
        fitted.predict(np.zeros((2, 5, 12, 12)))
    coloured = small(max_epochs=1).fit(*pictures(N, 3))
    with pytest.warns(UserWarning, match="grey; they are converted to the 3 channels"):
        grey = coloured.predict_proba(pictures(12)[0])
    assert np.allclose(grey, coloured.predict_proba(pictures(12)[0].repeat(3, 1)), atol=1e-6)
    clear = np.concatenate([X, X[:, :1]], 1)
    with pytest.warns(UserWarning, match="with transparency; they are converted"):
        assert np.allclose(coloured.predict_proba(clear), coloured.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("size", "rows", "network", "channels"),
    [
        ((8, 8), 60, "cnn", (32, 64)),
        ((28, 28), 8000, "cnn", (16, 32, 64)),
        ((2, 3), 60, "cnn", (64,)),
        ((224, 180), 300, "cnn", (16, 32, 64, 64, 64)),
        ((32, 32), 20_000, "resnet18", None),
    ],
)
def test_the_network_is_chosen_by_size_and_rows(
    size: tuple[int, int], rows: int, network: str, channels: Any
) -> None:
    found = chosen(size, rows)
    assert found.network == network and found.params.get("channels") == channels
    assert found.budget.epochs(rows, 32) * rows >= 32 * min(found.budget.steps, rows)


def test_the_plain_call_learns_from_few_pictures(tmp_path: Path) -> None:
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 1, 8, 8) / 16
    order = np.random.default_rng(7).permutation(len(y))
    own, new = order[:80], order[-600:]
    model = ImageClassifier(random_state=0, device="cpu").fit(X[own], y[own])
    linear = LogisticRegression(max_iter=300).fit(X[own].reshape(80, -1), y[own])
    assert model.score(X[new], y[new]) >= linear.score(X[new].reshape(600, -1), y[new])
    assert type(model.network_).__name__ == "CNN" and model.n_iter_ == 300  # at most
    again = groundstate.load(model.save(tmp_path / "model.gs"))
    assert same(again.partial_fit(X[own], y[own]), model.partial_fit(X[own], y[own]))


def test_weights_count_where_the_network_is_chosen() -> None:
    X, y = pictures()
    weight = 1.0 + (np.arange(N) % 3 == 0)
    index = np.repeat(np.arange(N), weight.astype(int))
    model = ImageClassifier(random_state=0, device="cpu", batch_size=64)
    one, two = clone(model).fit(X, y, weight), clone(model).fit(X[index], y[index])
    assert one.n_iter_ == two.n_iter_ and same(one, two)


def test_errors_name_the_fix(fitted: ImageClassifier, tmp_path: Path) -> None:
    X, y = pictures()
    with pytest.raises(
        ShapeError, match=r"12 x 12 pixels, got 9 x 9 pixels; .*image_size=\(12, 12\)"
    ):
        fitted.predict(np.zeros((2, 1, 9, 9)))
    with pytest.raises(ShapeError, match=r"channels come first, so pass X.transpose\(0, 3, 1, 2\)"):
        small().fit(X.repeat(3, 1).transpose(0, 2, 3, 1), y)
    with pytest.raises(ShapeError, match=r"network='vgg11' does not take .*use image_size="):
        small(network="vgg11", network_params=None).fit(X, y)
    with pytest.raises(ValueError, match="name the network as well"):
        ImageClassifier(network_params={"width": 4}).fit(X, y)
    with pytest.raises(ShapeError, match="no neighbours to look at"):
        ImageClassifier().fit(np.random.default_rng(0).random((8, 1, 1, 1)), [0, 1] * 4)
    with pytest.raises(DataError, match="there is no file or folder"):
        small().fit(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="requires y"):
        small().fit(X)
    with pytest.raises(DataError, match="row 1 of X holds NaN"):
        small().fit(np.stack([np.zeros((1, 8, 8)), np.full((1, 8, 8), np.nan)]), [0, 1])
    with pytest.raises(ValueError, match="'augment' parameter"):
        small(augment="heavy").fit(X, y)
    root = write(tmp_path, {"train": 12})
    (root / "train" / "lying" / "bad.png").write_bytes(b"x")
    with pytest.raises(DataError, match=r"bad\.png' cannot be read as a picture"):
        small().fit(root)


def test_explain_is_grad_cam(fitted: ImageClassifier) -> None:
    X, y = pictures(20, seed=5)
    maps = fitted.explain(X)
    assert maps.shape == (20, 12, 12) and (maps >= 0).all() and maps.max() > 0
    chosen = fitted.explain(X, "standing")
    where = fitted.predict(X) == "standing"
    assert np.allclose(maps[where], chosen[where], atol=1e-6)
    each = fitted.explain(X, y)
    assert np.allclose(each[y == "standing"], chosen[y == "standing"], atol=1e-6)
    assert fitted.explain(X, layer="features.0").shape == (20, 12, 12)
    with pytest.raises(ValueError, match="labels not seen in fit"):
        fitted.explain(X, "round")
    assert isinstance(fitted.explain(torch.from_numpy(X)), torch.Tensor)


def test_own_augmentation_and_module() -> None:
    X, y = pictures()
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )
    model = small(network=net, network_params=None, augment=Augment([Affine(flip=0.5)], mixup=0.2))
    assert model.fit(X, y).predict(X).shape == (N,)
    assert not same(model, clone(model).set_params(augment="none").fit(X, y))


SIZES = {"lenet": 28, "resnet20": 16, "densenet": 32, "vit": 16, "alexnet": 64}


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_other_architectures(name: str, size: int) -> None:
    small_settings = dict(architectures.architectures[name].small)
    sizes = ("in_channels", "num_classes", "image_size")
    given = {k: v for k, v in small_settings.items() if k not in sizes}
    X, y = pictures(24)
    model = small(network=name, network_params=given or None, max_epochs=1, image_size=size)
    assert model.fit(X, y).predict(X).shape == (24,)


def test_a_network_for_pixels_is_refused() -> None:
    with pytest.raises(ShapeError, match="gives scores of shape .* for a picture of 2 classes"):
        small(network="unet", network_params={"base": 4, "depth": 2}).fit(*pictures(24))


def test_no_warnings_from_threads(tmp_path: Path) -> None:
    root = write(tmp_path, {"train": 20})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(max_epochs=1).fit(root).predict(root / "train")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_digits(seed: int) -> None:
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 1, 8, 8) / 16
    X, new, y, labels = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    model = ImageClassifier(random_state=seed, device="cpu").fit(X, y)
    assert model.score(new, labels) >= 0.97
