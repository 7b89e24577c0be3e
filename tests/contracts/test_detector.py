"""What every detector promises, by every method it has."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import groundstate
from groundstate.data import make_shapes
from groundstate.models.vision.detection.methods import METHODS
from groundstate.registry import models

NAMES = np.array(["circle", "square", "triangle"])
DETECTORS = [row.name for row in models if row.role == "detector"]
CASES = [(name, method) for name in DETECTORS for method in METHODS]


@cache
def scenes(n: int = 8) -> Any:
    made = make_shapes(n, size=32, n_objects=(0, 2), random_state=2)
    rows = zip(made.boxes, made.labels, made.masks, strict=True)
    return made.images, [(b, NAMES[c - 1], m) for b, c, m in rows]


@cache
def fitted(name: str, method: str) -> Any:
    model = getattr(groundstate, name)(
        method, max_epochs=1, batch_size=4, val_fraction=0, score_threshold=0.0, random_state=0
    )
    return model.fit(*scenes())


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def model(request: pytest.FixtureRequest) -> Any:
    return fitted(*request.param)


def test_there_are_detectors() -> None:
    assert DETECTORS and {models[name].task for name in DETECTORS} == {"detection"}


def test_answers(model: Any) -> None:
    X, y = scenes()
    found = model.predict(X)
    assert len(found) == len(X) and model.classes_.tolist() == NAMES.tolist()
    for one in found:
        n = len(one["scores"])
        assert one["boxes"].shape == (n, 4) and one["labels"].shape == (n,)
        assert n <= model.max_detections and set(one["labels"].tolist()) <= set(NAMES.tolist())
        assert (one["boxes"] >= 0).all() and (one["boxes"] <= 32).all()
        assert (one["boxes"][:, 2:] > one["boxes"][:, :2]).all()
        assert (np.diff(one["scores"]) <= 0).all()
        assert ("masks" in one) == METHODS[model.method].masks
        if "masks" in one:
            assert one["masks"].shape == (n, 32, 32) and one["masks"].dtype == bool
    score = model.score(X, y)
    assert 0 <= score <= 1 and score == model.average_precision(X, y).ap


def test_a_picture_alone_is_a_picture_among_others(model: Any) -> None:
    X, _ = scenes()
    (alone,) = model.predict(X[3:4])
    together = model.predict(X)[3]
    assert np.allclose(alone["boxes"], together["boxes"], atol=1e-3)
    assert (alone["labels"] == together["labels"]).all()


def test_energies(model: Any) -> None:
    X, y = scenes()
    e = model.energy(X, y)
    assert e.shape == (len(X),) and np.isfinite(e).all()
    order = np.arange(len(X))[::-1]
    assert np.allclose(model.energy(X[order], [y[i] for i in order]), e[order], rtol=1e-3)


def test_saved_and_loaded(model: Any, tmp_path: Path) -> None:
    X, _ = scenes()
    loaded = groundstate.load(model.save(tmp_path / "model.gs"))
    for a, b in zip(model.predict(X[:3]), loaded.predict(X[:3]), strict=True):
        assert a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_the_same_seed_finds_the_same(model: Any) -> None:
    X, y = scenes()
    again = clone(model).fit(X, y)
    for a, b in zip(model.predict(X[:2]), again.predict(X[:2]), strict=True):
        assert all(np.array_equal(a[k], b[k]) for k in a)


def test_nothing_to_find_is_an_answer(model: Any) -> None:
    empty = model.predict(np.zeros((0, 3, 32, 32), np.float32))
    assert empty == []
