r"""New rows: a metric is ready, a map needs an extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import make_swiss_roll

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.neighbors import pairwise
from groundstate.models.diagnosis import diagnose
from groundstate.models.manifolds.isomap import Isomap
from groundstate.models.manifolds.tsne import TSNE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def aligned(Y: Any, onto: Any) -> Any:
    """The map turned, flipped and moved, not scaled, as near to another as it gets."""
    a, b = Y - Y.mean(0), onto - onto.mean(0)
    u, _, v = np.linalg.svd(a.T @ b)
    return a @ (u @ v) + onto.mean(0)


@experiment("UNSX-two-views", theme="unsupervised", title="New rows: metric and map", slow=True)
def two_views(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A metric is a function: the distance of a pair that nobody has seen needs no refit. A map is a
    table of places, and new rows need an extension: Isomap's, along the nearest known rows, puts a
    fifth of a rolled sheet that was held out to within a few hundredths of where a map of all rows has
    them. t-SNE's puts rows into the frozen map,
    :math:`\min_z\mathrm{KL}(p_{\cdot\mid x}\,\|\,q_{\cdot\mid z})`, where the old ones stay; fitted
    again, all of them move.

    A roll of 1,000 rows; ten neighbours, or fewer where ``diagnose`` finds a short circuit. A distance in
    the plane is measured in the standard deviation of the plane, :math:`\sqrt{s_1^2 + s_2^2}`: .017 to
    .042 at seeds 0 to 6. In units of the mean of both deviations it is .027 to .069, above .05 where six
    neighbours are left (seeds 2, 3, 5), and so are the known rows, which a refit moves as much (.047 to
    .073 there): it is the graph that changes, not the extension.
    """
    X, t = make_swiss_roll(1000, random_state=seed)
    order = Key.of(seed).fold("rows").numpy().permutation(1000)
    known, new = order[:800], order[800:]
    for k in (10, 8, 6):
        part, refit = (Isomap(n_neighbors=k).fit(rows) for rows in (X[known], X))
        found = [diagnose(m, rows).names for m, rows in ((part, X[known]), (refit, X))]
        if not any("short circuit" in names for names in found):
            break
    whole = refit.embedding_
    both = np.concatenate([part.embedding_, part.transform(X[new])])
    turned = aligned(both, whole[order])
    error = np.linalg.norm(turned[800:] - whole[new], axis=1)
    isomap = float(np.median(error) / np.linalg.norm(whole.std(0)))
    first = TSNE(max_iter=500).fit(X[known])
    again = TSNE(max_iter=500).fit(X).embedding_[known]
    scale = first.embedding_.std(0).mean()
    moved = float(
        np.median(np.linalg.norm(aligned(again, first.embedding_) - first.embedding_, axis=1))
        / scale
    )
    stayed = float(np.abs(first.transform(X[known]) - first.embedding_).max())
    placed = first.transform(X[new])
    near = pairwise(X[new], X[known], reduce="argmin")
    by = np.linalg.norm(placed - first.embedding_[near], axis=1)
    tsne = float(np.median(by) / scale)
    table = pairwise(X[new[:1]], X[new[1:2]])
    exact = float(np.linalg.norm(X[new[0]] - X[new[1]]))
    claims = [
        Claim.at_most("Isomap: median move of new rows on a refit, in deviations of the map", isomap, 0.05),
        Claim.equal("t-SNE: old rows stay on transform, largest move", stayed, 0.0),
        Claim.above("t-SNE: median move of old rows on a refit, in deviations", moved, 0.02),
        Claim.at_most("t-SNE: median distance of a new row from the place of its nearest row", tsne, 0.2),
        Claim.close("metric: the distance of a new pair", float(table[0, 0]) - exact, 0.0, tol=1e-9),
    ]  # fmt: skip
    numbers = {"k": k, "isomap": isomap, "t-SNE moved": moved, "t-SNE new": tsne}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.scatter(*whole.T, c=t, s=5)
        left.scatter(*turned[800:].T, s=14, facecolor="none", edgecolor=COLOURS[4], linewidth=0.6)
        left.set(title="Isomap: new rows (rings) where a refit has them")
        right.scatter(*first.embedding_.T, c=t[known], s=5)
        right.scatter(*placed.T, s=14, facecolor="none", edgecolor=COLOURS[4], linewidth=0.6)
        right.set(title="t-SNE: new rows in the frozen map", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(9.0, 3.6))
