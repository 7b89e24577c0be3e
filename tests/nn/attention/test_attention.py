"""Attention: the numbers of hand examples, masks, heads, and agreement with torch's layers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import (
    AttentionBlock,
    KVCache,
    MultiHeadAttention,
    RoPE,
    TransformerBlock,
    TransformerDecoder,
    TransformerEncoder,
    attention_weights,
    dot_product_attention,
    flex_attention,
    masks,
)
from groundstate.nn.attention.flex import (
    alibi_mod,
    causal_mod,
    document_mod,
    prefix_mod,
    window_mod,
)
from groundstate.store import dumps, loads


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def counted(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def test_the_hand_examples() -> None:
    eye = torch.eye(2, dtype=torch.float64)
    assert dot_product_attention(eye, eye, eye)[0].tolist() == pytest.approx(
        [0.669762, 0.330238], abs=1e-6
    )
    assert dot_product_attention(eye, eye, eye, scale=1.0)[0].tolist() == pytest.approx(
        [0.731059, 0.268941], abs=1e-6
    )
    q, v = torch.tensor([[1.0, 0.0]]).double(), torch.tensor([[10.0], [20.0]]).double()
    assert dot_product_attention(q, eye, v).item() == pytest.approx(13.302385, abs=1e-6)


def test_equal_keys_average_the_values() -> None:
    q, v = normal(3, 4), normal(5, 2, seed=1)
    out = dot_product_attention(q, torch.ones(5, 4).double(), v)
    assert torch.allclose(out, v.mean(0).expand(3, 2))


def test_the_order_of_keys_does_not_matter() -> None:
    q, k, v = normal(3, 4), normal(6, 4, seed=1), normal(6, 2, seed=2)
    order = torch.tensor([4, 1, 5, 0, 2, 3])
    assert torch.allclose(
        dot_product_attention(q, k[order], v[order]), dot_product_attention(q, k, v), atol=1e-12
    )


def test_weights_of_unit_keys_fall_with_squared_distance() -> None:
    q, k = (nn.functional.normalize(normal(n, 3, seed=n), dim=-1) for n in (2, 5))
    near = torch.exp(-0.5 * torch.cdist(q, k).square())
    assert torch.allclose(attention_weights(q, k, scale=1.0), near / near.sum(-1, keepdim=True))


def test_explicit_weights_agree_with_the_fused_kernel() -> None:
    q, k, v = normal(2, 4, 7, 8), normal(2, 2, 7, 8, seed=1), normal(2, 2, 7, 8, seed=2)
    mask = torch.rand(2, 1, 7, 7, generator=torch.Generator().manual_seed(3)) < 0.6
    mask[0, 0, 3] = False
    bias = normal(4, 7, 7, seed=4)
    weights = attention_weights(q, k, mask, bias=bias, causal=True)
    out = dot_product_attention(q, k, v, mask, bias=bias, causal=True)
    assert weights.shape == (2, 4, 7, 7)
    assert torch.allclose(weights @ v.repeat_interleave(2, 1), out, atol=1e-12)
    assert torch.equal(out[0, :, 3], torch.zeros(4, 8).double())  # it sees no key


def test_a_row_without_keys_has_finite_gradients() -> None:
    q = normal(1, 1, 4, 2).requires_grad_(True)
    mask = masks.padding(torch.tensor([0]), 4)
    dot_product_attention(q, q, q, mask).sum().backward()
    assert q.grad is not None and torch.isfinite(q.grad).all()


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        dot_product_attention(torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 4))
    with pytest.raises(ShapeError, match="3 heads of queries"):
        dot_product_attention(torch.ones(1, 3, 2, 4), *2 * [torch.ones(1, 2, 2, 4)])
    with pytest.raises(ShapeError, match="64 features do not make 7"):
        MultiHeadAttention(64, 7)
    with pytest.raises(ShapeError, match="takes"):
        MultiHeadAttention(8, 2)(torch.ones(2, 3, 7))


# --- masks -------------------------------------------------------------------------------


def test_causal_weights_of_equal_scores() -> None:
    zero = torch.zeros(3, 2)
    expected = [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]
    assert torch.allclose(attention_weights(zero, zero, causal=True), torch.tensor(expected))


def test_causal_outputs_do_not_depend_on_the_future() -> None:
    layer, x = MultiHeadAttention(4, 2).double(), normal(1, 5, 4).requires_grad_(True)
    for n in range(5):
        (grad,) = torch.autograd.grad(layer(x, causal=True)[0, n].sum(), x)
        assert torch.equal(grad[0, n + 1 :], torch.zeros(4 - n, 4).double())
        assert (grad[0, : n + 1].abs().sum(-1) > 0).all()


@pytest.mark.parametrize("queries", [1, 2, 5])
def test_few_queries_are_the_last_positions(queries: int) -> None:
    q, k = normal(5, 4), normal(5, 4, seed=1)
    whole = dot_product_attention(q, k, k, causal=True)
    assert torch.allclose(dot_product_attention(q[-queries:], k, k, causal=True), whole[-queries:])


def test_functions_of_positions_are_the_dense_masks() -> None:
    q, k, v = (normal(2, 2, 6, 4, seed=s) for s in range(3))
    ids = torch.tensor([[0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 1]])
    pairs = [
        (causal_mod, masks.causal(6)),
        (window_mod(2), masks.sliding_window(6, 2)),
        (prefix_mod(3), masks.prefix(6, 3)),
        (document_mod(ids), masks.document(ids) & masks.causal(6)),
        (document_mod(ids, causal=False), masks.document(ids)),
    ]
    for mod, mask in pairs:
        assert torch.allclose(flex_attention(q, k, v, mod), dot_product_attention(q, k, v, mask))
    slopes = torch.tensor([0.5, 0.25]).double()
    distance = (torch.arange(6)[:, None] - torch.arange(6)).abs()
    assert torch.allclose(
        flex_attention(q, k, v, bias=alibi_mod(slopes)),
        dot_product_attention(q, k, v, bias=-slopes[:, None, None] * distance),
    )


def test_packed_documents_are_as_separate() -> None:
    net, x = TransformerEncoder(8, 2, 2).double().eval(), normal(1, 7, 8)
    ids = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    packed = net(x, masks.document(ids), causal=True)
    assert torch.allclose(packed[:, :3], net(x[:, :3], causal=True), atol=1e-12)
    assert torch.allclose(packed[:, 3:], net(x[:, 3:], causal=True), atol=1e-12)


def test_padding_never_leaks() -> None:
    net, x = TransformerEncoder(8, 2, 2).double().eval(), normal(2, 6, 8)
    mask = masks.padding(torch.tensor([4, 6]), 6)
    other = x.clone()
    other[0, 4:] = 100.0
    assert torch.allclose(net(x, mask)[0, :4], net(other, mask)[0, :4], atol=1e-12)
    assert torch.allclose(net(x, mask)[0, :4], net(x[:1, :4])[0], atol=1e-12)


def test_prefix_lengths_by_row() -> None:
    by_row = masks.prefix(4, torch.tensor([0, 3]))
    assert by_row.shape == (2, 1, 4, 4)
    assert torch.equal(by_row[0, 0], masks.causal(4))
    assert torch.equal(by_row[1, 0], masks.prefix(4, 3))


def test_masks_refuse_what_makes_no_sense() -> None:
    with pytest.raises(ShapeError, match="3 queries, got 2"):
        masks.causal(3, 2)
    with pytest.raises(ValueError, match="window=0"):
        masks.sliding_window(3, 0)


# --- heads and blocks --------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 2, 8])
def test_parameters_do_not_depend_on_heads(heads: int) -> None:
    layer = MultiHeadAttention(64, heads)
    out, weights = layer(torch.ones(2, 5, 64), need_weights=True)
    assert counted(layer) == 16_640
    assert out.shape == (2, 5, 64) and weights.shape == (2, heads, 5, 5)


def test_one_head_with_identity_maps_is_attention() -> None:
    layer = MultiHeadAttention(3, 1, bias=False).double()
    with torch.no_grad():
        layer.qkv.weight.copy_(torch.eye(3).repeat(3, 1))
        layer.out.weight.copy_(torch.eye(3))
    x = normal(2, 4, 3)
    assert torch.allclose(layer(x), dot_product_attention(x, x, x), atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_heads_agree_with_torch(bias: bool) -> None:
    theirs = nn.MultiheadAttention(16, 4, bias=bias, batch_first=True).double().eval()
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    ours, x, c = MultiHeadAttention.from_torch(theirs), normal(2, 5, 16), normal(2, 7, 16, seed=1)
    expected, weights = theirs(x, x, x, average_attn_weights=False)
    got, own = ours(x, need_weights=True)
    assert torch.allclose(got, expected, atol=1e-10) and torch.allclose(own, weights, atol=1e-10)
    assert torch.allclose(ours(x, c), theirs(x, c, c)[0], atol=1e-10)
    assert ours(x, c).shape == x.shape


def test_torch_layers_of_another_kind_are_refused() -> None:
    with pytest.raises(Unsupported, match="bias_kv"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, add_bias_kv=True))
    with pytest.raises(Unsupported, match="relu or gelu"):
        TransformerBlock.from_torch(
            nn.TransformerEncoderLayer(8, 2, activation=nn.functional.silu, batch_first=True)
        )


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_blocks_agree_with_torch(norm_first: bool, activation: str) -> None:
    kind = {"norm_first": norm_first, "activation": activation, "batch_first": True}
    x, c = normal(2, 5, 16), normal(2, 7, 16, seed=1)
    theirs = nn.TransformerEncoderLayer(16, 4, 32, **kind).double().eval()
    assert torch.allclose(TransformerBlock.from_torch(theirs).eval()(x), theirs(x), atol=1e-10)
    theirs = nn.TransformerDecoderLayer(16, 4, 32, **kind).double().eval()
    triangle = nn.Transformer.generate_square_subsequent_mask(5).double()
    ours = TransformerBlock.from_torch(theirs).eval()
    assert torch.allclose(ours(x, c, causal=True), theirs(x, c, triangle), atol=1e-10)


def test_numbers_of_parameters() -> None:
    assert counted(TransformerBlock(64, 8, 256)) == 49_984
    both = TransformerEncoder(512, 8, 6, 2048), TransformerDecoder(512, 8, 6, 2048)
    assert sum(map(counted, both)) == 44_140_544 == counted(nn.Transformer(batch_first=True))


def test_zeroed_branches_leave_a_pre_norm_block_the_identity() -> None:
    block, x = TransformerBlock(8, 2, norm_first=True).double(), normal(2, 3, 8)
    for layer in (block.attend.out, block.feed.down):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    assert torch.equal(block(x), x)


@pytest.mark.parametrize(
    "block",
    [TransformerBlock(8, 2), TransformerBlock(8, 4, None, "swiglu", "rms", True, kv_heads=2),
     AttentionBlock(8), AttentionBlock(8, 6, 2)],
    ids=["post", "swiglu", "attention", "wider"],
)  # fmt: skip
def test_blocks_do_not_see_the_order(block: nn.Module) -> None:
    block, x = block.double().eval(), normal(2, 5, 8)
    order = torch.tensor([3, 0, 4, 1, 2])
    assert torch.allclose(block(x[:, order]), block(x)[:, order], atol=1e-12)


def test_blocks_say_whether_they_take_a_context() -> None:
    x = torch.ones(1, 2, 8)
    with pytest.raises(ShapeError, match="takes a context"):
        TransformerBlock(8, 2, cross=True)(x)
    with pytest.raises(ShapeError, match="no context"):
        TransformerBlock(8, 2)(x, x)
    with pytest.raises(Unsupported, match="layer, rms"):
        TransformerBlock(8, 2, norm="batch")


def test_dropout_is_for_training_only() -> None:
    block, x = TransformerBlock(8, 2, dropout=0.5), torch.ones(2, 3, 8)
    block.train()
    assert not torch.equal(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))


def test_equal_generators_give_equal_weights_and_no_global_draw() -> None:
    state = torch.get_rng_state()
    one, two = (TransformerBlock(8, 2, generator=torch.Generator().manual_seed(3)) for _ in "ab")
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters()))
    other = TransformerBlock(8, 2, generator=torch.Generator().manual_seed(4))
    assert not torch.equal(other.attend.qkv.weight, one.attend.qkv.weight)


def test_stacks_are_stored() -> None:
    net = TransformerDecoder(8, 2, 2, rope=RoPE(4), kv_heads=1).double().eval()
    x, c = normal(2, 3, 8), normal(2, 4, 8, seed=1)
    assert torch.equal(loads(dumps(net))(x, c), net(x, c))


# --- cached decoding ---------------------------------------------------------------------


@pytest.mark.parametrize("rope", [None, RoPE(4)])
def test_a_cache_gives_what_the_whole_gives(rope: RoPE | None) -> None:
    net = TransformerEncoder(8, 2, 3, rope=rope, kv_heads=1).double().eval()
    x = normal(2, 7, 8)
    cache = net.cache(2, 7)
    with torch.no_grad():
        parts = [net(x[:, :3], causal=True, cache=cache)]
        parts += [net(x[:, i : i + 1], causal=True, cache=cache) for i in (3, 4)]
        parts.append(net(x[:, 5:], causal=True, cache=cache))
        assert torch.allclose(torch.cat(parts, 1), net(x, causal=True), atol=1e-12)
    with pytest.raises(ShapeError, match="room for 7 positions, got 8"), torch.no_grad():
        net(x[:, :1], causal=True, cache=cache)


def test_a_windowed_cache_forgets_the_oldest() -> None:
    net, x = TransformerEncoder(8, 2, 1).double().eval(), normal(2, 9, 8)
    whole = net(x, masks.sliding_window(9, 3))
    for first in (1, 2, 5):
        cache = net.cache(2, 9, window=3)
        with torch.no_grad():
            if first > 3:  # positions before the window are seen by none of the later ones
                net(x[:, :first], masks.sliding_window(first, 3), cache=cache)
            else:
                net(x[:, :first], causal=True, cache=cache)
            later = [net(x[:, i : i + 1], causal=True, cache=cache) for i in range(first, 9)]
        assert torch.allclose(torch.cat(later, 1), whole[:, first:], atol=1e-12)
        assert cache.store.shape[-2] == 3


def test_rows_of_a_cache_can_be_picked() -> None:
    net, x = TransformerEncoder(8, 2, 2).double().eval(), normal(2, 4, 8)
    cache = net.cache(2, 4)
    order = torch.tensor([1, 1, 0])
    with torch.no_grad():
        net(x[:, :3], causal=True, cache=cache)
        picked = cache[order]
        out = net(x[order, 3:], causal=True, cache=picked)
        assert torch.allclose(out, net(x, causal=True)[order, 3:], atol=1e-12)
    assert cache.length == 3 and picked.length == 4 and picked.rows == 3


def test_a_cache_behind_its_window_takes_one_at_a_time() -> None:
    cache = KVCache(1, 1, 1, 8, 2, window=2)
    cache.append(0, *2 * [torch.ones(1, 1, 2, 2)])
    with pytest.raises(ShapeError, match="one position at a time"):
        cache.append(0, *2 * [torch.ones(1, 1, 2, 2)])


def test_scale_keeps_scores_of_unit_variance() -> None:
    q, k = normal(4000, 64), normal(4000, 64, seed=1)
    scores = (q * k).sum(-1)
    assert scores.var().item() == pytest.approx(64, rel=0.1)
    assert (scores / math.sqrt(64)).var().item() == pytest.approx(1, rel=0.1)
