"""Small work is of one thread, and torch's number of threads is afterwards what it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from torch.overrides import TorchFunctionMode

import groundstate
from groundstate import (
    PCA,
    FactorAnalysis,
    GaussianMixture,
    GaussianNB,
    Isomap,
    KernelPCA,
    KernelRidge,
    KMeans,
    LinearDiscriminantAnalysis,
    NearestNeighbors,
    Ridge,
)
from groundstate.compute.device import threads
from groundstate.compute.thread_policy import for_fit, for_steps, given_threads, step_threads
from groundstate.learn.callbacks import Callback


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("x", "inside"),
    [
        (np.zeros((100, 10)), 1), (torch.zeros(100, 10), 1), ([[0.0, 1.0]] * 30, 1),
        (csr_matrix((100, 10)), 1), (pd.DataFrame({"a": range(9)}), 1), (np.zeros((10_000, 3)), 2),
        (np.zeros((3, 10_000)), 2), (np.zeros((8, 1, 28, 28)), 2), (["a text", "another"], 2),
        ([], 2), (None, 2),
    ],
    ids=[
        "array", "tensor", "list", "sparse", "frame", "long", "wide", "images", "texts", "empty", "none",
    ],
)  # fmt: skip
def test_only_fits_to_short_tables_are_of_one_thread(x: Any, inside: int) -> None:
    with for_fit(x):
        assert torch.get_num_threads() == inside
        assert given_threads() == 2
    assert torch.get_num_threads() == 2


def test_threads_come_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), for_fit(np.zeros((2, 2))):
        raise ValueError("broken")
    assert torch.get_num_threads() == given_threads() == 2


def test_a_fit_that_fails_gives_the_threads_back() -> None:
    with pytest.raises(ValueError, match="NaN"):
        Ridge().fit(np.full((9, 2), np.nan), np.arange(9.0))
    assert torch.get_num_threads() == given_threads() == 2


def test_large_steps_within_a_short_table_have_the_threads_of_the_caller() -> None:
    with for_fit(np.zeros((20, 2))), for_fit(np.zeros((10, 2))):
        assert (step_threads(1e9), step_threads(1e3)) == (2, 1)
        with for_steps(1e9):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_one_thread_of_the_caller_stays_one() -> None:
    with threads(1), for_fit(np.zeros((20, 2))):
        assert given_threads() == step_threads(1e9) == 1


def _seen(model: Any, X: Any, y: Any) -> tuple[int, int]:
    """Torch's threads, and those for loops of its own, where a fit learns."""
    seen: list[tuple[int, int]] = []
    real = type(model)._run

    def run(self: Any, *given: Any) -> Any:
        seen.append((torch.get_num_threads(), given_threads()))
        return real(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), "_run", run)
        model.fit(X, y)
    assert torch.get_num_threads() == 2
    return seen[0]


@pytest.mark.parametrize(("rows", "inside"), [(60, 1), (400, 2)])
@pytest.mark.parametrize(
    "name", ["LassoCV", "BayesianRidge", "KMeans", "PCA", "RandomForestRegressor"]
)
def test_every_fit_looks_at_its_table(name: str, rows: int, inside: int) -> None:
    X = np.random.default_rng(0).normal(size=(rows, 3))
    assert _seen(getattr(groundstate, name)(), X, X[:, 0]) == (inside, 2)


@pytest.mark.parametrize("sizes", [(8,), (1000, 1000)])
def test_networks_of_many_weights_keep_the_threads(sizes: tuple[int, ...]) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    seen: list[int] = []

    class Watch(Callback):
        def on_epoch(self, run: Any) -> bool:
            seen.append(torch.get_num_threads())
            return True

    model = groundstate.MLPRegressor(hidden_layer_sizes=sizes, max_iter=2, callbacks=[Watch()])
    model.fit(X, X[:, 0])
    assert set(seen) == {1 if sizes == (8,) else 2}


@pytest.mark.parametrize("ask", ["fit_transform", "transform", "inverse_transform"])
def test_codes_of_few_rows_are_of_one_thread(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(150, 4))
    model = PCA(2).fit(X)
    kind, used = type(model.energy_), []

    def watched(name: str) -> Any:
        real = getattr(kind, name)

        def call(self: Any, values: Any) -> Any:
            used.append(torch.get_num_threads())
            return real(self, values)

        return call

    for name in ("encode", "decode"):
        monkeypatch.setattr(kind, name, watched(name))
    getattr(model, ask)(X[:, :2].copy() if ask == "inverse_transform" else X)
    assert used == [1]
    assert torch.get_num_threads() == 2


MODELS = [
    FactorAnalysis(2), GaussianMixture(2, n_init=2, random_state=0), GaussianMixture(),
    GaussianNB(), Isomap(), KernelPCA(2), KernelRidge(), KMeans(2, random_state=0),
    LinearDiscriminantAnalysis(), NearestNeighbors(),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_fits_and_answers_leave_the_threads_as_they_were(model: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model.fit(X, np.arange(60) % 2)
    assert torch.get_num_threads() == 2
    for ask in ("predict", "transform", "kneighbors", "score_samples"):
        if hasattr(model, ask):
            getattr(model, ask)(X)
    assert torch.get_num_threads() == 2


class Products(TorchFunctionMode):
    """Torch's threads at every product of matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("matmul", "__matmul__", "linear", "addmm", "baddbmm", "cdist"):
            self.threads.append(torch.get_num_threads())
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("BayesianRidge", "predict"), ("FastICA", "inverse_transform"), ("GLM", "predict_interval"),
        ("MahalanobisTransformer", "transform"), ("PCA", "energy"), ("SoftKMeans", "predict_proba"),
    ],
)  # fmt: skip
def test_answers_of_few_rows_are_of_one_thread(name: str, ask: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = getattr(groundstate, name)().fit(X, X[:, 0])
    with Products() as seen:
        getattr(model, ask)(X)
    assert set(seen.threads) == {1}
    assert torch.get_num_threads() == 2
