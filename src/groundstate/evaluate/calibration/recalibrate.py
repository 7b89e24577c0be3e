r"""Recalibration on validation rows, and the temperature of energies.

.. math:: p(y\mid x) \propto e^{-\beta e(x, y)}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate.rows import take

Floats = NDArray[np.float64]
_NEWTON = 100


@dataclass(frozen=True)
class Temperature(Displayed):
    """One inverse temperature for all energies.

    Attributes
    ----------
    beta : float
        Above 1 the model was too timid, below 1 overconfident.
    before, after : float
        Log loss on the rows it was fitted to.
    """

    beta: float
    before: float
    after: float

    def predict_proba(self, energy: Any) -> Floats:
        """softmax(−βe); the order of the classes does not change.  # (n, K)"""
        return np.asarray(softmax(-self.beta * np.asarray(energy, np.float64), axis=1))

    def __str__(self) -> str:
        return f"β {self.beta:.4g}: log loss {self.before:.4g} before, {self.after:.4g} after"


def fit_temperature(energy: Any, y: Any, sample_weight: Any = None) -> Temperature:
    r"""The inverse temperature of least log loss, by Newton's method in one dimension.

    :math:`L(\beta) = \frac1n\sum_i \beta e_i(y_i) + \log\sum_k e^{-\beta e_i(k)}` is convex, with
    :math:`L' = \overline{e(y) - E_pe}` and :math:`L'' = \overline{\mathrm{Var}_pe}`.

    Parameters
    ----------
    energy : ``(n, K)`` energies of validation rows (minus logits)
    y : ``(n,)`` class numbers

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(4000, 3))
    >>> y = (logits + rng.gumbel(size=(4000, 3))).argmax(1)
    >>> round(fit_temperature(-5 * logits, y).beta, 1)
    0.2
    """
    e, labels = np.asarray(energy, np.float64), np.asarray(y)
    if e.ndim != 2 or labels.shape != (len(e),):
        raise ShapeError(f"energies are (n, K) for n labels, got {e.shape} and {labels.shape}")
    if labels.dtype.kind not in "iub" or labels.min() < 0 or labels.max() >= e.shape[1]:
        raise DataError(f"labels are class numbers 0 to {e.shape[1] - 1}")
    w = np.ones(len(e)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    w = w / w.sum()
    e = e - e.min(1, keepdims=True)
    own = e[np.arange(len(e)), labels]

    def loss(beta: float) -> float:
        return float(w @ (beta * own + logsumexp(-beta * e, axis=1)))

    scale = float(e.std()) or 1.0
    beta, low, high = 1.0 / scale, 0.0, np.inf
    for _ in range(_NEWTON):
        p = softmax(-beta * e, axis=1)
        mean = (p * e).sum(1)
        slope = float(w @ (own - mean))
        curve = float(w @ ((p * e * e).sum(1) - mean**2))
        low, high = (beta, high) if slope < 0 else (low, beta)
        step = beta - slope / curve if curve > 0 else np.inf
        if not low < step < high:
            step = 2 * beta if np.isinf(high) else (low + high) / 2
        if abs(step - beta) <= 1e-12 * beta or step > 1e8 / scale:
            beta = step
            break
        beta = step
    return Temperature(float(beta), loss(1.0), loss(beta))


def recalibrate(
    model: Any,
    X: Any,
    y: Any,
    method: Literal["sigmoid", "isotonic", "temperature"] = "temperature",
    *,
    split: Any = None,
    part: str = "val",
) -> Any:
    """scikit-learn's ``CalibratedClassifierCV`` of a fitted model on validation rows.

    Parameters
    ----------
    model : fitted on other rows
    X, y : the validation rows, or with ``split`` the whole table
    split : ``SplitRows``; its ``part`` is used
    part : ``"val"``; asking for the test rows raises

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); X = np.hstack([X, X, X]); y = X[:, 0] + rng.normal(size=300) > 0
    >>> model = GaussianNB().fit(X[:150], y[:150])
    >>> fixed = recalibrate(model, X[150:], y[150:])
    >>> bool((fixed.predict(X) == model.predict(X)).all())
    True
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    if split is not None:
        rows = chosen_rows(split, part, "calibrated")
        X, y = take(X, rows), np.asarray(y)[rows]
    return CalibratedClassifierCV(FrozenEstimator(model), method=method).fit(X, y)


def chosen_rows(split: Any, part: str, doing: str) -> NDArray[np.intp]:
    """Rows of the part asked for; the test rows are refused."""
    if part == "test":
        raise DataError(f"nothing is {doing} on test rows; use the validation rows (part='val')")
    if part not in ("train", "val"):
        raise ValueError(f"part must be 'train' or 'val', got {part!r}")
    rows = np.asarray(getattr(split, part))
    if not len(rows):
        raise DataError(f"the split has no {part} rows; split with sizes=(.7, .2, .1)")
    return rows
