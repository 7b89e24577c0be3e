r"""A fixed context holds only so much; attention looks again."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import Finite, Sequence, SequenceEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NextToken, fit
from groundstate.learn.train.stochastic import Stochastic
from groundstate.nn import RecurrentSeq2Seq, Transformer, Translate

SYMBOLS, SHORT, LONG = 8, 4, 20
FIRST = 3  # 0 pads, 1 begins, 2 ends
VOCAB = FIRST + SYMBOLS
LENGTHS = (5, 10, 15, 20)


@experiment(
    "ARC-x-bottleneck", theme="architectures", title="A fixed context fails with length, attention does not",
    slow=True,
)  # fmt: skip
def bottleneck(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A decoder that is given the encoder's last state alone has to keep the whole source in
    :math:`h_T`; one that attends, :math:`c_{t'} = \sum_t\alpha_{t't}h_t`, looks up what it needs. Asked
    to write sequences backwards, both can when they are short; long ones only the second one can, and
    its weights lie on the anti-diagonal.

    8 symbols, lengths 4 to 20 mixed, 900 steps of 32 rows; token accuracy of new rows with the true
    tokens before. A recurrent decoder with attention runs its cell once per token, a transformer's
    decoder answers all tokens in one call.
    """
    key, rows = Key.of(seed), 2880
    src, tgt = _data(key.fold("rows"), rows)
    accuracy: dict[str, list[float]] = {}
    nets: dict[str, RecurrentSeq2Seq] = {}
    for name, attention in (("fixed", False), ("attention", True)):
        net = RecurrentSeq2Seq(
            VOCAB, VOCAB, 16, 64, attention=attention, generator=key.fold("init").torch()
        )
        energy = _energy(net)
        solver = Stochastic(lr=5e-3, batch_size=32, max_epochs=10, clip_norm=1.0)
        rule = NextToken(float((tgt != 0).sum(1).double().mean()))
        fit(energy, {"x": src, "y": tgt}, rule, solver, random_state=key.fold("order"))
        net.eval()
        nets[name] = net
        accuracy[name] = [_accuracy(energy, key.fold("new", n), n) for n in LENGTHS]
    looked = _alignment(nets["attention"], key)
    place = (looked * torch.arange(10.0)).sum(-1)  # mean place that each step looks at
    both = torch.stack((place.flatten(), torch.arange(10.0).repeat(len(place))))
    slope = float(torch.corrcoef(both)[0, 1])
    calls, seconds = _calls(key)
    gap = accuracy["attention"][-1] - accuracy["fixed"][-1]
    claims = [
        Claim.at_least("T = 20: attention against a fixed context", gap, 0.25),
        Claim.at_least("T = 5: fixed context", accuracy["fixed"][0], 0.95),
        Claim.at_least("T = 5: attention", accuracy["attention"][0], 0.95),
        Claim.at_most("T = 10: correlation of the place looked at with the step", slope, -0.8),
        Claim.equal("cell calls for 20 tokens: recurrent decoder", calls["recurrent"], LONG + 1),
        Claim.equal("the same: transformer", calls["transformer"], 1),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for colour, (name, values) in zip(COLOURS, accuracy.items()):
            left.plot(LENGTHS, values, "o-", color=colour, label=name)
        left.axhline(1 / SYMBOLS, color="#889", ls=":")
        left.set(title="token accuracy", xlabel="length", ylim=(0, 1.02))
        left.legend()
        right.imshow(looked[0].numpy(), cmap="Blues", vmin=0, vmax=1)
        right.set(title="where the decoder looks", xlabel="source", ylabel="target")

    return Result(
        claims, {"accuracy": accuracy, "calls": calls, "slope": slope}, draw, seconds=seconds
    )


def _energy(net: Any) -> SequenceEnergy:
    return SequenceEnergy(
        Translate(net), VOCAB, LONG + 1, Sequence(Finite(VOCAB), LONG), bos=1, ignore=0
    )


def _data(key: Key, n: int, length: int | None = None) -> tuple[Tensor, Tensor]:
    """Sources, and targets that are their reverse with an end; 0 behind both."""
    g = key.torch()
    lengths = torch.randint(SHORT, LONG + 1, (n, 1), generator=g)
    if length is not None:
        lengths = torch.full_like(lengths, length)
    at = torch.arange(LONG)
    symbols = torch.randint(FIRST, VOCAB, (n, LONG), generator=g)
    src = torch.where(at < lengths, symbols, 0)
    back = src.gather(1, (lengths - 1 - at).clamp(min=0))
    tgt = torch.where(at < lengths, back, torch.where(at == lengths, 2, 0))
    last = torch.where(lengths == LONG, 2, 0)
    return src, torch.cat((tgt, last), 1)


@torch.no_grad()
def _accuracy(energy: SequenceEnergy, key: Key, length: int) -> float:
    src, tgt = _data(key, 200, length)
    best = energy.logits(tgt, src).argmax(-1)
    return float((best == tgt)[tgt != 0].double().mean())


@torch.no_grad()
def _alignment(net: RecurrentSeq2Seq, key: Key) -> Tensor:
    src, tgt = _data(key.fold("look"), 50, 10)
    before = torch.nn.functional.pad(tgt[:, :9], (1, 0), value=1)
    return net.alignment(src[:, :10], before)


def _calls(key: Key) -> tuple[dict[str, int], dict[str, float]]:
    """How often the decoder is called for one row of 20 tokens, and seconds of a pass."""
    src, tgt = _data(key.fold("calls"), 32, LONG)
    g = key.fold("calls").torch()
    nets: dict[str, Any] = {
        "recurrent": RecurrentSeq2Seq(VOCAB, VOCAB, 16, 64, generator=g),
        "transformer": Transformer(VOCAB, VOCAB, 64, 2, 1, padding=0, generator=g),
    }
    calls, seconds = dict.fromkeys(nets, 0), {}
    for name, net in nets.items():
        part = net.decoder.core if name == "recurrent" else net.decoder.blocks[0]

        def count(*given: Any, name: str = name) -> None:
            calls[name] += 1

        hook = part.register_forward_hook(count)
        begin = time.perf_counter()
        net(src, tgt)
        seconds[name] = time.perf_counter() - begin
        hook.remove()
    return calls, seconds
