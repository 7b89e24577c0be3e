"""Pictures of learned metrics and outlier detectors."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure, landscape, scatter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import (
    LMNN,
    RCA,
    EllipticEnvelope,
    EnergyOutlier,
    GaussianMixture,
    MahalanobisTransformer,
    NeighborhoodComponentsAnalysis,
)
from groundstate.data import make_elongated, make_half_circle
from groundstate.math.distances import LocalMetric as Metric

RNG = np.random.default_rng(0)
Y = np.arange(150) % 2
NOISY = np.column_stack([2.4 * Y + 0.5 * RNG.normal(size=150), 4 * RNG.normal(size=150)])
LONG, KIND = make_elongated(200, n_outliers=12, scale=(2.0, 0.4), angle=0.5, random_state=0)


def learned(model: object, name: str) -> Figure:
    """Rows before and after the map of a learned metric."""
    fig, (left, right) = figure(2)
    scatter(left, NOISY, Y)
    left.set_title("the second column is noise")
    Z = model.fit(NOISY, Y).transform(NOISY)  # type: ignore[attr-defined]
    scatter(right, Z, Y)
    right.set(title=f"mapped by {name}", aspect="equal")
    return fig


def neighborhood_components_analysis() -> Figure:
    """Before and after."""
    return learned(NeighborhoodComponentsAnalysis(), "NeighborhoodComponentsAnalysis")


def lmnn() -> Figure:
    """Before and after."""
    return learned(LMNN(), "LMNN")


def rca() -> Figure:
    """Before and after."""
    return learned(RCA(), "RCA")


def mahalanobis_transformer() -> Figure:
    """A long cloud and the round one it becomes."""
    model = MahalanobisTransformer().fit(LONG)
    fig, (left, right) = figure(2)
    landscape(left, LONG, model.energy)
    left.scatter(*LONG.T, s=6, color="white", alpha=0.7)
    left.set_title("energy: ellipses")
    scatter(right, model.transform(LONG), KIND)
    right.set(title="after J: circles", aspect="equal")
    return fig


def _detected(ax: Axes, model: object, X: np.ndarray, title: str) -> None:
    landscape(ax, X, model.energy)  # type: ignore[attr-defined]
    out = model.predict(X) < 0  # type: ignore[attr-defined]
    ax.scatter(*X[~out].T, s=6, color="white", alpha=0.7)
    ax.scatter(*X[out].T, s=22, color=COLOURS[1], edgecolor="white", linewidth=0.4)
    ax.set_title(title)


def elliptic_envelope() -> Figure:
    """One Gaussian with and without robustness."""
    fig, (left, right) = figure(2)
    X = np.vstack([LONG, [[6.0, -3.0]] * 12 + 0.2 * RNG.normal(size=(12, 2))])
    share = 24 / len(X)
    _detected(
        left, EllipticEnvelope(contamination=share, random_state=0).fit(X), X, "EllipticEnvelope"
    )
    _detected(
        right, EnergyOutlier(contamination=share).fit(X), X, "plain Gaussian: widened by outliers"
    )
    return fig


def energy_outlier() -> Figure:
    """Any density will do."""
    fig, (left, right) = figure(2)
    X, _ = make_moons(250, noise=0.08, random_state=0)
    X = np.vstack([X, RNG.uniform([-1.5, -1], [2.5, 1.5], (12, 2))])
    _detected(left, EnergyOutlier(contamination=0.05).fit(X), X, "one Gaussian")
    model = EnergyOutlier(GaussianMixture(8, random_state=0), contamination=0.05)
    _detected(right, model.fit(X), X, "a mixture of eight")
    return fig


def family_metrics() -> Figure:
    """Learned maps, local metrics, outliers."""
    fig, (left, middle, right) = figure(3, width=10.0)
    Z = NeighborhoodComponentsAnalysis().fit(NOISY, Y).transform(NOISY)
    scatter(left, Z, Y)
    left.set(title="a map learned from labels", aspect="equal")
    X = make_half_circle(200, random_state=0)
    metric = Metric(X, 0.15, 0.01)
    middle.scatter(*X.T, s=5, color=COLOURS[0])
    middle.plot([1, -1], [0, 0], color="grey", linestyle=":")
    middle.plot(*metric.geodesic([1.0, 0.0], [-1.0, 0.0], 41).points.T, color=COLOURS[1])
    middle.set(title="the shortest curve follows data", aspect="equal")
    _detected(
        right, EllipticEnvelope(contamination=0.06, random_state=0).fit(LONG), LONG, "outliers"
    )
    return fig


PICTURES = {
    "EllipticEnvelope": elliptic_envelope,
    "EnergyOutlier": energy_outlier,
    "LMNN": lmnn,
    "MahalanobisTransformer": mahalanobis_transformer,
    "NeighborhoodComponentsAnalysis": neighborhood_components_analysis,
    "RCA": rca,
    "family-metrics": family_metrics,
}
