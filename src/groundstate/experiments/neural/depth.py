r"""Plain nets stop training with depth; residual nets with batch norm do not."""

from __future__ import annotations

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.data.builtin.generators import spirals
from groundstate.energy import NetClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import Rows
from groundstate.learn import NLL, learn_population
from groundstate.nn import MLP

DEPTHS = (2, 8, 20, 40)
WIDTH, STEPS, ROWS = 32, 200, 200
FORMS = {
    "plain": (False, None),
    "batch norm": (False, "batch"),
    "residual + batch norm": (True, "batch"),
}


def last_losses(
    data: Rows, depth: int, residual: bool, norm: str | None, keys: tuple[Key, ...]
) -> list[float]:
    """Cross-entropy of the training rows after 200 full steps, one net per key."""

    def make(generator: torch.Generator) -> NetClassEnergy:
        net = MLP(2, (WIDTH,) * depth, 2, norm=norm, residual=residual, generator=generator)
        return NetClassEnergy(2, 2, net)

    made = learn_population(make, [{"seed": key} for key in keys], data, NLL(), optimizer="momentum",
                            lr=0.05, epochs=STEPS, batch_size=None)  # fmt: skip
    return [float(member.history.objective[-1]) for member in made]


@experiment("NEU-X-depth", theme="neural", title="Plain depth fails to train", slow=True)
def depth(seed: int = 0, *, quick: bool = False) -> Result:
    r"""More layers can always represent what fewer can, yet a plain net of 40 layers does not even
    fit its training rows: its gradients are noise. With :math:`h + f(h)` and batch norm in f every
    depth trains; batch norm alone is not enough. The failure is one of training, not of
    generalisation, so it is the training loss that is shown.

    Two spirals of 200 rows, width 32, 200 full steps with rate 0.05 and momentum 0.9 at 2, 8, 20 and
    40 layers; medians over 5 nets.
    """
    key = Key.of(seed)
    x, y = spirals(key.fold("rows").numpy(), ROWS, 0.05, turns=1.0)
    data = {"x": torch.from_numpy(x).float(), "y": torch.from_numpy(y)}
    keys = key.fold("nets").split(3 if quick else 5)
    losses = {
        name: {d: float(np.median(last_losses(data, d, *form, keys))) for d in DEPTHS}
        for name, form in FORMS.items()
    }
    plain, both, norm = (losses[n] for n in ("plain", "residual + batch norm", "batch norm"))
    claims = [
        Claim.below("plain, 2 layers: training loss", plain[2], 0.2),
        Claim.above("plain, 40 layers: training loss", plain[40], 0.6),
        *[Claim.below(f"residual + batch norm, {d} layers", both[d], 0.01) for d in DEPTHS],
        Claim.above("batch norm alone, 40 layers, less residual", norm[40] - both[40], 0.1),
    ]
    numbers = {name: {str(d): v for d, v in row.items()} for name, row in losses.items()}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for (name, row), colour in zip(losses.items(), COLOURS):
            ax.semilogy(
                DEPTHS, [max(v, 1e-5) for v in row.values()], "o-", color=colour, label=name
            )
        ax.axhline(np.log(2), color=COLOURS[5], linestyle=":", linewidth=1)
        ax.set(xlabel="hidden layers", ylabel="training loss (dots: chance)", xticks=DEPTHS)
        ax.legend()

    return Result(claims, numbers, draw, size=(6.0, 3.6))
