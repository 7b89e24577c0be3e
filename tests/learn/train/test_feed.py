"""Batches: every row once, full batches are gradient descent, streams are shuffled and exact."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

from groundstate.compute import Key
from groundstate.compute.rows import Files, Ragged
from groundstate.compute.rows.files import Reader
from groundstate.energy import LinearEnergy, NetClassEnergy, RaggedOf, Real
from groundstate.errors import DataError
from groundstate.learn import Callback, Checkpoint, Problem, SoftMin, Stochastic, fit, sgd
from groundstate.learn.train.feed import Feed, fits
from groundstate.learn.train.sources import Arrays, Items, Parquet, as_source
from groundstate.nn.blocks.bags import MeanPool


def rows(n: int = 200, d: int = 4) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    return {"x": torch.randn(n, d, generator=g), "y": torch.arange(n) % 3}


def numbered(n: int) -> dict[str, Tensor]:
    """The first feature is the row's number."""
    x = torch.zeros(n, 4)
    x[:, 0] = torch.arange(n)
    return {"x": x, "y": torch.arange(n) % 3}


def feed(n: int, size: int | None, **settings: bool) -> tuple[Feed, Problem]:
    problem = Problem(LinearEnergy(4, 3), SoftMin(), numbered(n))
    return Feed(problem, size, **settings), problem


def visited(f: Feed, number: int) -> list[list[int]]:
    return [b["x"][:, 0].long().tolist() for b, _, _ in f.epoch(number)]


def test_updates_of_an_epoch() -> None:
    f, _ = feed(1000, 64)
    batches = visited(f, 0)
    assert len(batches) == f.steps == 16 and [len(b) for b in batches] == [64] * 15 + [40]
    assert sorted(i for b in batches for i in b) == list(range(1000))
    assert batches != visited(f, 1) and batches == visited(f, 0)
    for step in (0, 7, 15):
        assert f.rows(0, step).tolist() == batches[step]  # type: ignore[union-attr]


def test_drop_last_and_replacement() -> None:
    f, _ = feed(1000, 64, drop_last=True)
    assert [len(b) for b in visited(f, 0)] == [64] * 15 and f.steps == 15
    f, _ = feed(10, 64, drop_last=True)  # larger than the data: just the full batch
    assert visited(f, 0) == [list(range(10))]
    f, _ = feed(1000, 64, replacement=True)
    drawn = [i for b in visited(f, 0) for i in b]
    assert len(drawn) == 1000 and 600 < len(set(drawn)) < 665  # 1 - 1/e of them
    f, _ = feed(50, 100, replacement=True)
    assert len(visited(f, 0)[0]) == 50


def test_replacement_treats_weights_as_repetitions() -> None:
    data = rows(30)
    weight = torch.ones(30, dtype=torch.float64)
    weight[:10] = 3.0
    index = torch.repeat_interleave(torch.arange(30), weight.long())
    out = []
    for d, w in ((data, weight), ({k: v[index] for k, v in data.items()}, None)):
        e = LinearEnergy(4, 3)
        solver = Stochastic(lr=0.1, batch_size=8, max_epochs=3, replacement=True)
        fit(e, d, SoftMin(), solver, sample_weight=None if w is None else w.float(), random_state=0)
        out.append(e.W.detach())
    torch.testing.assert_close(out[0], out[1], rtol=1e-5, atol=1e-6)


def test_full_batch_is_gradient_descent_bit_for_bit() -> None:
    data = rows(64)
    for size in (None, 64, 1000):
        e, by_hand = LinearEnergy(4, 3), LinearEnergy(4, 3)
        solver = Stochastic(sgd, lr=0.3, batch_size=size, max_epochs=20, tol=None)
        fit(e, data, SoftMin(), solver, random_state=0)
        optimizer = torch.optim.SGD(by_hand.parameters(), lr=0.3)
        for _ in range(20):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(by_hand.scores(x=data["x"]), data["y"])
            loss.backward()
            optimizer.step()
        assert torch.equal(e.W, by_hand.W) and torch.equal(e.b, by_hand.b)


def test_weighted_mean_of_batch_risks_is_the_full_risk() -> None:
    f, problem = feed(1000, 64)
    energy = problem.energy
    with torch.no_grad():
        energy.W.normal_(generator=torch.Generator().manual_seed(0))  # type: ignore[operator]
        parts = [(float(SoftMin().mean(energy, b)[0]), t) for b, _, t in f.epoch(0)]
        whole = float(SoftMin().mean(energy, problem.resident)[0])
    assert sum(v * t for v, t in parts) / 1000 == pytest.approx(whole, rel=1e-5)


def test_memory_maps_are_read_in_blocks(tmp_path: Path) -> None:
    x = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=(1000, 4))
    x[:] = np.arange(1000)[:, None]
    source = as_source({"x": x, "y": np.arange(1000) % 3})
    assert isinstance(source, Arrays) and source.rows == 1000
    source = Arrays({"x": x, "y": np.arange(1000) % 3}, block=50, buffer=200)
    batches = list(source.epoch(Key.of(0), 64))
    assert [len(b["y"]) for b in batches] == [64] * 15 + [40]
    seen = torch.cat([b["x"][:, 0] for b in batches])
    assert seen.dtype == torch.float32 and sorted(seen.tolist()) == list(range(1000))
    far = (seen[:64].max() - seen[:64].min()) > 300  # one batch mixes rows of several blocks
    assert bool(far) and not torch.equal(seen, torch.arange(1000.0))
    again = torch.cat([b["x"][:, 0] for b in source.epoch(Key.of(0), 64)])
    other = torch.cat([b["x"][:, 0] for b in source.epoch(Key.of(1), 64)])
    assert torch.equal(seen, again) and not torch.equal(seen, other)
    assert len(list(source.epoch(Key.of(0), None))) == 1
    assert len(list(source.epoch(Key.of(0), 64, drop_last=True))) == source.steps(64, True) == 15


def test_parquet_learns_like_memory(tmp_path: Path) -> None:
    data = rows(300)
    frame = pl.DataFrame({"a": data["x"][:, 0].numpy(), "b": data["x"][:, 1].numpy(),
                          "label": data["y"].numpy()})  # fmt: skip
    frame.write_parquet(tmp_path / "rows.parquet", row_group_size=100)
    source = Parquet(tmp_path / "rows.parquet", {"x": ["a", "b"], "y": "label"}, block=64)
    assert source.rows == 300
    e = LinearEnergy(2, 3)
    history = fit(e, source, SoftMin(), Stochastic(lr=0.05, batch_size=50, max_epochs=4, tol=None))
    assert len(history.objective) == 24
    with pytest.raises(DataError, match="has no column 'c'; its columns are a, b, label"):
        Parquet(tmp_path / "rows.parquet", {"x": "c"})


def test_torch_datasets_are_accepted() -> None:
    data = rows(120)
    table = torch.utils.data.TensorDataset(data["x"], data["y"])
    source = as_source(table)
    assert isinstance(source, Items) and source.rows == 120
    seen = torch.cat([b["y"] for b in source.epoch(Key.of(0), 32)])
    assert sorted(seen.tolist()) == sorted(data["y"].tolist())
    history = fit(LinearEnergy(4, 3), source, SoftMin(), Stochastic(batch_size=32, max_epochs=2))
    assert len(history.objective) == 8

    class Endless(torch.utils.data.IterableDataset[dict[str, Tensor]]):
        def __iter__(self) -> Iterator[dict[str, Tensor]]:
            return ({"x": data["x"][i], "y": data["y"][i]} for i in range(120))

    fit(
        LinearEnergy(4, 3), as_source(Endless()), SoftMin(), Stochastic(batch_size=32, max_epochs=2)
    )
    with pytest.raises(DataError, match="has 2 parts but names are"):
        list(Items(table, names=("x",)))


def test_streams_resume_to_the_same_bits(tmp_path: Path) -> None:
    data = rows(200)
    source = Arrays({k: v.numpy() for k, v in data.items()}, block=30, buffer=60)

    class Stop(Callback):
        def on_step(self, run: object) -> bool:
            return run.total_steps == 9  # type: ignore[attr-defined]

    out = []
    for callbacks in ([], [Stop(), Checkpoint(tmp_path, every_steps=1)], [Checkpoint(tmp_path)]):
        e = LinearEnergy(4, 3)
        solver = Stochastic(lr=0.1, batch_size=32, max_epochs=3, tol=None)
        fit(e, source, SoftMin(), solver, callbacks=callbacks, random_state=0)
        out.append(e.W.detach())
    assert torch.equal(out[0], out[2]) and not torch.equal(out[0], out[1])


def test_a_stream_in_the_order_of_the_line_learns_as_memory_does() -> None:
    data = rows(200)
    weight = torch.arange(200) % 3 + 0.5
    solver = Stochastic(lr=0.1, batch_size=32, max_epochs=3, tol=None)
    arrays = {**data, "weight": weight}
    order = torch.randperm(200, generator=torch.Generator().manual_seed(1))
    shuffled = {k: v[order] for k, v in arrays.items()}
    out = []
    for given in (
        Arrays(arrays, block=30, buffer=60),
        Arrays(shuffled, block=7, buffer=1000),
        data,
    ):
        e = LinearEnergy(4, 3)
        own = weight if given is data else None
        fit(e, given, SoftMin(), solver, sample_weight=own, random_state=0)
        out.append(e.W.detach())
    assert torch.equal(out[0], out[1]) and torch.equal(out[0], out[2])
    with pytest.raises(DataError, match="order must be 'line' or 'blocks'"):
        Arrays(arrays, order="sorted")  # type: ignore[arg-type]


def test_labels_of_a_stream_are_checked() -> None:
    stream = [{"x": torch.zeros(4, 4), "y": torch.tensor([0, 1, 2, 7])}]
    with pytest.raises(DataError, match="'y' is 7 in row 3, but LinearEnergy knows"):
        fit(LinearEnergy(4, 3), stream, SoftMin(), Stochastic(max_epochs=1))


def test_a_stream_that_cannot_be_read_again_says_so() -> None:
    stream = iter([{k: v[:10] for k, v in rows().items()}])
    with pytest.raises(ValueError, match="gave no rows in this epoch; can it be re-read"):
        fit(LinearEnergy(4, 3), stream, SoftMin(), Stochastic(max_epochs=2, tol=None))


def test_rows_of_the_cpu_always_fit() -> None:
    assert fits(rows(), torch.device("cpu"))


def test_arrays_of_other_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="same number of rows"):
        Arrays({"x": np.zeros((3, 2)), "y": np.zeros(4)})


def ragged(lengths: Any) -> Ragged:
    values = torch.randn(int(sum(lengths)), 1, generator=torch.Generator().manual_seed(0))
    ends = torch.tensor(np.r_[0, np.cumsum(lengths)])
    return Ragged(values, ends)


def sequence_feed(rows: Ragged, weight: Any = None, size: int = 8, **options: Any) -> Feed:
    y = torch.zeros(len(rows), dtype=torch.int64)
    energy = NetClassEnergy(RaggedOf(Real(1)), 2, MeanPool(1, 2))
    problem = Problem(energy, SoftMin(), {"x": rows, "y": y}, weight)
    return Feed(problem, size, bucket=True, **options)


def test_buckets_hold_every_row_once_and_fill_up_little() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 500)
    feed = sequence_feed(ragged(lengths))
    got = [batch["x"].lengths.tolist() for batch, _, _ in feed.epoch(0)]
    assert sorted(n for g in got for n in g) == sorted(lengths.tolist())
    assert sum(max(g) * len(g) for g in got) < 1.1 * lengths.sum()
    assert [len(g) for g in got].count(8) == 62 and len(got) == feed.steps == 63
    again = [batch["x"].lengths.tolist() for batch, _, _ in feed.epoch(1)]
    assert again != got  # other neighbours, another order
    late = [batch["x"].lengths.tolist() for batch, _, _ in feed.epoch(0, skip=10)]
    assert late == got[10:]
    full = sequence_feed(ragged(lengths), drop_last=True)
    assert [len(b["x"]) for b, _, _ in full.epoch(0)] == [8] * 62


def test_buckets_of_a_row_twice_are_those_of_a_weight_of_two() -> None:
    rows = ragged(np.random.default_rng(1).integers(1, 30, 60))
    weight = 1.0 + (torch.arange(60) % 3 == 0)
    index = torch.repeat_interleave(torch.arange(60), weight.long())
    one = sequence_feed(rows, weight)
    two = sequence_feed(rows.take(index[torch.randperm(len(index))]))
    for (a, v, _), (b, w, _) in zip(one.epoch(3), two.epoch(3), strict=True):
        assert torch.equal(a["x"].values, b["x"].values)
        assert torch.equal(torch.ones(len(a["x"])) if v is None else v,
                           torch.ones(len(b["x"])) if w is None else w)  # fmt: skip


def test_buckets_need_rows_that_differ_in_length() -> None:
    problem = Problem(
        NetClassEnergy(2, 2), SoftMin(), {"x": torch.ones(9, 2), "y": torch.ones(9).long()}
    )
    with pytest.raises(ValueError, match="different length"):
        Feed(problem, 2, bucket=True)
    with pytest.raises(ValueError, match="replacement=False"):
        sequence_feed(ragged([1, 2, 3]), replacement=True)


@dataclass(frozen=True)
class Counting(Reader):
    """Rows of numbers in text files; says who read what."""

    read_by: list[tuple[str, int]] = field(default_factory=list, compare=False)

    def read(self, paths: Sequence[str]) -> Tensor:
        self.read_by.append((threading.current_thread().name, len(paths)))
        return torch.from_numpy(np.stack([np.load(path) for path in paths]))

    def describe(self) -> str:
        return "numbers"


def on_disk(folder: Path, n: int = 40) -> tuple[Files, Tensor]:
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    paths = []
    for i, row in enumerate(x):
        paths.append(folder / f"{i}.npy")
        np.save(paths[-1], row.numpy())
    return Files.of(paths, Counting()), x


def test_files_are_read_ahead_of_the_step_two_batches_at_most(tmp_path: Path) -> None:
    files, x = on_disk(tmp_path)
    y = torch.arange(40) % 2
    problem = Problem(LinearEnergy(3, 2), SoftMin(), {"x": files, "y": y}, key=Key.of(0))
    log = files.reader.read_by  # type: ignore[attr-defined]
    log.clear()
    seen = 0
    for k, (batch, _, _) in enumerate(Feed(problem, 8).epoch(0), 1):
        assert sum(n for _, n in log) <= 8 * (k + 2)
        rows = (batch["x"][:, None] == x).all(-1).nonzero()
        assert torch.equal(y[rows[:, 1]], batch["y"]) and len(rows) == 8
        seen += len(rows)
    assert seen == 40 and {name.startswith("groundstate-reader") for name, _ in log} == {True}


def test_reading_ahead_gives_the_bits_of_reading_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, x = on_disk(tmp_path)
    y = (x[:, 0] > 0).long()
    ends = []
    for ahead in (True, False):
        monkeypatch.setattr(Files, "on_disk", ahead)
        energy = LinearEnergy(3, 2)
        solver = Stochastic(batch_size=8, max_epochs=3, tol=None)
        fit(energy, {"x": files, "y": y}, SoftMin(), solver, random_state=0)
        ends.append(torch.cat([p.detach().ravel() for p in energy.parameters()]))
    assert ends[0].abs().sum() > 0 and torch.equal(*ends)


def test_a_file_that_cannot_be_read_is_named_where_it_is_met(tmp_path: Path) -> None:
    files, _ = on_disk(tmp_path)
    problem = Problem(
        LinearEnergy(3, 2), SoftMin(), {"x": files, "y": torch.arange(40) % 2}, key=Key.of(0)
    )
    feed = Feed(problem, 8)
    for path in files.paths[20:]:
        Path(path).unlink()
    with pytest.raises(FileNotFoundError):
        list(feed.epoch(0))
