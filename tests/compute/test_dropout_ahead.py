"""Masks drawn for several passes at once are those of one pass at a time."""

from __future__ import annotations

import torch

from groundstate.compute.dropout import KeyedDropout, keep
from groundstate.compute.random import Key


def one_by_one(layer: KeyedDropout, x: torch.Tensor) -> torch.Tensor:
    place = torch.arange(x.numel()).view(x.shape)
    return keep(layer.stream, layer.count, layer.cut, place, x.dtype)


def test_blocks_of_masks() -> None:
    layer = KeyedDropout(0.3, Key.of(1))
    wide, narrow = torch.ones(7, 5), torch.ones(3, 5)
    for x in [wide] * 40 + [narrow, wide, wide]:
        expected = one_by_one(layer, x)
        assert torch.equal(layer._from_block(x), expected)
        layer.count.add_(1)


def test_a_count_put_back_makes_the_block_worthless() -> None:
    layer, x = KeyedDropout(0.5, Key.of(2)), torch.ones(4, 6)
    first = layer._from_block(x)
    layer.count.add_(1)
    layer._from_block(x)
    layer.count.add_(1)
    layer.count.copy_(torch.tensor(0))
    assert torch.equal(layer._from_block(x), first)
