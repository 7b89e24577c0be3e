"""What the weight line costs, beside a plain permutation and the cheapest epoch that it feeds."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark

FEATURES, BATCH = 20, 256


def data(size: int, seed: int) -> dict[str, Any]:
    import torch

    from groundstate.compute import Key, WeightLine

    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, FEATURES, generator=generator)
    y = torch.randint(2, (size,), generator=generator)
    line = WeightLine.of(x.numpy(), y.numpy())
    return {"x": x, "y": y, "line": line, "key": Key.of(seed)}


def build(data: dict[str, Any]) -> int:
    from groundstate.compute import WeightLine

    return int(WeightLine.of(data["x"].numpy(), data["y"].numpy()).n_rows)


def order(data: dict[str, Any]) -> int:
    return len(data["line"].order(data["key"]))


def randperm(data: dict[str, Any]) -> int:
    import torch

    return len(torch.randperm(len(data["x"]), generator=torch.Generator().manual_seed(0)))


def epoch(data: dict[str, Any]) -> int:
    import torch
    from torch.nn.functional import cross_entropy

    linear = torch.nn.Linear(FEATURES, 2)
    optimizer = torch.optim.SGD(linear.parameters(), lr=0.1, fused=True)
    seen = 0
    for rows in torch.arange(len(data["x"])).split(BATCH):
        loss = cross_entropy(linear(data["x"][rows]), data["y"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(rows)
    return seen


WEIGHT_LINE = Benchmark(
    name="weight-line",
    title=f"Hash of a table and order of one epoch; an epoch of logistic SGD, batch {BATCH}",
    sizes={"10000x20": 10_000, "100000x20": 100_000, "1000000x20": 1_000_000},
    data=data,
    ours={"line: once per fit": build, "line: once per epoch": order},
    peers={"torch.randperm": randperm, "epoch of SGD": epoch},
    score=lambda data, rows: rows / len(data["x"]),
    score_name="rows seen",
    better="high",
)
