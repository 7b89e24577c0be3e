"""Splits: shares, labels, duplicates, weights, and every form a table comes in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch

from groundstate.errors import DataError, ShapeError
from groundstate.evaluate import folds, train_test

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
y = np.repeat([0, 1, 2], [60, 40, 20])


def contents(rows: Any) -> set[bytes]:
    return {row.tobytes() for row in np.asarray(X)[rows]}


def test_shares_of_labels_are_kept() -> None:
    split = train_test(X, y, test=0.25, key=1, stratify=True)
    assert np.bincount(y[split.test_rows]).tolist() == [15, 10, 5]
    assert sorted([*split.train_rows, *split.test_rows]) == list(range(120))


def test_every_label_keeps_a_training_row() -> None:
    rare = np.r_[np.zeros(117, int), 1, 2, 3]
    for seed in range(5):
        split = train_test(X, rare, test=0.5, key=seed, stratify=True)
        assert set(rare[split.train_rows]) == {0, 1, 2, 3}


def test_duplicates_never_straddle() -> None:
    twice = np.concatenate([X, X[:50], X[:20]])
    split = train_test(twice, test=0.3, key=2)
    sides = [{row.tobytes() for row in twice[rows]} for rows in (split.train_rows, split.test_rows)]
    assert not sides[0] & sides[1]
    for part in folds(twice, k=4, key=3):
        a, b = ({row.tobytes() for row in twice[r]} for r in (part.train_rows, part.test_rows))
        assert not a & b and part.train_rows.size and part.test_rows.size


def test_row_order_does_not_matter() -> None:
    order = rng.permutation(120)
    a = train_test(X, y, key=5, stratify=True)
    b = train_test(X[order], y[order], key=5, stratify=True)
    assert contents(a.test_rows) == contents(order[b.test_rows])


def test_a_weight_of_two_is_the_row_twice() -> None:
    weight = rng.integers(0, 4, size=120).astype(float)
    rows = np.repeat(np.arange(120), weight.astype(int))
    a = train_test(X, y, key=6, sample_weight=weight, stratify=True)
    b = train_test(X[rows], y[rows], key=6, stratify=True)
    assert np.array_equal(np.bincount(rows, b.test, minlength=120), a.test)
    for p, q in zip(folds(X, y, k=3, sample_weight=weight), folds(X[rows], y[rows], k=3)):
        assert np.array_equal(np.bincount(rows, q.train, minlength=120), p.train)


def test_folds_hold_each_row_out_once() -> None:
    parts = folds(X, y, k=7, key=1, stratify=True)
    assert np.array_equal(sum(part.test for part in parts), np.ones(120))
    assert all(np.array_equal(part.train + part.test, np.ones(120)) for part in parts)
    sizes = [len(part.test_rows) for part in parts]
    assert max(sizes) - min(sizes) <= 2


def test_seeds_differ_and_repeat() -> None:
    first = train_test(X, key=1).test_rows.tolist()
    assert (
        first == train_test(X, key=1).test_rows.tolist() != train_test(X, key=2).test_rows.tolist()
    )


FORMS: dict[str, Any] = {
    "polars": pl.DataFrame(X, schema=["a", "b", "c"]),
    "pandas": pd.DataFrame(X, columns=["a", "b", "c"]),
    "mixed": pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "u", "v"), "c": X[:, 2]}),
    "torch": torch.from_numpy(X),
    "sparse": scipy.sparse.csr_array(X),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    split = train_test(FORMS[form], y, test=0.2, key=1, stratify=True)
    assert len(split.test_rows) == 24


def test_bad_arguments() -> None:
    with pytest.raises(DataError, match="between 0 and 1, got 1.5"):
        train_test(X, test=1.5)
    with pytest.raises(DataError, match="pass y"):
        train_test(X, stratify=True)
    with pytest.raises(DataError, match="1 different row cannot be split"):
        train_test(np.ones((4, 1)))
    with pytest.raises(DataError, match="between 2 and the 120 different rows, got 121"):
        folds(X, k=121)
    with pytest.raises(ShapeError, match=r"expected one per row, \(120,\)"):
        train_test(X, sample_weight=[1.0])
    with pytest.raises(DataError, match="not negative"):
        train_test(X, sample_weight=-np.ones(120))
    with pytest.raises(DataError, match="mixes text and numbers"):
        train_test(X, np.array(["a", 1] * 60, object), stratify=True)
