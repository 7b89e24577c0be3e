"""Small work is of one thread, and torch's number of threads is afterwards what it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

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
)
from groundstate.compute.thread_policy import for_table


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("shape", "inside"), [((100, 10), 1), ((10_000, 3), 2), ((3, 10_000), 2)])
def test_only_short_tables_are_of_one_thread(shape: tuple[int, int], inside: int) -> None:
    with for_table(torch.zeros(shape)):
        assert torch.get_num_threads() == inside
    assert torch.get_num_threads() == 2


def test_rows_that_are_no_table_keep_the_threads() -> None:
    with for_table(None):
        assert torch.get_num_threads() == 2


def test_threads_come_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), for_table(torch.zeros(2, 2)):
        raise ValueError("broken")
    assert torch.get_num_threads() == 2


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
