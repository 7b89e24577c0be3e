"""Networks from sequences to sequences: steps are the whole, padding is not seen, attention sums."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from groundstate.compute.rows import Ragged, Tokens
from groundstate.energy import SequenceEnergy
from groundstate.energy.spaces import TokenSequence
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import decode
from groundstate.nn import RecurrentSeq2Seq, Transformer, Translate

NETS = {
    "fixed": lambda: RecurrentSeq2Seq(9, 8, 4, 6, attention=False),
    "dot": lambda: RecurrentSeq2Seq(9, 8, 4, 6),
    "additive": lambda: RecurrentSeq2Seq(9, 8, 4, 6, "lstm", "additive", True),
    "both ways": lambda: RecurrentSeq2Seq(9, 8, 4, 6, "rnn", "dot", True),
    "transformer": lambda: Transformer(9, 8, 8, 2, 2, padding=0, max_len=16),
}


def net(name: str) -> nn.Module:
    return NETS[name]().double().eval()  # type: ignore[no-untyped-call]


def tokens(n: int, of: int, seed: int = 0) -> Tensor:
    return torch.randint(1, of, (3, n), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", NETS)
def test_steps_are_the_whole(name: str) -> None:
    made, src, tgt = net(name), tokens(5, 9), tokens(6, 8, 1)
    with torch.no_grad():
        whole = made(src, tgt)
        scores, memory = made.step(tgt[:, :2], made.start(src))
        torch.testing.assert_close(scores, whole[:, 1])
        for t in range(2, 6):
            scores, memory = made.step(tgt[:, t], memory)
            torch.testing.assert_close(scores, whole[:, t])


@pytest.mark.parametrize("name", NETS)
def test_padding_is_not_seen_and_later_targets_neither(name: str) -> None:
    made, src, tgt = net(name), tokens(5, 9), tokens(6, 8, 1)
    padded = nn.functional.pad(src, (0, 3))
    with torch.no_grad():
        torch.testing.assert_close(made(padded, tgt), made(src, tgt))
        other = tgt.clone()
        other[:, 3:] = 1
        torch.testing.assert_close(made(src, other)[:, :3], made(src, tgt)[:, :3])


@pytest.mark.parametrize("name", NETS)
def test_rows_are_read_alone(name: str) -> None:
    made = Translate(net(name))
    x = Tokens.of(Ragged.of([[1, 2, 3, 4], [5], [6, 7]]))
    tgt = tokens(4, 8)
    with torch.no_grad():
        together = made(tgt, x)
        for i in range(3):
            alone = made(tgt[i : i + 1], x.take(torch.tensor([i])))
            torch.testing.assert_close(alone[0], together[i])


@pytest.mark.parametrize("name", ["dot", "additive", "both ways", "transformer"])
def test_an_alignment_is_a_distribution_over_the_source(name: str) -> None:
    made = net(name)
    src = nn.functional.pad(tokens(5, 9), (0, 2))
    found = made.alignment(src, tokens(6, 8, 1))
    assert found.shape == (3, 6, 7)
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 6, dtype=torch.float64))
    assert bool((found[..., 5:] == 0).all())


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_sources_of_different_length_are_decoded(name: str, method: str) -> None:
    energy = SequenceEnergy(Translate(net(name)), 8, 5, TokenSequence(9), bos=1)
    x = Tokens.of(Ragged.of([[1, 2, 3, 4], [5]]))
    found = decode(energy, method, given={"x": x}, beams=3, end=2)  # type: ignore[arg-type]
    y = found.tokens[:, 0]
    lengths = found.lengths[:, 0]
    torch.testing.assert_close(energy.log_prob(y, x=x, lengths=lengths), found.log_prob[:, 0])
    alone = decode(energy, method, given={"x": x.take(torch.tensor([1]))}, beams=3, end=2)  # type: ignore[arg-type]
    if method != "sample":
        assert torch.equal(alone.tokens[0, 0, : lengths[1]], y[1, : lengths[1]])


def test_a_fixed_context_does_not_look() -> None:
    with pytest.raises(Unsupported, match="looks nowhere"):
        net("fixed").alignment(tokens(5, 9), tokens(2, 8))
    with pytest.raises(Unsupported, match="one of dot, additive"):
        RecurrentSeq2Seq(9, 8, attention="global")
    with pytest.raises(ShapeError, match=r"\(batch, length\), got \(5,\)"):
        net("dot")(torch.ones(5, dtype=torch.int64), tokens(2, 8))
