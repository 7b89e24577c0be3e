r"""Bias, variance and noise of a recipe, by fitting it to many training sets.

.. math:: E(y - \hat f(x))^2 = \underbrace{(\bar f - f)^2}_{\text{bias}^2}
          + \underbrace{\mathrm{Var}\hat f}_{\text{variance}} + \underbrace{\sigma^2(x)}_{\text{noise}}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError
from groundstate.evaluate.rows import columns, n_rows, take
from groundstate.evaluate.splits.refits import refits
from groundstate.evaluate.splits.smoother import smoother_matrix
from groundstate.evaluate.theory.loss_decompositions import (
    Domingos,
    Parts,
    bregman_parts,
    domingos_parts,
    log_parts,
    squared_parts,
    zero_one_parts,
)
from groundstate.evaluate.theory.noise_floor import noise_floor

Floats = NDArray[np.float64]
_NAMES = ("squared", "zero_one", "log")
_EVAL = 500  # points at which a recipe is judged when x is drawn anew for every training set


@dataclass(frozen=True)
class BiasVariance(Displayed):
    """Parts of the expected loss, point by point and on average.

    Attributes
    ----------
    x : (m, ...)
        Where the parts are given.
    bias, variance, noise : (m,) or None
        Bias (squared, for squared loss); bias and noise are None where a table does not tell them
        apart.
    bias_and_noise, total : (m,)
    predictions : (D, m) or (D, m, K)
        Of all fits; NaN where a fit saw the row (tables).
    errors : dict
        Monte Carlo standard error of each average.
    domingos : Domingos or None
        For ``form="domingos"``.
    """

    x: Any = field(repr=False)
    bias: Floats | None = field(repr=False)
    variance: Floats = field(repr=False)
    noise: Floats | None = field(repr=False)
    bias_and_noise: Floats = field(repr=False)
    total: Floats = field(repr=False)
    predictions: Floats = field(repr=False)
    errors: dict[str, float]
    loss: str
    domingos: Domingos | None = field(default=None, repr=False)

    def means(self) -> dict[str, float]:
        """Averages over x."""
        parts = {"bias": self.bias, "variance": self.variance, "noise": self.noise,
                 "bias_and_noise": self.bias_and_noise, "total": self.total}  # fmt: skip
        return {name: float(v.mean()) for name, v in parts.items() if v is not None}

    def __str__(self) -> str:
        parts = [
            f"{name} {value:.4g} ± {self.errors[name]:.1g}" if name in self.errors
            else f"{name} {value:.4g}"
            for name, value in self.means().items()
            if name != "bias_and_noise" or self.bias is None
        ]  # fmt: skip
        return f"{self.loss} loss: {', '.join(parts)}"

    def draw(self, ax: Any) -> None:
        """The parts against the first column of x on matplotlib axes."""
        at = np.asarray(self.x, np.float64).reshape(len(self.total), -1)[:, 0]
        order = np.argsort(at)
        names = (
            ("noise", "variance", "bias")
            if self.bias is not None
            else ("variance", "bias_and_noise")
        )
        rows = [np.maximum(getattr(self, name)[order], 0.0) for name in names]
        ax.stackplot(at[order], *rows, labels=names, alpha=0.7)
        ax.set(xlabel="x", ylabel=f"{self.loss} loss")
        ax.legend(frameon=False, fontsize=8)


def bias_variance(
    estimator: Any,
    generator: Any = None,
    X: Any = None,
    y: Any = None,
    n_datasets: int = 200,
    loss: str | Callable[[Any, Any], Any] = "squared",
    *,
    x_eval: Any = None,
    noise_var: Any = None,
    dual_mean: Callable[[Any], Any] | None = None,
    form: Literal["additive", "domingos"] = "additive",
    method: Literal["auto", "exact", "monte_carlo"] = "auto",
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> BiasVariance:
    r"""Split the expected loss of a recipe into bias, variance and noise.

    With a generator the truth is known and all parts are. A fixed design and a fit that is linear in
    y, :math:`\hat y = Sy`, need no training sets at all: bias :math:`Sf - f`, variance
    :math:`\sum_j S_{ij}^2\sigma_j^2`. With a table alone, resamples are judged on the rows they left
    out, which gives the variance and the sum of bias and noise; ``noise_var`` or enough rows with
    the same x separate them.

    Parameters
    ----------
    generator : ``(x, f, sigma)`` with x an array (fixed design) or ``x(rng)``, ``f(x)`` and a number
        or ``sigma(x)``; for labels ``(x, p)`` with ``p(x)`` the chances ``(n, K)``, or of label 1
    X, y : a table instead
    n_datasets : training sets
    loss : ``"squared"``, ``"zero_one"``, ``"log"``, or a Bregman divergence ``loss(truth, prediction)``
        with its ``dual_mean``
    x_eval : where to judge; the fixed design itself, or 500 fresh rows
    form : ``"domingos"`` adds his parts of the 0-1 loss

    Examples
    --------
    >>> from groundstate import LinearRegression
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> found = bias_variance(LinearRegression(), (x, lambda x: np.sin(3 * x[:, 0]), 0.3))
    >>> {name: round(value, 6) for name, value in found.means().items() if name != "total"}
    {'bias': 0.196456, 'variance': 0.009, 'noise': 0.09, 'bias_and_noise': 0.286456}
    """
    if loss not in _NAMES and not (callable(loss) and dual_mean is not None):
        raise ValueError(
            f"loss must be one of {', '.join(_NAMES)}, or a divergence with dual_mean, got {loss!r}"
        )
    if n_datasets < 2:
        raise DataError(f"a variance needs two training sets or more, got {n_datasets}")
    if form == "domingos" and loss != "zero_one":
        raise ValueError("form='domingos' is for loss='zero_one'")
    key = Key.of(random_state)
    if generator is None:
        if X is None or y is None:
            raise DataError("pass a generator (x, f, sigma), or a table X, y")
        return _table(
            estimator, X, np.asarray(y), n_datasets, loss, noise_var, dual_mean, key, n_jobs
        )
    wanted = 2 if loss in ("zero_one", "log") else 3
    if len(generator) != wanted:
        what = "(x, p)" if wanted == 2 else "(x, f, sigma)"
        raise DataError(f"for loss {loss!r} the generator is {what}, got {len(generator)} parts")
    make_x = generator[0]
    fixed = not callable(make_x)
    if x_eval is not None:
        points = x_eval
    else:
        points = make_x if fixed else make_x(key.fold("eval").numpy())[:_EVAL]
    if loss in ("zero_one", "log"):
        p = _two(generator[1](points))
        predicted = _fits(
            estimator, make_x, generator[1], None, points, n_datasets, str(loss), key, p.shape[1]
        )
        return _labels(points, p, predicted, str(loss), form)
    _, f, sigma = generator
    truth = np.asarray(f(points), np.float64)
    noise = np.broadcast_to(_sigma(sigma, points) ** 2, truth.shape).copy()
    S = smoother_matrix(estimator, make_x, points) if fixed and method != "monte_carlo" else None
    if S is not None and loss == "squared":
        mean = S @ np.asarray(f(make_x), np.float64)
        design = np.broadcast_to(
            _sigma(sigma, make_x) ** 2, (len(mean) if S.shape[1] == len(mean) else S.shape[1],)
        )
        bias, variance = np.square(mean - truth), np.square(S) @ design
        total = bias + variance + noise
        nothing = {"bias": 0.0, "variance": 0.0, "total": 0.0}
        return BiasVariance(
            points, bias, variance, noise, bias + noise, total, mean[None], nothing, "squared"
        )
    if method == "exact":
        raise DataError("the exact way needs a fixed design x and a fit that is linear in y")
    predicted = _fits(estimator, make_x, f, sigma, points, n_datasets, "squared", key, 0)
    if callable(loss):
        assert dual_mean is not None
        divergence, middle = loss, dual_mean

        def bregman(predicted: Floats) -> Parts:
            return bregman_parts(truth, predicted, divergence, middle)

        found = _result(points, bregman, predicted, "bregman")
        return replace(found, noise=None)
    return _result(
        points, lambda predicted: squared_parts(predicted, truth, noise), predicted, "squared"
    )


def _fits(
    estimator: Any,
    make_x: Any,
    f: Any,
    sigma: Any,
    points: Any,
    n: int,
    loss: str,
    key: Key,
    k: int,
) -> Floats:
    """Answers at the points of fits to fresh training sets.  # (D, m) or (D, m, K)"""
    out = []
    for i in range(n):
        rng = key.fold("set", i).numpy()
        x = make_x(rng) if callable(make_x) else make_x
        if loss == "squared":
            values = np.asarray(f(x), np.float64)
            y: Any = values + _sigma(sigma, x) * rng.standard_normal(values.shape)
        else:
            p = _two(f(x))
            y = (rng.random((len(p), 1)) > np.cumsum(p, 1)[:, :-1]).sum(1)
        model = refits(estimator, x, y, [np.arange(n_rows(x))], [key.fold("fit", i)])[0]
        out.append(_answers(model, points, loss, k))
    return np.stack(out)


def _answers(model: Any, points: Any, loss: str, k: int) -> Floats:
    """Values, one-hot labels or probabilities, classes a fit never saw at zero."""
    if loss == "squared":
        return np.asarray(model.predict(points), np.float64).reshape(n_rows(points))
    wide = np.zeros((n_rows(points), k))
    if loss == "log":
        wide[:, np.asarray(model.classes_, np.intp)] = model.predict_proba(points)
    else:
        wide[np.arange(len(wide)), np.asarray(model.predict(points), np.intp)] = 1
    return wide


def _labels(points: Any, p: Floats, predicted: Floats, loss: str, form: str) -> BiasVariance:
    if loss == "log":
        return _result(points, lambda predicted: log_parts(p, predicted), predicted, "log")
    found = _result(
        points, lambda predicted: zero_one_parts(p, predicted.mean(0)), predicted, "zero_one"
    )
    if form != "domingos":
        return found
    return replace(found, domingos=domingos_parts(p, predicted.mean(0)))


def _result(
    points: Any, split: Callable[[Floats], Parts], predicted: Floats, loss: str
) -> BiasVariance:
    parts = split(predicted)
    return BiasVariance(
        points, parts.bias, parts.variance, parts.noise, parts.bias + parts.noise, parts.total,
        predicted, _errors(split, predicted), loss,
    )  # fmt: skip


def _errors(split: Callable[[Floats], Parts], predicted: Floats) -> dict[str, float]:
    """Monte Carlo errors of the averages: the jackknife over up to 20 groups of fits."""
    d = len(predicted)
    groups = min(d, 20)
    if d < 3:
        return {}
    place = np.arange(d) % groups
    left = [split(predicted[place != g]) for g in range(groups)]
    out = {}
    for name in ("bias", "variance", "total"):
        values = np.array([float(getattr(parts, name).mean()) for parts in left])
        spread = float(np.square(values - values.mean()).sum())
        out[name] = math.sqrt((groups - 1) / groups * spread)
    return out


def _table(
    estimator: Any, X: Any, y: NDArray[Any], n: int, loss: Any, noise_var: Any, dual_mean: Any,
    key: Key, n_jobs: int | None,
) -> BiasVariance:  # fmt: skip
    """Bootstrap resamples, judged on the rows they left out."""
    if callable(loss):
        raise DataError("a table decomposes squared, zero_one and log loss; use a generator")
    labels = None
    if loss != "squared":
        labels, y = np.unique(y, return_inverse=True)
        y = y.reshape(-1)
    k = 0 if labels is None else len(labels)
    line = WeightLine.of(*columns(X), y)
    hits = [line.bootstrap(key.fold("resample", i)) for i in range(n)]
    rows = [np.repeat(np.arange(len(h)), h) for h in hits]
    models = refits(estimator, X, y, rows, [key.fold("fit", i) for i in range(n)], n_jobs=n_jobs)
    predicted = np.full((n, len(y), *([k] if k else [])), np.nan)
    for i, model in enumerate(models):
        out = np.flatnonzero(hits[i] == 0)
        if len(out):
            predicted[i, out] = _answers(model, take(X, out), loss, k)
    times = (~np.isnan(predicted.reshape(n, len(y), -1)[..., 0])).sum(0)
    at = np.flatnonzero(times > 1)
    if not len(at):
        raise DataError("no row was left out twice; ask for more training sets")
    kept = predicted[:, at]
    if loss == "squared":
        mean = np.nanmean(kept, 0)
        variance, both = np.nanmean(np.square(kept - mean), 0), np.square(y[at] - mean)
    elif loss == "zero_one":
        q = np.nanmean(kept, 0)
        variance, both = (q * (1 - q)).sum(1) / 2, np.square(np.eye(k)[y[at]] - q).sum(1) / 2
    else:
        variance, both = np.empty(len(at)), np.empty(len(at))
        for j in range(len(at)):
            own = kept[:, j][~np.isnan(kept[:, j, 0])]
            parts = log_parts(np.eye(k)[y[at[j]]][None], own[:, None])
            variance[j], both[j] = parts.variance[0], parts.bias[0]
    noise = _noise(X, y, noise_var, loss)
    own_noise = None if noise is None else np.broadcast_to(noise, len(y))[at].astype(np.float64)
    bias = None if own_noise is None else both - own_noise
    return BiasVariance(
        take(X, at), bias, variance, own_noise, both, both + variance, predicted, {}, str(loss)
    )


def _noise(X: Any, y: NDArray[Any], given: Any, loss: str) -> Any:
    if given is not None:
        return np.asarray(given, np.float64)
    if loss == "log":
        return None
    found = noise_floor(X, y, loss)
    if found is None or found.method != "repeated x":
        return None
    return np.asarray(found.risk.estimate)


def _sigma(sigma: Any, x: Any) -> Any:
    return np.asarray(sigma(x) if callable(sigma) else sigma, np.float64)


def _two(p: Any) -> Floats:
    table = np.asarray(p, np.float64)
    return np.stack([1 - table, table], 1) if table.ndim == 1 else table
