"""The weight line: a weight of 2 is the row twice, and nothing else about the table matters."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from groundstate.compute import Batches, Key, WeightLine, row_hash, stack_batches
from groundstate.compute.weight_line import line_numba as kernels
from groundstate.compute.weight_line import reference
from groundstate.errors import DataError, ShapeError

quick = settings(max_examples=40, deadline=None, derandomize=True)
tables = st.tuples(
    st.lists(st.integers(0, 3), min_size=1, max_size=30).filter(any), st.integers(0, 2**32)
)


def twins(counts: list[int], seed: int) -> tuple[Any, Any, Any, Any]:
    """A table with integer weights, and the same with every row repeated and all shuffled."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(counts), 2)).round(1)
    rows = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return X, np.array(counts, dtype=float), X[rows], rng


def content(X: Any, amount: Any) -> dict[tuple[float, ...], float]:
    """How much of each content there is."""
    out: dict[tuple[float, ...], float] = defaultdict(float)
    for x, a in zip((X + 0.0).tolist(), np.asarray(amount).tolist(), strict=True):
        out[tuple(x)] += a
    return {x: a for x, a in out.items() if a != 0}


def batch_contents(X: Any, batches: Batches) -> list[list[tuple[Any, float]]]:
    ones = [(r, torch.ones(len(r)) if w is None else w) for r, w in batches]
    return [[(tuple(X[i] + 0.0), w) for i, w in zip(r.tolist(), v.tolist())] for r, v in ones]


CHOICES = {
    "cut": lambda line, key: line.cut(key, (0.5, 0.3, 0.2)),
    "cut exactly": lambda line, key: line.cut(key, 0.3, whole=False),
    "folds": lambda line, key: line.folds(key, 2, whole=False),
    "bootstrap": lambda line, key: line.bootstrap(key)[None],
    "subsample": lambda line, key: line.subsample(key, 0.4)[None],
}


@pytest.mark.parametrize("choice", CHOICES)
@quick
@given(table=tables)
def test_weight_two_is_the_row_twice(choice: str, table: tuple[list[int], int]) -> None:
    X, w, repeated, _ = twins(*table)
    key = Key.of(table[1])
    weighted = CHOICES[choice](WeightLine.of(X, weights=w), key)
    plain = CHOICES[choice](WeightLine.of(repeated), key)
    for a, b in zip(weighted, plain, strict=True):
        assert content(X, a) == content(repeated, b)


@quick
@given(table=tables, batch_size=st.sampled_from([1, 2, 3.5, 4, 100]))
def test_batches_of_weighted_and_repeated_rows_are_the_same_bits(
    table: tuple[list[int], int], batch_size: float
) -> None:
    X, w, repeated, _ = twins(*table)
    key = Key.of(table[1])
    weighted = WeightLine.of(X, weights=w).batches(key, batch_size)
    plain = WeightLine.of(repeated).batches(key, batch_size)
    assert batch_contents(X, weighted) == batch_contents(repeated, plain)
    sizes = [sum(a for _, a in batch) for batch in batch_contents(X, weighted)]
    assert sizes[:-1] == [batch_size] * (len(sizes) - 1)
    assert sum(sizes) == w.sum()


@quick
@given(table=tables)
def test_draws_of_weighted_and_repeated_rows_are_the_same_contents(
    table: tuple[list[int], int],
) -> None:
    X, w, repeated, _ = twins(*table)
    key = Key.of(table[1])
    a, b = WeightLine.of(X, weights=w), WeightLine.of(repeated)
    assert (X[a.draw(key, 20)] == repeated[b.draw(key, 20)]).all()
    live = np.count_nonzero(list(content(X, w).values()))
    assert (X[a.draw(key, live, distinct=True)] == repeated[b.draw(key, live, distinct=True)]).all()
    d, e = (X**2).sum(1), (repeated**2).sum(1)
    assert (X[a.weighted_draw(key, d, 9)] == repeated[b.weighted_draw(key, e, 9)]).all()


@quick
@given(table=tables, scale=st.sampled_from([1.0, 0.1, 1e-9, 1e12]))
def test_the_order_of_the_rows_does_not_matter(table: tuple[list[int], int], scale: float) -> None:
    X, w, _, rng = twins(*table)
    w = w * scale * rng.uniform(0.5, 1, size=len(w))
    p = rng.permutation(len(w))
    key = Key.of(table[1])
    a, b = WeightLine.of(X, weights=w), WeightLine.of(X[p], weights=w[p])
    assert a.total == b.total
    assert (X[a.order(key)] == X[p][b.order(key)]).all()
    size = a.total / 3
    assert batch_contents(X, a.batches(key, size)) == batch_contents(X[p], b.batches(key, size))
    unique = len(np.unique(X, axis=0)) == len(X)
    if unique:
        assert (a.cut(key, 0.3)[:, p] == b.cut(key, 0.3)).all()
        assert (a.bootstrap(key, 50)[p] == b.bootstrap(key, 50)).all()


@quick
@given(table=tables)
def test_no_content_is_on_both_sides_of_a_whole_cut(table: tuple[list[int], int]) -> None:
    _, _, X, _ = twins(*table)
    line = WeightLine.of(X)
    train, valid = line.cut(Key.of(1), 0.25)
    assert not content(X, train).keys() & content(X, valid).keys()
    assert (train + valid == line.weights).all()
    if line.n_distinct > 1:
        assert train.sum() > 0 and valid.sum() > 0


def test_an_exact_cut_splits_the_straddling_row() -> None:
    X = np.arange(5.0)
    train, valid = WeightLine.of(X).cut(Key.of(0), 0.5, whole=False)
    assert train.sum() == valid.sum() == 2.5
    assert sorted(train.tolist()) == [0.0, 0.0, 0.5, 1.0, 1.0]


def test_zero_weights_are_nowhere() -> None:
    X = np.arange(8.0)
    w = np.array([0, 1, 0, 2, 3, 0, 1, 0.5])
    line = WeightLine.of(X, weights=w)
    rows = line.batches(Key.of(0), 2).rows.numpy()
    assert set(rows) == set(np.flatnonzero(w))
    assert set(line.draw(Key.of(0), 500)) == set(np.flatnonzero(w))
    assert (line.bootstrap(Key.of(3))[w == 0] == 0).all()


def test_a_group_is_represented_by_a_row_that_counts() -> None:
    X = np.array([1.0, 1.0, 1.0, 2.0])
    line = WeightLine.of(X, weights=[0.0, 0.0, 2.0, 1.0])
    assert set(line.batches(Key.of(0), 1).rows.tolist()) == {2, 3}


def test_folds_hold_out_every_row_once_and_balance_classes() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(103, 3)), np.repeat([0, 1, 2], [50, 43, 10])
    line = WeightLine.of(X, y)
    folds = line.folds(Key.of(0), 5, stratify=y)
    held = line.weights - folds
    assert folds.shape == (5, 103)
    assert (held.sum(0) == 1).all() and set(np.unique(folds)) == {0.0, 1.0}
    sizes = held.sum(1)
    assert sizes.min() >= 20 and sizes.max() <= 21
    per_class = np.stack([held[:, y == c].sum(1) for c in range(3)])
    assert (per_class[0] == 10).all() and (per_class[2] == 2).all()
    assert per_class[1].min() >= 8 and per_class[1].max() <= 9


def test_rare_classes_stay_in_the_training_part() -> None:
    y = np.r_[np.zeros(90, int), np.arange(1, 31)]
    train, valid = WeightLine.of(np.arange(120.0), y).cut(Key.of(0), 0.2, stratify=y)
    assert all(train[y == c].sum() >= 1 for c in range(31))
    assert valid.sum() == pytest.approx(18, abs=1)  # of the 90; one row each cannot be shared


def test_leave_one_out_is_the_limit_of_folds() -> None:
    line = WeightLine.of(np.arange(7.0))
    held = line.weights - line.folds(Key.of(0), 7)
    assert (held.sum(0) == 1).all() and (held.sum(1) == 1).all()


def test_subsample_keeps_its_share_of_the_weight() -> None:
    line = WeightLine.of(np.arange(10.0), weights=np.full(10, 0.3))
    part = line.subsample(Key.of(0), 0.25)
    assert part.sum() == pytest.approx(0.75, rel=1e-12)
    assert (part <= 0.3).all()
    assert (line.subsample(Key.of(0), 1.0) == 0.3).all()


def test_draws_follow_the_weights() -> None:
    w = np.array([1.0, 2.0, 0.0, 5.0])
    line = WeightLine.of(np.arange(4.0), weights=w)
    share = line.bootstrap(Key.of(0), 80_000) / 80_000
    assert np.abs(share - w / 8).max() < 4 * np.sqrt(0.25 / 80_000)
    first = np.array([line.draw(Key.of(i), 1, distinct=True)[0] for i in range(2000)])
    assert np.abs(np.bincount(first, minlength=4) / 2000 - w / 8).max() < 4 * np.sqrt(0.25 / 2000)
    extra = np.array([8.0, 0.0, 3.0, 1.6])
    share = np.bincount(line.weighted_draw(Key.of(5), extra, 80_000), minlength=4) / 80_000
    assert np.abs(share - [0.5, 0, 0, 0.5]).max() < 4 * np.sqrt(0.25 / 80_000)


def test_weighted_draw_without_length_falls_on_the_plain_line() -> None:
    line = WeightLine.of(np.zeros((5, 2)), weights=[0, 0, 1, 0, 0])
    assert line.weighted_draw(Key.of(0), np.zeros(5), 3).tolist() == [2, 2, 2]


def test_orders_of_different_keys_are_independent() -> None:
    line = WeightLine.of(np.arange(2000.0))
    orders = np.stack([np.argsort(line.order(k)) for k in Key.of(0).split(12)])
    correlation = np.corrcoef(orders)[np.triu_indices(12, 1)]
    assert np.abs(correlation).max() < 4.5 / np.sqrt(2000)


def test_epoch_is_plain_slices_of_a_permutation() -> None:
    line = WeightLine.of(np.arange(10.0), weights=np.ones(10))
    batches = list(line.batches(Key.of(0), 4))
    assert [len(r) for r, _ in batches] == [4, 4, 2] and all(w is None for _, w in batches)
    assert torch.cat([r for r, _ in batches]).tolist() == line.order(Key.of(0)).tolist()


def test_rounding_leaves_no_batch_of_dust() -> None:
    line = WeightLine.of(np.arange(30.0), weights=np.full(30, 0.1))
    assert len(line.batches(Key.of(0), 1)) == 3


def test_resuming_inside_an_epoch() -> None:
    line = WeightLine.of(np.arange(20.0), weights=np.linspace(0.1, 2, 20))
    batches = line.batches(Key.of(0), 3)
    for (r, w), (s, v) in zip(list(batches)[2:], batches.from_batch(2), strict=True):
        assert torch.equal(r, s) and torch.equal(w, v)


def test_many_rows_take_the_compiled_loops_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    from groundstate.compute.weight_line import layout

    rng = np.random.default_rng(0)
    X = rng.integers(0, 2500, size=4000).astype(float)
    w = rng.uniform(0, 2, size=4000) * (rng.uniform(size=4000) < 0.8)

    def everything() -> list[Any]:
        key, line = Key.of(0), WeightLine.of(X, weights=w)
        batches = line.batches(key, 64)
        unit = WeightLine.of(X).draw(key, 5000)
        return [line.order(key), batches.rows, batches.weights, line.draw(key, 5000), unit]

    compiled = everything()
    monkeypatch.setattr(layout, "_FEW", 1 << 40)
    for a, b in zip(compiled, everything(), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("n", [1, 2, 17, 3000])
def test_compiled_loops_equal_the_reference(n: int) -> None:
    rng = np.random.default_rng(n)
    bits = max(1, (n - 1).bit_length())
    words = rng.choice(rng.integers(0, 2**64, n, dtype=np.uint64), n)
    close = words ^ rng.integers(0, 8, n).astype(np.uint64)  # differ in the last bits alone
    for w in (words, close):
        assert (kernels.stable_order(w, bits) == reference.stable_order(w, bits)).all()
    word = np.uint64(2**63 + 5)
    assert (
        kernels.keyed_order(words, word, bits) == reference.keyed_order(words, int(word), bits)
    ).all()
    lengths = rng.integers(0, 5, n) * 2**40 + 1
    table = np.stack([lengths, rng.permutation(n)], 1)
    total = int(lengths.sum())
    for step in (2**39, 3 * 2**40 + 7, 2 * total):
        arguments = (rng.permutation(n), table, lengths * 0.5, step, -(-total // step), 2.0**-40)
        for a, b in zip(
            kernels.cut_pieces(*arguments), reference.cut_pieces(*arguments), strict=True
        ):
            assert (a == b).all()


def test_stacked_batches_are_the_members_own() -> None:
    X = np.arange(12.0)
    lines = [WeightLine.of(X, weights=w) for w in (np.ones(12), np.r_[np.zeros(5), np.ones(7)])]
    members = [line.batches(key, 4) for line, key in zip(lines, Key.of(0).split(2), strict=True)]
    rows, weights = stack_batches(members)
    assert rows.shape == weights.shape == (3, 2, 4)
    for p, member in enumerate(members):
        for k, (r, _) in enumerate(member):
            assert torch.equal(rows[k, p, : len(r)], r)
            assert weights[k, p].sum() == len(r)
    assert weights[2, 1].sum() == 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: WeightLine.of([1.0, 2.0], weights=[1, -1]), DataError, r"weights\[1\] = -1.0"),
        (lambda: WeightLine.of([1.0], weights=[np.nan]), DataError, r"weights\[0\] = nan"),
        (lambda: WeightLine.of([1.0], weights=[0]), DataError, "at least one row of positive"),
        (lambda: WeightLine.of([1.0], weights=[1, 2]), ShapeError, r"expected one per row, \(1,\)"),
        (lambda: WeightLine.of(np.empty((0, 3))), DataError, "weights of 0 rows"),
        (lambda: WeightLine.of([1.0]).batches(Key.of(0), 0), DataError, "batch_size=0"),
        (lambda: WeightLine.of([1.0]).cut(Key.of(0), 1.5), DataError, "between 0 and 1"),
        (lambda: WeightLine.of([1.0]).cut(Key.of(0), (0.5, 0.1)), DataError, "sum to one"),
        (lambda: WeightLine.of([1.0, 2.0]).folds(Key.of(0), 3), DataError, "2 <= k <= 2"),
        (lambda: WeightLine.of([1.0]).subsample(Key.of(0), 0), DataError, "fraction=0"),
        (
            lambda: WeightLine.of([1.0, 1.0]).draw(Key.of(0), 2, distinct=True),
            DataError,
            "only 1 different rows",
        ),
        (
            lambda: WeightLine.of([1.0, 1.0]).cut(Key.of(0), 0.5, stratify=[0, 1]),
            DataError,
            "hash the labels with the rows",
        ),
        (
            lambda: WeightLine.of([1.0, 1.0]).cut(Key.of(0), 0.5, stratify=[0]),
            ShapeError,
            "one label per row",
        ),
    ],
)
def test_errors_teach(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_chunks_and_shards_build_the_same_line() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    hashes = np.concatenate([row_hash(X[a : a + 7]) for a in range(0, 50, 7)])
    whole, chunked = WeightLine.of(X), WeightLine(hashes)
    key = Key.of(0)
    assert (whole.bootstrap(key) == chunked.bootstrap(key)).all()
    assert (whole.folds(key, 3) == chunked.folds(key, 3)).all()
