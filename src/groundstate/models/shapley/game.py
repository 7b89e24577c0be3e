r"""Rows of any kind as cells that can be mixed: the game whose players are the columns.

:math:`v(S) = \frac{1}{\sum_b w_b}\sum_b w_b f(x_S, b_{\bar S})`: players in S show the cells of the row x,
the others those of background rows b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from groundstate.data import Table
from groundstate.errors import DataError, Unsupported

Floats = NDArray[np.float64]
_BLOCK = 1_000  # mixed rows of numbers that are predicted in one call: what models make of them stays in cache
_TABLES = 20_000  # of cells of any kind, which become a table first


@dataclass(frozen=True)
class Game:
    """Rows and background rows as cells, who owns which cell, and the prediction of mixed cells.

    Attributes
    ----------
    names : of the d players, the columns of the table
    cells, background : (n, p) and (m, p); numbers, or row numbers where columns are of any kind
    players : (p,) the player that owns a cell
    answer : predictions of mixed cells, (rows, p) → (rows, K)
    outputs, units : what the K outputs are, and in which units
    estimator : what reads the cells as numbers; None where cells are row numbers
    scale, shift : (K,) predictions are ``shift + scale ·`` those of the estimator
    block : mixed rows that are predicted in one call
    """

    names: tuple[str, ...]
    cells: NDArray[Any]
    background: NDArray[Any]
    players: NDArray[np.intp]
    answer: Callable[[NDArray[Any]], Floats]
    outputs: tuple[Any, ...]
    units: str
    estimator: Any = None
    scale: float = 1.0
    shift: float = 0.0
    block: int = _BLOCK

    def blocks(self, mixed: NDArray[Any]) -> Iterator[Floats]:
        """Predictions, some rows after others."""
        for lo in range(0, len(mixed), self.block):
            yield self.answer(mixed[lo : lo + self.block])

    def asked(self, mixed: NDArray[Any]) -> Floats:
        """Predictions, (rows, K)."""
        return np.concatenate(list(self.blocks(mixed)))

    def owned(self) -> list[NDArray[np.intp]]:
        """The cells of each player; none of a column that the model leaves out."""
        return [np.flatnonzero(self.players == p) for p in range(len(self.names))]


def game(model: Any, X: Any, background: Any) -> Game:
    """The game of a fitted model for rows X against background rows.

    Parameters
    ----------
    model : a `TablePredictor`, whose players are the columns of its table, or any estimator
    X, background : rows as the model takes them
    """
    own = getattr(model, "_game", None)  # a model of a table knows which numbers a column became
    if own is not None:
        found: Game = own(X, background)
        return found
    if hasattr(X, "columns") or isinstance(X, Table):
        return _of_frame(model, X, background)
    check_is_fitted(model)
    x, back = _matrix(X, "X"), _matrix(background, "background")
    if x.shape[1] != back.shape[1]:
        raise DataError(f"X has {x.shape[1]} columns and background {back.shape[1]}")
    names = tuple(f"x{j}" for j in range(x.shape[1]))
    answer, outputs, units = answers(model)
    return Game(names, x, back, np.arange(x.shape[1]), answer, outputs, units, model)


def answers(model: Any) -> tuple[Callable[[Any], Floats], tuple[Any, ...], str]:
    """What a fitted estimator says about rows, (n, K), what that is of, and its units."""
    if not is_classifier(model):
        if not hasattr(model, "predict"):
            raise Unsupported(
                f"{type(model).__name__} predicts nothing; explain a classifier or a regressor"
            )
        return (
            lambda rows: np.asarray(model.predict(rows), np.float64).reshape(len(rows), -1),
            ("value",), "value",
        )  # fmt: skip
    classes = tuple(np.asarray(model.classes_).tolist())
    if hasattr(model, "predict_proba"):
        return (
            lambda rows: np.asarray(model.predict_proba(rows), np.float64),
            classes, "probability",
        )  # fmt: skip
    if hasattr(model, "decision_function"):
        return (
            lambda rows: _two_dimensional(model.decision_function(rows)),
            classes[-1:] if len(classes) == 2 else classes,
            "score",
        )
    labels = np.asarray(model.classes_)
    return (
        lambda rows: (np.asarray(model.predict(rows))[:, None] == labels).astype(np.float64),
        classes, "vote",
    )  # fmt: skip


def _of_frame(model: Any, X: Any, background: Any) -> Game:
    from groundstate.models.weighted import n_rows

    frames = [v.frame if isinstance(v, Table) else v for v in (X, background)]
    import narwhals.stable.v1 as nw

    a, b = (nw.from_native(v, eager_only=True) for v in frames)
    names = tuple(a.columns)
    pool = nw.concat([a, b.select(list(names))], how="vertical")
    answer, outputs, units = answers(model)

    def gathered(at: NDArray[np.int64]) -> Floats:
        mixed = {n: pool[n][at[:, j]].to_numpy() for j, n in enumerate(names)}
        return answer(nw.from_dict(mixed, backend=pool.implementation).to_native())

    return of_cells(pool.to_polars(), n_rows(a), gathered, outputs, units)


def of_cells(
    pool: pl.DataFrame,
    n: int,
    answer: Callable[[NDArray[Any]], Floats],
    outputs: tuple[Any, ...],
    units: str,
) -> Game:
    """The game of columns of any kind: a cell is the number of the first row with its value.

    Parameters
    ----------
    pool : rows to explain, then background rows
    n : how many of them are explained
    """
    names = tuple(pool.columns)
    row = pl.int_range(pl.len())
    first = pool.select(row.first().over(name).alias(name) for name in names)
    at = first.to_numpy().astype(np.intp)
    return Game(
        names, at[:n], at[n:], np.arange(len(names)), answer, outputs, units, block=_TABLES
    )  # fmt: skip


def _matrix(rows: Any, name: str) -> NDArray[Any]:
    found = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    if found.ndim != 2 or not len(found):
        raise DataError(f"{name} has shape {found.shape}; expected rows of columns, (n, d), n ≥ 1")
    return found


def _two_dimensional(scores: Any) -> Floats:
    found = np.asarray(scores, np.float64)
    return found.reshape(len(found), -1)
