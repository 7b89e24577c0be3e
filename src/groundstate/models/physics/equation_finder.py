r"""The terms of an equation from measurements of its solution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.errors import DataError, ShapeError
from groundstate.models.arrays import unwrap
from groundstate.models.physics.function_regressor import FunctionRegressor
from groundstate.nn.coordinate.derivatives import derivatives

Array = NDArray[np.float64]
SCALED = 1e-300


class EquationFinder(BaseEstimator):
    r"""Which equation do measurements obey: sparse regression on candidate terms (SINDy).

    .. math:: u_t \approx \Theta(u, u_x, u_{xx}, \dots)\,\xi, \qquad \xi \text{ sparse}

    A smooth function is put through the measurements u at points X: a spline for one coordinate, a
    ``FunctionRegressor`` for several; its derivatives make the candidate terms Θ, products of powers of u
    with derivatives. Sequentially thresholded least squares (Brunton, Proctor and Kutz 2016) drops terms
    whose share of the equation, :math:`|\xi_j|\,\|\Theta_j\|/\|u_t\|`, is small and solves again.

    Parameters
    ----------
    coordinates : str
        Letters of the columns of X; "t" is the one whose derivative is explained.
    degree : int
        Highest power of u.
    order : int
        Highest derivative in the other coordinates, 0 to 2.
    threshold : float
        Smallest share of a term.
    alpha : float
        Ridge penalty of the solves, relative to the scaled columns.
    max_iter : int
        Rounds of thresholding.
    smoother : {"auto", "spline", "network"} or FunctionRegressor
    names : sequence of str
        Of the components of u.
    trim : float
        Fraction of the range left out at both ends of every coordinate, where derivatives are worst.
    random_state : int, generator, key or None

    Attributes
    ----------
    terms_ : list of str
    coef_ : (n_components, n_terms) array
    equations_ : list of str
    smoother_ : what went through the measurements: a fitted FunctionRegressor (of values scaled to mean 0
        and variance 1), or knots, coefficients and degree of a spline, as scipy's ``BSpline`` takes them

    Examples
    --------
    >>> t = np.linspace(0, 3, 200)
    >>> found = EquationFinder(coordinates="t", order=0).fit(t[:, None], np.exp(-2 * t))
    >>> found.equations_
    ['u.t = -2.000 u']
    """

    outside: ClassVar[str] = (
        "it reads the terms of an equation off measurements and predicts no value of a row, so it has no "
        "energy to fit, no weights of rows and nothing to go on training"
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "coordinates": [str],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "order": [Interval(Integral, 0, 2, closed="both")],
        "threshold": [Interval(Real, 0, 1, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "smoother": [StrOptions({"auto", "spline", "network"}), FunctionRegressor],
        "trim": [Interval(Real, 0, 0.4, closed="both")],
    }

    def __init__(
        self,
        coordinates: str = "tx",
        *,
        degree: int = 2,
        order: int = 2,
        threshold: float = 0.05,
        alpha: float = 1e-8,
        max_iter: int = 20,
        smoother: Any = "auto",
        names: Sequence[str] | None = None,
        trim: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.coordinates, self.degree, self.order, self.threshold = (
            coordinates,
            degree,
            order,
            threshold,
        )
        self.alpha, self.max_iter, self.smoother, self.names = alpha, max_iter, smoother, names
        self.trim, self.random_state = trim, random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find the equation of values y ``(n[, m])`` at points X ``(n, d)``."""
        self._validate_params()
        X = np.asarray(unwrap(X)[0], dtype=np.float64)
        u = np.asarray(unwrap(y)[0], dtype=np.float64)
        u = u[:, None] if u.ndim == 1 else u
        d = len(self.coordinates)
        if X.ndim != 2 or X.shape[1] != d or u.ndim != 2 or len(u) != len(X):
            raise ShapeError(
                f"X must be points (n, {d}) of {', '.join(self.coordinates)} and u their values, got "
                f"{X.shape} and {u.shape}"
            )
        if "t" not in self.coordinates:
            raise ValueError(f"one of the coordinates must be t, got {self.coordinates!r}")
        if not np.isfinite(X).all() or not np.isfinite(u).all():
            raise DataError("X or u holds NaN or infinity; drop those points")
        m = u.shape[1]
        names = list(self.names or (["u"] if m == 1 else [f"u{i}" for i in range(m)]))
        if len(names) != m:
            raise ValueError(f"names has {len(names)} entries, u has {m} columns")
        low, high = X.min(0), X.max(0)
        edge = self.trim * (high - low)
        inner = ((low + edge <= X) & (high - edge >= X)).all(1)
        table = self._derivatives(X, u, inner)
        self.terms_, theta = self._library(table, names)
        rate = table["t"]  # (n, m)
        self.coef_ = np.stack([self._sparse(theta, rate[:, c]) for c in range(m)])
        self.n_features_in_ = d
        self.equations_ = [
            f"{name}.t = " + self._written(row) for name, row in zip(names, self.coef_)
        ]
        return self

    def _derivatives(self, X: Array, u: Array, inner: NDArray[np.bool_]) -> dict[str, Array]:
        """u, its rate and its derivatives in the other coordinates, at inner points."""
        space = [c for c in self.coordinates if c != "t"]
        wanted = ["t", *(c * k for c in space for k in range(1, self.order + 1))]
        kind = self.smoother
        if kind == "spline" or (kind == "auto" and len(self.coordinates) == 1):
            if len(self.coordinates) > 1:
                raise ValueError("smoother='spline' is for one coordinate; use 'network'")
            return self._spline(X[:, 0], u, inner)
        model = kind
        if not isinstance(model, FunctionRegressor):
            model = FunctionRegressor(
                (32, 32, 32), solver="lbfgs", max_iter=3000, max_fun=10_000, tol=1e-10
            )
        from sklearn.base import clone

        model = clone(model).set_params(random_state=self.random_state)
        middle, scale = u.mean(0), np.maximum(u.std(0), SCALED)
        model.fit(X, (u - middle) / scale)
        self.smoother_ = model
        x = torch.as_tensor(X[inner]).to(next(model.energy_.parameters()))
        index = {name: tuple(sorted(self.coordinates.index(c) for c in name)) for name in wanted}
        with torch.no_grad():
            found = derivatives(model.energy_.net, x, list(index.values()))
        table = {name: found[at].double().cpu().numpy() * scale for name, at in index.items()}
        return {"": found[()].double().cpu().numpy() * scale + middle, **table}

    def _spline(self, t: Array, u: Array, inner: NDArray[np.bool_]) -> dict[str, Array]:
        from scipy.interpolate import make_interp_spline

        order = np.argsort(t)
        if (np.diff(t[order]) <= 0).any():
            raise DataError("a spline needs one value for each time; average repeated times first")
        spline = make_interp_spline(
            t[order], u[order], k=min(5, (len(t) - 1) | 1) if len(t) > 5 else 1
        )
        self.smoother_ = (spline.t, spline.c, spline.k)
        return {"": u[inner], "t": np.asarray(spline.derivative()(t[inner]))}

    def _library(self, table: dict[str, Array], names: list[str]) -> tuple[list[str], Array]:
        """Candidate terms: powers of u, alone and times each derivative."""
        n, m = table[""].shape
        powers: list[tuple[str, Array]] = [("1", np.ones(n))]
        for k in range(1, self.degree + 1):
            for which in combinations_with_replacement(range(m), k):
                text = " ".join(
                    names[c] + (f"^{which.count(c)}" if which.count(c) > 1 else "")
                    for c in dict.fromkeys(which)
                )
                powers.append((text, np.prod([table[""][:, c] for c in which], axis=0)))
        terms = list(powers)
        for by in (key for key in table if key not in ("", "t")):
            for c in range(m):
                slope, text = table[by][:, c], f"{names[c]}.{by}"
                terms += [(text if p == "1" else f"{p} {text}", v * slope) for p, v in powers]
        return [text for text, _ in terms], np.column_stack([v for _, v in terms])

    def _sparse(self, theta: Array, target: Array) -> Array:
        """Sequentially thresholded least squares on columns of unit length."""
        length = np.maximum(np.linalg.norm(theta, axis=0), SCALED)
        size = max(float(np.linalg.norm(target)), SCALED)
        A, b = theta / length, target / size
        keep = np.ones(A.shape[1], dtype=bool)
        xi = np.zeros(A.shape[1])
        for _ in range(self.max_iter):
            if not keep.any():
                return np.zeros_like(xi)
            own = A[:, keep]
            ridge = np.vstack([own, np.sqrt(self.alpha) * np.eye(own.shape[1])])
            xi[:] = 0.0
            xi[keep] = np.linalg.lstsq(ridge, np.append(b, np.zeros(own.shape[1])), rcond=None)[0]
            # one after the other, from the smallest: terms that only cancel each other go first
            small = keep & (np.abs(xi) < self.threshold)
            if not small.any():
                worst = self._needless(A, b, keep)
                if worst is None:
                    break
                keep[worst] = False
                continue
            keep &= ~small
        own = A[:, keep]
        xi[:] = 0.0
        if keep.any():
            xi[keep] = np.linalg.lstsq(own, b, rcond=None)[0]
        return xi * size / length

    def _needless(self, A: Array, b: Array, keep: NDArray[np.bool_]) -> int | None:
        """A term without which the equation holds nearly as well, or None."""
        if keep.sum() < 2:
            return None

        def left(which: NDArray[np.bool_]) -> float:
            xi = np.linalg.lstsq(A[:, which], b, rcond=None)[0]
            return float(np.linalg.norm(A[:, which] @ xi - b))

        now = left(keep)
        rest: dict[int, float] = {}
        for at in np.flatnonzero(keep).tolist():
            without = keep.copy()
            without[at] = False
            rest[at] = left(without)
        j = min(rest, key=rest.__getitem__)
        return j if rest[j] - now < self.threshold / 5 else None

    def _written(self, row: Array) -> str:
        parts = [f"{value:+.3f} {term}" for term, value in zip(self.terms_, row) if value]
        text = " ".join(parts) or "0"
        return text[1:] if text.startswith("+") else text

    def save(self, path: str | Path) -> Path:
        """Write what was found to one file, which ``groundstate.load`` opens."""
        from groundstate.store import save

        check_is_fitted(self, "coef_")
        return save(self, path)

    def coefficient(self, term: str, component: int = 0) -> float:
        """The coefficient of a term by its text, such as ``"u u.x"``."""
        check_is_fitted(self, "coef_")
        if term not in self.terms_:
            raise ValueError(f"{term!r} is no term; they are {', '.join(self.terms_)}")
        return float(self.coef_[component, self.terms_.index(term)])
