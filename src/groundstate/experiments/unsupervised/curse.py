r"""In many dimensions distances stop discriminating."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import pdist

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.experiments.supervised.scenes import clouds
from groundstate.math.distances import curse
from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIMS = (2, 10, 100, 1000)
NOISE = (0, 10, 50, 200)


@experiment("UNSX-curse", theme="unsupervised", title="Distances stop discriminating")
def many_dimensions(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The contrast :math:`(d_{\max} - d_{\min})/d_{\min}` of distances to uniform points goes to zero
    with the dimension, affinities :math:`p_{ij} = e^{-d_{ij}^2/2\sigma^2}` at the median distance become
    alike, and the lengths of normal vectors keep their spread, about 0.7, while their mean is
    :math:`\sqrt d`. A grid point has 2d neighbours; :math:`10^{12}` rows reach
    :math:`10^{12}/2^{100} = 7.9\cdot10^{-19}` of the corners of a cube.

    500 points and 100 queries in 2 to 1,000 dimensions; five neighbours with 0 to 200 idle columns.
    """
    key = Key.of(seed)
    contrasts, spreads, norms = [], [], []
    for d in DIMS:
        rng = key.fold("cube", d).numpy()
        X, Q = rng.random((500, d)), rng.random((100, d))
        contrasts.append(float(curse.contrast(X, Q)))
        far = pdist(X)
        p = np.exp(-(far**2) / (2 * np.median(far) ** 2))
        spreads.append(float(p.std() / p.mean()))
        length = np.linalg.norm(rng.standard_normal((2000, d)), axis=1)
        norms.append((float(length.mean() / np.sqrt(d)), float(length.std())))
    rng = key.fold("idle").numpy()
    rows, y = clouds(rng, [[-1.2, -1.2], [1.2, 1.2]], 1.0, 1500)
    noise = rng.standard_normal((1500, max(NOISE)))
    accuracy = []
    for k in NOISE:
        wide = np.hstack([rows, noise[:, :k]])
        accuracy.append(
            float(KNeighborsClassifier(5).fit(wide[:500], y[:500]).score(wide[500:], y[500:]))
        )
    counted = [curse.grid_neighbors(d) for d in range(1, 7)]
    claims = [
        Claim.above("contrast in 2 dimensions", contrasts[0], 20),
        Claim.close("contrast in 10 dimensions", contrasts[1], 2.5, tol=0.4),
        Claim.close("contrast in 100 dimensions", contrasts[2], 0.41, tol=0.05),
        Claim.close("contrast in 1000 dimensions", contrasts[3], 0.11, tol=0.02),
        *[Claim.close(f"spread of affinities in {d} dimensions", s, e, tol=0.1 * e)
          for d, s, e in zip(DIMS, spreads, (0.42, 0.19, 0.059, 0.019))],
        Claim.between("spread of lengths in 1000 dimensions", norms[3][1], 0.65, 0.76),
        Claim.close("mean length over √d in 1000 dimensions", norms[3][0], 1.0, tol=0.01),
        Claim.at_least("accuracy without idle columns over that with 200", accuracy[0] - accuracy[-1], 0.1),
        Claim.below("largest step of the contrast", max(b / a for a, b in pairwise(contrasts)), 1.0),
        Claim.equal("neighbours in grids of 1 to 6 dimensions", counted, [2 * d for d in range(1, 7)]),
        Claim.close("10¹²/2¹⁰⁰, in 1e-19", curse.coverage(1e12, 100) * 1e19, 7.9, tol=0.05),
    ]  # fmt: skip
    numbers = {"dimensions": list(DIMS), "contrast": contrasts, "spread": spreads, "lengths": norms,
               "idle": list(NOISE), "accuracy": accuracy}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.loglog(DIMS, contrasts, "o-", color=COLOURS[0])
        left.set(title="contrast of distances", xlabel="dimensions")
        middle.loglog(DIMS, spreads, "o-", color=COLOURS[1])
        middle.set(title="spread of affinities over their mean", xlabel="dimensions")
        right.plot(NOISE, accuracy, "o-", color=COLOURS[2])
        right.set(title="five neighbours", xlabel="idle columns", ylabel="accuracy")

    return Result(claims, numbers, draw, size=(10.0, 3.2))
