"""Pictures of learned metrics and outlier detectors."""

from __future__ import annotations

import numpy as np
from common import COLOURS, figure, landscape, scatter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import (
    ITML,
    LMNN,
    MMC,
    RCA,
    EllipticEnvelope,
    EnergyOutlier,
    GaussianMixture,
    IsolationForest,
    LocallyAdaptiveNormal,
    LocalMetric,
    LocalOutlierFactor,
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


def itml() -> Figure:
    """Before and after."""
    return learned(ITML(random_state=0), "ITML")


def mmc() -> Figure:
    """Before and after."""
    return learned(MMC(random_state=0), "MMC")


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


def local_metric() -> Figure:
    """Shortest curves and the volume element."""
    X = make_half_circle(200, random_state=0)
    model = LocalMetric(sigma=0.15).fit(X)
    fig, (left, right) = figure(2)
    landscape(left, X, lambda rows: np.log(model.volume(rows)))
    left.scatter(*X.T, s=5, color="white", alpha=0.7)
    left.set_title("log volume: low where data are")
    right.scatter(*X.T, s=5, color=COLOURS[0])
    ends = np.array([[-1.0, 0.0], [0.0, 1.0], [-0.7, 0.7], [0.0, 0.2]])
    for curve in model.geodesic([1.0, 0.0], ends, 33).points:
        right.plot(*curve.T, color=COLOURS[1])
    right.set(title="shortest curves from one end", aspect="equal")
    return fig


def locally_adaptive_normal() -> Figure:
    """A Gaussian and a bent one."""
    X = make_half_circle(60, random_state=0)
    fig, (left, right) = figure(2)
    plain = GaussianMixture().fit(X)
    bent = LocallyAdaptiveNormal(
        metric=LocalMetric(sigma=0.3, rho=0.1), n_points=9, n_nodes=100, max_iter=3
    ).fit(X)
    low, high = X.min(0) - 0.7, X.max(0) + 0.7
    a, b = (np.linspace(l, h, 24) for l, h in zip(low, high, strict=True))
    points = np.stack(np.meshgrid(a, b), -1).reshape(-1, 2)
    for ax, model, mean in ((left, plain, plain.means_[0]), (right, bent, bent.mean_)):
        p = np.exp(model.score_samples(points)).reshape(24, 24)
        ax.contourf(a, b, p, levels=12, cmap="viridis")
        ax.scatter(*X.T, s=5, color="white", alpha=0.7)
        ax.plot(*mean, "o", color=COLOURS[1])
    left.set(title="normal: the mean has no data", aspect="equal")
    right.set(title="along the data", aspect="equal")
    return fig


def isolation_forest() -> Figure:
    """Energies and what is found."""
    fig, (left, right) = figure(2)
    X, _ = make_moons(250, noise=0.08, random_state=0)
    X = np.vstack([X, RNG.uniform([-1.5, -1], [2.5, 1.5], (12, 2))])
    model = IsolationForest(contamination=0.05, random_state=0).fit(X)
    _detected(left, model, X, "few cuts set them apart")
    right.hist(model.path_lengths(X), bins=30, color=COLOURS[0])
    right.set(title="mean number of cuts", xlabel="cuts", ylabel="rows")
    return fig


def local_outlier_factor() -> Figure:
    """Two clouds of different density."""
    fig, (left, right) = figure(2)
    rng = np.random.default_rng(0)
    X = np.vstack([0.15 * rng.normal(size=(120, 2)), 1.2 * rng.normal(size=(120, 2)) + 5])
    X = np.vstack([X, [[1.2, 1.0], [-1.0, 0.9], [1.1, -0.8]]])
    local = LocalOutlierFactor(20, contamination=0.02, novelty=True).fit(X)
    _detected(left, local, X, "LocalOutlierFactor")
    one = EllipticEnvelope(contamination=0.02, random_state=0).fit(X)
    _detected(right, one, X, "one Gaussian for both")
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
    "IsolationForest": isolation_forest,
    "ITML": itml,
    "LMNN": lmnn,
    "MMC": mmc,
    "LocalMetric": local_metric,
    "LocalOutlierFactor": local_outlier_factor,
    "LocallyAdaptiveNormal": locally_adaptive_normal,
    "MahalanobisTransformer": mahalanobis_transformer,
    "NeighborhoodComponentsAnalysis": neighborhood_components_analysis,
    "RCA": rca,
    "family-metrics": family_metrics,
}
