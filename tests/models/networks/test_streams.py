"""Networks learn from rows that are read in pieces, as they learn from rows in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from groundstate import MLPRegressor, NeuralClassifier, NeuralRegressor
from groundstate.data import Rereadable
from groundstate.errors import DataError, Unsupported
from groundstate.learn import Arrays, Parquet

N = 120
QUICK: dict[str, Any] = {
    "max_iter": 5, "batch_size": 32, "n_iter_no_change": np.inf, "random_state": 0,
    "learning_rate_init": 0.02,
}  # fmt: skip


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    return (rng.normal(size=(N, 4)) + 2 * np.eye(3, 4)[y]).astype(np.float32), y


def same(a: Any, b: Any, atol: float = 1e-5) -> bool:
    pairs = zip(a.energy_.parameters(), b.energy_.parameters(), strict=True)
    return all(torch.allclose(one, two, atol=atol) for one, two in pairs)


class Lines(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        x, y = rows()
        return iter(zip(x, y, strict=True))


def test_every_stream_is_taken(tmp_path: Path) -> None:
    x, y = rows()
    at_once = NeuralClassifier(**QUICK).fit(x, y)
    table = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    mapped = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=x.shape)
    mapped[:] = x
    frame = pl.DataFrame({**{f"c{i}": x[:, i] for i in range(4)}, "label": y})
    frame.write_parquet(tmp_path / "rows.parquet")
    for given in ((Arrays({"x": x, "y": y}, block=17, buffer=50),), (table,), (mapped, y)):
        model = NeuralClassifier(**QUICK).fit(*given)
        assert same(model, at_once) and model.n_features_in_ == 4
        assert model.classes_.tolist() == [0, 1, 2] and len(model.loss_curve_) == 5
    columns = {"x": [f"c{i}" for i in range(4)], "y": "label"}
    for stream in (
        Parquet(tmp_path / "rows.parquet", columns, block=16, buffer=40),
        Lines(),
        Rereadable(lambda: iter(Lines())),
    ):
        model = NeuralClassifier(**{**QUICK, "max_iter": 20}).fit(stream)
        assert model.score(x, y) > 0.8


def test_regressors_take_streams() -> None:
    x, _ = rows()
    t = x.sum(1)
    for make in (NeuralRegressor, MLPRegressor):
        streamed = make(**QUICK).fit(Arrays({"x": x, "y": t}, block=17, buffer=50))
        at_once = make(**QUICK).fit(x, t)
        assert same(streamed, at_once, 1e-4)
        np.testing.assert_allclose(streamed.scale_, at_once.scale_, rtol=1e-3)
        assert streamed.predict(x).shape == (N,)


def test_weights_are_part_of_a_stream() -> None:
    x, y = rows()
    weight = 1.0 + (np.arange(N) % 2)
    streamed = NeuralClassifier(**QUICK).fit(Arrays({"x": x, "y": y, "weight": weight}))
    assert same(streamed, NeuralClassifier(**QUICK).fit(x, y, sample_weight=weight))


@pytest.mark.parametrize(
    ("fit", "error", "said"),
    [
        (lambda s, m: m.fit(s, np.zeros(N)), DataError, "holds its own targets"),
        (lambda s, m: m.fit(s, sample_weight=np.ones(N)), ValueError, "put the weights into it"),
        (lambda s, m: m.set_params(early_stopping=True).fit(s), Unsupported, "holds rows out"),
        (lambda s, m: m.set_params(solver="lbfgs").fit(s), Unsupported, "in mini-batches"),
        (lambda s, m: m.fit(Arrays({"x": np.zeros((3, 2))})), DataError, "variables x and y"),
        (
            lambda s, m: m.fit(Arrays({"x": np.full((3, 2), np.nan), "y": np.arange(3)})),
            DataError,
            "row 0 of the stream holds NaN",
        ),
        (
            lambda s, m: m.fit(Arrays({"x": np.zeros((3, 2, 2)), "y": np.arange(3)})),
            DataError,
            "lines of a table",
        ),
    ],
)
def test_what_a_stream_cannot_do_is_said(fit: Any, error: type[Exception], said: str) -> None:
    x, y = rows()
    model = NeuralClassifier(**QUICK)
    with pytest.raises(error, match=said):
        fit(Arrays({"x": x, "y": y}), model)
    assert not hasattr(model, "energy_") and model._stream is None


def test_a_loader_of_batches_is_refused_for_its_rows() -> None:
    x, y = rows()
    table = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    with pytest.raises(DataError, match=r"pass loader\.dataset, and batch_size to the estimator"):
        NeuralClassifier(**QUICK).fit(torch.utils.data.DataLoader(table, batch_size=16))
