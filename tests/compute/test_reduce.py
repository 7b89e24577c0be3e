"""Sums over shards: the identity alone, exact over two local processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from groundstate.compute import Key, Reduce, WeightLine, current, row_hash, run_local


def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(1)
    X[40:50] = X[:10]
    return X, rng.integers(0, 3, 60).astype(float)


def shard(rank: int) -> dict[str, Any]:
    reduce = current()
    own = torch.arange(4.0).reshape(2, 2) + rank
    d = {"a": own, "b": torch.tensor(float(rank)), "n": torch.tensor([rank + 1])}
    X, w = table()
    mine = slice(0, 45) if rank == 0 else slice(45, 60)
    line, place = WeightLine.gathered(row_hash(X[mine]), w[mine], reduce)
    plain, _ = WeightLine.gathered(row_hash(X[mine]), None, reduce)
    return {
        "rank": (reduce.rank, reduce.world),
        "sum": reduce.sum(own),
        "max": reduce.max(own),
        "min": reduce.min(own),
        "mean": reduce.mean(own),
        "gather": reduce.gather(torch.full((rank + 1, 2), float(rank))),
        "broadcast": reduce.broadcast(own, source=1),
        "dict": reduce.sum_dict(d),
        "own": own,
        "bootstrap": torch.from_numpy(line.bootstrap(Key.of(0))),
        "draw": torch.from_numpy(plain.draw(Key.of(0), 30)),
        "place": (place.start, place.stop),
    }


def test_alone_everything_is_the_identity() -> None:
    reduce, t = current(), torch.arange(3.0)
    assert type(reduce) is Reduce and (reduce.rank, reduce.world) == (0, 1)
    for f in (reduce.sum, reduce.max, reduce.min, reduce.mean, reduce.gather, reduce.broadcast):
        assert torch.equal(f(t), t)
    assert reduce.sum_dict({"t": t})["t"] is t


def test_two_processes() -> None:
    first, second = run_local(shard, 2)
    assert first["rank"] == (0, 2) and second["rank"] == (1, 2)
    a = torch.arange(4.0).reshape(2, 2)
    for result in (first, second):
        assert torch.equal(result["sum"], 2 * a + 1)
        assert torch.equal(result["max"], a + 1) and torch.equal(result["min"], a)
        assert torch.equal(result["mean"], a + 0.5)
        assert result["gather"].tolist() == [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
        assert torch.equal(result["broadcast"], a + 1)
        assert torch.equal(result["dict"]["a"], 2 * a + 1)
        assert result["dict"]["b"].item() == 1.0 and result["dict"]["n"].tolist() == [3]
    assert torch.equal(first["own"], a)

    X, w = table()
    whole, plain = WeightLine.of(X, weights=w), WeightLine.of(X)
    for result in (first, second):
        assert (result["bootstrap"].numpy() == whole.bootstrap(Key.of(0))).all()
        assert (result["draw"].numpy() == plain.draw(Key.of(0), 30)).all()
    assert first["place"] == (0, 45) and second["place"] == (45, 60)
