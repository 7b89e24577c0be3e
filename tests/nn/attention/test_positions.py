"""Positions: the tables' numbers, relative scores, buckets, and what happens past the end."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.nn import (
    ALiBi,
    LearnedPositions,
    MultiHeadAttention,
    RelativeBias,
    RoPE,
    SinusoidalPositions,
    attention_weights,
)


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_sinusoids_have_the_known_values() -> None:
    table = SinusoidalPositions(4).table(3)
    assert table[1].tolist() == pytest.approx([0.841471, 0.540302, 0.010000, 0.999950], abs=1e-6)
    assert table[2].tolist() == pytest.approx([0.909297, -0.416147, 0.019999, 0.999800], abs=1e-6)


def test_inner_products_of_sinusoids_depend_on_the_offset() -> None:
    table = SinusoidalPositions(64).table(40)
    assert torch.allclose(table.square().sum(-1), torch.full((40,), 32.0))
    got = [float(table[0] @ table[i]) for i in (0, 1, 2, 5, 20)]
    assert got == pytest.approx([32, 30.917, 28.304, 23.504, 18.879], abs=5e-4)
    assert float(table[7] @ table[12]) == pytest.approx(23.504, abs=5e-4)


def test_sinusoids_go_on_from_a_start() -> None:
    module = SinusoidalPositions(8)
    assert torch.equal(module(torch.zeros(1, 3, 8), 5)[0], module.table(8)[5:])
    with pytest.raises(ShapeError, match="odd dim 3"):
        SinusoidalPositions(3)
    with pytest.raises(ShapeError, match="of 8 features"):
        module(torch.zeros(1, 3, 4))


def test_additive_positions_expand_into_four_terms() -> None:
    x, p, wq, wk = normal(5, 4), normal(5, 4, seed=1), normal(4, 4, seed=2), normal(4, 4, seed=3)
    whole = ((x + p) @ wq) @ ((x + p) @ wk).T
    parts = [(a @ wq) @ (b @ wk).T for a in (x, p) for b in (x, p)]
    assert torch.allclose(whole, sum(parts))


def test_learned_positions_end() -> None:
    module = LearnedPositions(4, 2)
    x = torch.zeros(1, 2, 2)
    assert torch.equal(module(x, 2)[0], module.weight[2:])
    with pytest.raises(ShapeError, match="reach to 4, got a sequence of 5"):
        module(x, 3)


def test_rope_turns_by_distance() -> None:
    rope = RoPE(8)
    assert rope.frequencies.tolist() == pytest.approx([1, 0.1, 0.01, 0.001], rel=1e-12)
    q, k = normal(8), normal(8, seed=1)
    turned = [rope(v.expand(30, 8)) for v in (q, k)]
    scores = turned[0] @ turned[1].T  # (i, j)
    for shift in (1, 7, 20):
        assert torch.allclose(scores[:-shift, :-shift], scores[shift:, shift:], atol=1e-12)
    eye = torch.eye(8, dtype=torch.float64)
    rotation = torch.stack([rope(eye, torch.full((8,), t)) for t in range(6)])  # rows are R_t e
    assert torch.allclose(rotation[2] @ rotation[5].T, rotation[0] @ rotation[3].T, atol=1e-12)


def test_the_two_pairings_differ_by_a_permutation() -> None:
    x = normal(2, 5, 8)
    order = torch.arange(8).reshape(2, 4).T.flatten()  # k, k + d/2 side by side
    assert torch.allclose(
        RoPE(8)(x)[..., order], RoPE(8, interleaved=True)(x[..., order]), atol=1e-12
    )
    with pytest.raises(ShapeError, match="odd dim_head 5"):
        RoPE(5)


def test_rope_goes_on_from_a_start() -> None:
    x = normal(2, 6, 4)
    assert torch.allclose(RoPE(4)(x)[:, 4:], RoPE(4)(x[:, 4:], 4))
    layer, y = MultiHeadAttention(8, 2, rope=RoPE(4)).double(), normal(1, 5, 8)
    shuffled = layer(y[:, [1, 0, 2, 3, 4]])
    assert not torch.allclose(shuffled[:, [1, 0, 2, 3, 4]], layer(y))  # order is seen


def test_buckets_are_those_of_t5() -> None:
    both, past = RelativeBias(2), RelativeBias(2, bidirectional=False)
    far = torch.tensor([-200, -128, -30, -8, -7, -1, 0, 1, 7, 8, 30, 128, 200])
    assert both.bucket(far).tolist() == [15, 15, 11, 8, 7, 1, 0, 17, 23, 24, 27, 31, 31]
    assert past.bucket(far).tolist() == [31, 31, 20, 8, 7, 1, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("make", [lambda: RelativeBias(2), lambda: ALiBi(2)])
def test_relative_weights_do_not_change_under_a_common_shift(make) -> None:  # type: ignore[no-untyped-def]
    module = make()
    for p in module.parameters():
        torch.nn.init.normal_(p, generator=torch.Generator().manual_seed(0))
    bias = module(6, 6).double()
    assert torch.equal(bias[:, 1:, 1:], bias[:, :-1, :-1])
    assert torch.equal(module(2, 6), module(6, 6)[:, 4:])  # queries are the last positions
    same = torch.ones(1, 2, 6, 4).double()
    weights = attention_weights(same, same, bias=bias, causal=True)
    logs = weights.log()
    assert torch.allclose(
        (logs[0, :, 3, 1] - logs[0, :, 3, 3]), logs[0, :, 5, 3] - logs[0, :, 5, 5]
    )


def test_slopes_of_alibi() -> None:
    assert ALiBi(8).slopes.tolist() == [2.0**-h for h in range(1, 9)]
    assert len(ALiBi(6).slopes) == 6
