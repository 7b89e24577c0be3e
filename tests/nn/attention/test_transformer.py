"""Encoder and decoder together, and causal language models."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import (
    GPT,
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
    draw_transformer,
    masks,
)
from groundstate.store import dumps, loads

POSITIONS = ["learned", "rope", "sinusoidal", "none"]


def tokens(*shape: int, of: int = 11, seed: int = 0) -> Tensor:
    return torch.randint(1, of, shape, generator=torch.Generator().manual_seed(seed))


def counted(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def small(**options: object) -> Transformer:
    return Transformer(11, 13, 8, 2, 2, **options).double().eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("positions", POSITIONS)
def test_scores_do_not_see_later_targets(positions: str) -> None:
    net, src, tgt = small(positions=positions), tokens(2, 5), tokens(2, 6, seed=1)
    other = tgt.clone()
    other[:, 3:] = 1
    assert torch.allclose(net(src, tgt)[:, :3], net(src, other)[:, :3], atol=1e-12)
    assert not torch.allclose(net(src, tgt)[:, 3:], net(src, other)[:, 3:])


def test_padding_of_the_source_is_not_seen() -> None:
    net, src, tgt = small(padding=0), tokens(2, 5), tokens(2, 4, seed=1)
    padded = torch.cat((src, torch.zeros(2, 3, dtype=torch.int64)), 1)
    assert torch.allclose(net(padded, tgt), net(src, tgt), atol=1e-12)


@pytest.mark.parametrize("positions", POSITIONS)
def test_steps_of_a_decoder_are_the_whole(positions: str) -> None:
    net, src, tgt = small(positions=positions), tokens(2, 5), tokens(2, 6, seed=1)
    whole = net(src, tgt)
    context, mask = net.encode(src)
    cache = net.decoder.cache(2, 6)
    with torch.no_grad():
        parts = [net.decode(tgt[:, i : i + 1], context, mask, cache) for i in range(6)]
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-12)


def test_uniform_scores_cost_the_logarithm_of_the_vocabulary() -> None:
    net, src, tgt = small(), tokens(2, 5), tokens(2, 6, seed=1)
    nn.init.zeros_(net.score.weight)
    loss = F.cross_entropy(net(src, tgt).transpose(1, 2), tgt, reduction="none").sum(1)
    assert loss.tolist() == pytest.approx([6 * math.log(13)] * 2)


def test_tied_weights_are_one() -> None:
    free, tied = Transformer(11, 13, 8, 2, 1), Transformer(11, 13, 8, 2, 1, tied=True)
    assert counted(free) - counted(tied) == 13 * 8
    assert tied.score.weight is tied.target.weight
    back = loads(dumps(tied))
    assert back.score.weight is back.target.weight


def test_gpt_2_small_has_its_parameters() -> None:
    with torch.device("meta"):
        generator = torch.Generator("cpu")
        net = GPT(50257, 1024, 768, 12, 1, generator=generator)
    block = counted(net.stack.blocks[0])
    assert counted(net) + 11 * block == 124_439_808


@pytest.mark.parametrize("positions", POSITIONS)
def test_steps_of_a_language_model_are_the_whole(positions: str) -> None:
    net, x = GPT(11, 16, 8, 2, 2, positions=positions, kv_heads=1).double().eval(), tokens(2, 9)
    cache = net.start(2)
    with torch.no_grad():
        parts = [net.step(x[:, :3], cache)[0]] + [net.step(x[:, i], cache)[0] for i in range(3, 9)]
        assert torch.allclose(torch.stack(parts, 1), net(x)[:, 2:], atol=1e-12)


@pytest.mark.parametrize("positions", ["learned", "rope"])
def test_a_sliding_window_is_the_masked_whole(positions: str) -> None:
    net, x = GPT(11, 16, 8, 2, 2, positions=positions, kv_heads=1).double().eval(), tokens(2, 12)
    cache = net.start(2, window=4)
    assert cache["kv"].store.shape[-2] == 4  # memory does not grow with what was read
    with torch.no_grad():
        whole = net(x, masks.sliding_window(12, 4))
        for t in range(12):
            scores, cache = net.step(x[:, t], cache)
            assert torch.allclose(scores, whole[:, t], atol=1e-12)


def test_a_new_language_model_knows_nothing() -> None:
    net, x = GPT(65, 32, 32, 4, 3), tokens(4, 32, of=65)
    loss = F.cross_entropy(net(x)[:, :-1].flatten(0, 1), x[:, 1:].flatten()).item()
    assert loss == pytest.approx(math.log(65), abs=0.1)


def test_the_future_is_not_seen_and_order_is() -> None:
    net, x = GPT(11, 16, 8, 2, 2).double().eval(), tokens(1, 8)
    other = x.clone()
    other[:, 5:] = 1
    assert torch.allclose(net(x)[:, :5], net(other)[:, :5], atol=1e-12)
    swapped = x[:, [1, 0, *range(2, 8)]]
    assert not torch.allclose(net(swapped)[:, -1], net(x)[:, -1])


def test_packed_rows() -> None:
    net, x = GPT(11, 16, 8, 2, 2, positions="rope").double().eval(), tokens(1, 8)
    ids = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    packed = net(x, masks.document(ids))
    assert torch.allclose(packed[:, 4:], net(x[:, 4:]), atol=1e-12)


def test_too_long_and_misshapen_inputs_are_refused() -> None:
    net = GPT(11, 4, 8, 2, 1)
    with pytest.raises(ShapeError, match="5 tokens is longer than the context of 4"):
        net(tokens(1, 5))
    with pytest.raises(ShapeError, match=r"got \(3,\)"):
        net(tokens(3))
    with pytest.raises(Unsupported, match="sinusoidal, learned, rope, none"):
        GPT(11, 4, 8, 2, 1, positions="absolute")


def test_language_models_are_stored() -> None:
    net, x = GPT(11, 16, 8, 2, 2, positions="rope", tied=False).eval(), tokens(2, 5)
    assert torch.equal(loads(dumps(net))(x), net(x))


def test_gradients_reach_every_parameter() -> None:
    net, x = GPT(11, 16, 8, 2, 2), tokens(2, 16)
    F.cross_entropy(net(x).transpose(1, 2), x).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())


def test_drawings_have_the_parts_of_each_stack() -> None:
    both = draw_transformer(Transformer(11, 13, 8, 2, 3))
    assert both.nodes == 11 and both.svg.count(">3×<") == 2
    assert "attention to the source" in both.svg and "causal self-attention" in both.svg
    assert "attention to the source" not in draw_transformer(GPT(11, 4, 8, 2, 1)).svg
    assert draw_transformer(TransformerEncoder(8, 2, 1)).nodes == 3
    assert draw_transformer(TransformerDecoder(8, 2, 1)).nodes == 4
    with pytest.raises(Unsupported, match="got Linear"):
        draw_transformer(nn.Linear(2, 2))


def test_making_a_network_draws_nothing_from_the_stream_of_the_process() -> None:
    before = torch.get_rng_state()
    Transformer(5, 5, 8, 2, 1)
    assert torch.equal(before, torch.get_rng_state())
