r"""A round distance misjudges a long cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

from groundstate.compute.random import Key
from groundstate.data.builtin.toys import make_elongated
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math.distances import LocalMetric, chi2_pvalue, mahalanobis
from groundstate.models.metrics.mahalanobis_transformer import MahalanobisTransformer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def ring(cov: Any, radius: float, n: int = 100) -> Any:
    """Points at one Mahalanobis distance from zero, ``(n, 2)``."""
    t = np.linspace(0, 2 * np.pi, n)
    return radius * np.column_stack([np.cos(t), np.sin(t)]) @ np.linalg.cholesky(cov).T


@experiment("UNSX-mahalanobis", theme="unsupervised", title="Round distances misjudge long clouds")
def mahalanobis_distance(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With :math:`d_M^2 = (x - \mu)^\top\Sigma^{-1}(x - \mu)` a row is far when it is unusual for its
    cloud; the Euclidean distance calls the ends of a long cloud far instead. The two agree after
    :math:`x \mapsto Jx` with :math:`J^\top J = \Sigma^{-1}`, and the metric has the eigenvectors of the
    covariance with reciprocal eigenvalues.

    A cloud with standard deviations 10 and 1 and 50 outliers at ±6 across; a cloud of 1,000 rows with
    correlation 0.95 and 50 outliers across it, the unit there being its short axis.
    """
    key = Key.of(seed)
    X, y = make_elongated(1000, random_state=key.fold("long"))
    across = y < 0
    S = np.cov(X[~across].T)
    rng = key.fold("slanted").numpy()
    rho = 0.95
    C = np.array([[1.0, rho], [rho, 1.0]])
    inside = rng.multivariate_normal([0, 0], C, 1000)
    short = np.array([1.0, -1.0]) / np.sqrt(2)
    shift = np.where(np.arange(50) % 2 == 0, 1.0, -1.0)[:, None] * short * 4.5 * np.sqrt(1 - rho)
    outside = rng.standard_normal((50, 1)) * (np.array([1.0, 1.0]) / np.sqrt(2)) + shift
    Z = np.vstack([inside, outside])
    far = np.arange(1050) >= 1000

    def aucs(rows: Any, label: Any) -> tuple[float, float]:
        model = MahalanobisTransformer().fit(rows)
        d = np.sqrt(model.mahalanobis(rows))
        euclid = np.linalg.norm(rows - rows.mean(0), axis=1)
        return float(roc_auc_score(label, d)), float(roc_auc_score(label, euclid))

    long, slanted = aucs(X, across), aucs(Z, far)
    model = MahalanobisTransformer().fit(inside)
    J = np.asarray(model.components_)
    mapped = inside @ J.T
    some = slice(0, 60)
    euclid = np.linalg.norm(mapped[some, None] - mapped[None, some], axis=2)
    gap = float(
        np.abs(euclid - mahalanobis(inside[some], inside[some], cov=model.covariance_)).max()
    )
    along, over = np.array([1.0, 1.0]), np.array([1.0, -1.0])  # equally far from the mean
    pair = mahalanobis(np.stack([along, over]), [0.0, 0.0], cov=C)
    values, metric = np.linalg.eigvalsh(S), np.linalg.eigvalsh(np.linalg.inv(S))
    reciprocal = float(np.abs(values[::-1] * metric - 1).max())
    p = np.asarray(chi2_pvalue(mahalanobis(inside, np.zeros(2), cov=C), 2))
    claims = [
        Claim.above("long cloud: AUC of Mahalanobis distances", long[0], 0.99),
        Claim.below("long cloud: AUC of Euclidean distances", long[1], 0.75),
        Claim.at_least("correlation 0.95: AUC of Mahalanobis distances", slanted[0], 0.99),
        Claim.at_most("correlation 0.95: AUC of Euclidean distances", slanted[1], 0.7),
        Claim.at_least("equally far by Euclid: ratio of Mahalanobis distances", pair[1] / pair[0], 6.0),
        Claim.at_most("Euclid after J against Mahalanobis", gap, 1e-9),
        Claim.at_most("eigenvalues of metric and covariance: largest |λμ − 1|", reciprocal, 1e-9),
        Claim.between("share of rows with χ² p-value below 0.05", float((p < 0.05).mean()), 0.03, 0.075),
    ]  # fmt: skip
    numbers = {"long": list(long), "slanted": list(slanted), "pair": [float(d) for d in pair]}

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.plot(*inside.T, ".", color=COLOURS[0], markersize=2)
        left.plot(*outside.T, ".", color=COLOURS[4], markersize=4)
        for r in (1.0, 2.0, 3.0):
            left.plot(*ring(C, r).T, color=COLOURS[2], linewidth=1)
            left.plot(*ring(np.eye(2), r).T, color=COLOURS[5], linewidth=0.8, linestyle=":")
        left.set(title="ellipses and circles", aspect="equal")
        middle.plot(*mapped.T, ".", color=COLOURS[0], markersize=2)
        middle.plot(*(outside @ J.T).T, ".", color=COLOURS[4], markersize=4)
        middle.set(title="after J", aspect="equal")
        local = LocalMetric(inside, 0.4, 0.02, kind="full")
        right.plot(*inside.T, ".", color=COLOURS[0], markersize=1, alpha=0.4)
        for at in np.stack(np.meshgrid(np.linspace(-2, 2, 6), np.linspace(-2, 2, 6)), -1).reshape(
            -1, 2
        ):
            M = local.tensor(at)
            for matrix, colour in ((np.linalg.inv(M), COLOURS[2]), (M, COLOURS[1])):
                unit = matrix / np.trace(matrix)
                right.plot(*(at + 0.3 * ring(unit, 1.0, 40)).T, color=colour, linewidth=0.8)
        right.set(title="local covariance (green), metric (orange)", aspect="equal")

    return Result(claims, numbers, draw, size=(11.0, 3.6))
