"""Rows in pieces, in files and over processes give the clusters of all rows in memory."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.datasets import make_blobs

from groundstate import KMeans, MiniBatchKMeans
from groundstate.compute import run_local
from groundstate.compute.mapped import is_mapped, mapped
from groundstate.compute.random import Key
from groundstate.data import Rereadable
from groundstate.errors import DataError
from groundstate.learn.solvers.latent.kmeans.drawers import MappedDrawer
from groundstate.learn.solvers.latent.kmeans.start import drawer_of


def table(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    X, _ = make_blobs(n, 4, centers=9, cluster_std=1.5, random_state=0)
    X[-200:] = X[:200]
    return X, np.random.default_rng(0).integers(0, 3, n).astype(float)


def on_disk(X: np.ndarray, folder: Path, mode: Any = "r") -> Any:
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode=mode)


def forms(X: np.ndarray, folder: Path) -> dict[str, Any]:
    """The same rows in every form that is not an array in memory."""
    cuts = [0, 700, 701, 1900, len(X)]
    parts = [X[a:b] for a, b in pairwise(cuts)]
    names = [f"c{j}" for j in range(X.shape[1])]
    for i, part in enumerate(parts):
        pl.DataFrame(part, schema=names).write_parquet(folder / f"{i}.parquet")
    return {
        "generator": iter(parts),
        "read again": Rereadable(lambda: iter(parts)),
        "files": sorted(folder.glob("*.parquet")),
        "memory map": on_disk(X, folder),
        "columns first": np.memmap(folder / "f", "float64", "w+", shape=X.shape, order="F"),
    }


@pytest.mark.parametrize("init", ["k-means++", "scalable-k-means++", "random"])
def test_every_form_gives_the_same(init: str, tmp_path: Path) -> None:
    X, _ = table()
    whole = KMeans(6, init=init, n_init=2, random_state=0).fit(X)
    for name, form in forms(X, tmp_path).items():
        if name == "columns first":
            form[:] = X
        model = KMeans(6, init=init, n_init=2, random_state=0).fit(form)
        np.testing.assert_allclose(
            model.cluster_centers_, whole.cluster_centers_, rtol=1e-12, atol=1e-12, err_msg=name
        )
        np.testing.assert_array_equal(model.labels_, whole.labels_, err_msg=name)
        assert model.inertia_ == pytest.approx(whole.inertia_, rel=1e-12)
        assert model.n_iter_ == whole.n_iter_
        assert ("feature_names_in_" in vars(model)) == (name == "files")


def test_beyond_what_one_call_takes_and_in_single_precision(tmp_path: Path) -> None:
    X = table(30_000)[0].astype(np.float32)
    whole = KMeans(12, random_state=1).fit(X)
    model = KMeans(12, random_state=1).fit(on_disk(X, tmp_path))
    assert model.cluster_centers_.dtype == np.float32
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-6)
    np.testing.assert_array_equal(model.labels_, whole.labels_)


def test_weights_of_a_stream_and_of_a_memory_map(tmp_path: Path) -> None:
    X, w = table()
    whole = KMeans(5, random_state=0).fit(X, sample_weight=w)
    model = KMeans(5, random_state=0).fit(on_disk(X, tmp_path), sample_weight=w)
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-12)
    pairs = iter([(X[:900], w[:900]), (X[900:], w[900:])])
    model = KMeans(5, random_state=0).fit(pairs)
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-12)


def test_a_relocated_centroid(tmp_path: Path) -> None:
    X, _ = table()
    far = np.array([[0.0] * 4, [1e3] * 4, [2e3] * 4])
    whole, model = KMeans(3, init=far).fit(X), KMeans(3, init=far).fit(on_disk(X, tmp_path))
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-12)


def test_mini_batches_of_a_file(tmp_path: Path) -> None:
    X, _ = table()
    whole = MiniBatchKMeans(5, random_state=0).fit(X)
    model = MiniBatchKMeans(5, random_state=0).fit(on_disk(X, tmp_path))
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-12)


def test_what_is_wrong_is_reported(tmp_path: Path) -> None:
    X, w = table()
    X[1234, 2] = np.nan
    for form in (on_disk(X, tmp_path), iter([X[:1000], X[1000:]])):
        with pytest.raises(DataError, match=r"contains nan in row 1234, column 2"):
            KMeans(3).fit(form)
    with pytest.raises(DataError, match="some pieces of the stream have weights"):
        KMeans(3).fit(iter([(X[:900], w[:900]), X[:900]]))
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        KMeans(3).fit(iter([X[:2]]))
    with pytest.raises(DataError, match="gives no rows"):
        KMeans(3).fit(iter([]))


def test_private_maps_keep_what_was_written(tmp_path: Path) -> None:
    X, _ = table()
    private = on_disk(X, tmp_path, mode="c")
    private[:] += 5.0
    model = KMeans(4, random_state=0).fit(private)
    assert not is_mapped(mapped(private))
    np.testing.assert_allclose(private, X + 5.0)
    np.testing.assert_allclose(
        model.cluster_centers_, KMeans(4, random_state=0).fit(X + 5.0).cluster_centers_, rtol=1e-12
    )


def shard(rank: int) -> dict[str, Any]:
    X, w = table()
    rows = slice(0, 1300) if rank == 0 else slice(1300, None)
    model = KMeans(6, random_state=0).fit(iter([(X[rows], w[rows])]))
    return {"mu": torch.as_tensor(np.array(model.cluster_centers_)), "J": model.inertia_}


@pytest.mark.slow
def test_two_processes_with_a_stream_each() -> None:
    X, w = table()
    whole = KMeans(6, random_state=0).fit(X, sample_weight=w)
    for part in run_local(shard, 2):
        np.testing.assert_allclose(part["mu"], whole.cluster_centers_, rtol=1e-10, atol=1e-10)
        assert part["J"] == pytest.approx(whole.inertia_, rel=1e-10)


def test_rows_drawn_from_a_file_are_those_of_the_table(tmp_path: Path) -> None:
    """However few rows are read at a time, also none."""
    rows = np.random.default_rng(0).normal(size=(3_000, 4))
    np.save(tmp_path / "rows.npy", rows)
    x = mapped(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    drawer = drawer_of(x, None, Key.of(0))
    assert isinstance(drawer, MappedDrawer)
    for index in (torch.arange(2_999, -1, -7), torch.tensor([5]), torch.arange(0)):
        assert drawer.take(index).tolist() == rows[index.numpy()].tolist()
