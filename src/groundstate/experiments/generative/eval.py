r"""What over- and underfitting mean without labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import logsumexp

from groundstate.compute.random import Key
from groundstate.evaluate.generators.coverage import precision_recall
from groundstate.evaluate.generators.frechet import frechet_distance
from groundstate.evaluate.generators.memory import memorisation_check
from groundstate.experiments.base import Claim, Result, experiment
from groundstate.math.divergences import mmd
from groundstate.math.kernels.stationary import RBF

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = 5
MODES = 8


def ring(n: int, rng: Any, modes: int = MODES) -> Any:
    """Rows around ``modes`` of eight places on a circle of radius 2."""
    angle = 2 * np.pi * rng.integers(0, modes, n) / MODES
    return 2 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.2 * rng.normal(size=(n, 2))


def log_density(X: Any, centres: Any, width: float) -> Any:
    """Of a kernel density estimate, ``(n,)``."""
    gap = ((X[:, None] - centres[None]) ** 2).sum(2)
    volume = np.log(len(centres) * 2 * np.pi * width**2)
    return logsumexp(-gap / (2 * width**2), axis=1) - volume


@experiment(
    "GENX-eval", theme="generative", title="Over- and underfitting without labels", slow=True
)
def evaluation(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A model that repeats its rows has a Fréchet distance
    :math:`\|m-m'\|^2 + \operatorname{tr}(S + S' - 2(SS')^{1/2})` near 0 and still knows nothing: its
    training likelihood is far above that of new rows, and its draws are nearer to the training rows
    than new rows are (rank-sum z). A wide Gaussian has no gap and is told apart. Blurring, noise and
    lost modes raise Fréchet distance and :math:`\mathrm{MMD}^2` step by step; losing modes lowers recall
    and leaves precision.
    """
    rng = Key.of(seed).fold("eval").numpy()
    n = 2000
    train, test, new = (ring(n, rng) for _ in range(3))
    widths = {"memoriser": 0.005, "good": 0.15}
    gaps, z, distance = {}, {}, {}
    for name, width in widths.items():
        held = log_density(test, train, width).mean()
        own = log_density(train, train, width).mean()  # with the row itself, as in learning
        gaps[name] = float(own - held)
        drawn = train[rng.integers(0, n, n)] + width * rng.normal(size=(n, 2))
        z[name] = memorisation_check(drawn, train, test).z
        distance[name] = frechet_distance(drawn, test)
    wide = rng.multivariate_normal(train.mean(0), np.cov(train.T), n)
    z["wide"], distance["wide"] = (
        memorisation_check(wide, train, test).z,
        frechet_distance(wide, test),
    )
    kernel = RBF(gamma=1.0)
    discrepancy = {"wide": mmd(wide, test, kernel), "good": mmd(new, test, kernel)}

    tree = cKDTree(new)
    hurt = {
        "blur": [
            new if not s else new[tree.query(new, k=1 + 300 * s)[1]].reshape(n, -1, 2).mean(1)
            for s in range(LEVELS)
        ],
        "noise": [new + 0.35 * s * rng.normal(size=new.shape) for s in range(LEVELS)],
        "modes": [ring(n, rng, MODES - s) if s else new for s in range(LEVELS)],
    }
    table: dict[str, dict[str, list[float]]] = {}
    for name, sets in hurt.items():
        found = [precision_recall(test, rows, 5) for rows in sets]
        table[name] = {
            "Fréchet": [frechet_distance(rows, test) for rows in sets],
            "MMD²": [float(mmd(rows, test, kernel)) for rows in sets],
            "precision": [f.precision for f in found],
            "recall": [f.recall for f in found],
        }
    rises = {
        (name, metric): float(np.diff(table[name][metric]).min())
        for name in hurt
        for metric in ("Fréchet", "MMD²")
    }
    lost = table["modes"]
    claims = [
        Claim.above("memoriser: training less held-out nats", gaps["memoriser"], 2.0),
        Claim.below("good density: the same", gaps["good"], 0.3),
        Claim.below("memoriser: rank-sum z", z["memoriser"], -3.0),
        Claim.below("memoriser: Fréchet distance", distance["memoriser"], 0.05),
        Claim.above("good density: rank-sum z", z["good"], -3.0),
        Claim.above("wide Gaussian: rank-sum z", z["wide"], -3.0),
        Claim.above("wide Gaussian: MMD² over that of new rows", float(discrepancy["wide"]), 0.02),
        Claim.above("lowest step of Fréchet distance and MMD² over noise and modes",
                    min(v for (name, _), v in rises.items() if name != "blur"), 0.0),
        Claim.above("lowest step over blur", min(v for (name, _), v in rises.items() if name == "blur"), 0.0),
        Claim.below("recall after four lost modes", lost["recall"][-1], 0.65),
        Claim.above("precision after four lost modes", lost["precision"][-1], 0.9),
    ]  # fmt: skip
    numbers = {"gap": gaps, "z": z, "frechet": distance, "levels": table}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 3)
        for ax, (name, found) in zip(axes, table.items(), strict=True):
            grid = np.array([np.array(v) / max(np.max(np.abs(v)), 1e-12) for v in found.values()])
            ax.imshow(grid, cmap="viridis", vmin=0, vmax=1, aspect="auto")
            for (i, j), _ in np.ndenumerate(grid):
                value = list(found.values())[i][j]
                ax.text(j, i, f"{value:.2g}", ha="center", va="center", color="w", fontsize=7)
            ax.set(title=name, xlabel="level", yticks=range(len(found)), yticklabels=list(found))

    return Result(claims, numbers, draw)
