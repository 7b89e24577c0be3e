r"""Every layer folds its input, and regions multiply."""

from __future__ import annotations

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.data.builtin.generators import spirals
from groundstate.energy.networks.network import NetworkClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.panels import network_of
from groundstate.learn import learn_population
from groundstate.nn import MLP, linear_regions, region_bounds
from groundstate.nn.piecewise import construct

WIDTHS = (8, 8, 8)
DOMAIN = (-2.0, 2.0)


def fan(width: int, depth: int) -> tuple[int, int]:
    """Parameters and regions of the folding network."""
    return 3 * width + 1 + (depth - 1) * width * (width + 1), (width + 1) ** depth


@experiment("NEU-X-fold", theme="neural", title="Depth multiplies regions by folding", slow=True)
def fold(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A ReLU layer of D units can fold the line D times; K such layers have :math:`(D+1)^K` linear
    regions with :math:`3D + 1 + (K-1)D(D+1)` parameters, where one layer of the same size has only
    linearly many. That is what depth makes possible, not what it gives: nets with random or trained
    weights have far fewer regions than :math:`\prod_l\sum_{j\le 2}\binom{n_l}{j}`.

    The folding network with D = 3 on [−½, 3]; ten nets 2-8-8-8-1 with random weights and biases, and
    eight trained on two spirals, regions counted exactly on [−2, 2]². Quick runs have half of the nets.
    """
    key, nets_each = Key.of(seed), (5, 4) if quick else (10, 8)
    counts = [linear_regions(construct.folding(3, K), (-0.5, 3.0)).count for K in (1, 2, 3)]
    upper = region_bounds(WIDTHS, 2).upper
    nets = [
        MLP(2, WIDTHS, 1, init="torch", generator=key.fold("net", i).torch())
        for i in range(nets_each[0])
    ]
    random = [linear_regions(net, DOMAIN).count for net in nets]
    x, y = spirals(key.fold("data").numpy(), 300, 0.05)
    data = {"x": torch.from_numpy(x).float(), "y": torch.from_numpy(y)}
    learned = learn_population(
        lambda generator: NetworkClassEnergy(2, 2, MLP(2, WIDTHS, 1, generator=generator)),
        nets_each[1], data, lr=0.01, epochs=300, batch_size=None, seed=key.fold("train"),
    )  # fmt: skip
    trained = [linear_regions(network_of(member.energy), DOMAIN).count for member in learned]
    claims = [
        Claim.equal("regions of the folding network, K = 1, 2, 3", counts, [4, 16, 64]),
        Claim.below("random 8×3 nets: largest share of the upper bound", max(random) / upper, 0.05),
        Claim.below("trained 8×3 nets: largest share of the upper bound", max(trained) / upper, 0.05),
        Claim.above("regions of 136 parameters, five layers against one", fan(5, 5)[1], 136 / 3),
    ]  # fmt: skip
    numbers = {"folding": counts, "upper": upper, "random": random, "trained": trained,
               "losses": [round(float(m.score), 4) for m in learned]}  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 5, width_ratios=(1, 1, 1, 1.1, 1.3))
        for K, ax in zip((1, 2, 3), axes):
            at = torch.linspace(-0.5, 3, 2000, dtype=torch.float64)[:, None]
            with torch.no_grad():
                ax.plot(
                    at[:, 0], construct.folding(3, K)(at)[:, 0], color=COLOURS[0], linewidth=0.9
                )
            ax.set(title=f"K = {K}: {counts[K - 1]} regions", xlabel="x")
        found = linear_regions(network_of(learned.best().energy), DOMAIN)
        for i, corners in enumerate(found.polygons or []):
            axes[3].fill(*corners.T, color=COLOURS[i % 6], alpha=0.35, linewidth=0.3)
        axes[3].plot(*x[y == 0].T, ".", *x[y == 1].T, ".", color="black", markersize=1.5)
        axes[3].set(
            title=f"trained: {found.count} regions", xlim=DOMAIN, ylim=DOMAIN, aspect="equal"
        )
        widths = np.arange(3, 40)
        for K, colour in zip(range(1, 6), COLOURS):
            pairs = np.array([fan(int(w), K) for w in widths], dtype=float)
            axes[4].loglog(*pairs[pairs[:, 0] < 1000].T, color=colour, label=f"K = {K}")
        axes[4].set(title="most regions by folding", xlabel="parameters")
        axes[4].legend()

    return Result(claims, numbers, draw, size=(13.0, 2.9))
