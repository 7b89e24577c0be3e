r"""Is it a metric? Symmetry, sign, identity and the triangle, tried on random triples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState

POOL = 24  # points whose mixtures are searched for two that d does not tell apart
STARTS = 6

Distance = Callable[[Any, Any], float]


@dataclass(frozen=True)
class MetricReport(Displayed):
    r"""What was found; violations are relative to the median distance.

    Attributes
    ----------
    symmetry : largest :math:`|d(x, y) - d(y, x)|`
    negativity : largest :math:`-d(x, y)`
    identity : largest :math:`|d(x, x)|`
    triangle : largest :math:`d(x, z) - d(x, y) - d(y, z)`
    nearest : smallest distance of two points that are clearly apart
    triples : how many were tried
    tol : what counts as zero
    """

    symmetry: float
    negativity: float
    identity: float
    triangle: float
    nearest: float
    triples: int
    tol: float

    @property
    def is_pseudometric(self) -> bool:
        """Whether all but distinguishability hold."""
        parts = (self.symmetry, self.negativity, self.identity, self.triangle)
        return all(part <= self.tol for part in parts)

    @property
    def distinguishes(self) -> bool:
        """Whether points that are apart have a distance."""
        return self.nearest > 1e-4

    @property
    def verdict(self) -> Literal["metric", "pseudometric", "neither"]:
        """What d is, as far as these triples show."""
        if not self.is_pseudometric:
            return "neither"
        return "metric" if self.distinguishes else "pseudometric"

    def _facts(self) -> dict[str, object]:
        broken = [
            name
            for name in ("symmetry", "negativity", "identity", "triangle")
            if getattr(self, name) > self.tol
        ]
        return {
            "verdict": self.verdict,
            "broken": ", ".join([*broken, *([] if self.distinguishes else ["distinguishability"])])
            or "nothing",
            "triples": self.triples,
        }


def check_metric(
    d: Distance | str,
    points: Any,
    n: int = 2000,
    *,
    random_state: RandomState = 0,
    tol: float = 1e-9,
) -> MetricReport:
    r"""Look for violations of the axioms of a metric.

    .. math::
        d(x, y) = d(y, x) \ge 0, \qquad d(x, x) = 0, \qquad d(x, z) \le d(x, y) + d(y, z), \qquad
        x \ne y \Rightarrow d(x, y) > 0 .

    Triples are drawn at random; of points that are vectors every second triple has its middle on the
    way from one end to the other. Whether distinct vectors can have distance zero, as under a metric
    of low rank, is searched for among mixtures of the points. Passing is no proof.

    Parameters
    ----------
    d : a function of two points, or the name of one of scipy's metrics
    points : array or list of points, or ``points(rng, n)`` that draws n of them
    n : triples
    random_state : of the triples
    tol : violations up to this share of the median distance are rounding

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> check_metric("euclidean", X)
    MetricReport: verdict metric, broken nothing, triples 2000
    >>> check_metric("sqeuclidean", X).verdict
    'neither'
    >>> check_metric(lambda x, y: abs(x[0] - y[0]), X).verdict
    'pseudometric'
    """
    if n < 1:
        raise ValueError(f"n counts triples and must be at least 1, got {n}")
    if not callable(d) and not isinstance(d, str):
        raise TypeError(
            f"d must be a function of two points or the name of a metric, got {d!r:.60}"
        )
    measure: Distance = d if callable(d) else _named(d)
    rng = Key.of(random_state).fold("triples").numpy()
    pool = list(points(rng, max(3, min(n, 500)))) if callable(points) else list(points)
    if len(pool) < 3:
        raise ValueError(f"a triangle needs three points, got {len(pool)}")
    vectors = _vectors(pool)
    found, nearest = np.empty((n, 6)), np.inf
    for i in range(n):
        x, y, z = (pool[k] for k in rng.choice(len(pool), 3, replace=False))
        if vectors is not None and i % 2:
            t = rng.uniform(0.1, 0.9)
            y = (1 - t) * np.asarray(x, float) + t * np.asarray(z, float)
        pairs = ((x, y), (y, z), (x, z), (y, x), (x, x), (z, y))
        found[i] = [float(measure(a, b)) for a, b in pairs]
        if not np.array_equal(x, z):
            nearest = min(nearest, abs(found[i, 2]))
    if not np.isfinite(found).all():
        raise ValueError("d gave NaN or infinity on some of the points")
    xy, yz, xz, yx, xx, zy = found.T
    scale = max(float(np.median(np.abs(np.r_[xy, yz, xz]))), np.finfo(float).tiny)
    if vectors is not None:
        nearest = min(nearest, _closest(measure, vectors, scale, rng))
    return MetricReport(
        symmetry=float(np.abs(np.r_[xy - yx, yz - zy]).max()) / scale,
        negativity=max(0.0, -float(found.min())) / scale,
        identity=float(np.abs(xx).max()) / scale,
        triangle=max(0.0, float((xz - xy - yz).max())) / scale,
        nearest=nearest / scale,
        triples=n,
        tol=tol,
    )


def _named(name: str) -> Distance:
    try:
        cdist([[0.0]], [[1.0]], name)
    except ValueError as error:
        raise ValueError(f"d={name!r} is no metric of scipy.spatial.distance.cdist") from error
    return lambda a, b: float(cdist(np.atleast_2d(a), np.atleast_2d(b), name)[0, 0])


def _vectors(pool: list[Any]) -> NDArray[np.float64] | None:
    """Points as rows, None where they are no vectors of one length."""
    try:
        rows = np.asarray(pool, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if rows.ndim == 1:
        rows = rows[:, None]
    return rows if rows.ndim == 2 and np.isfinite(rows).all() else None


def _closest(
    measure: Distance, rows: NDArray[np.float64], scale: float, rng: np.random.Generator
) -> float:
    """The smallest distance between mixtures of the points that are clearly apart.

    Mixtures stay where the points live, as on a simplex.
    """
    m = min(len(rows), POOL, 2 * rows.shape[1] + 2)
    best = np.inf
    for _ in range(STARTS):
        part = rows[rng.choice(len(rows), m, replace=False)]
        middle = part.mean(0)
        radius = 0.25 * float(np.median(np.linalg.norm(part - middle, axis=1)))
        if radius == 0:
            continue

        def mixture(w: NDArray[np.float64], part: Any = part) -> Any:
            weights = np.exp(w - w.max())
            return weights @ part / weights.sum()

        def value(
            w: NDArray[np.float64], middle: Any = middle, radius: float = radius, of: Any = mixture
        ) -> float:
            y = of(w)
            short = max(0.0, 1.0 - float(np.linalg.norm(y - middle)) / radius)
            return (float(measure(middle, y)) / scale) ** 2 + 10 * short**2

        found = minimize(value, rng.normal(0, 2, m), method="L-BFGS-B")
        y = mixture(found.x)
        if np.linalg.norm(y - middle) >= 0.5 * radius:
            best = min(best, abs(float(measure(middle, y))))
    return best
