r"""The chain rule with one network for all factors, with one for each, and without it."""

from __future__ import annotations

import math

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.compute.random import Key
from groundstate.energy import Energy, SequenceEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import Watch
from groundstate.learn import NextToken, fit
from groundstate.learn.train.stochastic import Stochastic

SYMBOLS, LENGTH, ROWS = 4, 20, 1000
SIDE, LEARNED, CHOSEN = 8, 80, 200  # pixels, digits to learn from and to choose the epoch by
WIDTH, EACH = 96, 32  # hidden units of one network for all places, and of each of many


class Alone(nn.Module):
    """The same scores whatever stood before: every symbol for itself."""

    def __init__(self, k: int, length: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(length, k))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.scores.expand(len(tokens), tokens.shape[1], -1)


class Shared(nn.Module):
    """One network for all places, which sees the last symbols and, in pictures, where it is."""

    def __init__(self, k: int, window: int, side: int, generator: torch.Generator) -> None:
        super().__init__()
        self.k, self.window, self.side = k, window, side
        inputs = (k + 1) * window + (8 if side else 0)
        self.hidden = nn.Parameter(_drawn((WIDTH, inputs), generator))
        self.scores = nn.Parameter(_drawn((k, WIDTH), generator))
        self.shift, self.bias = nn.Parameter(torch.zeros(WIDTH)), nn.Parameter(torch.zeros(k))

    def forward(self, tokens: Tensor) -> Tensor:
        seen = F.one_hot(tokens, self.k + 1).float()  # (B, T, k + 1)
        past = F.pad(seen, (0, 0, self.window - 1, 0)).unfold(1, self.window, 1).flatten(2)
        if self.side:
            past = torch.cat(
                (past, _places(tokens.shape[1], self.side).expand(*tokens.shape, 8)), 2
            )
        h = torch.relu(past @ self.hidden.T + self.shift)
        return h @ self.scores.T + self.bias


class Separate(nn.Module):
    """A network of its own for each place, which sees all that stood before."""

    seen: Tensor

    def __init__(self, k: int, length: int, generator: torch.Generator) -> None:
        super().__init__()
        self.k = k
        seen = torch.ones(length, length).tril()[:, None]  # entry t of the tokens is symbol t - 1
        self.register_buffer("seen", seen)
        sizes = seen.sum(2, keepdim=True).sqrt()
        self.hidden = nn.Parameter(_drawn((length, EACH, length), generator, 1.0) / sizes)
        self.scores = nn.Parameter(_drawn((length, k, EACH), generator))
        self.shift = nn.Parameter(torch.zeros(length, EACH))
        self.bias = nn.Parameter(torch.zeros(length, k))

    def forward(self, tokens: Tensor) -> Tensor:
        x = tokens.float().clamp(max=self.k - 1)
        h = torch.relu(torch.einsum("thj,bj->bth", self.hidden * self.seen, x) + self.shift)
        return torch.einsum("tkh,bth->btk", self.scores, h) + self.bias


def _drawn(shape: tuple[int, ...], generator: torch.Generator, scale: float = 0.0) -> Tensor:
    return torch.randn(shape, generator=generator) * (scale or shape[-1] ** -0.5)


def _places(length: int, side: int) -> Tensor:
    """Row and column of each pixel as waves, ``(T, 8)``: no weights of their own."""
    at = torch.arange(length)
    angle = torch.stack((at // side, at % side), 1) * (math.pi / side)
    return torch.cat([wave(m * angle) for m in (1, 2) for wave in (torch.sin, torch.cos)], 1)


@experiment(
    "ARC-x-factor", theme="architectures", title="Dependence needs autoregression, and order makes it easy",
    slow=True,
)  # fmt: skip
def factor(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Every distribution is a product of conditionals, :math:`p(x) = \prod_t p(x_t\mid x_{<t})`, in any
    order. Where symbols depend on each other, factors without their past lose
    :math:`\sum_t I(x_t; x_{<t})`; where they do not, nothing. One network for all places learns each
    factor from all of them, and has as many weights for 16 pixels as for 64.

    Chains of four symbols that go on to the next one with probability .7, 1,000 rows of 20, and the same
    symbols drawn independently; 8 x 8 digits in black and white, 80 to learn from, row by row by one
    network of 96 units, by 64 networks of 32 units each, and by one in a random order of the pixels. The
    epoch is chosen on other rows than those that judge.
    """
    key = Key.of(seed)
    chain = 0.1 * torch.ones(SYMBOLS, SYMBOLS) + 0.6 * torch.eye(SYMBOLS).roll(1, 1)
    markov, new = (_chains(key.fold(name), chain, LENGTH) for name in ("rows", "new"))
    truth = _true_nats(
        chain, new[ROWS // 2 :]
    )  # of the rows that judge, so that their luck cancels
    plain, fresh = (
        torch.randint(SYMBOLS, (ROWS, LENGTH), generator=key.fold(name).torch())
        for name in ("plain", "fresh")
    )
    nats: dict[str, float] = {}
    nets: dict[str, nn.Module] = {}
    for name, rows, other in (("chain", markov, new), ("independent", plain, fresh),
                              ("chain backwards", markov.flip(1), new.flip(1))):  # fmt: skip
        for how in ("alone", "past"):
            net = nets[f"{name}, {how}"] = (
                Alone(SYMBOLS, LENGTH) if how == "alone"
                else Shared(SYMBOLS, 3, 0, key.fold("net").torch())
            )  # fmt: skip
            nats[f"{name}, {how}"] = _learned(
                net, SYMBOLS, rows, other[: ROWS // 2], other[ROWS // 2 :], key, 10
            )
    twice = _chains(key.fold("long"), chain, 2 * LENGTH)
    longer = _nats(SequenceEnergy(nets["chain, past"], SYMBOLS, 2 * LENGTH), twice)
    expected = _true_nats(chain, twice)

    pixels = torch.from_numpy((load_digits().data > 7).astype("int64"))
    pixels = pixels[torch.randperm(len(pixels), generator=key.fold("digits").torch())]
    order = torch.randperm(SIDE**2, generator=key.fold("order").torch())
    digits: dict[str, float] = {}
    epochs = 10 if quick else 40
    tried: list[tuple[str, nn.Module, Tensor]] = [
        ("each pixel alone", Alone(2, SIDE**2), pixels),
        ("64 networks", Separate(2, SIDE**2, key.fold("net").torch()), pixels),
        ("one network", Shared(2, 3 * SIDE + 1, SIDE, key.fold("net").torch()), pixels),
        ("one network, random order", Shared(2, 3 * SIDE + 1, SIDE, key.fold("net").torch()),
         pixels[:, order]),
    ]  # fmt: skip
    for name, body, own in tried:
        part, watched = own[:LEARNED], own[LEARNED : LEARNED + CHOSEN]
        found = _learned(body, 2, part, watched, own[LEARNED + CHOSEN :], key, epochs, 10)
        digits[name] = SIDE**2 * found
    sizes = {
        side: [
            sum(p.numel() for p in net.parameters())
            for net in (
                Shared(2, 3 * SIDE + 1, side, key.torch()),
                Separate(2, side**2, key.torch()),
            )
        ]
        for side in (4, SIDE)
    }
    gain = nats["chain, alone"] - nats["chain, past"]
    free, held = nats["independent, past"], nats["independent, alone"]
    back, forth = nats["chain backwards, past"], nats["chain, past"]
    one, many = digits["one network"], digits["64 networks"]
    claims = [
        Claim.close("chain: nats per symbol over the truth", forth / truth, 1, tol=0.02),
        Claim.at_least("chain: nats gained over the possible", gain / (nats["chain, alone"] - truth), 0.95),
        Claim.close("independent: past over alone", free / held, 1, tol=0.01),
        Claim.close("chain backwards over forwards", back / forth, 1, tol=0.02),
        Claim.close("chains of twice the length over the truth", longer / expected, 1, tol=0.02),
        Claim.below("digits: one network over 64", one / many, 1.0),
        Claim.below("digits: 64 networks over each pixel alone", many / digits["each pixel alone"], 0.9),
        Claim.below("digits: row by row over a random order", one / digits["one network, random order"], 0.97),
        Claim.equal("weights of one network for 16 and 64 pixels", sizes[4][0], sizes[SIDE][0]),
        Claim.above("the same of a network for each pixel, ratio", sizes[SIDE][1] / sizes[4][1], 4),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for ax, values, line in ((left, nats, truth), (right, digits, None)):
            ax.barh(list(values)[::-1], list(values.values())[::-1], color=COLOURS[0])
            if line is not None:
                ax.axvline(line, color=COLOURS[1], ls=":")
        left.set(title="chains", xlabel="nats per symbol")
        right.set(title="digits", xlabel="nats per picture")

    numbers = {"chains": nats, "digits": digits, "truth": truth, "weights": sizes[SIDE]}
    return Result(claims, numbers, draw, size=(9.0, 3.2))


def _chains(key: Key, chain: Tensor, length: int) -> Tensor:
    """Rows of a chain that begins anywhere; each symbol by its place on the last one's line."""
    u = torch.rand(ROWS, length, generator=key.torch())
    rows = [(u[:, 0] * len(chain)).long()]
    for t in range(1, length):
        line = chain[rows[-1]].cumsum(1)
        rows.append((u[:, t, None] > line[:, :-1]).sum(1))
    return torch.stack(rows, 1)


def _true_nats(chain: Tensor, rows: Tensor) -> float:
    """Nats per symbol of rows by the chain that made them."""
    steps = chain[rows[:, :-1], rows[:, 1:]].log().double().sum(1)
    return (math.log(len(chain)) - float(steps.mean())) / rows.shape[1]


def _learned(
    net: nn.Module,
    k: int,
    rows: Tensor,
    watched: Tensor,
    new: Tensor,
    key: Key,
    epochs: int,
    size: int = 50,
) -> float:
    """Nats per symbol of new rows, at the epoch that is best for the watched ones."""
    energy = SequenceEnergy(net, k, rows.shape[1])
    watch = Watch(lambda e: torch.tensor([_nats(e, watched), _nats(e, new)]))
    solver = Stochastic("adam", 1e-2, size, epochs, tol=None)
    rule = NextToken(float(rows.shape[1]))
    fit(energy, {"y": rows}, rule, solver, callbacks=[watch], random_state=key.fold("steps"))
    best = watch.seen[:, 0].argmin()
    return float(watch.seen[best, 1])


@torch.no_grad()
def _nats(energy: Energy, rows: Tensor) -> float:
    return float(energy(y=rows).double().mean()) / rows.shape[1]
