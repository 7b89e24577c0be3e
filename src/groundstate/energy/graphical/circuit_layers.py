"""Nodes of a circuit by depth, so that each layer is one gather and one reduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layer:
    """Sums or products of one depth.

    Attributes
    ----------
    children : ``(nodes, most children)`` places of the values of children; 0, a column of zeros, where
        a node has fewer
    edges : ``(nodes, most children)`` numbers of weights, −1 where a node has fewer; None of products
    """

    children: Tensor
    edges: Tensor | None


def layers_of(
    nodes: Sequence[Sequence[Any]], leaves: Sequence[int], sums: Sequence[int]
) -> list[Layer]:
    """Layers in the order in which they are computed; the root comes last of all."""
    depth: list[int] = []
    for kind, what in nodes:
        depth.append(0 if kind == "leaf" else 1 + max(depth[c] for c in what))
    first, at = {}, 0  # first weight of each sum
    for n in sums:
        first[n] = at
        at += len(nodes[n][1])
    place = {n: 1 + k for k, n in enumerate(leaves)}
    layers = []
    for level in range(1, max(depth, default=0) + 1):
        for kind in ("product", "sum"):
            own = [n for n, (k, _) in enumerate(nodes) if k == kind and depth[n] == level]
            if level == depth[-1]:  # the root last, whatever else has its depth
                own = [n for n in own if n != len(nodes) - 1]
                if kind == nodes[-1][0]:
                    own.append(len(nodes) - 1)
            if own:
                layers.append((kind, own))
    if layers and layers[-1][1][-1] != len(nodes) - 1:
        at_root = next(k for k, (_, own) in enumerate(layers) if len(nodes) - 1 in own)
        kind, own = layers[at_root]
        layers[at_root] = (kind, own[:-1])
        layers.append((kind, [len(nodes) - 1]))
        layers = [(k, own) for k, own in layers if own]
    out = []
    for kind, own in layers:
        width = max(len(nodes[n][1]) for n in own)
        children = torch.zeros(len(own), width, dtype=torch.int64)
        edges = torch.full((len(own), width), -1) if kind == "sum" else None
        for k, n in enumerate(own):
            size = len(nodes[n][1])
            children[k, :size] = torch.tensor([place[c] for c in nodes[n][1]])
            if edges is not None:
                edges[k, :size] = torch.arange(first[n], first[n] + size)
            place[n] = len(place) + 1
        out.append(Layer(children, edges))
    return out
