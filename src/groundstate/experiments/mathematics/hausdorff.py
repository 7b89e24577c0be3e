r"""One far point sets the Hausdorff distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.distances import hausdorff

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("MAT-x-hausdorff", theme="mathematics", title="One outlier sets the Hausdorff distance")
def hausdorff_distance(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The distance of two sets, :math:`\max(\sup_x\inf_yd, \sup_y\inf_xd)`, is that of their worst
    point: one far point sets it, whatever the other points do. Its 95 % quantile does not move.

    Two noisy curves of 400 points each, then one of them with a point 4 units away.
    """
    rng = Key.of(seed).fold("curves").numpy()
    t = np.linspace(0, 2 * np.pi, 400)
    X = np.column_stack([t, np.sin(t)]) + 0.03 * rng.standard_normal((400, 2))
    Y = np.column_stack([t, np.sin(t) + 0.15]) + 0.03 * rng.standard_normal((400, 2))
    far = np.array([[np.pi, 4.0]])
    Z = np.vstack([Y, far])
    own = float(np.linalg.norm(X - far, axis=1).min())
    before, after = hausdorff(X, Y), hausdorff(X, Z)
    calm, moved = (float(hausdorff(X, W, quantile=0.95).distance) for W in (Y, Z))
    back = float(hausdorff(Z, X).distance)
    claims = [
        Claim.close("the distance with the outlier is that of the outlier", after.distance, own, tol=1e-12),
        Claim.equal("the attaining point is the outlier", int(after.j), 400),
        Claim.at_least("growth of the distance by one point", after.distance / before.distance, 5.0),
        Claim.at_most("change of the 95 % quantile", abs(moved / calm - 1), 0.05),
        Claim.close("symmetry", back, after.distance, tol=0.0),
        Claim.close("distance of a set to itself", float(hausdorff(X, X[::-1]).distance), 0.0, tol=0.0),
    ]  # fmt: skip
    numbers = {"before": before.distance, "after": after.distance, "HD95": [calm, moved]}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for ax, other, found in ((left, Y, before), (right, Z, after)):
            ax.plot(*X.T, ".", color=COLOURS[0], markersize=3)
            ax.plot(*other.T, ".", color=COLOURS[1], markersize=3)
            ax.plot(*np.stack([X[found.i], other[found.j]]).T, "-", color=COLOURS[4], linewidth=2)
            ax.set(title=f"Hausdorff {found.distance:.2f}", aspect="equal", ylim=(-1.5, 4.4))

    return Result(claims, numbers, draw)
