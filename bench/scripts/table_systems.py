"""What `tables.py` compares: each system is ``fit(task, X, y, budget, seed)`` to a fitted model.

A model answers ``predict(X)`` and, for labels, ``predict_proba(X)`` with ``classes_``. All run on one
thread, and time is processor time, so that a busy machine is as fair as an idle one. Boosting libraries
search settings at random until the time is spent: a trial learns from four fifths of the rows with early
stopping on the fifth, and the best is learned again from all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, OneHotEncoder, OrdinalEncoder, StandardScaler

CLASSES = "classification"


def kinds(X: pd.DataFrame) -> tuple[list[str], list[str], list[str]]:
    """Columns of numbers, of categories and of texts (strings that are nearly all different)."""
    numbers = [c for c in X if pd.api.types.is_numeric_dtype(X[c]) and X[c].dtype != bool]
    others = [c for c in X if c not in numbers]
    texts = [c for c in others if X[c].nunique() > 0.5 * len(X) and len(X) > 50]
    return numbers, [c for c in others if c not in texts], texts


def preparation(X: pd.DataFrame, *, scaled: bool) -> ColumnTransformer:
    """The usual columns: medians, standard scores or not, one column for each level, TF-IDF."""
    numbers, categories, texts = kinds(X)
    filled: list[Any] = [SimpleImputer(strategy="median")]
    blank = SimpleImputer(strategy="constant", fill_value="missing")
    levels = OneHotEncoder(handle_unknown="ignore") if scaled else None
    levels = levels or OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    parts: list[Any] = [
        ("numbers", make_pipeline(*filled, *([StandardScaler()] if scaled else [])), numbers),
        ("levels", make_pipeline(blank, levels), categories),
    ]
    size = None if scaled else 200  # trees get the most frequent words
    parts += [(c, TfidfVectorizer(sublinear_tf=True, max_features=size), c) for c in texts]
    return ColumnTransformer(parts)


class Strings:
    """A model behind columns of categories as strings, so that booleans and gaps are levels too."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def _of(self, X: pd.DataFrame) -> pd.DataFrame:
        others = [c for c in X if c not in kinds(X)[0]]
        return X.assign(**{c: X[c].astype(object).where(X[c].notna(), "missing").astype(str)
                           for c in others})  # fmt: skip

    def fit(self, X: pd.DataFrame, y: Any) -> Strings:
        self.model.fit(self._of(X), y)
        if hasattr(self.model, "classes_"):
            self.classes_ = self.model.classes_
        return self

    def predict(self, X: pd.DataFrame) -> Any:
        return self.model.predict(self._of(X))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.model.predict_proba(self._of(X))


def dummy(task: str, X: pd.DataFrame, y: Any, budget: float, seed: int) -> Any:
    return (DummyClassifier() if task == CLASSES else DummyRegressor()).fit(X, y)


def linear(task: str, X: pd.DataFrame, y: Any, budget: float, seed: int) -> Any:
    classes = task == CLASSES
    inner = min(5, int(np.unique(y, return_counts=True)[1].min())) if classes else 5
    # one l1_ratio keeps coefficients of the plain penalty; five strengths by cross-validated log loss
    model: Any = RidgeCV(np.logspace(-3, 4, 20))
    if classes:
        model = LogisticRegressionCV(
            Cs=5, cv=max(2, inner), scoring="neg_log_loss", max_iter=500, l1_ratios=(0,),
            use_legacy_attributes=False,
        )  # fmt: skip
    return Strings(make_pipeline(preparation(X, scaled=True), model)).fit(X, y)


def forest(kind: str, task: str, X: pd.DataFrame, y: Any, budget: float, seed: int) -> Any:
    made = {
        "random": (RandomForestClassifier, RandomForestRegressor),
        "extra": (ExtraTreesClassifier, ExtraTreesRegressor),
    }[kind][task != CLASSES]
    model = made(n_estimators=500, random_state=seed, n_jobs=1)
    return Strings(make_pipeline(preparation(X, scaled=False), model)).fit(X, y)


# --- boosting, tuned ------------------------------------------------------------------------------


def _lightgbm(task: str, s: Mapping[str, Any], seed: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    made = LGBMClassifier if task == CLASSES else LGBMRegressor
    return made(
        n_estimators=s["rounds"], learning_rate=s["rate"], num_leaves=2 ** s["depth"] - 1,
        min_child_samples=s["least"], subsample=s["rows"], subsample_freq=1,
        colsample_bytree=s["columns"], reg_lambda=s["l2"], random_state=seed, n_jobs=1, verbose=-1,
    )  # fmt: skip


def _xgboost(task: str, s: Mapping[str, Any], seed: int) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    made = XGBClassifier if task == CLASSES else XGBRegressor
    more = {"early_stopping_rounds": 30} if s.get("watched") else {}
    return made(
        n_estimators=s["rounds"], learning_rate=s["rate"], max_depth=s["depth"],
        min_child_weight=s["least"] / 5, subsample=s["rows"], colsample_bytree=s["columns"],
        reg_lambda=s["l2"], random_state=seed, n_jobs=1, verbosity=0, **more,
    )  # fmt: skip


def _catboost(task: str, s: Mapping[str, Any], seed: int) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    made = CatBoostClassifier if task == CLASSES else CatBoostRegressor
    return made(
        iterations=s["rounds"], learning_rate=s["rate"], depth=min(8, s["depth"]), l2_leaf_reg=s["l2"],
        random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False,
    )  # fmt: skip


BOOSTERS: dict[str, Callable[[str, Mapping[str, Any], int], Any]] = {
    "lightgbm": _lightgbm, "xgboost": _xgboost, "catboost": _catboost,
}  # fmt: skip


def _watched(name: str, model: Any, A: Any, a: Any, B: Any, b: Any) -> int:
    """Fit with early stopping; the number of rounds that was best."""
    if name == "lightgbm":
        from lightgbm import early_stopping

        model.fit(A, a, eval_set=[(B, b)], callbacks=[early_stopping(30, verbose=False)])
        return int(model.best_iteration_ or model.n_estimators)
    if name == "xgboost":
        model.fit(A, a, eval_set=[(B, b)], verbose=False)
        return int(model.best_iteration) + 1
    model.fit(A, a, eval_set=(B, b), early_stopping_rounds=30)
    return int(model.tree_count_)


class Coded:
    """A model of prepared columns and numbered classes, answering in terms of the table."""

    def __init__(self, prepared: Any, model: Any, labels: LabelEncoder | None) -> None:
        self.prepared, self.model, self.labels = prepared, model, labels
        if labels is not None:
            self.classes_ = labels.classes_

    def _of(self, X: pd.DataFrame) -> Any:
        return _dense(self.prepared.transform(Strings(None)._of(X)))

    def predict(self, X: pd.DataFrame) -> Any:
        found = np.asarray(self.model.predict(self._of(X))).ravel()
        return found if self.labels is None else self.labels.inverse_transform(found.astype(int))

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.model.predict_proba(self._of(X))


def _dense(found: Any) -> Any:
    return found.toarray() if hasattr(found, "toarray") else found


def boosted(name: str, task: str, X: pd.DataFrame, y: Any, budget: float, seed: int) -> Any:
    """Random search for half the time, the default first; the best once more on all rows."""
    start, rng = time.process_time(), np.random.default_rng(seed)
    labels = LabelEncoder().fit(y) if task == CLASSES else None
    target = y if labels is None else labels.transform(y)
    prepared = preparation(X, scaled=False).fit(Strings(None)._of(X))
    table = _dense(prepared.transform(Strings(None)._of(X)))
    fair = target if labels is not None and np.bincount(target).min() > 1 else None
    A, B, a, b = train_test_split(table, target, test_size=0.2, random_state=seed, stratify=fair)
    best: tuple[float, dict[str, Any]] | None = None
    longest = 0.0
    while True:
        began = time.process_time()
        s: dict[str, Any] = {
            "rate": 0.1,
            "depth": 6,
            "least": 20,
            "rows": 1.0,
            "columns": 1.0,
            "l2": 1.0,
        }
        if best is not None:
            s = {
                "rate": float(10 ** rng.uniform(-2, -0.5)), "depth": int(rng.integers(2, 9)),
                "least": int(rng.integers(2, 40)), "rows": float(rng.uniform(0.5, 1.0)),
                "columns": float(rng.uniform(0.3, 1.0)), "l2": float(10 ** rng.uniform(-2, 1.5)),
            }  # fmt: skip
        model = BOOSTERS[name](task, {**s, "rounds": 1000, "watched": True}, seed)
        s["rounds"] = max(1, _watched(name, model, A, a, B, b))
        if labels is None:
            loss = float(mean_squared_error(b, model.predict(B)))
        else:
            loss = float(
                log_loss(b, model.predict_proba(B), labels=np.arange(len(labels.classes_)))
            )
        if best is None or loss < best[0]:
            best = loss, s
        longest = max(longest, time.process_time() - began)
        if time.process_time() - start + 2 * longest > budget:  # one trial and the last fit
            break
    final = BOOSTERS[name](task, best[1], seed).fit(table, target)
    return Coded(prepared, final, labels)


def flaml(task: str, X: pd.DataFrame, y: Any, budget: float, seed: int) -> Any:
    from flaml import AutoML

    labels = LabelEncoder().fit(y) if task == CLASSES else None
    target = y if labels is None else labels.transform(y)
    prepared = preparation(X, scaled=False).fit(Strings(None)._of(X))
    table = _dense(prepared.transform(Strings(None)._of(X)))
    metric, model = "log_loss" if labels is not None else "rmse", AutoML()
    with mock.patch("time.time", time.process_time):  # its budget is wall time, ours is not
        model.fit(
            table, target, task=task, metric=metric, time_budget=budget, seed=seed, n_jobs=1,
            verbose=0,
        )  # fmt: skip
    return Coded(prepared, model, labels)


# --- groundstate ----------------------------------------------------------------------------------


def study(task: str, X: pd.DataFrame, y: Any, budget: float, seed: int) -> Any:
    """``groundstate.study`` within the budget of processor time, as a user calls it.

    The fits that its plans count with are timed by the same clock.
    """
    import groundstate
    from groundstate.study.race.clock import Clock

    Clock.now, Clock.alarm = staticmethod(time.process_time), ("ITIMER_PROF", "SIGPROF")
    frame = X.assign(target=y)
    metric = (
        "log_loss" if task == CLASSES else "rmse"
    )  # whole numbers are values then, as for the others
    with mock.patch("time.perf_counter", time.process_time):
        return groundstate.study(
            frame,
            "target",
            budget=budget,
            seed=seed,
            workers=1,
            begun=time.process_time(),
            metric=metric,
        ).model


def single(name: str, task: str, X: pd.DataFrame, y: Any, budget: float, seed: int) -> Any:
    """One model of groundstate with its defaults."""
    import groundstate

    model = getattr(groundstate, name + ("Classifier" if task == CLASSES else "Regressor"))
    return groundstate.TablePredictor(model(random_state=seed)).fit(X, y)


SYSTEMS: dict[str, Callable[..., Any]] = {
    "constant": dummy,
    "groundstate": study,
    "groundstate-boosting": partial(single, "HistGradientBoosting"),
    "groundstate-network": partial(single, "TabularMLP"),
    "lightgbm": partial(boosted, "lightgbm"),
    "xgboost": partial(boosted, "xgboost"),
    "catboost": partial(boosted, "catboost"),
    "random_forest": partial(forest, "random"),
    "extra_trees": partial(forest, "extra"),
    "linear": linear,
    "flaml": flaml,
}
