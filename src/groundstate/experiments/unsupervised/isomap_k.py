r"""Too few neighbours leave a graph in parts, too many make short cuts."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_swiss_roll

from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.experiments.unsupervised.swiss_roll import arc, corr
from groundstate.math.neighbors import neighbors_graph
from groundstate.models.diagnosis import diagnose
from groundstate.models.manifolds.isomap import Isomap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40)


@experiment("UNSX-isomap-k", theme="unsupervised", title="Neighbours: too few, too many", slow=True)
def isomap_k(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The graph of the k nearest rows of a rolled sheet falls into parts for small k, which is reported
    (``n_parts_`` and a warning), and joins neighbouring turns of the roll for large k: one edge
    across is enough, since :math:`D_S` are shortest paths, and at which k that happens is chance: of
    1,000 rows at any from 7 to 20. ``diagnose`` finds it, by how much longer the longest path becomes
    without the longest edges. A radius behaves like k.
    """
    X, t = make_swiss_roll(1000, random_state=seed)
    along = arc(t)
    counts = COUNTS if not quick else (2, 3, 5, 6, 10, 15, 30, 40)
    parts, found, reach, flagged = [], [], [], []
    warned = 0
    for k in counts:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model = Isomap(n_neighbors=k, n_landmarks=100).fit(X)
        flagged.append("short circuit" in diagnose(model, X).names)
        warned += any(issubclass(w.category, Unreliable) for w in seen)
        parts.append(model.n_parts_)
        found.append(corr(model.embedding_[:, 0], along))
        reach.append(float(model.dist_matrix_.max() / (along.max() - along.min())))
    radii = np.linspace(1.0, 6.0, 11)
    pieces = [
        int(connected_components(neighbors_graph(X, radius=float(r)), directed=False)[0])
        for r in radii
    ]
    at = dict(zip(counts, found, strict=True))
    longest = dict(zip(counts, reach, strict=True))
    whole = [k for k, p in zip(counts, parts, strict=True) if p == 1 and 5 <= k <= 30]
    cut = dict(zip(counts, flagged, strict=True))
    clean = [at[k] for k in whole if not cut[k]]
    claims = [
        Claim.above("parts of the graph at k = 2", parts[0], 30),
        Claim.above("and at k = 3", parts[1], 1),
        Claim.equal("k that warned are those in parts", warned, sum(p > 1 for p in parts)),
        Claim.above("least correlation with the length, k from 5 that are not flagged", min(clean), 0.999),
        Claim.at_least("how many k those are", len(clean), 2),
        Claim.below("greatest correlation of the flagged", max(at[k] for k in whole if cut[k]), 0.95),
        Claim.equal("k = 30 is flagged", cut[30], True),
        Claim.below("at k = 40, with short cuts", at[40], 0.3),
        Claim.below(
            "the longest path at k = 40, of that at k = 5", longest[40] / longest[5], 0.8
        ),
        Claim.above("parts at the smallest radius", pieces[0], 1),
        Claim.equal("and at the largest", pieces[-1], 1),
    ]  # fmt: skip
    numbers = {"k": list(counts), "parts": parts, "correlation": found, "longest path": reach,
               "flagged": flagged,
               "radius": radii.tolist(), "parts by radius": pieces}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.plot(counts, found, "o-", color=COLOURS[0])
        left.set(title="correlation with the length", xlabel="neighbours", ylim=(0, 1.03))
        middle.plot(counts, parts, "o-", color=COLOURS[1])
        middle.set(title="parts of the graph", xlabel="neighbours", yscale="log")
        right.plot(counts, reach, "o-", color=COLOURS[2])
        right.set(title="longest path over the length of the roll", xlabel="neighbours")

    return Result(claims, numbers, draw, size=(11.0, 3.2))
