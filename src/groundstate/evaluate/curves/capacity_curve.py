r"""Risk against capacity on one table: bias, variance, norm, the interpolation threshold, and what
comes after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.curves.capacity_sweep import CapacitySweep, _norm
from groundstate.evaluate.rows import n_rows, sides, take
from groundstate.evaluate.splits.refits import refits
from groundstate.evaluate.splits.three_way import split as split_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
EXACT = 1e-8  # of the target variance: a training risk below it is zero


@dataclass(frozen=True)
class CapacityCurve(Displayed):
    """Squared risk of models of growing capacity.

    Attributes
    ----------
    capacities : (S,)
    train, test : (S, R)
        Risk of R fits to different training sets.
    variance, bias_and_noise : (S,)
        Of the predictions for the test rows; they sum to the mean test risk. With the true values
        of the test rows (``truth``) also ``bias``.
    parameters : (S,) number of parameters, -1 where unknown
    norm : (S, R) Euclidean norm of the parameters, NaN where a model shows none
    n : training rows
    threshold : first capacity with a training risk below 1e-8 of the target variance, or None
    peak, second_descent : capacity of the largest test risk around the threshold, and of the least
        beyond it, when risk falls again there; else None
    """

    capacities: NDArray[np.int64]
    train: Floats = field(repr=False)
    test: Floats = field(repr=False)
    variance: Floats = field(repr=False)
    bias_and_noise: Floats = field(repr=False)
    bias: Floats | None = field(repr=False)
    parameters: NDArray[np.int64] = field(repr=False)
    norm: Floats = field(repr=False)
    n: int
    threshold: int | None
    peak: int | None
    second_descent: int | None

    def __str__(self) -> str:
        best = int(self.capacities[self.test.mean(1).argmin()])
        text = f"least test risk {self.test.mean(1).min():.4g} at capacity {best}"
        if self.threshold is not None:
            text += f"; {self.n} rows are fitted exactly from capacity {self.threshold} on"
        if self.second_descent is not None:
            text += f"; risk peaks at {self.peak} and falls again until {self.second_descent}"
        return text

    def plot(self) -> Figure:
        """Risks and norms against capacity; the dotted line marks the number of rows."""
        return CapacitySweep(self.capacities, self.train, self.test, self.norm, self.n,
                             self.threshold).plot()  # fmt: skip


def capacity_curve(
    make_estimator: Callable[[int], Any],
    capacities: Sequence[int],
    X: Any,
    y: Any,
    *,
    split: Any = None,
    repeats: int = 5,
    train_size: int | None = None,
    truth: Any = None,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> CapacityCurve:
    """Fit models of every capacity to several training sets and take the test risk apart.

    Parameters
    ----------
    make_estimator : ``make_estimator(capacity)``, an unfitted regressor
    capacities : ascending
    split : (train rows, test rows) or a split; half and half by default
    repeats : training sets R, drawn without replacement from the training rows
    train_size : rows of each; two thirds of the training rows by default, all of them for one
        repeat
    truth : ``(N,)`` noise-free targets, to tell bias from noise

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.random.default_rng(0).normal(size=(60, 20))
    >>> def first(p):  # a linear model of the first p columns
    ...     pick = FunctionTransformer(lambda X: X[:, :p])
    ...     return make_pipeline(pick, LinearRegression(fit_intercept=False))
    >>> found = capacity_curve(first, [4, 12, 20], X, X[:, 0] + np.cos(X[:, 1]), train_size=12)
    >>> found.threshold, found.n, found.parameters.tolist()
    (12, 12, [4, 12, 20])
    """
    order = [int(c) for c in capacities]
    if not order or sorted(set(order)) != order:
        raise ValueError(f"capacities must be ascending and not empty, got {list(capacities)}")
    target, key = np.asarray(y, np.float64), Key.of(random_state)
    if target.shape != (n_rows(X),):
        raise DataError(f"y has shape {target.shape}; expected one number per row of X")
    if split is None:
        split = split_rows(X, None, (0.5, 0.5), random_state=key.fold("split"))
    pool, test = sides(split)
    default = len(pool) if repeats == 1 else 2 * len(pool) // 3
    size = default if train_size is None else int(train_size)
    if not 2 <= size <= len(pool):
        raise DataError(f"train_size is between 2 and the {len(pool)} training rows, got {size}")
    rows = [
        np.sort(key.fold("rows", r).numpy().choice(pool, size, replace=False))
        for r in range(repeats)
    ]
    keys = [key.fold("fit", r) for r in range(repeats)]
    held = take(X, test)
    shape = (len(order), repeats)
    train_risk, test_risk, norm = (np.empty(shape) for _ in range(3))
    predicted = np.empty((len(order), repeats, len(test)))
    counted = np.empty(len(order), np.int64)
    for i, capacity in enumerate(order):
        models = refits(make_estimator(capacity), X, target, rows, keys, n_jobs=n_jobs)
        for r, model in enumerate(models):
            seen = np.asarray(model.predict(take(X, rows[r])), np.float64).reshape(-1)
            predicted[i, r] = np.asarray(model.predict(held), np.float64).reshape(-1)
            train_risk[i, r] = np.square(seen - target[rows[r]]).mean()
            norm[i, r] = _norm(_last(model))
        counted[i] = parameter_count(models[0])
    test_risk = np.square(predicted - target[test]).mean(2)
    middle = predicted.mean(1)
    variance = np.square(predicted - middle[:, None]).mean((1, 2))
    both = np.square(middle - target[test]).mean(1)
    bias = None
    if truth is not None:
        bias = np.square(middle - np.asarray(truth, np.float64)[test]).mean(1)
    limit = EXACT * float(target[pool].var())
    exact = np.flatnonzero(train_risk.mean(1) < limit)
    threshold = order[int(exact[0])] if len(exact) else None
    peak, second = _descent(order, test_risk.mean(1), int(exact[0]) if len(exact) else None)
    return CapacityCurve(
        np.array(order), train_risk, test_risk, variance, both, bias, counted, norm, size,
        threshold, peak, second,
    )  # fmt: skip


def parameter_count(model: Any) -> int:
    """Number of parameters: of a torch module, or of a fitted model with coefficients; else -1.

    Examples
    --------
    >>> import torch
    >>> parameter_count(torch.nn.Linear(10, 3))
    33
    """
    if hasattr(model, "parameters") and callable(model.parameters):
        return sum(int(p.numel()) for p in model.parameters())
    last = _last(model)
    module = getattr(last, "module_", None)
    if module is not None:
        return parameter_count(module)
    for weights, offsets in (("coefs_", "intercepts_"), ("coef_", "intercept_")):
        found = getattr(last, weights, None)
        if found is not None:
            extra = getattr(last, offsets, None)
            fitted = getattr(last, "fit_intercept", True)
            return _size(found) + (_size(extra) if extra is not None and fitted else 0)
    tree = getattr(last, "tree_", None)
    return int(getattr(tree, "n_leaves", -1)) if tree is not None else -1


def _size(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return sum(_size(v) for v in value)
    return int(np.size(value))


def _last(model: Any) -> Any:
    steps = getattr(model, "steps", None)
    return steps[-1][1] if steps else model


def _descent(order: list[int], risk: Floats, at: int | None) -> tuple[int | None, int | None]:
    """The peak next to the threshold, and the least risk beyond, where it falls by a tenth."""
    if at is None or at >= len(order) - 1:
        return None, None
    near = range(max(0, at - 1), min(len(order), at + 2))
    top = max(near, key=lambda i: risk[i])
    if top >= len(order) - 1:
        return None, None
    low = top + 1 + int(risk[top + 1 :].argmin())
    if not math.isfinite(risk[top]) or risk[low] > 0.9 * risk[top]:
        return None, None
    before = risk[:top].min(initial=math.inf)
    # a descent needs a hill: the peak stands above what smaller models had
    return (order[top], order[low]) if before < risk[top] else (None, None)
