r"""A learned metric bends paths along the data and moves the mean onto it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundstate.compute.random import Key
from groundstate.data.builtin.toys import make_half_circle
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.experiments.unsupervised.mahalanobis import ring
from groundstate.math.distances import LocalMetric, RiemannianMetric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDS = ([1.0, 0.0], [-1.0, 0.0])


def intrinsic_mean(
    metric: RiemannianMetric, X: np.ndarray, start: np.ndarray, steps: int
) -> np.ndarray:
    """The point from which the directions to all rows cancel out, by steps along their mean."""
    mu = start
    for _ in range(steps):
        v = metric.log(mu, X, 33, starts=("graph",), tol=1e-3).mean(0)
        mu = metric.exp(mu, 0.3 * v, 24)
    return mu


def two_arms(rng: np.random.Generator, n: int) -> np.ndarray:
    """A cloud with two arms that meet in a corner."""
    t = rng.uniform(0, 2, n)
    arm = np.where(
        (np.arange(n) % 2 == 0)[:, None], np.column_stack([t, 0 * t]), np.column_stack([0 * t, t])
    )
    return arm + 0.04 * rng.standard_normal((n, 2))


@experiment(
    "UNSX-geodesic", theme="unsupervised", title="A learned metric follows the data", slow=True
)
def learned_paths(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With :math:`M_{jj}(x) = 1/(\sum_nw_n(x)(x_{nj} - x_j)^2 + \rho)` the shortest curve between two
    points, :math:`\min\int\dot\gamma^\top M\dot\gamma`, goes where data are: it is shorter under the
    metric than the straight line and longer to the eye. The mean under it lies among the data, which the
    Euclidean mean of a half circle does not.

    Three half circles of 100 points with σ = 0.15 and ρ = 0.01, turned by an angle of the seed; a noisy
    half circle of 200 points; two arms of 150.
    """
    key = Key.of(seed)
    angle = 2 * np.pi * float(key.fold("angle").uniform(1)[0])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    t = np.linspace(0, np.pi, 100)
    arc = np.column_stack([np.cos(t), np.sin(t)])
    X = np.concatenate([r * arc for r in (0.95, 1.0, 1.05)])
    metric = LocalMetric(X, 0.15, 0.01)
    a, b = (np.array(p) for p in ENDS)
    line = np.linspace(a, b, 65)
    found = metric.geodesic(a, b, 65)
    straight = float(metric.length(line))
    seen = float(np.linalg.norm(np.diff(found.points, axis=0), axis=1).sum())
    noisy = make_half_circle(200, random_state=key.fold("noisy"))
    other = LocalMetric(noisy, 0.15, 0.01)
    path = other.geodesic(a, b, 41)
    share = float(path.length / other.length(np.linspace(a, b, 41)))
    arms = two_arms(key.fold("arms").numpy(), 150)
    bent = LocalMetric(arms, 0.15, 0.01)
    corner = bent.geodesic([1.8, 0.0], [0.0, 1.8], 41)
    ratio = float(corner.length / bent.length(np.linspace([1.8, 0.0], [0.0, 1.8], 41)))
    detour = float(np.linalg.norm(np.diff(corner.points, axis=0), axis=1).sum()) / (
        1.8 * np.sqrt(2)
    )
    some = X[key.fold("some").numpy().permutation(300)[:40]]
    middle = X.mean(0)
    start = some[np.linalg.norm(some - middle, axis=1).argmin()]
    mean = intrinsic_mean(metric, some, start, 4)
    away = [float(np.linalg.norm(X - m, axis=1).min()) for m in (mean, middle)]
    turned = LocalMetric(X @ turn.T, 0.15, 0.01, kind="full")
    plain = LocalMetric(X, 0.15, 0.01, kind="full")
    same = abs(turned.length(line @ turn.T) - plain.length(line))
    claims = [
        Claim.close("half circle: length of the line", straight, 11.936, tol=1e-3),
        Claim.close("half circle: length of the shortest curve", found.length, 4.082, tol=1e-3),
        Claim.at_most("half circle: shortest curve over line", found.length / straight, 0.4),
        Claim.above("half circle: its length to the eye", seen, 2.0),
        Claim.above("half circle: least radius", float(np.linalg.norm(found.points, axis=1).min()), 0.8),
        Claim.below("noisy half circle: shortest curve over line", share, 0.5),
        Claim.below("two arms: shortest curve over line", ratio, 0.5),
        Claim.above("two arms: length to the eye over line", detour, 1.05),
        Claim.at_most("intrinsic mean to the nearest row", away[0], 0.1),
        Claim.at_least("Euclidean mean to the nearest row", away[1], 0.3),
        Claim.at_most("full metric: change of a length when all is turned", float(same), 1e-8),
    ]  # fmt: skip
    numbers = {"line": straight, "geodesic": float(found.length), "Euclidean length": seen,
               "noisy": share, "arms": ratio, "means": away}  # fmt: skip

    def field(ax: Axes, of: LocalMetric, low: list[float], high: list[float]) -> None:
        for at in np.stack(
            np.meshgrid(*(np.linspace(l, h, 9) for l, h in zip(low, high))), -1
        ).reshape(-1, 2):
            S = np.linalg.inv(of.tensor(at))
            ax.plot(*(at + 0.5 * ring(S, 1.0, 30)).T, color=COLOURS[5], linewidth=0.6)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        field(left, metric, [-1.2, -0.2], [1.2, 1.2])
        left.plot(*X.T, ".", color=COLOURS[0], markersize=2)
        left.plot(*np.stack([a, b]).T, color=COLOURS[4], linestyle=":")
        left.plot(*found.points.T, color=COLOURS[1], linewidth=2)
        left.plot(*mean, "o", color=COLOURS[2])
        left.plot(*middle, "x", color=COLOURS[4])
        left.set(title="line, shortest curve, both means", aspect="equal")
        field(right, bent, [-0.3, -0.3], [2.0, 2.0])
        right.plot(*arms.T, ".", color=COLOURS[0], markersize=2)
        right.plot([1.8, 0], [0, 1.8], color=COLOURS[4], linestyle=":")
        right.plot(*corner.points.T, color=COLOURS[1], linewidth=2)
        right.set(title="two arms", aspect="equal")

    return Result(claims, numbers, draw, size=(9.0, 3.8))
