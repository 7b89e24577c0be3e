r"""A related task is a good start where labels are few; an unrelated one can be a bad one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.energy.network import NetworkClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.learn import learn
from groundstate.nn import MLP
from groundstate.nn.transfer import Freeze
from groundstate.nn.transfer import transfer as carry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = (20, 50, 100, 200)
HIDDEN, SOURCE, STEPS = (64, 32), 900, 200
WAYS = ("scratch", "fine-tuned", "frozen body")


def teach(
    net: nn.Module, x: Tensor, y: Tensor, k: int, key: Key, epochs: int, size: int | None
) -> nn.Module:
    with threads(1):
        learn(NetworkClassEnergy(x.shape[1], k, net), {"x": x, "y": y}, lr=3e-3, epochs=epochs,
              batch_size=size, seed=key)  # fmt: skip
    return net


@torch.no_grad()
def right(net: nn.Module, x: Tensor, y: Tensor) -> float:
    return float((net.eval()(x).argmax(1) == y).double().mean())


def compare(
    source: nn.Module, x: Tensor, y: Tensor, shown: Tensor, truth: Tensor, k: int, key: Key
) -> dict[str, float]:
    """Accuracy on unseen rows with all of the source's body learning on, and with none of it."""

    def carried(freeze: Freeze) -> nn.Module:
        return carry(source, k, freeze, generator=key.fold("head").torch()).net

    # a body that does not learn says the same in every step: its head learns from what it says
    *frozen, head = cast("MLP", carried("body")).layers
    body = nn.Sequential(*frozen)
    with torch.no_grad():
        said, said_of_shown = body(x), body(shown)
    ways = {
        "fine-tuned": (carried("none"), x, shown),
        "frozen body": (head, said, said_of_shown),
    }
    return {
        name: right(teach(net, rows, y, k, key.fold("fit"), STEPS, None), new, truth)
        for name, (net, rows, new) in ways.items()
    }


def mean(cells: list[dict[str, float]], way: str) -> float:
    return sum(cell[way] for cell in cells) / len(cells)


def scratch(
    x: Tensor, y: Tensor, shown: Tensor, truth: Tensor, k: int, key: Key
) -> dict[str, float]:
    """The same from a random start, which no source changes."""
    net = MLP(64, HIDDEN, k, generator=key.fold("net").torch())
    return {"scratch": right(teach(net, x, y, k, key.fold("fit"), STEPS, None), shown, truth)}


@experiment(
    "NEU-X-transfer", theme="neural", title="A related source helps at few labels", slow=True
)
def transfer(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Fine-tuning starts at :math:`\theta_0 = \hat\theta_{source}` instead of at random and keeps
    descending on the new labels. Where source and target share what matters, few labels are enough,
    and the gain shrinks as they grow in number; where they do not, the start can be worse than a
    random one. A frozen body, only the head learning, is tied to what the source needed.

    Digits of 8 × 8, nets 64-64-32-k, 900 rows for the source, targets from 400 others, 497 to judge,
    200 full steps of Adam, mean over four draws. The ten digits → "at least 5" with 20 to 200 labels;
    0–4 → 5–9 with two labels per class, eight draws; ten digits one pixel to the right → "at least 5".
    Quick runs have half as many draws, but all four of 20 labels.
    """
    key = Key.of(seed)
    pixels, digit = load_digits(return_X_y=True)
    order = torch.from_numpy(key.fold("split").numpy().permutation(len(digit)))
    x = (torch.from_numpy(pixels).float() / 16)[order]
    y = torch.from_numpy(digit).long()[order]
    high = (y >= 5).long()
    shifted = x.view(-1, 8, 8).roll(1, 2).reshape(-1, 64)
    test = torch.arange(SOURCE + 400, len(y))

    def source(rows: Tensor, labels: Tensor, k: int, name: str) -> nn.Module:
        net = MLP(64, HIDDEN, k, generator=key.fold("source", name).torch())
        return teach(net, rows, labels, k, key.fold("source order", name), 60, 100)

    sources = {
        "ten digits": source(x[:SOURCE], y[:SOURCE], 10, "ten"),
        "one pixel to the right": source(shifted[:SOURCE], y[:SOURCE], 10, "moved"),
    }
    small = y[:SOURCE] < 5
    five = source(x[:SOURCE][small], y[:SOURCE][small], 5, "five")
    draws = [(n, i) for n in LABELS for i in range(2 if quick and n > LABELS[0] else 4)]
    cells: dict[tuple[str, int], list[dict[str, float]]] = {}
    for n, i in draws:
        own = key.fold("rows", n, i)
        pick = SOURCE + torch.from_numpy(own.numpy().permutation(400)[:n])
        rows = (x[pick], high[pick], x[test], high[test], 2, own)
        alone = scratch(*rows)
        for name, net in sources.items():
            cells.setdefault((name, n), []).append({**alone, **compare(net, *rows)})
    table = {
        name: {way: [mean(cells[name, n], way) for n in LABELS] for way in WAYS} for name in sources
    }
    other, found = test[y[test] >= 5], []
    for i in range(4 if quick else 8):
        own = key.fold("pairs", i)
        order = SOURCE + torch.from_numpy(own.numpy().permutation(400))
        pick = torch.cat([order[y[order] == c][:2] for c in range(5, 10)])
        rows = (x[pick], y[pick] - 5, x[other], y[other] - 5, 5, own)
        found.append({**scratch(*rows), **compare(five, *rows)})
    unrelated = {way: mean(found, way) for way in WAYS}
    gain = [
        a - b for a, b in zip(table["ten digits"]["fine-tuned"], table["ten digits"]["scratch"])
    ]
    tied = sum(
        a < b for rows in table.values() for a, b in zip(rows["frozen body"], rows["scratch"])
    ) + (unrelated["frozen body"] < unrelated["scratch"])
    claims = [
        Claim.above("ten digits: gain of fine-tuning with 20 labels", gain[0], 0.03),
        Claim.below("ten digits: gain with 200 labels, against 20", gain[-1], gain[0]),
        Claim.below("0–4 → 5–9: fine-tuned, against scratch", unrelated["fine-tuned"],
                    unrelated["scratch"]),
        Claim.above("cells of nine in which the frozen body is below scratch", tied, 4),
    ]  # fmt: skip
    numbers = {"labels": list(LABELS), **table, "0-4 to 5-9": unrelated, "gain": gain}

    def draw(figure: Figure) -> None:
        *axes, last = figure.subplots(1, 3, width_ratios=(1.2, 1.2, 1))
        for ax, (name, rows) in zip(axes, table.items()):
            for (way, values), colour in zip(rows.items(), COLOURS):
                ax.semilogx(LABELS, values, "o-", color=colour, label=way)
            ax.set(title=f"source: {name}", xlabel="labels", ylabel="accuracy", ylim=(0.6, 1))
            ax.set_xticks(LABELS, [str(n) for n in LABELS])
            ax.minorticks_off()
            ax.legend()
        last.bar(range(3), list(unrelated.values()), color=COLOURS[:3])
        last.set_xticks(range(3), WAYS)
        last.set(title="0–4 → 5–9, two per class", ylim=(0, 1))

    return Result(claims, numbers, draw, size=(11.0, 3.4))
