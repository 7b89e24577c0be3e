r"""Heavy tails cure crowding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import silhouette_score

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.manifolds.tsne import TSNE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def apart(Y: Any, y: Any) -> tuple[float, float]:
    """Medians over the classes of a centre's distance to the nearest other and to all others.

    Both in units of the median radius of a class: a class that is torn into two islands, whose
    centre lies between them, moves a mean by far but no median.
    """
    classes = np.unique(y)
    centre = np.array([Y[y == c].mean(0) for c in classes])
    radius = np.median(
        [np.median(np.linalg.norm(Y[y == c] - centre[k], axis=1)) for k, c in enumerate(classes)]
    )
    gap = np.linalg.norm(centre[:, None] - centre, axis=-1)
    every = np.median(gap[np.triu_indices(len(classes), 1)])
    np.fill_diagonal(gap, np.inf)
    return float(np.median(gap.min(1)) / radius), float(every / radius)


@experiment("UNSX-crowding", theme="unsupervised", title="Heavy tails cure crowding", slow=True)
def crowding(seed: int = 0, *, quick: bool = False) -> Result:
    r"""In a plane there is less room at a moderate distance than in many dimensions. With a Gaussian
    pair energy :math:`\varepsilon = d^2` moderately far rows are crushed together; with
    :math:`\varepsilon = \log(1 + d^2)`, whose distribution has heavy tails, they move away at little
    cost. 400 digits, the same affinities, start and steps. Classes stand further apart in units of
    their radius, by the median over all pairs; the distance to the nearest class alone is reported
    but not claimed, since where a class is torn into islands its centre may lie beside another.
    """
    digits = load_digits()
    some = Key.of(seed).fold("rows").numpy().permutation(len(digits.data))[:400]
    rows = some if seed else np.arange(400)
    X, y = digits.data[rows], digits.target[rows]
    rate = 400 / 48
    maps = {kernel: TSNE(kernel=kernel, learning_rate=rate).fit(X) for kernel in ("t", "gaussian")}
    kl = {kernel: model.kl_divergence_ for kernel, model in maps.items()}
    shape = {k: float(silhouette_score(m.embedding_, y)) for k, m in maps.items()}
    gap = {k: apart(m.embedding_, y) for k, m in maps.items()}
    claims = [
        Claim.at_most("KL with heavy tails", kl["t"], 0.5),
        Claim.above("KL with a Gaussian, over it", kl["gaussian"] / kl["t"], 1.7),
        Claim.above("silhouette of the classes, t less Gaussian", shape["t"] - shape["gaussian"], 0.01),
        Claim.above("distance between classes over their radius, t over Gaussian",
                    gap["t"][1] / gap["gaussian"][1], 1.1),
    ]  # fmt: skip
    numbers = {"kl": kl, "silhouette": shape, "gap": gap}

    def draw(figure: Figure) -> None:
        for ax, (kernel, model) in zip(figure.subplots(1, 2), maps.items(), strict=True):
            ax.scatter(*model.embedding_.T, c=y, cmap="tab10", s=8)
            ax.set(title=f"{kernel}: KL {kl[kernel]:.2f}", xticks=[], yticks=[])
            ax.title.set_color(COLOURS[0] if kernel == "t" else COLOURS[1])

    return Result(claims, numbers, draw)
