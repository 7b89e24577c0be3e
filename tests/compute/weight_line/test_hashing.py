"""Row hashes see the content of a row and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from groundstate.compute import row_hash
from groundstate.compute.weight_line import hashing
from groundstate.compute.weight_line.hashing_torch import keyed_orders, tensor_sum
from groundstate.compute.weight_line.reference import keyed_order as keyed_order_reference
from groundstate.errors import DataError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 6)).round(1)
y = rng.integers(0, 3, 40)


def test_equal_rows_have_equal_hashes_and_others_do_not() -> None:
    hashes = row_hash(X, y)
    _, content = np.unique(np.c_[X + 0.0, y], axis=0, return_inverse=True)
    same = content[:, None] == content[None]
    assert ((hashes[:, None] == hashes[None]) == same).all()


def test_nothing_but_the_row_matters() -> None:
    p = rng.permutation(40)
    assert (row_hash(X[p], y[p]) == row_hash(X, y)[p]).all()
    assert (row_hash(np.asfortranarray(X)) == row_hash(X)).all()
    assert (np.concatenate([row_hash(X[:13]), row_hash(X[13:])]) == row_hash(X)).all()
    assert (row_hash(X, y, None) == row_hash(X, y)).all()


def test_columns_and_arguments_have_their_own_places() -> None:
    a, b = np.array([[1.0, 2.0]]), np.array([[2.0, 1.0]])
    assert row_hash(a)[0] != row_hash(b)[0]
    assert row_hash([1.0], [2.0])[0] != row_hash([2.0], [1.0])[0]
    assert row_hash(a)[0] != row_hash(a, seed=1)[0]


def test_small_tables_of_bits_do_not_collide() -> None:
    bits = (np.arange(1 << 16)[:, None] >> np.arange(16)) & 1
    assert len(np.unique(row_hash(bits))) == 1 << 16
    assert len(np.unique(row_hash(np.arange(1 << 16)))) == 1 << 16
    swap = np.eye(300)
    assert len(np.unique(row_hash(swap))) == 300


def test_hash_bits_are_balanced() -> None:
    hashes = row_hash(np.arange(20_000.0))
    share = ((hashes[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(0)
    assert np.abs(share - 0.5).max() < 4.5 * 0.5 / np.sqrt(20_000)


def test_numbers_hash_by_value() -> None:
    whole = np.array([[0, 1], [5, -7]])
    expected = row_hash(whole.astype(float))
    for dtype in (np.int8, np.int32, np.int64, np.float16, np.float32):
        assert (row_hash(whole.astype(dtype)) == expected).all()
    assert (row_hash(whole > 0) == row_hash((whole > 0).astype(float))).all()
    assert row_hash([-0.0])[0] == row_hash([0.0])[0]
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(float)
    assert (row_hash(odd) == row_hash([np.nan])[0]).all()
    assert row_hash([np.inf])[0] != row_hash([np.nan])[0]
    large = np.array([2**60, 2**60 + 1])
    assert len(np.unique(row_hash(large))) == 2


def test_text_hashes_by_its_characters() -> None:
    words = np.array(["a", "ab", "b", "a"])
    hashes = row_hash(words)
    assert hashes[0] == hashes[3] and len(np.unique(hashes)) == 3
    assert (row_hash(words.astype("U20")) == hashes).all()
    assert (row_hash(words.astype(object)) == hashes).all()
    assert (row_hash(words[:1]) == hashes[0]).all()
    table = np.array([["a", "longer"], ["b", "x"]])
    assert row_hash(table)[1] == row_hash(np.array([["b", "x"]]))[0]


def test_sparse_hashes_like_dense() -> None:
    dense = X * (rng.uniform(size=X.shape) < 0.3)
    dense[3] = 0
    for sparse in (sp.csr_array(dense), sp.coo_matrix(dense), sp.csc_array(dense)):
        assert (row_hash(sparse, y) == row_hash(dense, y)).all()
    doubled = sp.csr_array((np.array([1.0, 2.0]), np.array([4, 4]), np.array([0, 2])), shape=(1, 6))
    assert row_hash(doubled)[0] == row_hash([[0, 0, 0, 0, 3.0, 0]])[0]


def test_compiled_sum_equals_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rng.normal(size=(700, 30))
    table[::7, 3], table[::5, 4], table[::3, 5] = np.nan, -0.0, np.inf
    compiled = row_hash(table)
    monkeypatch.setattr(hashing, "SMALL", 1 << 40)
    assert (row_hash(table) == compiled).all()


def test_torch_gives_the_same_words() -> None:
    table = rng.normal(size=(30, 70))
    table[0, 0], table[1, 1] = np.nan, -0.0
    assert (row_hash(torch.from_numpy(table)) == row_hash(table)).all()
    for array in (table, table.astype(np.float32), rng.integers(-9, 9, (30, 70)), table > 0):
        keys = hashing.position_keys(9, array.shape[1])
        sums = tensor_sum(torch.from_numpy(np.asarray(array)), 9).numpy().view(np.uint64)
        assert (sums == hashing._dense_sum(array, keys)).all()
    words = rng.integers(0, 2**64, 500, dtype=np.uint64)
    (order,) = keyed_orders(torch.from_numpy(words.view(np.int64)), [2**64 - 3], 9)
    assert (order.numpy() == keyed_order_reference(words, 2**64 - 3, 9)).all()


def test_images_are_rows_of_pixels() -> None:
    images = rng.integers(0, 255, size=(5, 4, 4))
    assert (row_hash(images) == row_hash(images.reshape(5, 16))).all()


def test_errors_teach() -> None:
    with pytest.raises(ShapeError, match="columns of 40 and 3 rows"):
        row_hash(X, y[:3])
    with pytest.raises(DataError, match="got no columns"):
        row_hash(None)
    with pytest.raises(ShapeError, match="a single float64 value"):
        row_hash(3.0)
    with pytest.raises(DataError, match="pass numbers or text"):
        row_hash(np.zeros(2, dtype=[("a", int)]))
