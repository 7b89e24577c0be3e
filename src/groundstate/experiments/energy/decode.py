r"""Between greedy search and listing everything: a beam."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import ChainRuleEnergy
from groundstate.energy.sequences.chain_rule import Tables
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.infer import Beam, Enumerate, Minimum, minimise

K, L = 5, 6
WIDTHS = (1, 2, 4, 8, 16)


class Counted(Tables):
    """Tables that note which beginnings a search extends, and how many whole strings it looks at."""

    def __init__(self, k: int, length: int) -> None:
        super().__init__(k, length)
        self.reset()

    def reset(self) -> None:
        self.extended: list[Tensor] = []
        self.strings = 0

    def advance(self, memory: Tensor, symbols: Tensor | None) -> tuple[Tensor, Tensor]:
        logp, after = super().advance(memory, symbols)
        self.extended.append(after[:, 0])
        return logp, after

    def forward(self, symbols: Tensor) -> Tensor:
        self.strings += len(symbols)
        return super().forward(symbols)


@experiment(
    "ENE-X-decode", theme="energy", title="Beam closes greedy's gap to exhaustive", slow=True
)
def decode(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The best string of :math:`e(x) = -\sum_i\log p(x_i\mid x_{<i})`, K = 5 symbols, L = 6 long,
    with random step energies.

    Listing looks at all :math:`K^L = 15625` strings. Greedy search extends one beginning at a time
    and is caught by a cheap first step; a beam of width w keeps the w best beginnings, looks at
    about w K L extensions, and its mean gap to the minimum falls with w. Only
    :math:`w = K^{L-1}` promises the minimum: a single search may get worse with a wider beam.
    120 energies take two seconds, and fewer do not tell the widths apart; quick runs are the same.
    """
    key = Key.of(seed)
    n = 120
    widths = (*WIDTHS, K ** (L - 1))
    gaps = torch.zeros(n, len(widths), dtype=torch.float64)
    first = torch.zeros(n, len(WIDTHS), dtype=torch.float64)  # the variant without re-ranking
    strings, looked, exact = 0, [0] * len(widths), [False] * len(widths)
    for i in range(n):
        energy, net = _random(key.fold("steps", i))
        best = minimise(energy, "x", method=Enumerate())
        strings = net.strings
        for j, width in enumerate(widths):
            if width > WIDTHS[-1] and i >= 10:  # exhaustive: gap 0 by construction, shown ten times
                continue
            found = _search(energy, net, Beam(width))
            gaps[i, j] = float(found.energy - best.energy)
            looked[j] = K * sum(len(codes) for codes in net.extended)
            exact[j] = found.exact
        for j, width in enumerate(WIDTHS[:3]):
            found = _search(energy, net, Beam(width, rerank=False))
            first[i, j] = float(found.energy - best.energy)
    mean = gaps.mean(0)
    steps = mean[: len(WIDTHS)]
    wider = gaps[:, 1 : len(WIDTHS)] - gaps[:, : len(WIDTHS) - 1]

    claims = [
        Claim.equal("strings that listing looks at", strings, K**L),
        Claim.equal("extensions that greedy search looks at", looked[0], K * L),
        Claim.above("greedy search: mean gap to the minimum", float(mean[0]), 0.1),
        Claim.above("smallest fall of the mean gap from one width to the next",
                    float(-steps.diff().max()), 0.0),
        Claim.below("width 16: mean gap as a share of greedy's", float(mean[-2] / mean[0]), 0.05),
        Claim.close(f"width K^(L-1) = {widths[-1]}: largest gap", float(gaps[:, -1].abs().max()), 0,
                    tol=1e-9),
        Claim.equal("which widths say they are exact",
                    [w for w, is_exact in zip(widths, exact) if is_exact], [widths[-1]]),
        Claim.at_least("smallest gap: no search finds less than the minimum",
                       float(gaps.min()), -1e-9),
    ]  # fmt: skip
    numbers = {
        "widths": list(widths), "mean gap": mean.tolist(), "looked at": looked,
        "without re-ranking": first.mean(0)[:3].tolist(), "wider was worse": int((wider > 1e-9).sum()),
    }  # fmt: skip
    energy, net = _random(_caught(key, gaps))
    best_value = minimise(energy, "x", method=Enumerate())["x"][0].tolist()
    greedy_value = minimise(energy, "x", method=Beam(1))["x"][0].tolist()
    _search(energy, net, Beam(4))
    kept = [codes.tolist() for codes in net.extended]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        _tree(left, kept, best_value, greedy_value)
        right.plot(looked[:-1], steps.numpy(), "o-", color=COLOURS[0], label="beam")
        for width, x, y in zip(WIDTHS, looked, steps.tolist()):
            right.annotate(f" {width}", (x, y), color=COLOURS[0])
        right.axhline(0, color=COLOURS[5], linewidth=0.8, label=f"listing, {strings} strings")
        right.set(xscale="log", xlabel="extensions looked at", title="mean gap to the minimum")
        right.set_xticks(looked[:-1], [str(count) for count in looked[:-1]])
        right.minorticks_off()
        right.legend()

    return Result(claims, numbers, draw, size=(10.0, 4.0))


def _random(key: Key) -> tuple[ChainRuleEnergy, Counted]:
    net = Counted(K, L).double()
    generator = key.torch()
    for logits in net.logits:
        logits.data = torch.randn(logits.shape, generator=generator, dtype=torch.float64)
    return ChainRuleEnergy(K, L, net), net


def _search(energy: ChainRuleEnergy, net: Counted, method: Beam) -> Minimum:
    net.reset()
    return minimise(energy, "x", method=method)


def _caught(key: Key, gaps: Tensor) -> Key:
    """The first instance in which greedy search misses the minimum and a beam of four does not."""
    hit = (gaps[:, 0] > 0.3) & (gaps[:, 2] < 1e-9)
    return key.fold("steps", int(hit.double().argmax()))


def _tree(
    ax: Axes, kept: Sequence[Sequence[int]], best: Sequence[int], greedy: Sequence[int]
) -> None:
    """The beginnings that a beam extended; height follows the symbols, the first counting most."""

    def place(code: int, depth: int) -> float:
        """Children around their parent, each generation on a scale of its own."""
        return sum(0.45**i * (code // K ** (depth - i) % K - K // 2) for i in range(1, depth + 1))

    for depth in range(1, len(kept)):
        for code in kept[depth]:
            parent = place(code // K, depth - 1)
            ax.plot(
                [depth - 1, depth], [parent, place(code, depth)], color=COLOURS[5], linewidth=0.8
            )
    for name, value, colour in (("greedy", greedy, COLOURS[1]), ("the minimum", best, COLOURS[0])):
        codes, heights = 0, [0.0]
        for depth, symbol in enumerate(value, 1):
            codes = codes * K + symbol
            heights.append(place(codes, depth))
        ax.plot(range(len(heights)), heights, "o-", color=colour, markersize=4, label=name)
    ax.plot([], [], color=COLOURS[5], label="kept by a beam of 4")
    ax.set(xlabel="symbols decided", yticks=[], title="the strings a beam follows")
    ax.legend()
