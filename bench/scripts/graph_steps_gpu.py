"""Training steps of graph networks through ``NodeClassifier``, beside the loop that one would write by hand.

``python bench/scripts/graph_steps_gpu.py [device]``: GCN, SAGE, GAT and GIN on random graphs of 10⁴ and
10⁶ edges. Both sides take the same module, optimiser (fused AdamW) and all nodes in a step; the graph lies
on the device. A step is the difference of a long and a short run, so that set-up does not count. Results go
to ``$OUT/graph-steps-gpu.csv``.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from groundstate import NodeClassifier
from groundstate.compute.rows import GraphNodes, Graphs

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"


def timed(f: Callable[[], Any]) -> float:
    if DEVICE != "cpu":
        torch.cuda.synchronize()
    start = time.perf_counter()
    f()
    if DEVICE != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def by_hand(net: nn.Module, rows: GraphNodes, y: Tensor, epochs: int) -> None:
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, fused=DEVICE != "cpu")
    for _ in range(epochs):
        loss = cross_entropy(net(rows), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


def compared(network: str, nodes: int, edges: int, short: int, long: int) -> dict[str, Any]:
    draws = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, 32, generator=draws)
    y = torch.randint(7, (nodes,), generator=draws)
    pairs = torch.randint(nodes, (edges, 2), generator=draws)
    graph = (x.numpy(), pairs.numpy())

    def make(epochs: int) -> Any:
        settings = {"hidden": 64}
        return NodeClassifier(
            network, settings, max_epochs=epochs, device=DEVICE, random_state=0
        ).fit(graph, y.numpy())

    net = make(1).network_.train()
    rows = GraphNodes.all(Graphs.of([(x, pairs)]).to(torch.device(DEVICE)))
    labels = y.to(DEVICE)
    by_hand(net, rows, labels, 2)
    few, many = (timed(lambda n=n: make(n)) for n in (short, long))
    hand_few, hand_many = (timed(lambda n=n: by_hand(net, rows, labels, n)) for n in (short, long))
    ours, hand = 1e3 * (many - few) / (long - short), 1e3 * (hand_many - hand_few) / (long - short)
    row = {"network": network, "nodes": nodes, "edges": edges, "ours_ms": round(ours, 3),
           "hand_ms": round(hand, 3), "ratio": round(hand / ours, 3)}  # fmt: skip
    print(row, flush=True)
    return row


def main() -> None:
    rows = []
    sizes = [(2_000, 10_000)] if DEVICE == "cpu" else [(2_000, 10_000), (100_000, 1_000_000)]
    short, long = (2, 6) if DEVICE == "cpu" else (20, 120)
    for nodes, edges in sizes:
        for network in ("gcn", "sage", "gat", "gin"):
            rows.append(compared(network, nodes, edges, short, long))
    if "OUT" in os.environ:
        with (Path(os.environ["OUT"]) / "graph-steps-gpu.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
