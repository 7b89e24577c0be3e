"""Awkward but honest data: every supervised model gives a right answer or one clear sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.utils import get_tags
from tests.contracts.test_estimator import QUICK

import groundstate
from groundstate.errors import GroundstateError
from groundstate.registry import models

N = 60
SUPERVISED = [
    row.name for row in models if row.role in ("classifier", "regressor") and row.rows == "table"
]


class Case(NamedTuple):
    X: Any
    y: NDArray[Any]
    least: float  # score on the training rows that a right answer has


def _rows(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    X = X[np.argsort(X[:, 0])]
    X[:, 0] += np.where(np.arange(N) < N // 2, -1.0, 1.0)  # a gap of two between the halves
    return X, X[:, 0] + 0.1 * rng.normal(size=N)


def _target(values: NDArray[np.float64], classes: bool) -> NDArray[Any]:
    return np.where(values > 0, "yes", "no") if classes else values


def separable(classes: bool) -> Case:
    X, y = _rows()
    return Case(X, _target(y, classes), 0.9 if classes else 0.5)


def collinear(classes: bool) -> Case:
    X, y = _rows()
    return Case(np.column_stack([X, X @ [1.0, 2.0, 3.0], 2 * X[:, 0]]), _target(y, classes), 0.5)


def constant_column(classes: bool) -> Case:
    X, y = _rows()
    return Case(np.column_stack([X, np.full(N, 7.0)]), _target(y, classes), 0.5)


def more_columns_than_rows(classes: bool) -> Case:
    X, y = _rows()
    wide = np.column_stack([X, np.random.default_rng(1).normal(size=(N, 2 * N))])[::3]
    return Case(wide, _target(y[::3], classes), 0.4)


def tiny_scale(classes: bool) -> Case:
    X, y = _rows()
    return Case(X * 1e-12, _target(y, classes), -1.0)


def huge_scale(classes: bool) -> Case:
    X, y = _rows()
    return Case(X * 1e12, _target(y, classes), -1.0)


def mixed_scales(classes: bool) -> Case:
    X, y = _rows()
    return Case(X * [1e-12, 1.0, 1e12], _target(y, classes), -1.0)


def constant_target(classes: bool) -> Case:
    X, _ = _rows()
    return Case(X, np.full(N, "no") if classes else np.full(N, 3.0), 1.0)


def missing_column(classes: bool) -> Case:
    X, y = _rows()
    return Case(np.column_stack([X, np.full(N, np.nan)]), _target(y, classes), 0.5)


CASES: list[Callable[[bool], Case]] = [
    separable,
    collinear,
    constant_column,
    more_columns_than_rows,
    tiny_scale,
    huge_scale,
    mixed_scales,
    constant_target,
    missing_column,
]
# y must be positive or a count: the same situations with a target they take
POSITIVE = ("GammaRegressor", "PoissonRegressor", "TweedieRegressor", "GLM")


def _suited(name: str, case: Case) -> Case:
    X, y = case.X, case.y
    tags = get_tags(getattr(groundstate, name)())
    if tags.input_tags.positive_only or name in ("MultinomialNB", "CategoricalNB"):
        X = X - np.fmin.reduce(X, axis=0)
        if name == "CategoricalNB":
            spread = np.fmax.reduce(X, axis=0)
            X = np.round(X / np.where(spread > 0, spread, 1.0) * 3)
    if name in POSITIVE and y.dtype.kind == "f":
        y = np.exp(y / 3)
    return Case(X, y, case.least)


@pytest.mark.parametrize("situation", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", SUPERVISED)
def test_right_answer_or_one_sentence(name: str, situation: Callable[[bool], Case]) -> None:
    classes = models[name].role == "classifier"
    case = _suited(name, situation(classes))
    model = getattr(groundstate, name)(**QUICK[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(case.X, case.y)
        except (ValueError, GroundstateError, ArithmeticError, np.linalg.LinAlgError) as error:
            message = str(error)
            assert 20 < len(message) < 400 and "\n\n" not in message, message
            assert situation in REFUSABLE or name in REFUSES.get(situation.__name__, ()), message
            return
    told = model.predict(case.X)
    assert len(told) == len(case.y)
    if classes:
        assert set(told) <= set(case.y)
    else:
        assert np.isfinite(told).all()
    if situation is constant_target and name not in SHRINKS:
        same = told == case.y if classes else np.isclose(told, case.y, rtol=1e-2)
        assert same.all()
    elif situation is more_columns_than_rows and name in TOO_FEW_ROWS:
        assert np.ptp(told) == 0.0  # the mean
    elif name not in BLIND and situation is not constant_target and case.least > 0:
        assert model.score(case.X, case.y) >= case.least


# situations in which a model may say no: one class, an empty column
REFUSABLE = (constant_target, missing_column)
# and the models that may say no elsewhere, with the reason in their message
REFUSES: dict[str, tuple[str, ...]] = {
    "more_columns_than_rows": ("QuadraticDiscriminantAnalysis",),
    "collinear": ("QuadraticDiscriminantAnalysis",),
    "constant_column": ("QuadraticDiscriminantAnalysis",),
}
# models whose training score says little here: columns read as yes/no, counts or categories,
# strong default penalties, a score that is a likelihood
BLIND = ("BernoulliNB", "MultinomialNB", "CategoricalNB", "ComplementNB", "MixtureDensityRegressor")
BLIND += POSITIVE
TOO_FEW_ROWS = ("HistGradientBoostingRegressor",)  # for its leaves of twenty
SHRINKS = ("KernelRidge",)  # has no intercept, so that a constant is shrunk too


@pytest.mark.parametrize(
    "name",
    [n for n in SUPERVISED if get_tags(getattr(groundstate, n)()).input_tags.categorical],
)
def test_ten_thousand_categories(name: str) -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(10_000, size=12_000)
    frame = pd.DataFrame(
        {"kind": pd.Categorical([f"k{c}" for c in code]), "x": rng.normal(size=len(code))}
    )
    classes = models[name].role == "classifier"
    y = _target(frame["x"].to_numpy(), classes)
    model = getattr(groundstate, name)(**QUICK[name])
    try:
        model.fit(frame, y)
    except ValueError as error:
        assert "categor" in str(error) and len(str(error)) < 400
        return
    unseen = pd.DataFrame({"kind": pd.Categorical(["new", "k1"]), "x": [2.0, -2.0]})
    assert len(model.predict(unseen)) == 2
    assert model.score(frame, y) > 0.6
