"""CIFAR-10's pickles and MNIST's idx files."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundstate.data import cifar10, idx, mnist, read_images
from groundstate.errors import DataError

RNG = np.random.default_rng(0)


def write_idx(path: Path, values: np.ndarray) -> None:
    kind = {"uint8": 8, "int32": 12, "float32": 13}[values.dtype.name]
    head = bytes([0, 0, kind, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    raw = head + values.astype(values.dtype.newbyteorder(">")).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def write_cifar(root: Path, n: int = 20) -> dict[str, np.ndarray]:
    root.mkdir(parents=True, exist_ok=True)
    kept = {}
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        data = RNG.integers(0, 256, (n, 3072), dtype=np.uint8)
        kept[name] = data
        batch = {b"data": data, b"labels": (np.arange(n) % 10).tolist(), b"batch_label": b"x"}
        (root / name).write_bytes(pickle.dumps(batch, protocol=2))
    names = [f"class{i}".encode() for i in range(10)]
    (root / "batches.meta").write_bytes(pickle.dumps({b"label_names": names}, protocol=2))
    return kept


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_mnist(tmp_path: Path, suffix: str) -> None:
    x, y = RNG.integers(0, 256, (30, 4, 5), dtype=np.uint8), (np.arange(30) % 10).astype(np.uint8)
    for part in ("train", "t10k"):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte{suffix}", x)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte{suffix}", y)
    found = mnist(tmp_path)
    assert set(found) == {"train", "test"} == set(read_images(tmp_path))
    assert np.array_equal(found["test"].rows.raw()[:, 0], x)
    assert found["train"].y.tolist() == y.tolist() and found["train"].classes == tuple(range(10))


def test_idx_of_other_types_and_damage(tmp_path: Path) -> None:
    values = RNG.normal(size=(2, 3)).astype(np.float32)
    write_idx(tmp_path / "a", values)
    assert np.array_equal(idx(tmp_path / "a"), values)
    write_idx(tmp_path / "b", np.array([-3, 70000], np.int32))
    assert idx(tmp_path / "b").tolist() == [-3, 70000]
    (tmp_path / "c").write_bytes((tmp_path / "a").read_bytes()[:-1])
    with pytest.raises(DataError, match="damaged or cut off"):
        idx(tmp_path / "c")
    (tmp_path / "d").write_bytes(b"\x89PNG")
    with pytest.raises(DataError, match="is no idx file"):
        idx(tmp_path / "d")
    (tmp_path / "e.gz").write_bytes(gzip.compress(b"\0\0\x08\x01")[:-4])
    with pytest.raises(DataError, match=r"e\.gz' cannot be read"):
        idx(tmp_path / "e.gz")
    write_idx(tmp_path / "train-images-idx3-ubyte", np.zeros((2, 3, 3), np.uint8))
    with pytest.raises(DataError, match="has no labels beside it"):
        mnist(tmp_path)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(DataError, match=r"expected uint8 \(n, height, width\) and \(n,\)"):
        mnist(tmp_path)


@pytest.mark.slow
def test_cifar10_of_full_size(tmp_path: Path) -> None:
    write_cifar(tmp_path / "cifar-10-batches-py", 10_000)
    found = read_images(tmp_path)
    sizes = {part: one.rows.raw().shape for part, one in found.items()}
    assert sizes == {"train": (50_000, 3, 32, 32), "test": (10_000, 3, 32, 32)}
    counts = [found["train"].counts()[c] + found["test"].counts()[c] for c in found["test"].classes]
    assert counts == [6_000] * 10


def test_cifar10(tmp_path: Path) -> None:
    kept = write_cifar(tmp_path)
    found = cifar10(tmp_path)
    assert len(found["train"]) == 100 and found["test"].y[3] == "class3"
    assert np.array_equal(found["train"].rows.raw()[20], kept["data_batch_2"][0].reshape(3, 32, 32))
    (tmp_path / "data_batch_4").unlink()
    with pytest.raises(DataError, match="has no file 'data_batch_4'"):
        cifar10(tmp_path)


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch groundstate-was-here",)


def test_a_pickle_cannot_run_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_cifar(tmp_path)
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": Evil()}))
    with pytest.raises(
        DataError, match=r"data_batch_1' is refused: the pickle asks for posix\.system"
    ):
        cifar10(tmp_path)
    assert not (tmp_path / "groundstate-was-here").exists()
    (tmp_path / "data_batch_1").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"data_batch_1' cannot be read"):
        cifar10(tmp_path)
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"labels": [1]}))
    with pytest.raises(DataError, match="is no batch of CIFAR-10"):
        cifar10(tmp_path)
