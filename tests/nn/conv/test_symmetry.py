"""Symmetries: shifts, permutations, turns; what convolution, pooling and attention do with them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.testing import (
    NotSymmetric,
    check_equivariance,
    check_invariance,
    flip,
    interior,
    permutation,
    permute_graph,
    rotate90,
    shift,
)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


X = random(2, 3, 8, 8)


def test_circular_convolution_moves_with_its_input() -> None:
    net = nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular").double()
    for a in range(8):
        for b in range(8):
            assert check_equivariance(net, shift(a, b), x=X) < 1e-6


def test_stride_allows_its_multiples_only() -> None:
    net = nn.Conv2d(3, 4, 3, stride=2, padding=1, padding_mode="circular").double()
    for a in range(0, 8, 2):
        assert check_equivariance(net, shift(a, a), shift(a // 2, a // 2), X) < 1e-6
    with pytest.raises(NotSymmetric, match="differ by"):
        check_equivariance(net, shift(1, 1), shift(1, 1), X)


def test_zero_padding_differs_near_the_border_only() -> None:
    net = nn.Conv2d(3, 4, 5, padding=2).double()  # M = 2
    with pytest.raises(NotSymmetric):
        check_equivariance(net, shift(1, 0, fill="zero"), x=X)
    assert check_equivariance(net, shift(1, 0, fill="zero"), x=X, where=interior(3)) < 1e-6


def test_pooling_makes_it_invariant() -> None:
    conv = nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular").double()
    net = nn.Sequential(conv, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    for step in (1, 3, 5):
        assert check_invariance(net, shift(step, -step), X) < 1e-6
    with pytest.raises(NotSymmetric):
        check_invariance(conv, shift(1, 0), X)


def test_attention_and_sums_do_not_see_order() -> None:
    tokens = random(2, 7, 5)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(1))
    maps = [nn.Linear(5, 5).double() for _ in range(3)]

    def attention(h: Tensor) -> Tensor:
        q, k, v = (m(h) for m in maps)
        return F.scaled_dot_product_attention(q, k, v)

    assert check_equivariance(attention, permutation(order), x=tokens, atol=1e-12) < 1e-12
    pooled = check_invariance(lambda h: attention(h).sum(1), permutation(order), tokens, atol=1e-12)
    assert pooled < 1e-12
    positions = random(7, 5)
    with pytest.raises(NotSymmetric):  # positions are needed to see it
        check_equivariance(lambda h: attention(h + positions), permutation(order), x=tokens)


def test_nodes_move_with_their_edges() -> None:
    edges = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 0, 0, 4]])
    x = random(5, 3)
    layer = nn.Linear(3, 3).double()

    def sums(graph: tuple[Tensor, Tensor]) -> Tensor:
        h, (source, target) = graph[0], graph[1]
        return h + torch.zeros_like(h).index_add(0, target, layer(h)[source])

    order = torch.tensor([3, 0, 4, 1, 2])
    move = permute_graph(order)
    assert check_equivariance(sums, move, permutation(order, 0), (x, edges), atol=1e-12) < 1e-12
    assert check_invariance(lambda g: sums(g).sum(0), move, (x, edges), atol=1e-12) < 1e-12


def test_turns_flips_and_channels() -> None:
    net = nn.AvgPool2d(2)
    assert check_equivariance(net, rotate90(), x=X, atol=1e-12) < 1e-12
    assert check_equivariance(net, flip(-1, -2), x=X, atol=1e-12) < 1e-12
    assert check_equivariance(net, permutation([2, 0, 1]), x=X, atol=1e-12) == 0
    with pytest.raises(NotSymmetric):
        check_equivariance(nn.Conv2d(3, 3, 3, padding=1).double(), rotate90(), x=X)


def test_errors() -> None:
    with pytest.raises(ValueError, match="needs an example input"):
        check_equivariance(torch.relu, shift(1))
    with pytest.raises(NotSymmetric, match="give the transform of outputs as t_out"):
        check_equivariance(lambda x: x[..., ::2], lambda x: x, lambda y: y[..., :1], X)
    with pytest.raises(ValueError, match="fill is"):
        shift(1, fill="mirror")
