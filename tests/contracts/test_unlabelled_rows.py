"""Awkward rows without labels: every model of rows has a finite answer or one clear sentence."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import get_tags
from tests.contracts.test_estimator import QUICK

import groundstate
from groundstate.errors import GroundstateError
from groundstate.registry import models

N = 60
LABELS = np.repeat([0, 1, 2], N // 3)
ROLES = ("clusterer", "density", "transformer", "embedding", "outlier detector")
NAMES = [row.name for row in models if row.rows == "table" and row.role in ROLES]
ANSWERS = ("predict", "transform", "score_samples", "predict_proba", "decision_function", "energy")


def groups() -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(N // 3, 3)) + c for c in ([0, 0, 0], [6, 0, 0], [0, 6, 3])])


def put(value: float) -> NDArray[np.float64]:
    X = groups()
    X[3, 1] = value
    return X


# what a model may refuse, in one sentence
REFUSABLE: dict[str, Callable[[], Any]] = {
    "missing": lambda: put(np.nan),
    "infinite": lambda: put(np.inf),
    "no rows": lambda: groups()[:0],
    "no columns": lambda: groups()[:, :0],
    "one row": lambda: groups()[:1],
    "two rows": lambda: groups()[[0, 25]],
    "one column": lambda: groups()[:, :1],
    "all the same": lambda: np.full((N, 3), 7.0),
    "an empty column": lambda: np.column_stack([groups(), np.full(N, np.nan)]),
    "scales far apart": lambda: groups() * [1e-12, 1.0, 1e12],
    "tiny": lambda: groups() * 1e-12,
    "words": lambda: np.array([["a", "b"], ["c", "d"]] * 30),
    "one axis": lambda: groups()[:, 0],
    "complex": lambda: groups() + 1j,
    "sparse": lambda: csr_matrix(np.abs(groups())),
}
# what every model takes
TAKEN: dict[str, Callable[[], Any]] = {
    "a constant column": lambda: np.column_stack([groups(), np.full(N, 7.0)]),
    "columns twice": lambda: np.column_stack([groups(), groups()[:, 0], 2 * groups()[:, 1]]),
    "rows six times": lambda: np.repeat(groups()[::6], 6, 0),
    "huge": lambda: groups() * 1e12,
    "far away": lambda: groups() + 1e8,
    "single precision": lambda: groups().astype(np.float32),
    "whole numbers": lambda: np.round(groups() * 3).astype(int),
    "a frame": lambda: pd.DataFrame(groups(), columns=list("abc")),
    "a list": lambda: groups().tolist(),
}


def suited(name: str, X: Any) -> Any:
    """Rows that are not negative for the models of such rows."""
    positive = get_tags(getattr(groundstate, name)()).input_tags.positive_only
    if not positive or issparse(X):
        return X
    least = np.nanmin(np.asarray(X, dtype=np.float64), axis=0)
    return (np.asarray(X) - least).tolist() if isinstance(X, list) else X - least


def fitted(name: str, X: Any) -> Any:
    model = getattr(groundstate, name)(**QUICK[name])
    y = inspect.signature(model.fit).parameters.get("y")
    needs = get_tags(model).target_tags.required or (y is not None and y.default is y.empty)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    labels = np.resize(LABELS, n) if n != 2 else np.array([0, 1])
    return model.fit(X, labels) if needs else model.fit(X)


def check_answers(model: Any, X: Any) -> None:
    for method in ANSWERS:
        if hasattr(model, method):
            try:
                told = getattr(model, method)(X)
            except (ValueError, TypeError) as error:  # too few rows, no energy of new rows
                check_sentence(error)
                continue
            values = told.toarray() if issparse(told) else np.asarray(told)
            assert values.dtype.kind != "f" or np.isfinite(values).all(), method
    for place in ("labels_", "embedding_"):
        values = np.asarray(getattr(model, place, 0))
        assert np.isfinite(values).all(), place


def check_sentence(error: Exception) -> None:
    assert isinstance(error, ValueError | TypeError | GroundstateError), repr(error)
    message = str(error)
    assert len(message) > 20 and "\n\n" not in message, message


@pytest.mark.parametrize("situation", [*REFUSABLE, *TAKEN])
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n == "LocallyAdaptiveNormal" else n for n in NAMES],
)
def test_finite_answers_or_one_sentence(name: str, situation: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if situation in TAKEN:
            X = suited(name, TAKEN[situation]())
            check_answers(fitted(name, X), X)
            return
        X = REFUSABLE[situation]()
        try:
            model = fitted(name, X)
        except Exception as error:
            check_sentence(error)
            return
        check_answers(model, X)
