"""A scikit-learn pipeline from the kinds of columns: what every fit has to learn by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from groundstate.data import read
from groundstate.errors import DataError

LEVELS = 20  # more levels are encoded by the target
_TEXT, _BINS = 50, 2**12
_DAY = np.timedelta64(1, "D")


def default_pipeline(X: Any, estimator: Any) -> Any:
    """Preparation by kind of column, then the estimator; unfitted, so that each fold learns its own.

    =========  ============================================================================
    numeric    median where missing and a flag for it; standardised for models that need it
    category   one column per level up to 20, else the cross-fitted ``TargetEncoder``; numbers
               of the levels for trees
    date       year, month, weekday, days since 1970
    text       hashed words, TF-IDF, 50 directions (``TruncatedSVD``)
    id, const  left out; ``dropped_`` of the returned pipeline lists them
    =========  ============================================================================

    Parameters
    ----------
    X : frame of pandas or polars, or anything ``data.read`` takes; the columns of the features
    estimator : unfitted; a pipeline comes back as it is

    Returns
    -------
    sklearn.pipeline.Pipeline of ``columns`` (a ColumnTransformer) and ``model``

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> rows = {"size": [1.0, 2.0, None, 4.0] * 5, "colour": ["red", "blue"] * 10, "same": [1] * 20}
    >>> X, y = pd.DataFrame(rows), [0, 1] * 10
    >>> made = default_pipeline(X, LogisticRegression())
    >>> made.dropped_
    ['same']
    >>> made.fit(X, y).score(X, y)
    1.0
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    if hasattr(estimator, "steps"):
        return estimator
    table = read(X)
    table = table.features if table.target is not None else table
    trees = _by_trees(estimator)
    kinds: dict[str, list[str]] = {}
    for column in table.schema:
        kind = column.kind
        if kind == "category" and not trees:
            kind = "category" if column.n_unique <= LEVELS else "levels"  # type: ignore[assignment]
        kinds.setdefault(kind, []).append(column.name)
    steps = _steps(trees, estimator)
    parts: list[tuple[str, Any, Any]] = [
        (kind, steps[kind](), names)
        for kind, names in kinds.items()
        if kind in steps and kind != "text"
    ]
    parts += [(f"text {name}", steps["text"](), name) for name in kinds.get("text", [])]
    if not parts:
        raise DataError("there is no usable column: every one is constant or an identifier")
    columns = ColumnTransformer(parts, remainder="drop", sparse_threshold=0.0)
    made = Pipeline([("columns", columns), ("model", estimator)])
    made.dropped_ = [*kinds.get("id", []), *kinds.get("constant", [])]
    return made


def _steps(trees: bool, estimator: Any) -> dict[str, Any]:
    from sklearn.base import is_classifier
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        FunctionTransformer,
        OneHotEncoder,
        OrdinalEncoder,
        StandardScaler,
        TargetEncoder,
    )

    def filled() -> Any:
        return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)

    def numbers() -> Any:
        return filled() if trees else make_pipeline(filled(), StandardScaler())

    def levels() -> Any:
        classes = is_classifier(estimator)
        parts: Any = StratifiedKFold if classes else KFold
        kind = "auto" if classes else "continuous"
        cv = parts(5, shuffle=True, random_state=0)
        return make_pipeline(_Words(), TargetEncoder(target_type=kind, cv=cv))

    def category() -> Any:
        if trees:
            coded = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
            return make_pipeline(_Words(), coded)
        return make_pipeline(_Words(), OneHotEncoder(handle_unknown="ignore", sparse_output=False))

    def dates() -> Any:
        parts = FunctionTransformer(date_parts)
        return make_pipeline(parts, filled()) if trees else make_pipeline(
            parts, filled(), StandardScaler()
        )  # fmt: skip

    def text() -> Any:
        return make_pipeline(
            FunctionTransformer(_sentences),
            HashingVectorizer(n_features=_BINS, alternate_sign=False),
            TfidfTransformer(),
            _Directions(TruncatedSVD(_TEXT, random_state=0)),
        )

    return {"numeric": numbers, "category": category, "levels": levels, "date": dates, "text": text}


class _Words(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Labels as text, missing ones too."""

    def fit(self, X: Any, y: Any = None) -> _Words:
        """Nothing to learn."""
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Text of every value.  # (n, d)"""
        import pandas as pd

        table = np.asarray(X, dtype=object)
        return np.where(pd.isna(table), "missing", table.astype(str)).astype(object)


class _Directions(TransformerMixin, BaseEstimator):
    """Directions of a sparse matrix, no more than it has."""

    def __init__(self, svd: Any) -> None:
        self.svd = svd

    def fit(self, X: Any, y: Any = None) -> _Directions:
        """Learn the directions."""
        from sklearn.base import clone

        most = max(1, min(self.svd.n_components, min(X.shape) - 1))
        self.svd_ = clone(self.svd).set_params(n_components=most).fit(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Coordinates.  # (n, k)"""
        return np.asarray(self.svd_.transform(X))


def date_parts(X: Any) -> NDArray[np.float64]:
    """Year, month, weekday and days since 1970 of every column of dates, NaN where missing.

    >>> date_parts(np.array([["2024-02-29"]], dtype="datetime64[D]")).tolist()
    [[2024.0, 2.0, 3.0, 19782.0]]
    """
    import pandas as pd

    table = np.asarray(X, dtype=object)
    out = []
    for column in table.T:
        days = pd.to_datetime(pd.Series(column), errors="coerce")
        elapsed = (days - pd.Timestamp("1970-01-01")) / _DAY
        out += [days.dt.year, days.dt.month, (np.floor(elapsed) + 3) % 7, elapsed]
    return np.stack([np.asarray(part, np.float64) for part in out], 1)


def _sentences(X: Any) -> list[str]:
    values = np.asarray(X, dtype=object).reshape(-1)
    return ["" if value is None or value != value else str(value) for value in values]


def _by_trees(estimator: Any) -> bool:
    """Whether a model asks questions about single columns, so that scale and order do not matter."""
    name = type(estimator).__name__
    return any(word in name for word in ("Tree", "Forest", "Boost", "LGBM", "XGB", "CatBoost"))


__all__ = ["LEVELS", "date_parts", "default_pipeline"]
