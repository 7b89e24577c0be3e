r"""The most likely class cuts the simplex into equal kites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
BETAS = np.concatenate([[0.0], np.geomspace(0.05, 60, 60)])


def lattice(n: int) -> Any:
    """Whole numbers i + j + k = n - 1, ``(N, 3)``: the centres of the cells of the triangle."""
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    keep = i + j < n
    return np.stack([i[keep], j[keep], n - 1 - i[keep] - j[keep]], 1)


def crossing(p: Any, q: Any) -> Any:
    """Where the winner changes on the way from p to q, by bisection."""
    first = p.argmax()
    for _ in range(60):
        middle = 0.5 * (p + q)
        if middle.argmax() == first:
            p = middle
        else:
            q = middle
    return p, q


def entropy_of(p: Any) -> Any:
    return -(p * np.log(np.maximum(p, 1e-300))).sum(-1)


def softmax(scores: Any) -> Any:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@experiment("MAT-x-simplex", theme="mathematics", title="argmax cuts the simplex into equal kites")
def simplex(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Distributions over three classes are the points of a triangle. :math:`\arg\max_k p_k` cuts it along
    the lines :math:`p_i = p_j`, which are straight and meet in the centroid, into three kites of one area;
    the distribution of greatest entropy for given scores, :math:`p_k \propto e^{\beta s_k}`, moves from the
    centroid (β = 0) to the corner of the best class (β → ∞) and stays in its kite.

    A lattice of 45,150 points; 400 random ways from point to point; random scores.
    """
    rng = Key.of(seed).fold("scores").numpy()
    cells = lattice(300)
    points = (cells + 1 / 3) / 300
    winner = points.argmax(1)
    best_of = cells == cells.max(1, keepdims=True)  # a tie counts for both
    shares = (best_of / best_of.sum(1, keepdims=True)).mean(0)
    walls: dict[tuple[int, ...], list[Any]] = {(0, 1): [], (0, 2): [], (1, 2): []}
    for p, q in rng.dirichlet(np.ones(3), size=(400, 2)):
        if p.argmax() != q.argmax():
            before, after = crossing(p, q)
            walls[tuple(sorted((int(before.argmax()), int(after.argmax()))))].append(before)
    lines, ties = [], []
    for (i, j), crossings in walls.items():
        found = np.array(crossings)
        ties.append(float(np.abs(found[:, i] - found[:, j]).max()))
        on_plane = found @ CORNERS
        lines.append(float(np.linalg.svd(on_plane - on_plane.mean(0), compute_uv=False)[-1]))
    step = 1e-3
    around = [int(np.argmax(np.full(3, 1 / 3) + step * (np.eye(3)[k] - 1 / 3))) for k in range(3)]
    scores = rng.normal(size=3)
    path = softmax(BETAS[:, None] * scores)
    entropy = entropy_of(path)
    best = int(scores.argmax())
    gap = np.sort(scores)[-1] - np.sort(scores)[-2]
    # with a mean score given, no distribution has more entropy: move along the only free direction
    p = softmax(1.3 * scores)
    free = np.cross(np.ones(3), scores)
    steps = 1e-3 / np.abs(free).max() * p.min() * np.array([-1.0, 1.0])
    less = float(max(entropy_of(p + s * free) for s in steps) - entropy_of(p))
    claims = [
        Claim.below("areas differ from a third by", float(np.abs(shares - 1 / 3).max()), 1e-12),
        Claim.below("boundaries found by bisection: distance from a straight line", max(lines), 1e-12),
        Claim.below("and two classes tie on them, up to", max(ties), 1e-12),
        Claim.equal("all three classes meet at the centroid", around, [0, 1, 2]),
        Claim.below("the path begins at the centroid, off by", float(np.abs(path[0] - 1 / 3).max()), 1e-12),
        Claim.below("and ends at the corner, off by over its bound", float(
            (1 - path[-1, best]) / (2 * np.exp(-BETAS[-1] * gap))), 1.0 + 1e-9),
        Claim.equal("in one kite all the way", bool((path[1:].argmax(1) == best).all()), True),
        Claim.below("entropy falls along it: largest rise", float(np.diff(entropy).max()), 1e-12),
        Claim.below("entropy of others with the same mean score, less its own", less, 0.0),
    ]  # fmt: skip
    numbers = {"shares": shares.tolist(), "scores": scores.tolist(), "entropy": entropy.tolist()}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
        xy = points @ CORNERS
        left.scatter(
            *xy[::2].T, c=[COLOURS[w] for w in winner[::2]], s=1.2, alpha=0.35, rasterized=True
        )
        left.plot(*(path @ CORNERS).T, color="black", linewidth=1.5)
        left.plot(*(np.full(3, 1 / 3) @ CORNERS), "o", color="black")
        for k, corner in enumerate(CORNERS):
            left.annotate(f"class {k}", corner, ha="center", va="bottom" if k == 2 else "top")
        left.set(title="argmax p, and softmax(βs)", aspect="equal", xticks=[], yticks=[])
        left.axis("off")
        for k in range(3):
            right.semilogx(BETAS[1:], path[1:, k], color=COLOURS[k])
        right.set(title="p(β)", xlabel="β")

    return Result(claims, numbers, draw)
