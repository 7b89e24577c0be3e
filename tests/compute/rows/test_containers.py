"""What every container of rows promises: take, join, split, hash, store; a table is one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._pytree import tree_flatten, tree_unflatten

from groundstate.compute import rows
from groundstate.compute.random import Key
from groundstate.compute.rows import (
    ArrayReader,
    Columns,
    Files,
    GraphNodes,
    Graphs,
    Ragged,
    Texts,
    Tokens,
    Trajectories,
    mean_items,
    sum_items,
)
from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, ShapeError
from groundstate.store import dumps, loads

CPU = torch.device("cpu")
N = 9


def ragged(n: int, g: np.random.Generator, *item: int) -> Ragged:
    return Ragged.of([g.normal(size=(int(g.integers(0, 5)), *item)) for _ in range(n)])


def texts(n: int, g: np.random.Generator) -> Texts:
    words = ["sun", "moon", "stars", "ä", "", "雨"]
    return Texts.of([" ".join(g.choice(words, int(g.integers(0, 5)))) for _ in range(n)])


def graphs(n: int, g: np.random.Generator) -> Graphs:
    found = []
    for _ in range(n):
        nodes, edges = int(g.integers(1, 5)), int(g.integers(0, 6))
        ends = g.integers(0, nodes, (edges, 2))
        found.append((g.normal(size=(nodes, 2)), ends, g.normal(size=(edges, 3))))
    return Graphs.of(found)


def episodes(n: int, g: np.random.Generator) -> Trajectories:
    lengths = g.integers(1, 5, n)
    return Trajectories(
        Ragged.of([g.normal(size=(k + 1, 2)) for k in lengths]),
        Ragged.of([g.integers(0, 3, k) for k in lengths]),
        Ragged.of([g.normal(size=k) for k in lengths]),
    )


def tokens(n: int, g: np.random.Generator) -> Tokens:
    return Tokens.of(Ragged.of([g.integers(0, 9, int(g.integers(0, 4))) for _ in range(n)]))


MAKERS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "table": lambda n, g: torch.from_numpy(g.normal(size=(n, 3))).float(),
    "images": lambda n, g: torch.from_numpy(g.normal(size=(n, 3, 2, 2))).float(),
    "ragged": ragged,
    "ragged vectors": lambda n, g: ragged(n, g, 2),
    "texts": texts,
    "tokens": tokens,
    "graphs": graphs,
    "trajectories": episodes,
    "columns": lambda n, g: Columns({"a": torch.from_numpy(g.normal(size=n)), "b": ragged(n, g)}),
}


@pytest.fixture(params=list(MAKERS))
def value(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param](N, np.random.default_rng(0))


def same(a: Any, b: Any) -> bool:
    """Equal kinds, equal numbers, equal places."""
    if type(a) is not type(b) or len(a) != len(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, Ragged):
        return torch.equal(a.values, b.values) and torch.equal(a.offsets, b.offsets)
    left, right = a.parts(), b.parts()
    return list(left) == list(right) and all(same(left[k], right[k]) for k in left)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(list(MAKERS)), st.lists(st.integers(0, N - 1), max_size=14), st.data())
def test_take_of_a_join_and_join_of_takes(kind: str, index: list[int], data: Any) -> None:
    whole = MAKERS[kind](N, np.random.default_rng(1))
    cut = data.draw(st.integers(0, N))
    parts = [rows.part(whole, 0, cut), rows.part(whole, cut, N)]
    assert same(rows.join(parts), whole)
    at = torch.tensor(index, dtype=torch.int64)
    assert same(rows.take(rows.join(parts), at), rows.take(whole, at))
    half = len(at) // 2
    pieces = [rows.take(whole, at[:half]), rows.take(whole, at[half:])]
    assert same(rows.join(pieces), rows.take(whole, at))
    assert all(map(same, rows.split(rows.take(whole, at), [half, len(at) - half]), pieces))
    assert (rows.hashes(rows.take(whole, at)) == rows.hashes(whole)[index]).all()


def test_taking_twice_is_taking_once(value: Any) -> None:
    first, second = torch.tensor([4, 4, 0, 8, 2]), torch.tensor([3, 0, 1])
    assert same(rows.take(rows.take(value, first), second), rows.take(value, first[second]))
    assert same(rows.take(value, torch.arange(N)), value)


def test_hashes_are_of_the_content(value: Any) -> None:
    found = rows.hashes(value)
    assert found.dtype == np.uint64 and found.shape == (N,)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    assert (rows.hashes(rows.take(value, order)) == found[order.numpy()]).all()
    twice = rows.join([value, value])
    assert (rows.hashes(twice) == np.tile(found, 2)).all()
    assert len(np.unique(found)) > N // 2


def test_the_weight_line_takes_any_rows(value: Any) -> None:
    y = torch.arange(N) % 2
    weights = np.r_[2.0, 0.0, np.ones(N - 2)]
    weighted = WeightLine.of(value, y, weights=weights)
    index = torch.tensor([0, 0, *range(2, N)])
    repeated = WeightLine.of(rows.take(value, index), y[index])
    key = Key.of(3)
    for (a, v), (b, w) in zip(weighted.batches(key, 3), repeated.batches(key, 3), strict=True):
        own = torch.ones(len(a)) if v is None else v
        other = torch.ones(len(b)) if w is None else w
        assert torch.equal(own.double(), other.double())
        assert same(rows.take(value, a), rows.take(rows.take(value, index), b))


def test_containers_are_stored_without_pickle(value: Any) -> None:
    again = loads(dumps(value))
    assert same(again, value) and (rows.hashes(again) == rows.hashes(value)).all()


def test_rows_are_indexed_like_arrays(value: Any) -> None:
    mask = np.arange(N) % 3 == 0
    assert same(value[mask], rows.take(value, torch.tensor([0, 3, 6])))
    assert same(value[2:7:2], rows.take(value, torch.tensor([2, 4, 6])))
    assert same(value[np.array([5, 1])], rows.take(value, torch.tensor([5, 1])))
    assert value.shape[0] == len(value) == N
    assert str(N) in rows.describe(value)


def test_moving_and_changing_the_dtype(value: Any) -> None:
    assert same(rows.to_device(value, CPU), value)
    double = rows.floating(value, torch.float64)
    assert rows.floating_dtype(double) in (None, torch.float64)
    assert (rows.hashes(double) == rows.hashes(value)).all()


def test_frozen(value: Any) -> None:
    if isinstance(value, torch.Tensor):
        return
    with pytest.raises(AttributeError):
        value.values = value.nodes = value.tokens = value.observations = value.columns = None


def test_equal_items_of_other_lengths_differ() -> None:
    found = Ragged.of([[1.0], [1.0, 0.0], [0.0, 1.0], [], [0.0]]).hashes()
    assert len(set(found.tolist())) == 5


def test_large_rows_are_hashed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    value = ragged(200, np.random.default_rng(2), 3)
    whole = value.hashes()
    monkeypatch.setattr("groundstate.compute.rows.ragged._CHUNK", 24)
    assert (value.hashes() == whole).all()


def test_padding() -> None:
    value = Ragged.of([[1.0, 2.0], [], [3.0]])
    assert value.padded(-1.0).tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert value.padded(length=3).shape == (3, 3)
    with pytest.raises(ShapeError, match="longest row has 2 items"):
        value.padded(length=1)


def test_graphs_are_renumbered() -> None:
    value = graphs(N, np.random.default_rng(5))
    taken = value[[3, 1, 3]]
    source, target = taken.edge_index
    assert torch.equal(taken.nodes.row[source], taken.edges.row)
    assert torch.equal(taken.nodes.row[target], taken.edges.row)
    assert bool((target.diff() >= 0).all())


def test_texts_come_back() -> None:
    said = ["ein Satz", "", "雨が降る", "a\nb"]
    assert Texts.of(said).strings() == said
    assert Texts.of(said)[[2, 0]].strings() == [said[2], said[0]]


def test_tokens_are_known_by_their_text() -> None:
    same_tokens = Ragged.of([[0], [0]])
    found = Tokens.of(same_tokens, Texts.of(["rare", "unknown"])).hashes()
    assert found[0] != found[1]
    assert (found == Tokens.of(Ragged.of([[4], [5]]), Texts.of(["rare", "unknown"])).hashes()).all()


def test_files_stay_on_disk_until_they_are_moved(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    paths = [tmp_path / f"{i}.npy" for i in range(4)]
    for path, row in zip(paths, numbers, strict=True):
        np.save(path, row)
    files = Files.of(paths, ArrayReader())
    taken = files[[2, 0, 2]]
    assert isinstance(taken, Files) and not taken.in_memory
    assert torch.equal(rows.to_device(taken, CPU), torch.from_numpy(numbers[[2, 0, 2]]))
    assert (taken.hashes() == files.hashes()[[2, 0, 2]]).all()
    copy = tmp_path / "copy.npy"
    copy.write_bytes(paths[2].read_bytes())
    assert Files.of([copy]).hashes()[0] == files.hashes()[2]
    again = loads(dumps(files))
    assert again.paths.tolist() == files.paths.tolist() and again.reader == files.reader
    assert len(rows.join([files, taken])) == 7
    with pytest.raises(DataError, match="no file"):
        Files.of([tmp_path / "absent.npy"])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Ragged(torch.zeros(3), torch.tensor([0, 2])), "0 to the number of items"),
        (lambda: Ragged(torch.zeros(3), torch.tensor([0, 2, 1, 3])), "negative length"),
        (lambda: Ragged(torch.zeros(3), torch.tensor([0.0, 3.0])), "int64"),
        (lambda: Ragged.of([[[1.0]], [[1.0, 2.0]]]), "items of one shape"),
        (lambda: Graphs.of([(np.ones((2, 1)), [(0, 2)])]), "graph 0 has 2 nodes"),
        (lambda: Columns({"a": torch.zeros(2), "b": torch.zeros(3)}), "a has 2, b has 3"),
    ],
)
def test_bad_rows_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises((ShapeError, DataError), match=said):
        make()


def test_sums_over_items_are_differentiable() -> None:
    value = ragged(N, np.random.default_rng(3), 2).floating(torch.float64)
    leaf = value.values.clone().requires_grad_()
    expected = torch.zeros(N, 2, dtype=torch.float64).index_add(0, value.row, leaf)
    torch.testing.assert_close(sum_items(leaf, value.offsets), expected)
    assert torch.autograd.gradcheck(lambda v: mean_items(v, value.offsets), leaf)


def test_rows_of_one_length_are_a_tensor_and_stay_so() -> None:
    x = torch.arange(24.0).reshape(4, 3, 2)
    rows = Ragged(x.flatten(0, 1), 3 * torch.arange(5))
    plain = Ragged._of(rows.values, rows.offsets)  # the same rows, as if lengths differed
    assert rows.equal == 3 and Ragged.of([[1.0], [2.0, 3.0]]).equal is None
    index = torch.tensor([2, 0, 2])
    parts = [
        (rows.take(index), plain.take(index)),
        (Ragged.join([rows, rows.take(index)]), Ragged.join([plain, plain.take(index)])),
        (rows.floating(torch.float64), plain.floating(torch.float64)),
        *zip(rows.split([1, 3]), plain.split([1, 3]), strict=True),
    ]
    for one, other in parts:
        assert one.equal == 3 and other.equal is None
        assert torch.equal(one.values, other.values) and torch.equal(one.offsets, other.offsets)
        assert torch.equal(one.padded(), other.padded())
    assert torch.equal(rows.padded(), x) and torch.equal(
        rows.padded(length=5), plain.padded(length=5)
    )
    assert Ragged.of([[], []]).equal == 0 and Ragged.of([[], []]).take(torch.tensor([1])).equal == 0


def test_real_numbers_keep_the_format_of_their_arrays() -> None:
    double = np.array([[0.1], [0.2]])
    assert Ragged.of([double, double[:1]]).values.dtype == torch.float64
    assert torch.equal(Ragged.of([double]).values, torch.from_numpy(double))
    assert Ragged.of([double.astype(np.float32)]).values.dtype == torch.float32
    assert Ragged.of([[0.1, 0.2], [0.3]]).values.dtype == torch.float32  # of Python, as in torch
    assert Ragged.of([double], torch.float32).values.dtype == torch.float32
    assert Ragged.of([[1, 2], []]).values.dtype == torch.int64


def test_a_graph_is_told_from_one_of_the_same_size_without_a_look_at_it() -> None:
    g = np.random.default_rng(0)
    parts = [GraphNodes.all(graphs(1, g)) for _ in range(2)]
    parts[1] = GraphNodes.all(parts[0].graph.take(torch.tensor([0])))
    one, other = (tree_flatten(p)[1] for p in parts)
    assert str(one) == str(tree_flatten(parts[0])[1]) != str(other)
    assert tree_unflatten([parts[0].index], one).graph is parts[0].graph


@pytest.mark.parametrize("weight", [None, [1.0, 0.0, 2.0, 1.0, 0.5], [1.0, 1.0, 0.0, 0.0, 1.0]])
def test_distinct_rows_are_in_the_order_of_their_hashes(weight: list[float] | None) -> None:
    for hashes in ([7, 3, 9, 1, 5], [7, 3, 7, 3, 3]):
        w = np.ones(5) if weight is None else np.asarray(weight)
        sums = {h: w[np.equal(hashes, h)].sum() for h in sorted(set(hashes))}
        rows, found = distinct_rows(np.array(hashes, np.uint64), weight)
        kept = {h: total for h, total in sums.items() if total > 0}
        assert [hashes[i] for i in rows] == list(kept) and found.tolist() == list(kept.values())
        firsts = {h: min(i for i in range(5) if hashes[i] == h and w[i] > 0) for h in kept}
        assert rows.tolist() == list(firsts.values())
