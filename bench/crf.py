"""Conditional random fields: loss with gradient, and the best labels, against pytorch-crf."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

LABELS = 9


def data(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import torch

    rows, steps = size
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, steps + 1, (rows,), generator=g)
    lengths[0] = steps
    return {
        "scores": torch.randn(rows, steps, LABELS, generator=g),
        "y": torch.randint(LABELS, (rows, steps), generator=g),
        "mask": torch.arange(steps) < lengths[:, None],
        "lengths": lengths,
        "A": 0.1 * torch.randn(LABELS, LABELS, generator=g),
    }


def crf(data: dict[str, Any]) -> Any:
    import torch
    from torch import nn

    from groundstate.energy import CRFEnergy, Finite, Sequence

    steps = data["scores"].shape[1]
    energy = CRFEnergy(nn.Identity(), (steps, LABELS), Sequence(Finite(LABELS), steps))
    with torch.no_grad():
        energy.A.copy_(data["A"])
    return energy


def torchcrf(data: dict[str, Any]) -> Any:
    import torch
    from torchcrf import CRF

    layer = CRF(LABELS, batch_first=True)
    with torch.no_grad():
        layer.transitions.copy_(data["A"])
        layer.start_transitions.zero_()
        layer.end_transitions.zero_()
    return layer


def ours(data: dict[str, Any]) -> Any:
    from groundstate.learn import SoftMin

    energy, scores = crf(data), data["scores"].clone().requires_grad_()
    batch = {"x": scores, "y": data["y"], "lengths": data["lengths"]}
    loss = SoftMin()(energy, batch).loss.sum()
    loss.backward()
    return float(loss.detach())


def theirs(data: dict[str, Any]) -> Any:
    layer, scores = torchcrf(data), data["scores"].clone().requires_grad_()
    loss = -layer(scores, data["y"], mask=data["mask"])
    loss.backward()
    return float(loss.detach())


def best(data: dict[str, Any]) -> Any:
    from groundstate.infer import minimise

    found = minimise(crf(data), "y", {"x": data["scores"], "lengths": data["lengths"]})
    return float(found["y"][data["mask"]].sum())


def best_theirs(data: dict[str, Any]) -> Any:
    import torch

    with torch.no_grad():
        return float(sum(map(sum, torchcrf(data).decode(data["scores"], mask=data["mask"]))))


SIZES = {"32x30": (32, 30), "256x30": (256, 30), "64x200": (64, 200)}
LOSS = Benchmark(
    name="crf-loss",
    title="CRF of 9 labels: loss and gradient of a batch",
    sizes=SIZES,
    data=data,
    ours=ours,
    peers={"pytorch-crf": Peer(theirs, "pytorch-crf", "torchcrf")},
    score=lambda data, found: found,
    score_name="loss",
    target=1.0,
)
VITERBI = Benchmark(
    name="crf-viterbi",
    title="CRF of 9 labels: the best sequences of a batch",
    sizes=SIZES,
    data=data,
    ours=best,
    peers={"pytorch-crf": Peer(best_theirs, "pytorch-crf", "torchcrf")},
    score=lambda data, found: found,
    score_name="sum of labels",
    target=1.0,
)
BENCHMARKS = [LOSS, VITERBI]
