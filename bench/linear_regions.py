"""Exact linear regions of random ReLU networks of two inputs, against plain NumPy."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark


def data(widths: tuple[int, ...], seed: int) -> Any:
    import torch

    from groundstate.nn import MLP

    generator = torch.Generator().manual_seed(seed)
    net = MLP(2, widths, 1).double().requires_grad_(False)
    for p in net.parameters():
        p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return net


def ours(net: Any) -> int:
    from groundstate.nn import linear_regions

    return linear_regions(net, (-5, 5)).count


def numpy(net: Any) -> int:
    """Polygons one by one, as one would write it; the oracle of the tests."""
    from groundstate.nn import linear_regions

    return linear_regions(net, (-5, 5), backend="reference").count


REGIONS = Benchmark(
    name="linear-regions",
    title="linear_regions of a random network with three hidden layers",
    sizes={"8-8-8": (8, 8, 8), "16-16-16": (16, 16, 16), "32-32-32": (32, 32, 32)},
    data=data,
    ours=ours,
    peers={"NumPy": numpy},
    score=lambda net, count: float(count),
    score_name="regions",
    target=10.0,
)
