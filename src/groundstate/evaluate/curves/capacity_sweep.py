r"""Error against capacity: models of growing size on the same rows, past the point where they fit
everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.math.linalg.min_norm import interpolation_threshold, solution_norm
from groundstate.models.population.many import fit_many, has_program

if TYPE_CHECKING:
    from matplotlib.figure import Figure

F64 = NDArray[np.float64]
Error = Callable[[Any, Any], float]


def mean_squared(y: Any, predicted: Any) -> float:
    """Mean squared error, without weights.

    >>> mean_squared([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    return float(np.square(np.asarray(predicted, float) - np.asarray(y, float)).mean())


@dataclass(frozen=True)
class CapacitySweep(Displayed):
    """Errors and norms of models by size and seed.

    Attributes
    ----------
    sizes : ``(S,)``
    train, test : errors, ``(S, seeds)``
    norm : Euclidean norm of the parameters, ``(S, seeds)``; NaN where a model shows none
    n : number of training rows
    threshold : least size from which on the mean training error is zero, or None
    """

    sizes: NDArray[np.int64]
    train: F64
    test: F64
    norm: F64
    n: int
    threshold: int | None

    def table(self) -> list[dict[str, float]]:
        """One row per size: means over seeds, and the standard error of the test error."""
        seeds = self.test.shape[1]
        spread = (
            self.test.std(1, ddof=1) / np.sqrt(seeds)
            if seeds > 1
            else np.full(len(self.sizes), np.nan)
        )
        return [
            {
                "size": int(size),
                "train": float(self.train[i].mean()),
                "test": float(self.test[i].mean()),
                "test_error": float(spread[i]),
                "norm": float(self.norm[i].mean()),
            }
            for i, size in enumerate(self.sizes)
        ]

    def plot(self) -> Figure:
        """Training and test error and the norm against size; the line marks the number of rows."""
        from matplotlib.figure import Figure

        fig = Figure(figsize=(8.0, 3.4), layout="constrained")
        left, right = fig.subplots(1, 2)
        for name, values, colour in (
            ("test", self.test, "#d9822b"),
            ("train", self.train, "#3b6fb6"),
        ):
            left.loglog(self.sizes, np.maximum(values.mean(1), 1e-16), color=colour, label=name)
            left.fill_between(
                self.sizes, *np.maximum(np.quantile(values, [0.25, 0.75], axis=1), 1e-16),
                color=colour, alpha=0.2,
            )  # fmt: skip
        right.loglog(self.sizes, self.norm.mean(1), color="#4c9f70")
        for ax, label in ((left, "error"), (right, "norm of the parameters")):
            ax.axvline(self.n, color="grey", linestyle=":", linewidth=1)
            ax.set(xlabel="size", ylabel=label)
        left.legend(frameon=False)
        return fig


def capacity_sweep(
    make_model: Callable[[int, int], Any],
    sizes: Sequence[int],
    data: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    *,
    seeds: int | Iterable[int] = 1,
    error: Error = mean_squared,
    tol: float = 1e-10,
) -> CapacitySweep:
    """Fit models of every size and seed, and compare errors on seen and on new rows.

    Networks of this library train side by side, as one population per shape.

    Parameters
    ----------
    make_model : ``make_model(size, seed)`` gives an object with ``fit(X, y)`` and ``predict(X)``;
        its norm is that of ``coef_`` or ``coefs_`` where it has one
    sizes : ascending capacities, such as numbers of parameters
    data : X_train, y_train, X_test, y_test
    seeds : number of seeds, or the seeds
    error : ``error(y, predicted)``
    tol : training error that counts as zero

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> class First:  # a linear model of the first p columns
    ...     def __init__(self, p): self.p, self.fitted = p, LinearRegression(fit_intercept=False)
    ...     def fit(self, X, y): self.fitted.fit(X[:, :self.p], y)
    ...     def predict(self, X): return self.fitted.predict(X[:, :self.p])
    >>> g = np.random.default_rng(0)
    >>> X, y = g.standard_normal((30, 20)), g.standard_normal(30)
    >>> sweep = capacity_sweep(lambda p, seed: First(p), [5, 10, 20], (X[:10], y[:10], X[10:], y[10:]))
    >>> sweep.threshold, sweep.n
    (10, 10)
    """
    X, y, X_test, y_test = (np.asarray(v) for v in data)
    if len(X) != len(y) or len(X_test) != len(y_test):
        raise DataError(
            f"rows differ: X_train {len(X)}, y_train {len(y)}, X_test {len(X_test)}, y_test {len(y_test)}"
        )
    order = [int(s) for s in sizes]
    if not order or sorted(set(order)) != order:
        raise ValueError(f"sizes must be ascending and not empty, got {list(sizes)}")
    each = list(range(seeds)) if isinstance(seeds, int) else [int(s) for s in seeds]
    if not each:
        raise ValueError("seeds must name at least one seed")
    train, test, norm = (np.full((len(order), len(each)), np.nan) for _ in range(3))
    models = _fitted([make_model(size, seed) for size in order for seed in each], X, y)
    for at, model in enumerate(models):
        cell = divmod(at, len(each))
        train[cell] = error(y, model.predict(X))
        test[cell] = error(y_test, model.predict(X_test))
        norm[cell] = _norm(model)
    threshold = interpolation_threshold(order, train.mean(1), tol)
    return CapacitySweep(np.array(order), train, test, norm, len(X), threshold)


def _fitted(models: list[Any], X: Any, y: Any) -> list[Any]:
    """All models fitted: as one population where their kind can, else one after the other."""
    if len({type(m) for m in models}) == 1 and has_program(models[0]):
        return fit_many(models[0], X, y, settings=[m.get_params(deep=False) for m in models])
    for model in models:
        model.fit(X, y)
    return models


def _norm(model: Any) -> float:
    for name in ("coefs_", "coef_"):
        found = getattr(model, name, None)
        if found is not None:
            return solution_norm(found if name == "coefs_" else np.asarray(found))
    return float("nan")
