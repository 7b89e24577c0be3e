"""Labels and numbers of whole sequences: forms of input, networks, readouts, order, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.base import clone

import groundstate
from groundstate import SequenceClassifier, SequenceRegressor
from groundstate.compute.rows import Ragged
from groundstate.errors import DataError, ShapeError
from groundstate.nn.recurrent.sequence_network import READOUTS, SequenceNetwork

QUICK: dict[str, Any] = {"max_epochs": 25, "lr": 0.02, "network_params": {"hidden": 12},
                         "val_fraction": 0.0, "patience": None, "random_state": 0}  # fmt: skip


def risen(n: int = 60, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """The same numbers, rising or falling: only their order tells."""
    rng = np.random.default_rng(seed)
    rows = [np.sort(rng.normal(size=k))[:, None] for k in rng.integers(4, 9, n)]
    y = np.arange(n) % 2
    return [100 + 5 * (r if k else r[::-1]) for r, k in zip(rows, y)], np.array(["down", "up"])[y]


@pytest.mark.parametrize("network", ["gru", "lstm", "tcn", "transformer"])
def test_order_matters(network: str) -> None:
    X, y = risen()
    new, truth = risen(60, seed=1)
    model = SequenceClassifier(network, **QUICK).fit(X, y)
    assert model.score(new, truth) > 0.9
    shuffled = [np.random.default_rng(i).permutation(r) for i, r in enumerate(new)]
    assert model.score(shuffled, truth) < 0.8
    assert isinstance(model.network_, SequenceNetwork)


@pytest.mark.parametrize("readout", READOUTS)
def test_readouts_are_reached(readout: str) -> None:
    X, y = risen(20)
    model = SequenceClassifier("gru", readout=readout, **{**QUICK, "max_epochs": 2}).fit(X, y)
    assert model.network_.readout == readout


def test_forms_of_input_agree(tmp_path: Path) -> None:
    X, y = risen(30)
    quick = {**QUICK, "max_epochs": 3}
    expected = SequenceClassifier(**quick).fit(X, y).predict_proba(X)
    lengths = np.array([len(r) for r in X])
    padded = np.full((30, 9, 1), 7.0)
    for i, r in enumerate(X):
        padded[i, : len(r)] = r
    long = pl.DataFrame({
        "id": np.repeat([f"s{i:02d}" for i in range(30)], lengths),
        "time": np.concatenate([np.arange(n) for n in lengths]),
        "value": np.concatenate(X)[:, 0],
        "target": np.repeat(y, lengths),
    })  # fmt: skip
    path = tmp_path / "long.csv"
    long.sample(fraction=1.0, shuffle=True, seed=0).sort("id").write_csv(path)
    for given in (Ragged.of(X, torch.float64), (padded, lengths), [r[:, 0].tolist() for r in X]):
        model = SequenceClassifier(**quick).fit(given, y)
        np.testing.assert_allclose(model.predict_proba(given), expected, atol=1e-10)
    for given in (path, str(path), long):
        model = SequenceClassifier(**quick).fit(given)
        np.testing.assert_allclose(model.predict_proba(given), expected, atol=1e-6)
    equal = np.stack([r[:4] for r in X])
    one = SequenceClassifier(**quick).fit(equal, y).predict_proba(equal)
    two = SequenceClassifier(**quick).fit([r[:4] for r in X], y).predict_proba([r[:4] for r in X])
    np.testing.assert_allclose(one, two, atol=1e-10)


def test_texts_are_read_as_tokens(tmp_path: Path) -> None:
    X = ["not bad at all", "not good at all", "good not bad", "bad not good"] * 8
    y = np.array(["+", "-", "+", "-"] * 8)
    model = SequenceClassifier(embedding=8, **QUICK).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.predict(["good not bad", "bad not good"]).tolist() == ["+", "-"]
    loaded = groundstate.load(model.save(tmp_path / "texts.gs"))
    assert (loaded.predict(X) == model.predict(X)).all()
    with pytest.raises(DataError, match="was fitted to texts, X holds numbers"):
        model.predict([[1.0, 2.0]])
    assert np.isfinite(model.predict_proba(["good", ""])).all()
    marks = SequenceClassifier(tokens="char", **{**QUICK, "max_epochs": 1}).fit(X, y)
    assert marks.tokenizer_.size < 20


def test_the_scale_of_the_items_does_not_matter() -> None:
    X, y = risen(30)
    quick = {**QUICK, "max_epochs": 3}
    one = SequenceClassifier(**quick).fit(X, y).predict_proba(X)
    moved = [8 * r - 64 for r in X]
    two = SequenceClassifier(**quick).fit(moved, y).predict_proba(moved)
    np.testing.assert_allclose(one, two, atol=1e-3)


@pytest.mark.parametrize("bucket", [False, True])
def test_results_do_not_depend_on_padding(bucket: bool) -> None:
    X, y = risen(40)
    model = SequenceClassifier(bucket=bucket, **{**QUICK, "max_epochs": 4}).fit(X, y)
    together = model.predict_proba(X)
    alone = np.concatenate([model.predict_proba([r]) for r in X])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)


def test_numbers_of_sequences() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(k, 2)) for k in rng.integers(2, 7, 120)]
    y = np.array([[r[:, 0].sum(), 1000 + r[-1, 1]] for r in X])
    quick = {**QUICK, "max_epochs": 60}
    model = SequenceRegressor(**quick).fit(X, y)
    assert model.predict(X).shape == (120, 2) and model.score(X, y) > 0.9
    flat = SequenceRegressor("tcn", readout="mean", **quick).fit(X, y[:, 0])
    assert flat.predict(X).shape == (120,)
    np.testing.assert_allclose(
        flat.energy(X, y[:, 0]), 0.5 * (y[:, 0] - flat.predict(X)) ** 2, rtol=1e-5, atol=1e-7
    )


def test_a_weight_of_two_is_the_row_twice_to_the_last_bit_in_double_precision() -> None:
    X = np.random.default_rng(0).normal(size=(24, 9, 2))
    y = X[:, :, 0].sum(1)
    weight = 1.0 + (np.arange(24) % 3 == 0)
    index = np.repeat(np.arange(24), weight.astype(int))
    settings: dict[str, Any] = {"max_epochs": 2, "batch_size": 8, "val_fraction": 0.2,
                                "network_params": {"hidden": 4}, "random_state": 0}  # fmt: skip
    one = SequenceRegressor("tcn", **settings).fit(X, y, sample_weight=weight)
    two = SequenceRegressor("tcn", **settings).fit(X[index], y[index])
    assert one.energy_.placement()[1] == torch.float64
    assert np.array_equal(one.predict(X), two.predict(X))


def test_partial_fit_saved_and_resumed(tmp_path: Path) -> None:
    X, y = risen(40)
    model = SequenceClassifier(**QUICK)
    for _ in range(3):
        model.partial_fit(X, y, classes=["down", "up"])
    loaded = groundstate.load(model.save(tmp_path / "model.gs"))
    model.partial_fit(X, y)
    loaded.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), loaded.predict_proba(X))
    assert clone(model).get_params()["network__hidden"] == 12


def test_what_cannot_be_is_refused() -> None:
    X, y = risen(10)
    model = SequenceClassifier(**{**QUICK, "max_epochs": 1})
    with pytest.raises(DataError, match="row 0 of X holds NaN"):
        clone(model).fit([X[0] * np.nan, *X[1:]], y)
    with pytest.raises(ValueError, match="no architecture for sequence rows; there are"):
        clone(model).set_params(network="cnn").fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        clone(model).fit(X)
    with pytest.raises(ValueError, match="'readout' parameter"):
        clone(model).set_params(readout="first").fit(X, y)
    with pytest.raises(ShapeError, match=r"was fitted to RaggedOf"):
        model.fit(X, y).predict([np.ones((3, 2))])
    with pytest.raises(DataError, match="takes sequence rows"):
        clone(model).fit([{"a": 1}] * 10, y)
