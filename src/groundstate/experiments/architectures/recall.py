r"""What came first: a recurrent network may remember it for ever, a convolution sees a window."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy import NetClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import SoftMin, fit
from groundstate.learn.train.stochastic import Stochastic
from groundstate.nn import BPTT, TCN, Recurrent
from groundstate.nn.blocks.initialise import init_, linear

SYMBOLS, FILLERS, WIDTH = 4, 4, 32
LENGTHS = (5, 10, 20, 40)
STEPS, ROWS, RATE = 300, 64, 3e-3
ITEMS, KEPT, TRIALS = 10, 0.7, 400  # of the gradients that are cut


class Last(nn.Module):
    """Scores from what a network for sequences says at the last item."""

    def __init__(self, body: nn.Module, generator: torch.Generator) -> None:
        super().__init__()
        self.body, self.score = body, linear(WIDTH, SYMBOLS)
        init_(self.score, "auto", generator)

    def forward(self, x: Tensor) -> Tensor:
        last: Tensor = self.score(self.body(x)[:, -1])
        return last


@experiment(
    "ARC-x-recall", theme="architectures", title="Gates remember the first token, a window forgets it",
    slow=True,
)  # fmt: skip
def recall(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The first of T tokens is asked for at the end. A convolution sees the last :math:`r = 13`; the
    gradient of a simple recurrent network reaches back as :math:`\rho^{T}`, with :math:`\rho\approx
    3^{-1/2}` at torch's initial weights; a gated unit whose update gate starts at
    :math:`\sigma(1.5) = .82` keeps its state, :math:`h_t = u\odot h_{t-1} + (1-u)\odot\tilde h`.

    Four symbols before random fillers, T of 5 to 40, 300 steps of Adam on 64 new rows each. The rate is
    .003: the walk of the recurrent weights by noise, :math:`\eta\sqrt{300}` each, adds
    :math:`\eta\sqrt{300\cdot32} = .3` to the spectral radius of the simple network and leaves it
    below 1 (at .01 it would not). Then gradients that are cut after 3 items, or at random with the
    kept ones reweighted by 1/p, beside the full one.
    """
    key = Key.of(seed)
    lengths = (5, 40) if quick else LENGTHS
    accuracy: dict[str, list[float]] = {}
    for name in ("gated", "simple", "window"):
        accuracy[name] = [_learned(name, key, n) for n in lengths]
    full, cut, expected, mean = _gradients(key.fold("gradients"))
    off = {
        name: float((found - full).norm() / full.norm())
        for name, found in (("cut", cut), ("expected", expected), ("mean", mean))
    }
    claims = [
        Claim.at_least("T = 40: gated unit, update bias 1.5", accuracy["gated"][-1], 0.95),
        Claim.at_most("T = 40: simple recurrent network", accuracy["simple"][-1], 0.35),
        Claim.at_most("T = 40: window of 13", accuracy["window"][-1], 0.35),
        Claim.at_least("T = 5: simple recurrent network", accuracy["simple"][0], 0.95),
        Claim.at_least("T = 5: window of 13", accuracy["window"][0], 0.95),
        Claim.at_least("gradient cut after 3 items: relative bias", off["cut"], 0.1),
        Claim.at_most(
            "gradient cut at random, over all 512 ways: the same", off["expected"], 1e-10
        ),
        Claim.at_most("mean of 400 such draws: the same", off["mean"], off["cut"] / 2),
    ]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for (name, values), colour in zip(accuracy.items(), COLOURS):
            left.plot(lengths, values, "o-", color=colour, label=name)
        left.axhline(1 / SYMBOLS, color="#889", ls=":")
        left.set(title="first token recalled", xlabel="T", ylim=(0, 1.02))
        left.legend()
        at = np.arange(len(full))
        right.bar(at - 0.25, full.numpy(), 0.25, color=COLOURS[0], label="full")
        right.bar(at, mean.numpy(), 0.25, color=COLOURS[2], label="at random, mean")
        right.bar(at + 0.25, cut.numpy(), 0.25, color=COLOURS[1], label="cut")
        right.set(title="gradient in the recurrent weights", xlabel="weight")
        right.legend()

    return Result(
        claims, {"accuracy": accuracy, "relative error of gradients": off}, draw, size=(8.0, 3.2)
    )


def _rows(key: Key, n: int, length: int) -> tuple[Tensor, Tensor]:
    """Tokens as unit vectors ``(n, T, symbols + fillers)``, and the first of each row."""
    g = key.torch()
    first = torch.randint(SYMBOLS, (n,), generator=g)
    tokens = SYMBOLS + torch.randint(FILLERS, (n, length), generator=g)
    tokens[:, 0] = first
    return nn.functional.one_hot(tokens, SYMBOLS + FILLERS).float(), first


def _learned(name: str, key: Key, length: int) -> float:
    """Accuracy on new rows after training."""
    g, wide = key.fold("init", name).torch(), SYMBOLS + FILLERS
    body: nn.Module
    if name == "window":
        body = TCN(wide, WIDTH, 2, 5, generator=g)  # sees 1 + 4 (1 + 2) = 13 items
    else:
        bias = 1.5 if name == "gated" else 0.0
        cell = "gru" if name == "gated" else "rnn"
        body = Recurrent(cell, wide, WIDTH, update_bias=bias, generator=g)
    energy = NetClassEnergy((length, wide), SYMBOLS, Last(body, g))
    x, y = _rows(key.fold("rows", length), STEPS * ROWS, length)
    solver = Stochastic("adam", RATE, ROWS, 1, tol=None)
    fit(energy, {"x": x, "y": y}, SoftMin(), solver, random_state=key.fold("order"))
    energy.eval()
    x, y = _rows(key.fold("new", length), 1000, length)
    with torch.no_grad():
        return float((energy.table("y", x=x).argmin(1) == y).double().mean())


def _gradients(key: Key) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients in the recurrent weights of two units: in full, cut after 3 items, cut at random in
    expectation over all ways to cut, and the mean over some draws."""
    net = Recurrent("rnn", 1, 2, generator=key.fold("init").torch()).double()
    weight: Tensor = net.core.weight_hh_l0  # type: ignore[assignment]
    with torch.no_grad():
        weight.copy_(torch.tensor([[0.9, 0.2], [-0.2, 0.9]]))  # influences last
    x = torch.randn(8, ITEMS, 1, generator=key.fold("x").torch(), dtype=torch.float64)

    def gradient(out: Tensor, share: Tensor | None = None) -> Tensor:
        each = out[:, -1].sum(1).square()
        loss = each.mean() if share is None else (each * share).sum()
        return torch.autograd.grad(loss, [weight])[0].flatten()

    drawn = BPTT(net, random_truncate=KEPT, generator=key.fold("cuts").torch())
    mean = torch.stack([gradient(drawn(x)) for _ in range(TRIALS)]).mean(0)
    ways = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * (ITEMS - 1))
    chance = (ways * KEPT + (1 - ways) * (1 - KEPT)).prod(1)  # (512,)
    keep = (ways / KEPT).repeat_interleave(len(x), 0)  # each row in every way
    outs, state = [], net.start(len(keep))
    for t, item in enumerate(x.repeat(len(ways), 1, 1).split(1, 1)):
        if t:
            assert isinstance(state, Tensor)
            state = state.detach() + keep[:, t - 1, None] * (state - state.detach())
        out, state = net.run(item, None, state)
        outs.append(out)
    share = chance.repeat_interleave(len(x)) / len(x)
    return (
        gradient(net(x)),
        gradient(BPTT(net, truncate=3)(x)),
        gradient(torch.cat(outs, 1), share),
        mean,
    )
