r"""Correlation limits what averaging gains; trees are unstable, their forest is not."""

from __future__ import annotations

import time

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, friedman, tree_answers
from groundstate.models.ensembles.forests.random_forest_regressor import RandomForestRegressor

TREES = 400
SIZES = (1, 2, 5, 10, 20, 50, 100, 200)


def roots(forest: RandomForestRegressor) -> list[tuple[int, float]]:
    """Column and threshold at the top of every tree."""
    nodes = forest.energy_.nodes
    at = nodes.start[:-1]
    return list(zip(nodes.feature[at].tolist(), nodes.threshold[at].tolist()))


def correlation(a: F64, b: F64) -> float:
    """Mean correlation of the rows of two tables."""
    return float(np.mean([np.corrcoef(u, v)[0, 1] for u, v in zip(a, b)]))


@experiment("SUP-X-forest", theme="supervised", title="Correlation limits averaging", slow=True)
def forest(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The mean of B trees with variance s² and correlation ρ has the variance
    :math:`\rho s^2 + (1 - \rho)s^2/B`: it falls with B only down to :math:`\rho s^2`. Another 90 %
    of the rows change nearly every root and hardly the forest.

    Forests of 400 trees, a third of the columns at each split, on 40 draws of 150 rows of
    Friedman's function. ρ and s² come from one half of the trees, the variances from the other.
    """
    key = Key.of(seed)
    test = friedman(key.fold("test").numpy(), 100)[0]
    draws = 15 if quick else 40
    answers = np.empty((draws, TREES, len(test)))
    for r in range(draws):
        X, y, _ = friedman(key.fold("data", r).numpy(), 150)
        model = RandomForestRegressor(TREES, max_features=1 / 3, random_state=r).fit(X, y)
        answers[r] = tree_answers(model, test)
    half = answers[:, TREES // 2 :]
    single = float(half.var(0, ddof=1).mean())  # s²: over draws, averaged over trees and places
    n = half.shape[1]
    whole = float(half.mean(1).var(0, ddof=1).mean())
    shared = (whole - single / n) / (1 - 1 / n)  # ρs²
    distribution = {B: shared + (single - shared) / B for B in SIZES}
    seen = {}
    for B in SIZES:
        groups = answers[:, : TREES // 2].reshape(draws, TREES // 2 // B, B, len(test)).mean(2)
        seen[B] = float(groups.var(0, ddof=1).mean())
    off = max(abs(seen[B] / distribution[B] - 1) for B in SIZES)

    X, y, _ = friedman(key.fold("once").numpy(), 300)
    first = RandomForestRegressor(TREES, max_features=1 / 3, random_state=seed).fit(X, y)
    kept = np.sort(key.fold("rows").numpy().permutation(300)[:270])
    second = RandomForestRegressor(TREES, max_features=1 / 3, random_state=seed).fit(
        X[kept], y[kept]
    )
    changed = float(np.mean([a != b for a, b in zip(roots(first), roots(second))]))
    single_r = correlation(tree_answers(first, test), tree_answers(second, test))
    whole_r = correlation(first.predict(test)[None], second.predict(test)[None])
    speed = _speed_up(X, y)
    claims = [
        Claim.at_most("variance against ρs² + (1 − ρ)s²/B: largest relative error", off, 0.1),
        Claim.above("share of roots that change with 90 % of the rows", changed, 0.8),
        Claim.at_least("correlation of the two forests", whole_r, 0.95),
        Claim.at_most("correlation of their trees, one by one", single_r, 0.8),
    ]
    numbers = {"rho": shared / single, "s2": single, "B": list(SIZES), "variance": list(seen.values()),
               "distribution": list(distribution.values()), "roots changed": changed, "forests": whole_r,
               "single trees": single_r}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.5))
        left.loglog(SIZES, list(distribution.values()), color=COLOURS[5], label="ρs² + (1 − ρ)s²/B")
        left.loglog(SIZES, list(seen.values()), "o", color=COLOURS[0], label="seen")
        left.axhline(shared, color=COLOURS[1], linestyle=":", label="ρs²")
        left.set(title="variance of the mean of B trees", xlabel="B")
        left.legend()
        _diagram(right)

    return Result(claims, numbers, draw, {"2 threads": speed}, size=(10.5, 3.6))


def _speed_up(X: F64, y: F64) -> dict[str, float]:
    found = {1: np.inf, 2: np.inf}
    for _ in range(3):
        for jobs in found:
            start = time.perf_counter()
            RandomForestRegressor(100, n_jobs=jobs, random_state=0).fit(X, y)
            found[jobs] = min(found[jobs], time.perf_counter() - start)
    return {"one thread": found[1], "two threads": found[2], "speed-up": found[1] / found[2]}


def _diagram(ax: Axes) -> None:
    """Rows, their resamples, the trees, and the vote."""
    box = {"boxstyle": "round", "facecolor": "#eef2f7", "linewidth": 0.8}
    style = {"ha": "center", "va": "center", "fontsize": 8, "bbox": box}
    arrow = {"arrowstyle": "->", "color": COLOURS[5]}
    ax.text(0, 0, "rows", **style)  # type: ignore[arg-type]
    ax.text(6.2, 0, "mean\nor vote", **style)  # type: ignore[arg-type]
    for k, height in enumerate((1.6, 0.55, -0.55, -1.6)):
        name = "B" if k == 3 else str(k + 1)
        ax.text(2.0, height, f"bootstrap {name}", **style)  # type: ignore[arg-type]
        ax.annotate("", (1.2, height), (0.45, 0), arrowprops=arrow)
        ax.annotate("", (3.65, height), (2.8, height), arrowprops=arrow)
        ax.annotate("", (5.5, 0), (4.75, height), arrowprops=arrow)
        rng = np.random.default_rng(k)
        _little_tree(ax, 4.2, height + 0.38, 0.28, 3, rng)
    ax.set(xlim=(-0.7, 7.0), ylim=(-2.3, 2.3), title="bootstrap → trees → vote")
    ax.set_axis_off()


def _little_tree(
    ax: Axes, x: float, y: float, width: float, depth: int, rng: np.random.Generator
) -> None:
    leaf = depth == 0 or (depth < 3 and rng.random() < 0.25)
    ax.plot(x, y, "s" if leaf else "o", markersize=3.5, color=COLOURS[2 if leaf else 0], zorder=2)
    if not leaf:
        for side in (-1, 1):
            ax.plot([x, x + side * width], [y, y - 0.26], color="black", linewidth=0.7, zorder=1)
            _little_tree(ax, x + side * width, y - 0.26, width / 2, depth - 1, rng)
