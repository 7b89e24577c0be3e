"""The loss of SimCLR with its gradient, against pytorch-metric-learning and the whole table."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer


def views(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import torch

    n, d = size
    g = torch.Generator().manual_seed(seed)
    z1 = torch.randn(n, d, generator=g)
    return {"z1": z1, "z2": z1 + torch.randn(n, d, generator=g), "y": torch.arange(n).repeat(2)}


def _both(data: dict[str, Any], loss: Any) -> tuple[float, Any]:
    z1, z2 = data["z1"].clone().requires_grad_(), data["z2"].clone().requires_grad_()
    value = loss(z1, z2)
    value.backward()
    return float(value.detach()), z1.grad


def ours(data: dict[str, Any]) -> Any:
    from groundstate.learn.losses import nt_xent

    return _both(data, nt_xent)


def metric_learning(data: dict[str, Any]) -> Any:
    import torch
    from pytorch_metric_learning.losses import NTXentLoss

    loss = NTXentLoss(temperature=0.5)
    return _both(data, lambda a, b: loss(torch.cat((a, b)), data["y"]))


def table(data: dict[str, Any]) -> Any:
    import torch
    from torch.nn.functional import cross_entropy, normalize

    def loss(a: Any, b: Any) -> Any:
        n = len(a)
        z = normalize(torch.cat((a, b)), dim=1)
        s = (z @ z.T / 0.5).masked_fill(torch.eye(2 * n, dtype=torch.bool), -torch.inf)
        return cross_entropy(s, torch.cat((torch.arange(n) + n, torch.arange(n))))

    return _both(data, loss)


def value(data: dict[str, Any], found: Any) -> float:
    return float(found[0])


NT_XENT = Benchmark(
    name="nt_xent",
    title="nt_xent of two views, forward and backward",
    sizes={"64x64": (64, 64), "128x128": (128, 128), "256x128": (256, 128)},
    data=views,
    ours=ours,
    peers={
        "pytorch-metric-learning": Peer(
            metric_learning, "pytorch-metric-learning", "pytorch_metric_learning"
        ),
        "whole table": Peer(table, "torch", "torch"),
    },
    score=value,
    score_name="loss",
    better="low",
    target=1.0,
)
