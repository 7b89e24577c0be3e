r"""Layer norm of two inputs keeps one bit."""

from __future__ import annotations

import torch
from torch import nn

from groundstate.compute.random import Key
from groundstate.energy import NetClassEnergy
from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import share_right
from groundstate.experiments.tools import scatter
from groundstate.learn import NLL, Stochastic, fit
from groundstate.nn import MLP, norm

FIRST = {"none": None, "batch norm": "batch", "layer norm": "layer"}


@experiment("NEU-X-ln-collapse", theme="neural", title="Layer norm erases the norm of two inputs")
def ln_collapse(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Layer norm maps :math:`(x_1, x_2)` to :math:`(x - \bar x)/s = \pm(1, -1)`: whether
    :math:`x_1 > x_2` and nothing else. Classes that differ in :math:`\|x\|` are then out of reach for
    any network behind it, and the best answer is the larger class. Batch norm uses the statistics
    of a coordinate over rows and is a harmless change of scale.

    2,000 standard normal rows, class 1 where :math:`\|x\| \ge 1`, a norm layer and then 32 units.
    """
    key = Key.of(seed)
    x = torch.randn(2000, 2, generator=key.fold("rows").torch())
    data = {"x": x, "y": (x.norm(dim=1) >= 1).long()}
    rate = float(data["y"].double().mean())
    right, after = {}, {}
    for name, kind in FIRST.items():
        first = nn.Identity() if kind is None else norm(kind, 2)
        net = nn.Sequential(first, MLP(2, (32,), 2, generator=key.fold("net").torch()))
        energy = NetClassEnergy(2, 2, net)
        solver = Stochastic(lr=0.02, batch_size=200, max_epochs=20 if quick else 40, tol=None)
        fit(energy, data, NLL(), solver, random_state=key.fold("order"))
        right[name] = share_right(energy, data)
        if kind is not None:
            after[name] = norm(kind, 2)(
                x
            ).detach()  # as it starts, before scale and shift are learned
    spread = float((after["layer norm"].abs() - 1).abs().median())
    claims = [
        Claim.close("layer norm: accuracy less the larger class",
                    right["layer norm"] - max(rate, 1 - rate), 0, tol=0.01),
        Claim.at_most("layer norm: median distance of |output| from 1", spread, 0.001),
        Claim.above("batch norm: accuracy", right["batch norm"], 0.97),
        Claim.above("no norm: accuracy", right["none"], 0.97),
    ]  # fmt: skip
    numbers = {"accuracy": right, "larger class": max(rate, 1 - rate), "distance": spread}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2)
        for ax, name in zip(axes, ("batch norm", "layer norm")):
            scatter(ax, after[name], data["y"], rows=600)
            ax.set(title=f"after {name}: {right[name]:.1%} right", aspect="equal",
                   xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))  # fmt: skip

    return Result(claims, numbers, draw, size=(7.0, 3.5))
