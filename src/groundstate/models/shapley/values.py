"""Shapley values of rows, and which way to compute them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError, NotApplicable
from groundstate.models.shapley.game import Game, game
from groundstate.models.shapley.sampled import (
    ASKED,
    Seen,
    enumerated_values,
    sampled_values,
    usual_pairs,
)
from groundstate.models.shapley.trees import tree_sum, tree_values

Floats = NDArray[np.float64]
Method = Literal["auto", "trees", "linear", "enumerate", "sample"]
_MOST = 12  # players whose subsets are enumerated


@dataclass(frozen=True)
class ShapleyValues(Displayed):
    r"""What each column adds to each prediction, :math:`f(x) = \text{base} + \sum_j \phi_j`.

    Attributes
    ----------
    columns : (d,) names
    values : (n, d, K)
    base : (K,) mean prediction of the background rows
    prediction : (n, K)
    standard_error : (n, d, K) or None
        Of sampled values; None where they are exact.
    outputs : what the K outputs are: classes, or ``("value",)``
    units : ``"value"``, ``"probability"``, ``"log-odds"``, ``"score"`` or ``"log value"``
    method : ``"trees"``, ``"linear"``, ``"enumerate"`` or ``"sample"``
    """

    columns: tuple[str, ...]
    values: Floats
    base: Floats
    prediction: Floats
    standard_error: Floats | None
    outputs: tuple[Any, ...]
    units: str
    method: str
    cells: pl.DataFrame = field(repr=False)

    @property
    def exact(self) -> bool:
        """Whether the values have no sampling error."""
        return self.standard_error is None

    @property
    def about(self) -> NDArray[np.intp]:
        """The output that each row is explained for: its largest, (n,)."""
        return np.argmax(self.prediction, 1)

    def top(self, row: int, n: int = 3, output: int | None = None) -> list[dict[str, Any]]:
        """The columns that moved one prediction most: name, cell, amount and standard error."""
        k = int(self.about[row]) if output is None else output
        phi = self.values[row, :, k]
        order = np.argsort(-np.abs(phi), kind="stable")[:n]
        return [
            {
                "column": self.columns[j],
                "value": self.cells[self.columns[j]][row],
                "amount": float(phi[j]),
                "standard_error": None
                if self.standard_error is None
                else float(self.standard_error[row, j, k]),
            }
            for j in order.tolist()
            if phi[j] != 0
        ]

    def sentence(self, row: int, n: int = 3) -> str:
        """``size = 4 +0.31, colour = blue +0.12``"""
        parts = [
            f"{e['column']} = {_cell(e['value'])} {'+' if e['amount'] > 0 else '−'}{abs(e['amount']):.3g}"
            for e in self.top(row, n)
        ]
        return ", ".join(parts) or "no column moved it"

    def _facts(self) -> dict[str, object]:
        n, d, _ = self.values.shape
        shown: dict[str, object] = {"rows": n, "columns": d, "units": self.units}
        return shown | {"method": self.method, "exact": self.exact}


def _cell(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def shapley_values(
    model: Any,
    X: Any,
    background: Any,
    *,
    method: Method = "auto",
    sample_weight: Any = None,
    n_pairs: int | None = None,
    random_state: Key | RandomState = 0,
    progress: Seen | None = None,
) -> ShapleyValues:
    r"""How much each column moved each prediction away from that of a typical row.

    .. math:: \phi_j = \sum_{S \not\ni j} \frac{|S|!\,(d-|S|-1)!}{d!}\,[v(S \cup j) - v(S)],\qquad
       v(S) = E_b\, f(x_S, b_{\bar S})

    They add up: :math:`\sum_j \phi_j = f(x) - E_b f(b)`. The columns are those of the table, whatever
    numbers a model codes them as. Absent columns are taken from background rows (*interventional*),
    so a column that the model never uses gets zero.

    Parameters
    ----------
    model
        A fitted `TablePredictor` or estimator.
    X, background
        Rows to explain, and rows that stand for typical ones: some of the training rows.
    method
        ``"trees"`` (exact, sums of trees: single trees, forests, boosting; boosted classes in
        log-odds), ``"linear"`` (exact, :math:`\phi_j = \sum_{i \in j} w_i (x_i - \bar b_i)`),
        ``"enumerate"`` (exact, all subsets of at most 12 columns), ``"sample"`` (orders drawn at
        random in antithetic pairs, with standard errors), ``"auto"`` the first that applies: subsets
        where they take at most 200,000 predictions.
    sample_weight
        Of the background rows; a weight of 2 is the row twice. Not for ``"sample"``.
    n_pairs
        Pairs of orders for ``"sample"``, one background row each. By default 64, and fewer for many
        rows: 4 or more of about 200,000 predictions, with larger standard errors.
    progress
        Is called with the share of the work that is done, where values are sampled.

    Examples
    --------
    >>> from groundstate import RandomForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)); y = 2 * X[:, 0] + (X[:, 1] > 0)
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> why = shapley_values(forest, X[:5], X[:50])
    >>> why.method, why.values.shape
    ('trees', (5, 3, 1))
    >>> bool(np.allclose(why.base + why.values.sum(1), why.prediction))
    True
    """
    played = game(model, X, background)
    if not len(played.background):
        raise DataError("background has no rows; pass some of the training rows")
    weight = _weights(sample_weight, len(played.background))
    few = _subsets(played) <= ASKED and n_pairs is None
    usual = ("trees", "linear", *(("enumerate",) if few else ()), "sample")
    tried = usual if method == "auto" else (method,)
    for name in tried:
        try:
            return _by(
                name, played, X, weight, n_pairs, Key.of(random_state), sample_weight, progress
            )
        except NotApplicable as error:
            if method != "auto":
                raise
            last = error
    raise last


def _by(
    name: str, played: Game, X: Any, weight: Floats, pairs: int | None, key: Key, given: Any,
    progress: Seen | None,
) -> ShapleyValues:  # fmt: skip
    error: Floats | None = None
    outputs, units = played.outputs, played.units
    if name == "trees":
        values, base, outputs, units = _trees(played, weight)
        prediction = base + values.sum(1)
    elif name == "linear":
        values, base, outputs, units = _linear(played, weight)
        prediction = base + values.sum(1)
    elif name == "enumerate":
        if _active(played) > _MOST:
            raise NotApplicable(f"subsets of more than {_MOST} columns are too many; use sample")
        values, base, prediction = enumerated_values(played, weight)
    elif name == "sample":
        if given is not None and not (weight == weight[0]).all():
            weight_rows = np.repeat(np.arange(len(weight)), _whole(weight))
            from dataclasses import replace

            played = replace(played, background=played.background[weight_rows])
        pairs = usual_pairs(len(played.cells), _active(played)) if pairs is None else pairs
        if pairs < 2:
            raise DataError(f"n_pairs is at least 2, got {pairs}")
        values, error, base, prediction = sampled_values(played, pairs, key, progress)
    else:
        raise DataError(f"method is auto, trees, linear, enumerate or sample, got {name!r}")
    if len(outputs) != values.shape[2]:  # several targets
        outputs = tuple(f"value {k}" for k in range(values.shape[2]))
    return ShapleyValues(
        played.names, values, base, prediction, error, outputs, units, name, _cells(played, X)
    )


def _active(played: Game) -> int:
    """Players that own a cell."""
    return len(np.unique(played.players))


def _subsets(played: Game) -> float:
    """Predictions of mixed rows that all subsets of the players take."""
    return len(played.cells) * len(played.background) * 2.0 ** _active(played)


def _trees(played: Game, weight: Floats) -> tuple[Floats, Floats, tuple[Any, ...], str]:
    energy = getattr(played.estimator, "energy_", None)
    if energy is None:
        raise NotApplicable("the model is no sum of trees over numbers")
    found = tree_sum(energy)
    x, back = _as_seen(played)
    values, base = tree_values(found, x, back, weight, played.players, len(played.names))
    if found.units == "value":
        values, base = played.scale * values, played.shift + played.scale * base
    elif played.scale != 1.0 or played.shift != 0.0:
        raise NotApplicable("a scaled target has no log-odds")
    outputs = played.outputs[-1:] if len(base) < len(played.outputs) else played.outputs
    return values, base, outputs, found.units


def _as_seen(played: Game) -> tuple[Floats, Floats]:
    """Cells as the trees see them: levels of categories as numbers."""
    rows = getattr(played.estimator, "_rows", None)
    if rows is None:
        raise NotApplicable("the model is no sum of trees over numbers")
    x, back = (rows(v)[0].detach().cpu().numpy() for v in (played.cells, played.background))
    return x, back


def _linear(played: Game, weight: Floats) -> tuple[Floats, Floats, tuple[Any, ...], str]:
    """Closed form, where the predictions are the linear ones that ``coef_`` says."""
    model = played.estimator
    coef = getattr(model, "coef_", None)
    if coef is None or played.cells.dtype.kind not in "fiub":
        raise NotApplicable("the model has no coefficients of its columns")
    W = np.atleast_2d(np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef, np.float64))
    b = np.atleast_1d(np.asarray(getattr(model, "intercept_", 0.0), np.float64))
    back = np.asarray(played.background, np.float64)
    if W.shape[1] != back.shape[1] or b.shape not in ((len(W),), (1,)):
        raise NotApplicable("the coefficients are not those of the columns")
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict
    predicted = np.asarray(ask(played.background), np.float64).reshape(len(back), -1)
    straight = back @ W.T + b
    if predicted.shape != straight.shape or not np.allclose(
        predicted, straight, rtol=1e-6, atol=1e-8
    ):
        raise NotApplicable("the predictions are no linear function of the columns")
    share = weight / weight.sum()
    steps = (np.asarray(played.cells, np.float64) - share @ back)[:, :, None] * W.T  # (n, p, K)
    owner = (played.players[:, None] == np.arange(len(played.names))).astype(np.float64)  # (p, d)
    values = np.einsum("npk,pd->ndk", steps, owner)
    base = share @ straight
    outputs, units = played.outputs, "value"
    if hasattr(model, "decision_function"):
        units = "log-odds" if hasattr(model, "predict_proba") and len(W) == 1 else "score"
        outputs = outputs[-1:] if len(W) < len(outputs) else outputs
    return played.scale * values, played.shift + played.scale * base, outputs, units


def _weights(given: Any, m: int) -> Floats:
    if given is None:
        return np.ones(m)
    weight = np.asarray(given, np.float64)
    if (
        weight.shape != (m,)
        or not np.isfinite(weight).all()
        or (weight < 0).any()
        or not weight.any()
    ):
        raise DataError(
            f"sample_weight is one finite number of at least zero per background row, ({m},)"
        )
    return weight


def _whole(weight: Floats) -> NDArray[np.intp]:
    if (weight != np.round(weight)).any():
        raise DataError("sampled values take whole weights of background rows only")
    return weight.astype(np.intp)


def _cells(played: Game, X: Any) -> pl.DataFrame:
    frame = getattr(X, "frame", X)
    if isinstance(frame, pl.DataFrame) and set(played.names) <= set(frame.columns):
        return frame.select(list(played.names))
    if hasattr(frame, "columns"):
        import narwhals.stable.v1 as nw

        found: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
        return found.select(list(played.names))
    if isinstance(frame, dict):
        return pl.DataFrame(frame).select(list(played.names))
    values = np.asarray(frame)
    return pl.DataFrame({n: values[:, j] for j, n in enumerate(played.names)})
