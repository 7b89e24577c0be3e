r"""A related task is a good start where labels are few; an unrelated one can be a bad one."""

from __future__ import annotations

from typing import cast

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.energy.networks.network import NetworkClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.panels import network_of
from groundstate.learn import learn, learn_population
from groundstate.math.stats import Interval, mean_interval
from groundstate.nn import MLP
from groundstate.nn.blocks.transfer import Freeze
from groundstate.nn.blocks.transfer import transfer as carry

LABELS = (20, 50, 100, 200)
HIDDEN, SOURCE, STEPS, SPLITS, DRAWS = (64, 32), 900, 200, 3, 8
WAYS = ("scratch", "fine-tuned", "frozen body")
Rows = tuple[Tensor, Tensor]


def teach(
    net: nn.Module, x: Tensor, y: Tensor, k: int, key: Key, epochs: int, size: int | None
) -> nn.Module:
    with threads(1):
        learn(NetworkClassEnergy(x.shape[1], k, net), {"x": x, "y": y}, lr=3e-3, epochs=epochs,
              batch_size=size, seed=key)  # fmt: skip
    return net


def source_of(x: Tensor, y: Tensor, k: int, key: Key) -> nn.Module:
    """A net that knows the source's task."""
    return teach(
        MLP(64, HIDDEN, k, generator=key.fold("net").torch()), x, y, k, key.fold("order"), 60, 100
    )


@torch.no_grad()
def right(net: nn.Module, x: Tensor, y: Tensor) -> float:
    return float((net.eval()(x).argmax(1) == y).double().mean())


def compare(
    sources: dict[str, nn.Module], rows: Rows, shown: Rows, k: int, key: Key, tied: bool
) -> dict[str, dict[str, float]]:
    """Accuracy on unseen rows from a random start, and by source with its body learning or not.

    All that start differently and learn from the same rows learn as one population.
    """

    def carried(source: nn.Module, freeze: Freeze) -> nn.Module:
        return carry(source, k, freeze, generator=key.fold("head").torch()).net

    starts = {"scratch": MLP(64, HIDDEN, k, generator=key.fold("net").torch())}
    starts |= {name: cast("MLP", carried(source, "none")) for name, source in sources.items()}
    made = learn_population(
        lambda generator, net: NetworkClassEnergy(64, k, net),
        [{"net": net, "seed": key.fold("fit")} for net in starts.values()],
        dict(zip("xy", rows)), lr=3e-3, epochs=STEPS, batch_size=None,
    )  # fmt: skip
    nets = {name: network_of(member.energy) for name, member in zip(starts, made)}
    alone, found = right(nets["scratch"], *shown), {}
    for name, source in sources.items():
        found[name] = {"scratch": alone, "fine-tuned": right(nets[name], *shown)}
        if (
            tied
        ):  # a body that does not learn says the same in every step: its head learns from that
            *frozen, head = cast("MLP", carried(source, "body")).layers
            body = nn.Sequential(*frozen)
            with torch.no_grad():
                features, features_of_shown = body(rows[0]), body(shown[0])
            net = teach(head, features, rows[1], k, key.fold("fit"), STEPS, None)
            found[name]["frozen body"] = right(net, features_of_shown, shown[1])
    return found


def mean(cells: list[dict[str, float]], way: str) -> float:
    results = [cell[way] for cell in cells if way in cell]
    return sum(results) / len(results)


def gains(cells: list[dict[str, float]]) -> Interval:
    """Mean gain of fine-tuning over a random start and its 95 % interval."""
    return mean_interval([cell["fine-tuned"] - cell["scratch"] for cell in cells])


def frozen_gain(cells: list[dict[str, float]]) -> float:
    """Mean gain of a frozen body over a random start, on the draws that have both."""
    both = [cell for cell in cells if "frozen body" in cell]
    return mean(both, "frozen body") - mean(both, "scratch")


@experiment(
    "NEU-X-transfer", theme="neural", title="A related source helps at few labels", slow=True
)
def transfer(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Fine-tuning starts at :math:`\theta_0 = \hat\theta_{source}` instead of at random and keeps
    descending on the new labels. Where source and target share what matters, few labels are enough,
    and the gain shrinks as they grow in number; where they do not, the start can be worse than a
    random one. A frozen body, only the head learning, is tied to what the source needed.

    Digits of 8 × 8, nets 64-64-32-k, 900 rows for the source, targets from 400 others, 497 to judge,
    200 full steps of Adam. The ten digits → "at least 5" with 20 to 200 labels; 0–4 → 5–9 with two
    labels per class; ten digits one pixel to the right → "at least 5". A single draw of 20 labels
    gains 0.04 ± 0.045, so the means are over three splits with sources of their own and eight draws
    of labels in each (two where labels are more), and the claims are about their 95 % intervals. The
    body is frozen in one draw of each (three for 0–4 → 5–9). Quick runs have one draw of more labels.
    """
    key = Key.of(seed)
    pixels, digit = load_digits(return_X_y=True)
    cells: dict[tuple[str, int], list[dict[str, float]]] = {}
    found: list[dict[str, float]] = []
    for split in range(SPLITS):
        own = key.fold("split", split)
        order = torch.from_numpy(own.numpy().permutation(len(digit)))
        x = (torch.from_numpy(pixels).float() / 16)[order]
        y = torch.from_numpy(digit).long()[order]
        high = (y >= 5).long()
        shifted = x.view(-1, 8, 8).roll(1, 2).reshape(-1, 64)
        test = torch.arange(SOURCE + 400, len(y))
        small, other = y[:SOURCE] < 5, test[y[test] >= 5]
        sources = {
            "ten digits": source_of(x[:SOURCE], y[:SOURCE], 10, own.fold("ten")),
            "one pixel to the right": source_of(
                shifted[:SOURCE], y[:SOURCE], 10, own.fold("moved")
            ),
        }
        five = {"0-4": source_of(x[:SOURCE][small], y[:SOURCE][small], 5, own.fold("five"))}
        for n in LABELS:
            for i in range(DRAWS if n == LABELS[0] else 1 if quick else 2):
                draw_key = own.fold("rows", n, i)
                pick = SOURCE + torch.from_numpy(draw_key.numpy().permutation(400)[:n])
                cell = compare(
                    sources, (x[pick], high[pick]), (x[test], high[test]), 2, draw_key, i < 1
                )
                for name, row in cell.items():
                    cells.setdefault((name, n), []).append(row)
        for i in range(DRAWS):
            draw_key = own.fold("pairs", i)
            order = SOURCE + torch.from_numpy(draw_key.numpy().permutation(400))
            pick = torch.cat([order[y[order] == c][:2] for c in range(5, 10)])
            cell = compare(
                five, (x[pick], y[pick] - 5), (x[other], y[other] - 5), 5, draw_key, i < 3
            )
            found.append(cell["0-4"])
    table = {
        name: {way: [mean(cells[name, n], way) for n in LABELS] for way in WAYS}
        for name in ("ten digits", "one pixel to the right")
    }
    unrelated = {way: mean(found, way) for way in WAYS}
    gain, harm = [gains(cells["ten digits", n]) for n in LABELS], gains(found)
    tied = sum(frozen_gain(rows) < 0 for rows in (*cells.values(), found))
    claims = [
        Claim.above("ten digits: gain of fine-tuning with 20 labels, lower end", gain[0].low, 0.0),
        Claim.below("ten digits: gain with 200 labels, against 20", gain[-1].estimate,
                    gain[0].estimate),
        Claim.below("0–4 → 5–9: gain of fine-tuning with two labels each, upper end", harm.high, 0.0),
        Claim.above("cells of nine in which the frozen body is below scratch", tied, 4),
    ]  # fmt: skip
    numbers = {
        "labels": list(LABELS), **table, "0-4 to 5-9": unrelated,
        "gain": [[g.low, g.estimate, g.high] for g in gain],
        "gain of 0-4 to 5-9": [harm.low, harm.estimate, harm.high],
    }  # fmt: skip

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
