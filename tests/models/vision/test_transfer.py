"""Transfer of image classifiers: new heads, checkpoints, other distributions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone
from torch import nn

import groundstate
from groundstate import ImageClassifier
from groundstate.errors import DataError, ShapeError, StoreError, Unsupported
from groundstate.nn import architectures
from groundstate.nn.blocks.transfer import Transferred


def bars(n: int, kinds: tuple[str, ...], seed: int = 0, contrast: float = 1.0) -> Any:
    """Bars that lie, stand, cross or form a corner in 12 x 12 noisy pixels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 0.15, (n, 1, 12, 12)).astype(np.float32)
    y = np.array([kinds[i % len(kinds)] for i in range(n)])
    for i, kind in enumerate(y):
        a, b = rng.integers(2, 8, 2)
        if kind in ("lying", "cross"):
            X[i, :, a : a + 2] += 1
        if kind in ("standing", "cross"):
            X[i, :, :, b : b + 2] += 1
        if kind == "corner":
            X[i, :, a : a + 2, b:] += 1
            X[i, :, a:, b : b + 2] += 1
    return contrast * X, y


OLD, NEW = ("lying", "standing", "cross"), ("corner", "cross", "standing", "lying")


def small(**settings: Any) -> ImageClassifier:
    given = {
        "network": "resnet20", "network_params": {"width": 8}, "max_epochs": 6, "batch_size": 32,
        "lr": 1e-2, "random_state": 0, "device": "cpu", "augment": "none",
    }  # fmt: skip
    return ImageClassifier(**{**given, **settings})


@pytest.fixture(scope="module")
def source() -> ImageClassifier:
    return small().fit(*bars(300, OLD))


def copied(model: Any) -> Any:
    from copy import deepcopy

    return deepcopy(model)


def body(net: nn.Module) -> dict[str, torch.Tensor]:
    net = net.net if isinstance(net, Transferred) else net
    return {k: v.clone() for k, v in net.state_dict().items() if not k.startswith("fc.")}


def test_frozen_weights_and_statistics_stay(source: ImageClassifier) -> None:
    model = copied(source)
    before, moments = body(model.network_), (model.mean_.copy(), model.std_.copy())
    X, y = bars(48, NEW, 1)
    model.finetune(X + 0.3, y)
    after = body(model.network_)
    assert all(torch.equal(before[k], after[k]) for k in before)  # also running means
    assert model.classes_.tolist() == sorted(NEW) and model.predict_proba(X).shape == (48, 4)
    assert np.array_equal(model.mean_, moments[0])
    first = copied(source).finetune(X, y, freeze=3)
    after = body(first.network_)
    moved = [k for k in before if not torch.equal(before[k], after[k])]
    assert moved and not any(k.startswith(("conv1", "bn1")) for k in moved)
    everything = copied(source).finetune(X, y, freeze=None)
    assert not torch.equal(body(everything.network_)["conv1.weight"], before["conv1.weight"])


def test_few_labels_do_better_than_from_scratch(source: ImageClassifier) -> None:
    new, labels = bars(200, NEW, 9)
    tuned, scratch = [], []
    for seed in (1, 2, 3):
        X, y = bars(32, NEW, seed)
        settings = {"val_fraction": 0.0, "max_epochs": 12, "batch_size": 8}
        model = copied(source).set_params(**settings).finetune(X, y, freeze=None)
        tuned.append(1 - model.score(new, labels))
        scratch.append(1 - small(**settings, random_state=seed).fit(X, y).score(new, labels))
    assert np.mean(tuned) < np.mean(scratch)


def test_same_task_and_data_is_training_that_goes_on(source: ImageClassifier) -> None:
    X, y = bars(300, OLD)
    tuned = copied(source).finetune(X, y, freeze=None, lr_decay=1.0)
    goes_on = copied(source).set_params(warm_start=True).fit(X, y)
    a, b = tuned.energy_.state_dict(), goes_on.energy_.state_dict()
    assert all(torch.equal(a[k], b[k]) for k in a) and not tuned.warm_start
    head = source.network_.fc.weight
    kept = copied(source).set_params(max_epochs=1, lr=1e-9).finetune(X, y)  # the head stays too
    assert torch.allclose(kept.network_.net.fc.weight, head, atol=1e-6)


def test_rates_fall_from_the_head_down(source: ImageClassifier) -> None:
    X, y = bars(48, NEW, 1)
    before = body(source.network_)
    moved = {}
    for decay in (1.0, 0.5):
        settings = {"optimizer": "sgd", "lr": 1e-3, "max_epochs": 1, "weight_decay": 0.0}
        model = copied(source).set_params(**settings).finetune(X, y, freeze=None, lr_decay=decay)
        after = body(model.network_)
        moved[decay] = {
            k: float((after[k] - before[k]).norm())
            for k in ("conv1.weight", "layer3.2.conv2.weight")
        }
    assert moved[0.5]["conv1.weight"] < 1e-3 * moved[1.0]["conv1.weight"]
    with pytest.raises(Unsupported, match="one rate for all layers"):
        copied(source).set_params(optimizer="rmsprop").finetune(X, y, freeze=None)
    with pytest.raises(ValueError, match=r"lr_decay is a factor in \(0, 1\]"):
        copied(source).finetune(X, y, lr_decay=0.0)


def test_a_tuned_model_is_kept_and_goes_on(source: ImageClassifier, tmp_path: Path) -> None:
    X, y = bars(48, NEW, 1)
    model = copied(source).finetune(X, y)
    model.save(tmp_path / "m.gs")
    again = groundstate.load(tmp_path / "m.gs")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert again.network_.frozen == model.network_.frozen
    more = again.finetune(*bars(24, OLD, 4), freeze=2)
    assert len(more.network_.frozen) == 2 and more.predict(X).shape == (48,)
    assert more.explain(X[:2]).shape == (2, 12, 12)


def test_weights_from_files(source: ImageClassifier, tmp_path: Path) -> None:
    X, y = bars(48, NEW, 1)
    with pytest.raises(ValueError, match="fit first, or load_backbone"):
        small().finetune(X, y)
    source.save(tmp_path / "source.gs")
    model = small(max_epochs=1).load_backbone(tmp_path / "source.gs").finetune(X, y)
    before, after = body(source.network_), body(model.network_)
    assert all(torch.equal(before[k], after[k]) for k in before)
    frozen = small(max_epochs=1, freeze=True).load_backbone(tmp_path / "source.gs").fit(X, y)
    assert all(torch.equal(before[k], v) for k, v in body(frozen.network_).items())
    assert frozen.score(X, y) >= 0.25


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_checkpoints_by_name(tmp_path: Path, suffix: str) -> None:
    net = architectures.create("resnet20", generator=torch.Generator().manual_seed(7))
    path = tmp_path / f"net{suffix}"
    if suffix == ".pth":
        torch.save({"state_dict": {f"module.{k}": v for k, v in net.state_dict().items()}}, path)
    else:
        save_file(net.state_dict(), path)
    X, y = bars(24, NEW)
    model = small(network_params=None, max_epochs=1, freeze="backbone").load_backbone(path)
    with pytest.warns(UserWarning, match="grey; they are converted to the 3 channels"):
        model.fit(X, y)
    kept = model.network_.net.state_dict()
    assert all(torch.equal(kept[k], v) for k, v in net.state_dict().items() if k[:3] != "fc.")
    assert model.form_.channels == 3 and model.network_.net.fc.out_features == 4
    with pytest.raises(DataError, match="no checkpoint of network='resnet56': it lacks"):
        small(network="resnet56", network_params=None).load_backbone(path)
    with pytest.raises(DataError, match=r"has 'conv1.weight' of shape \(16, 3, 3, 3\), not \(8, 3"):
        small().load_backbone(path)
    (tmp_path / "bad.pth").write_bytes(b"no weights")
    with pytest.raises(StoreError, match=r"bad\.pth' cannot be read as a checkpoint"):
        small().load_backbone(tmp_path / "bad.pth")
    with pytest.raises(DataError, match="there is no file"):
        small().load_backbone(tmp_path / "none.pth")


def test_a_module_with_another_head() -> None:
    X, y = bars(24, NEW)
    net = architectures.create("resnet20", width=4, in_channels=1, num_classes=7)
    model = small(network=net, network_params=None, max_epochs=1, freeze=True).fit(X, y)
    assert model.network_.net.fc.out_features == 4
    assert torch.equal(model.network_.net.conv1.weight, net.conv1.weight)
    fresh = clone(model).fit(X, y)
    assert np.array_equal(fresh.predict_proba(X), model.predict_proba(X))
    fits = small(network=net, network_params=None, max_epochs=1).fit(*bars(21, OLD))
    assert fits.network_.net.fc.out_features == 3


def test_new_statistics_of_batch_norms_undo_a_contrast(source: ImageClassifier) -> None:
    target, labels = bars(200, OLD, 4, contrast=0.35)
    model = copied(source)
    before = model.score(target, labels)
    model.adapt(target)
    assert model.score(target, labels) > max(0.85, before + 0.1)


def test_coral_gives_the_target_the_mean_scores_of_the_source(source: ImageClassifier) -> None:
    X, _ = bars(300, OLD, 3)
    target, _ = bars(300, OLD, 4, contrast=0.5)
    model = copied(source).adapt(target, X, method="coral")
    old, new = source.decision_function(X), model.decision_function(target)
    assert np.allclose(old.mean(0), new.mean(0), atol=1e-2)


def test_coral_undoes_a_linear_change_of_the_features() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 1, 3, 3)).astype(np.float32)
    X[np.arange(600), 0, y, y] += 4
    net = nn.Sequential(nn.Flatten(), nn.Linear(9, 3))
    settings = {"network": net, "network_params": None, "max_epochs": 30, "lr": 3e-2}
    model = small(**settings).fit(X[:300], y[:300])
    scale, move = rng.uniform(0.2, 3.0, (3, 3)), rng.uniform(-9.0, 9.0, (3, 3))
    changed = (X * scale + move).astype(np.float32)
    before = model.score(changed[300:], y[300:])
    model.adapt(changed[300:], X[:300], method="coral")
    assert model.score(changed[300:], y[300:]) > max(0.9, before + 0.1)


def test_adapt_to_the_source_changes_little_and_errors(source: ImageClassifier) -> None:
    X, _ = bars(200, OLD, 3)
    same = copied(source).adapt(X, X, method="coral")
    assert np.allclose(same.predict_proba(X), source.predict_proba(X), atol=1e-3)
    with pytest.raises(ShapeError, match="general transfer"):
        copied(source).adapt(np.zeros((4, 1, 20, 20), np.float32))
    with pytest.raises(ShapeError, match="general transfer"):
        copied(source).adapt(np.zeros((4, 7, 12, 12), np.float32))
    with pytest.raises(ValueError, match="X_source"):
        copied(source).adapt(X, method="coral")
    with pytest.raises(ValueError, match="'bn' or 'coral'"):
        copied(source).adapt(X, method="mean")
    plain = small(network="cnn", network_params={"channels": (4,)}, max_epochs=1).fit(
        *bars(40, OLD)
    )
    with pytest.raises(Unsupported, match="no batch norms"):
        plain.adapt(X)
