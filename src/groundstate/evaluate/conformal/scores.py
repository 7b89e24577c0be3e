r"""How strange an outcome is under a model: the scores that conformal prediction ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError
from groundstate.evaluate.fitting import gives_std

Floats = NDArray[np.float64]


def centre_scale(model: Any, X: Any, score: str, scale: Any = None) -> tuple[Floats, Floats]:
    """Predictions and the unit in which their errors are measured.  # (n,), (n,)"""
    if score == "normalised" and scale is None:
        if not gives_std(model):
            raise DataError(
                "normalised intervals need a spread: a model with predict(return_std=True), or "
                "scale=, a fitted model or function of X"
            )
        mean, spread = model.predict(X, return_std=True)
        return _flat(mean), np.maximum(_flat(spread), 1e-12)
    mean = _flat(model.predict(X))
    if score == "absolute":
        return mean, np.ones(len(mean))
    spread = scale.predict(X) if hasattr(scale, "predict") else scale(X)
    return mean, np.maximum(_flat(spread), 1e-12)


def band(model: Any, X: Any) -> tuple[Floats, Floats]:
    """The two ends that a quantile model gives.

    A pair of models, or one with ``predict_quantiles`` of at least two quantiles, or whose
    ``predict`` has two or more columns.
    """
    if isinstance(model, tuple):
        low, high = (_flat(m.predict(X)) for m in model)
    else:
        table = np.asarray(
            model.predict_quantiles(X) if hasattr(model, "predict_quantiles") else model.predict(X),
            np.float64,
        )
        if table.ndim != 2 or table.shape[1] < 2:
            raise DataError(
                "cqr needs two quantiles: pass a pair (low model, high model), or a model with "
                "predict_quantiles"
            )
        low, high = table[:, 0], table[:, -1]
    return np.minimum(low, high), np.maximum(low, high)


def class_scores(p: Floats, score: str, u: Floats | None = None) -> Floats:
    r"""Strangeness of every class.  # (n, K)

    ``"lac"``: :math:`1 - p_k`. ``"aps"``: the probability of all classes at least as likely,
    less a random share u of the class's own where u is given.
    """
    if score == "lac":
        return 1 - p
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, 1)
    total = np.cumsum(ranked, 1)
    if u is not None:
        total = total - u[:, None] * ranked
    out = np.empty_like(p)
    np.put_along_axis(out, order, total, 1)
    return out


def quantile(scores: Floats, level: float) -> float:
    r"""The :math:`\lceil(n+1)\,\text{level}\rceil`-th smallest score, infinite when there is none.

    >>> quantile(np.arange(1.0, 10.0), 0.9), quantile(np.arange(5.0), 0.9)
    (9.0, inf)
    """
    n = len(scores)
    k = int(np.ceil((n + 1) * level - 1e-9))
    return float(np.partition(scores, k - 1)[k - 1]) if 1 <= k <= n else np.inf


def _flat(values: Any) -> Floats:
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, np.float64)
    return array.reshape(len(array))
