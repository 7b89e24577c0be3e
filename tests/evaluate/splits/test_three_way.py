"""Three-way splits: sizes, labels, duplicates, groups, time, and rows that stay where they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from groundstate.errors import DataError, Unreliable
from groundstate.evaluate import SplitRows, split

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 3))


def test_sizes() -> None:
    parts = split(X)
    assert [len(p) for p in parts] == [700, 200, 100]
    assert np.array_equal(np.sort(np.concatenate(list(parts))), np.arange(1000))
    half = split(X, sizes=(0.5, 0, 0.5))
    assert [len(p) for p in half] == [500, 0, 500]
    assert [len(p) for p in split(X[:10], sizes=(1 / 3, 1 / 3, 1 / 3))] == [4, 3, 3]
    assert len(split(X, sizes=(0.8, 0.2)).test) == 200
    labels = rng.integers(3, size=1000)
    assert [len(p) for p in split(X, labels)] == [700, 200, 100]


def test_classes_keep_their_shares() -> None:
    y = np.r_[np.zeros(900, int), np.ones(60, int), np.full(40, 2)]
    for part, share in zip(split(X, y, random_state=3), (0.7, 0.2, 0.1)):
        assert np.abs(np.bincount(y[part]) - share * np.array([900, 60, 40])).max() <= 1
    loose = split(X, y, stratify=None, random_state=3)
    assert len(loose.train) == 700
    rare = np.r_[np.zeros(998, int), 1, 1]
    with pytest.warns(Unreliable, match="fewer than 3 rows"):
        parts = split(X, rare)
    assert len(parts.train) == 700


def test_duplicates_and_groups_stay_together() -> None:
    twice = np.concatenate([X[:300], X[:100], X[:50]])
    for seed in range(3):
        a, b, c = ({row.tobytes() for row in twice[p]} for p in split(twice, random_state=seed))
        assert not (a & b or a & c or b & c)
    group = rng.integers(40, size=1000)
    parts = split(X, rng.integers(2, size=1000), groups=group)
    sides = [set(group[p]) for p in parts]
    assert not (sides[0] & sides[1] or sides[0] & sides[2] or sides[1] & sides[2])
    assert len(parts.train) == pytest.approx(700, abs=30)
    # duplicates join groups: rows 0 and 1 are equal, so their groups end on one side
    joined = X.copy()
    joined[1] = joined[0]
    label = np.arange(1000) // 5
    label[1] = 199
    parts = split(joined, groups=label)
    where = np.empty(1000, int)
    for i, p in enumerate(parts):
        where[p] = i
    assert len(set(where[(label == 0) | (label == 199)])) == 1


def test_time_and_hash() -> None:
    when = rng.permutation(1000)
    parts = split(X, time=when)
    assert when[parts.train].max() < when[parts.val].min()
    assert when[parts.val].max() < when[parts.test].min()
    before, after = split(X[:600], by="hash"), split(X, by="hash")
    for a, b in zip(before, after):
        assert set(a) == {row for row in b if row < 600}
    assert len(after.train) == pytest.approx(700, abs=50)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(t=np.where(X[:, 0] > 0, "u", "v"))
    assert len(split(frame, by="hash").train) > 600 and len(split(frame).train) == 700


def test_order_of_rows_and_seeds() -> None:
    order = rng.permutation(1000)
    a, b = split(X, random_state=5), split(X[order], random_state=5)
    assert set(a.test) == set(order[b.test])
    assert set(a.test) != set(split(X, random_state=6).test)


def test_refusals() -> None:
    with pytest.raises(DataError, match="sum to 1"):
        split(X, sizes=(0.5, 0.2, 0.1))
    with pytest.raises(DataError, match="choose one"):
        split(X, time=np.arange(1000), groups=np.arange(1000))
    with pytest.raises(DataError, match="disjoint"):
        SplitRows(np.array([0, 1]), np.array([1]), np.array([2]))
    assert "training" in str(split(X)) and len(split(X).development) == 900
