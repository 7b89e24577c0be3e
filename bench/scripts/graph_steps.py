"""Training steps of graph networks through ``NodeClassifier``, beside the loop that one would write by hand.

``python bench/scripts/graph_steps.py [device]``: GCN, SAGE, GAT and GIN on random graphs of 10⁴ and
10⁶ edges. All sides take the same layers, optimiser (fused AdamW) and all nodes in a step; the graph lies
on the device. By hand are two loops: one around our module, one around PyTorch Geometric's layers (plain
torch, where it is installed), which add in an order that changes from run to run. A step is the difference
of a long and a short run, each the best of three, so that set-up does not count; whether two fits have the
same bits is written
down as well. Results go to ``$OUT/graph-steps-gpu.csv``, or ``graph-steps-cpu.csv`` with the time of the
processor, which other programs do not share.
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

try:
    from torch_geometric import nn as peer
except ImportError:
    peer = None

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"


def timed(f: Callable[[], Any]) -> float:
    if DEVICE == "cpu":
        start = time.process_time()
        f()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    f()
    torch.cuda.synchronize()
    return time.perf_counter() - start


class PyG(nn.Module):
    """The same layers by PyTorch Geometric."""

    def __init__(self, network: str, inputs: int, hidden: int, classes: int, edges: Tensor) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            self.layer(network, a, hidden) for a in (inputs, hidden)
        )  # fmt: skip
        self.head, self.edges = nn.Linear(hidden, classes), edges

    @staticmethod
    def layer(network: str, inputs: int, outputs: int) -> nn.Module:
        if network == "gat":
            return peer.GATConv(inputs, outputs // 4, 4)
        if network == "gin":
            inner = nn.Sequential(nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.ReLU(),
                                  nn.Linear(outputs, outputs))  # fmt: skip
            return peer.GINConv(inner, train_eps=True)
        return {"gcn": peer.GCNConv, "sage": peer.SAGEConv}[network](inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x, self.edges))
        return self.head(x)


def by_hand(net: nn.Module, rows: Any, y: Tensor, epochs: int) -> None:
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

    def step(run: Callable[[int], Any]) -> float:
        run(2)
        few, many = (min(timed(lambda n=n: run(n)) for _ in range(3)) for n in (short, long))
        return 1e3 * (many - few) / (long - short)

    ours, hand = step(make), step(lambda n: by_hand(net, rows, labels, n))
    theirs = float("nan")
    if peer is not None:
        other = PyG(network, 32, 64, 7, pairs.T.contiguous().to(DEVICE)).to(DEVICE)
        theirs = step(lambda n: by_hand(other, x.to(DEVICE), labels, n))
    first, second = (make(3).network_.state_dict() for _ in range(2))
    row = {"network": network, "nodes": nodes, "edges": edges, "ours_ms": round(ours, 3),
           "hand_ms": round(hand, 3), "pyg_ms": round(theirs, 3), "ratio": round(hand / ours, 3),
           "ratio_pyg": round(theirs / ours, 3),
           "same_bits": all(torch.equal(first[k], second[k]) for k in first)}  # fmt: skip
    print(row, flush=True)
    return row


def main() -> None:
    rows = []
    for nodes, edges in [(2_000, 10_000), (100_000, 1_000_000)]:
        short, long = (20, 220) if DEVICE != "cpu" else (2, 22) if edges < 100_000 else (1, 3)
        for network in ("gcn", "sage", "gat", "gin"):
            rows.append(compared(network, nodes, edges, short, long))
    if "OUT" in os.environ:
        name = f"graph-steps-{'cpu' if DEVICE == 'cpu' else 'gpu'}.csv"
        with (Path(os.environ["OUT"]) / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
