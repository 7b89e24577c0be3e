r"""Without a hidden non-linearity no boundary curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.data.builtin.generators import xor
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkClassEnergy, NetworkEnergy
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.experiments.neural.panels import network_of
from groundstate.experiments.tools import plane, scatter
from groundstate.learn import learn_population
from groundstate.learn.losses import bce
from groundstate.math.stats import proportion_interval
from groundstate.nn import ACTIVATIONS, MLP, DiscLift, linear_regions

RINGS, STARTS, STEPS, RATE, GOOD = 32, 16, 600, 0.05, 0.98
HIDDEN = {"identity 3": "identity", "tanh 3": "tanh", "ReLU 3": "relu"}
Rows = dict[str, Tensor]


def circles(key: Key, n: int) -> Rows:
    """A ring around a small one, as wide as their noise of 0.08."""
    rng = key.numpy()
    y = np.arange(n) % 2
    a = rng.uniform(0, 2 * np.pi, n)
    x = np.where(y == 1, 0.4, 1.0)[:, None] * np.stack([np.cos(a), np.sin(a)], 1)
    x = x + 0.08 * rng.standard_normal((n, 2))
    return {"x": torch.from_numpy(x).float(), "y": torch.from_numpy(y)}


def corners(key: Key, n: int) -> Rows:
    x, y = xor(key.numpy(), n, 0.25)
    return {"x": torch.from_numpy(x).float(), "y": torch.from_numpy(y)}


def learn_hidden(key: Key, rows: Rows, kind: str, starts: int) -> list[nn.Module]:
    """Nets 2-3-1 from so many starts."""
    found = learn_population(
        lambda generator: NetworkClassEnergy(2, 2, MLP(2, (3,), 1, kind, generator=generator)),
        starts, rows, lr=RATE, epochs=STEPS, batch_size=None, seed=key,
    )  # fmt: skip
    return [network_of(member.energy) for member in found]


def learn_output(key: Key, rows: Rows, kind: str, starts: int) -> list[nn.Module]:
    """Single units with an activation on top; ½ is where the class changes."""
    data = {"x": rows["x"], "y": rows["y"].float()[:, None]}
    found = learn_population(
        lambda generator: NetworkEnergy(2, LocationHead("squared_error"), nn.Sequential(
            *MLP(2, (), 1, out_activation=kind, generator=generator).layers)),
        starts, data, lr=RATE, epochs=STEPS, batch_size=None, seed=key,
    )  # fmt: skip
    return [network_of(member.energy) for member in found]


@torch.no_grad()
def scores(nets: list[nn.Module], rows: Rows, cut: float = 0.0) -> list[float]:
    right = [((net(rows["x"])[:, 0] > cut).long() == rows["y"]).double().mean() for net in nets]
    return torch.stack(right).tolist()


def sides(net: nn.Module) -> int:
    """Sides of the boundary f = 0: linear regions of [−3, 3]² in which f changes its sign."""
    found = linear_regions(net, (-3.0, 3.0))
    assert found.polygons is not None and found.slopes is not None and found.offsets is not None
    signs = [p @ A[0] + c[0] > 0 for p, A, c in zip(found.polygons, found.slopes, found.offsets)]
    return sum(bool(s.any() and not s.all()) for s in signs)


def boundary(ax: Axes, net: nn.Module, rows: Rows, cut: float, title: str) -> None:
    a, b, points = plane(rows["x"], margin=0.3)
    with torch.no_grad():
        score = net(points)[:, 0].reshape(len(b), len(a)) - cut
    ax.contourf(a, b, score, levels=[-1e9, 0, 1e9], colors=COLOURS[:2], alpha=0.25)
    scatter(ax, rows["x"], rows["y"], rows=200)
    ax.set(title=title, aspect="equal", xticks=[], yticks=[])


@experiment(
    "NEU-X-activation",
    theme="neural",
    title="No hidden non-linearity, no curved boundary",
    slow=True,
)
def activation(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Layers without a non-linearity are one affine map, :math:`W_2(W_1x) = (W_2W_1)x`, whose boundary
    is a line: no better than chance on a ring, at most ¾ on XOR. Three tanh units close a smooth curve
    from nearly every start, three ReLU units a polygon of at most six corners from about every second
    one; the others leave the ring open on a side. A unit with a bump
    :math:`e^{-z^2}` on top solves XOR alone, since it is not monotone. Steps would do too, but have the
    gradient 0 everywhere.

    400 rows to learn from, 2,000 to judge; nets 2-3-1, from 32 starts on the ring and 16 on XOR, 600
    full steps of Adam. The shares of starts above 0.98 are compared by their 95 % intervals (Wilson);
    a median would fall on either side of the gap. Quick runs have 8 starts on XOR.
    """
    key, starts = Key.of(seed), STARTS // 2 if quick else STARTS
    ring, ring_test = circles(key.fold("ring"), 400), circles(key.fold("ring test"), 2000)
    four, four_test = corners(key.fold("xor"), 400), corners(key.fold("xor test"), 2000)
    nets = {
        name: learn_hidden(key.fold("nets", name), ring, k, RINGS) for name, k in HIDDEN.items()
    }
    on_ring = {name: scores(found, ring_test) for name, found in nets.items()}
    crossed = {
        name: learn_hidden(key.fold("xor", name), four, k, starts) for name, k in HIDDEN.items()
    }
    on_xor = {name: scores(found, four_test) for name, found in crossed.items()}
    tops = {k: learn_output(key.fold("top", k), four, k, starts) for k in ("sigmoid", "bump")}
    for kind, found in tops.items():
        on_xor[f"{kind} output"] = scores(found, four_test, 0.5)
    round_ones = [net for net, s in zip(nets["ReLU 3"], on_ring["ReLU 3"]) if s > GOOD]
    polygon = [sides(net) for net in round_ones]

    stepped = MLP(2, (3,), 1, "step", generator=key.fold("step").torch())
    bce(stepped(ring["x"])[:, 0], ring["y"].float()).backward()
    hidden = next(m for m in stepped.modules() if isinstance(m, nn.Linear)).weight
    slope = 0.0 if hidden.grad is None else float(hidden.grad.abs().max())
    middle = {name: float(np.median(s)) for name, s in on_ring.items()}
    closed = {
        name: proportion_interval(sum(v > GOOD for v in s), len(s)) for name, s in on_ring.items()
    }
    claims = [
        Claim.close("rings, identity: best", max(on_ring["identity 3"]), 0.5, tol=0.05),
        Claim.above("rings, tanh: median", middle["tanh 3"], GOOD),
        Claim.above("rings, ReLU: best", max(on_ring["ReLU 3"]), GOOD),
        Claim.below("rings: largest share of ReLU starts that close it, against tanh's smallest",
                    closed["ReLU 3"].high, closed["tanh 3"].low),
        Claim.at_most("rings, ReLU: most corners of a closed boundary", max(polygon, default=99), 6),
        Claim.at_most("XOR, identity: best", max(on_xor["identity 3"]), 0.75),
        Claim.at_most("XOR, one sigmoid unit: best", max(on_xor["sigmoid output"]), 0.75),
        *[Claim.above(f"XOR, {name}: best", max(on_xor[name]), GOOD)
          for name in ("tanh 3", "ReLU 3", "bump output")],
        Claim.equal("step: largest gradient in the hidden weights", slope, 0.0),
    ]  # fmt: skip
    shares = {name: [share.low, share.estimate, share.high] for name, share in closed.items()}
    numbers = {"rings": on_ring, "closed": shares, "XOR": on_xor, "corners": polygon}

    def draw(figure: Figure) -> None:
        bands: Any = figure.subfigures(2, 1, height_ratios=(1.2, 1))
        upper, lower = bands
        axes = upper.subplots(1, 5)
        for ax, (name, found) in zip(axes, nets.items()):
            best = int(np.argmax(on_ring[name]))
            boundary(ax, found[best], ring, 0.0, f"{name}: {on_ring[name][best]:.2f}")
        best = int(np.argmax(on_xor["bump output"]))
        boundary(axes[3], tops["bump"][best], four, 0.5, "bump output on XOR")
        lifted = DiscLift()(ring["x"])
        axes[4].scatter(ring["x"].norm(dim=1), lifted[:, -1], s=6,
                        c=[COLOURS[int(k)] for k in ring["y"]])  # fmt: skip
        axes[4].set(title="lift max(0, 1 − r²)", xlabel="r")
        z = torch.linspace(-3, 3, 301, requires_grad=True)
        shown = [k for k in ACTIVATIONS if k not in ("softmax", "log_softmax", "maxout")]
        for ax, kind in zip(lower.subplots(2, -(-len(shown) // 2)).flat, shown):
            a = ACTIVATIONS[kind]()(z)
            d = torch.autograd.grad(a.sum(), z)[0] if a.requires_grad else torch.zeros_like(z)
            ax.plot(z.detach(), a.detach(), color=COLOURS[0], linewidth=1.2)
            ax.plot(z.detach(), d, color=COLOURS[1], linewidth=0.9)
            ax.set_title(kind, fontsize=8)
            ax.tick_params(labelsize=6)

    return Result(claims, numbers, draw, size=(11.5, 5.4))
