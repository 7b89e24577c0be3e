r"""How much of y a model explains: R² in three forms, D² of any deviance, McFadden's R²."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from groundstate.errors import DataError, Unreliable
from groundstate.math.distributions import family_of
from groundstate.models.arrays import unwrap

Array = NDArray[np.float64]


def _pair(y: Any, f: Any) -> tuple[Array, Array]:
    a, b = (np.asarray(unwrap(v)[0], np.float64).reshape(-1) for v in (y, f))
    if a.shape != b.shape or not len(a):
        raise DataError(f"y and f need the same length above 0, got {len(a)} and {len(b)}")
    return a, b


def r2(y: Any, f: Any, form: Literal["residual", "explained", "pearson"] = "residual") -> float:
    r"""The coefficient of determination, in the form asked for.

    ============  =========================================================
    residual      :math:`1 - \sum(y - f)^2/\sum(y - \bar y)^2`
    explained     :math:`\sum(f - \bar y)^2/\sum(y - \bar y)^2`
    pearson       :math:`\mathrm{corr}(y, f)^2`
    ============  =========================================================

    They agree only for least squares with an intercept on its own rows. A constant y gives nan and
    a warning.

    Parameters
    ----------
    y, f : ``(n,)``, truth and prediction

    Examples
    --------
    >>> y, f = [1, 2, 2, 4], [0.9, 1.8, 2.7, 3.6]
    >>> [round(r2(y, f, form), 6) for form in ("residual", "explained", "pearson")]
    [0.852632, 0.852632, 0.852632]
    """
    a, b = _pair(y, f)
    if a[0] == a[-1] and not np.ptp(a) > 0:
        warnings.warn("R² of a constant y is not defined", Unreliable, stacklevel=2)
        return float("nan")
    if form == "residual":
        return float(r2_score(a, b))
    spread = a - a.mean()
    if form == "explained":
        return float(((b - a.mean()) ** 2).sum() / (spread**2).sum())
    if form == "pearson":
        other = b - b.mean()
        size = float(np.sqrt((spread**2).sum() * (other**2).sum()))
        return float((spread @ other / size) ** 2) if size > 0 else float("nan")
    raise ValueError(f"form must be 'residual', 'explained' or 'pearson', got {form!r}")


def d2(y: Any, mu: Any, family: Any = "poisson", sample_weight: Any = None) -> float:
    r"""The share of deviance explained, :math:`D^2 = 1 - D(y, \mu)/D(y, \bar y)`.

    Parameters
    ----------
    y, mu : ``(n,)``, truth and predicted means
    family : a name of ``groundstate.math.distributions.FAMILIES`` or a ``Family``
    sample_weight : ``(n,)``

    Examples
    --------
    >>> round(d2([1, 2, 2, 4], [0.9, 1.8, 2.7, 3.6], "gaussian"), 6)  # R²
    0.852632
    """
    a, b = map(torch.as_tensor, _pair(y, mu))
    kind = family_of(family)
    kind.check(a)
    w = torch.ones_like(a)
    if sample_weight is not None:
        w = torch.as_tensor(np.asarray(unwrap(sample_weight)[0], np.float64))
    base = ((w @ a) / w.sum()).expand_as(a)
    whole = float(w @ kind.unit_deviance(a, base))
    if not whole > 0:
        warnings.warn("D² of a constant y is not defined", Unreliable, stacklevel=2)
        return float("nan")
    return 1 - float(w @ kind.unit_deviance(a, b)) / whole


def mcfadden_r2(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    r"""McFadden's :math:`1 - \ell/\ell_0` of a classifier: its log-likelihood against class shares.

    Parameters
    ----------
    model : fitted classifier with ``predict_log_proba``
    X, y, sample_weight : rows

    Examples
    --------
    >>> from groundstate import LogisticRegression
    >>> X, y = [[-1.0], [0.0], [1.0], [2.0]], [0, 1, 0, 1]
    >>> round(mcfadden_r2(LogisticRegression(C=np.inf).fit(X, y), X, y), 6)
    0.153323
    """
    if not hasattr(model, "predict_log_proba"):
        raise DataError(f"{type(model).__name__} gives no probabilities, which McFadden's R² needs")
    labels = np.asarray(unwrap(y)[0]).reshape(-1)
    index = np.searchsorted(model.classes_, labels)
    log_p = np.asarray(unwrap(model.predict_log_proba(X))[0], np.float64)
    w = np.ones(len(labels))
    if sample_weight is not None:
        w = np.asarray(unwrap(sample_weight)[0], np.float64)
    counts = np.bincount(index, w, minlength=len(model.classes_))
    seen = counts[counts > 0]
    if len(seen) < 2:
        warnings.warn("McFadden's R² of a single class is not defined", Unreliable, stacklevel=2)
        return float("nan")
    null = float(seen @ np.log(seen / seen.sum()))
    return 1 - float(w @ log_p[np.arange(len(labels)), index]) / null
