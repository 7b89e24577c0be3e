r"""Structural risk minimisation: the capacity with the lowest guaranteed risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.rows import n_rows, weights_of
from groundstate.math.stats.bounds_vc import vc


@dataclass(frozen=True)
class Capacity(Displayed):
    """One of the nested models: its dimension, training error, width and their sum."""

    name: str
    d: float
    train_error: float
    width: float
    bound: float


@dataclass(frozen=True)
class StructuralRisk(Displayed):
    """What :func:`srm` found: the chosen name, its fitted model and a row for each model."""

    chosen: str
    model: Any
    rows: tuple[Capacity, ...]


def srm(
    nested_models: Mapping[str, tuple[Any, float]] | Sequence[tuple[Any, float]],
    X: Any,
    y: Any,
    *,
    delta: float = 0.05,
    form: Literal["vapnik", "symmetrised"] = "vapnik",
    key: Key | RandomState = 0,
) -> StructuralRisk:
    r"""Choose among nested classes of growing dimension by training error plus width:

    .. math:: \hat k = \arg\min_k\; \hat R(f_k) + \mathrm{width}(n, \delta/K, d_k) .

    δ is shared among the K classes, so that all bounds hold at once and the chosen one is valid.

    Parameters
    ----------
    nested_models : classifiers with their dimension, ``{name: (estimator, d)}`` or a list of pairs
    X, y : training rows and labels

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 6)); y = X[:, 0] > 0
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> def first(k):
    ...     keep = make_column_transformer(("passthrough", list(range(k))))
    ...     return make_pipeline(keep, LogisticRegression(C=100.0))
    >>> srm({f"first {k}": (first(k), k + 1) for k in (1, 3, 6)}, X, y).chosen
    'first 1'
    """
    if isinstance(nested_models, Mapping):
        named = [(name, *pair) for name, pair in nested_models.items()]
    else:
        named = [(str(i), *pair) for i, pair in enumerate(nested_models)]
    if not named:
        raise DataError("there are no models to choose from; pass estimators with their dimension")
    n, labels = n_rows(X), np.asarray(y)
    rows, fitted, base = [], {}, Key.of(key)
    for name, estimator, d in named:
        if not 0 < d <= 2 * n:
            raise DataError(f"the bound needs 0 < d <= 2n = {2 * n}, {name!r} has d={d}")
        model = fit_clone(estimator, X, labels, weights_of(None, n), base.fold(name))
        error = float(np.mean(np.asarray(model.predict(X)) != labels))
        width = vc(n, delta / len(named), d, form)
        rows.append(Capacity(name, d, error, width, error + width))
        fitted[name] = model
    best = min(rows, key=lambda row: row.bound)
    return StructuralRisk(best.name, fitted[best.name], tuple(rows))
