"""A table in, answers out: the preparation of columns and an estimator as one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from groundstate.data import Preparation, Schema, Table, read
from groundstate.energy.spaces import Real
from groundstate.errors import DataError, Unsupported
from groundstate.models.restored import restored


def _has(name: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)  # its own error explains best
        return True

    return check


_TREES = ("Tree", "Forest", "Boost", "LGBM", "XGB")


def asks_single_columns(estimator: Any) -> bool:
    """Whether a model asks about one column at a time, so that no scale matters: trees, by name.

    >>> from groundstate import DecisionTreeClassifier, LogisticRegression
    >>> asks_single_columns(DecisionTreeClassifier()), asks_single_columns(LogisticRegression())
    (True, False)
    """
    steps = getattr(estimator, "steps", None)
    inner = steps[-1][1] if steps else getattr(estimator, "estimator", None)
    if inner is not None:  # a pipeline, a bag or a boosted crowd of something
        return asks_single_columns(inner)
    return any(word in type(estimator).__name__ for word in _TREES)


class TablePredictor(MetaEstimatorMixin, BaseEstimator):
    r"""Columns of any kind to numbers, learned from the training rows, then an estimator.

    .. math:: e_\text{table}(\text{row}, y) = e(\varphi(\text{row}), y; \theta),

    where :math:`\varphi` (:class:`groundstate.data.Preparation`) and θ are both learned in ``fit``
    from the rows it is given, so that a fold never sees medians or levels of its held-out rows.

    Parameters
    ----------
    estimator : estimator
        What learns from the prepared numbers; it is cloned, never changed.
    max_categories : int, default=20
        Most levels of a category that get a column each; beyond, the target encodes them.
    text_bins, text_size : int, default=4096 and 50
        Hash bins and directions per text column.
    trees : bool or None
        Whether the numbers are for trees (unscaled numbers, numbered labels); by the estimator
        when None.
    schema : Schema, optional
        What the columns hold; read from the training rows when None.

    Attributes
    ----------
    estimator_ : the fitted estimator
    preparation_ : Preparation
    schema_ : Schema
        Columns of the training table, its target among them when it had one.
    target_ : str
        Name of what is predicted, ``"y"`` when the table did not name it.
    classes_ : (n_classes,) array, for classifiers
    n_features_in_ : int
        Columns of the table, not of the prepared numbers.
    feature_names_in_ : (n_features_in_,) array

    Examples
    --------
    >>> from groundstate import LogisticRegression
    >>> rows = {"size": [1.0, 2.0, None, 4.0], "colour": ["red", "red", "blue", "blue"]}
    >>> model = TablePredictor(LogisticRegression()).fit(rows, ["no", "no", "yes", "yes"])
    >>> model.predict({"colour": ["green", "blue"], "size": [1.5, 3.0]}).tolist()
    ['no', 'yes']
    """

    _store_skip: ClassVar[tuple[str, ...]] = ()
    estimator_: Any
    preparation_: Preparation
    schema_: Schema
    target_: str
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        estimator: Any,
        *,
        max_categories: int = 20,
        text_bins: int = 4096,
        text_size: int = 50,
        trees: bool | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.estimator = estimator
        self.max_categories = max_categories
        self.text_bins = text_bins
        self.text_size = text_size
        self.trees = trees
        self.schema = schema

    @property
    def dropped_(self) -> list[str]:
        """Columns left out as identifiers or constants, known from the schema before any fit."""
        known = getattr(self, "schema_", self.schema)
        if known is None:
            raise AttributeError("dropped_ is known after fit, or with a schema")
        return [name for name in known.features if known[name].kind in ("id", "constant")]

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the preparation and the estimator from training rows.

        Parameters
        ----------
        X
            A `Table` or anything `data.read` takes. A target it names is never a feature.
        y
            Labels or values; the table's own target by default.
        sample_weight
            A weight of 2 is the row twice, for the preparation too.
        """
        table = X if isinstance(X, Table) else read(X, schema=self.schema)
        if y is None and table.target is not None:
            y = table.y
        features = table.features
        if y is not None and len(y) != table.n_rows:
            raise DataError(f"X has {table.n_rows} rows but y has {len(y)}")
        weights: dict[str, Any] = {}
        if sample_weight is not None:
            weights = {"sample_weight": np.asarray(sample_weight)}
        if weights and not has_fit_parameter(self.estimator, "sample_weight"):
            raise Unsupported(
                f"{type(self.estimator).__name__} takes no sample_weight; fit without weights"
            )
        trees = asks_single_columns(self.estimator) if self.trees is None else bool(self.trees)
        self.preparation_ = Preparation(self.max_categories, self.text_bins, self.text_size, trees)
        # labels of many levels are encoded by the target, a training row never by its own
        kind = get_tags(self.estimator).estimator_type
        told: dict[str, Any] = {}
        if kind in ("classifier", "regressor"):
            told = {"y": y, "classes": kind == "classifier"}
        prepared = self.preparation_.fit_transform(features, **weights, **told)
        self.schema_, self.target_ = table.schema, table.target or "y"
        self.n_features_in_ = features.n_columns
        self.feature_names_in_ = np.array(features.columns, dtype=object)
        self.estimator_ = clone(self.estimator).fit(prepared, y, **weights)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    # --- questions -----------------------------------------------------------------------

    def prepare(self, X: Any) -> NDArray[np.float64]:
        """New rows as the numbers the estimator sees, ``(n_samples, n_prepared)``."""
        check_is_fitted(self, "estimator_")
        return self.preparation_.transform(X)

    def _ask(self, question: str, X: Any, *values: Any, **options: Any) -> Any:
        prepared = self.prepare(X)
        return getattr(self.estimator_, question)(prepared, *values, **options)

    @available_if(_has("predict"))
    def predict(self, X: Any) -> Any:
        """Labels, values or clusters of lowest energy, ``(n_samples,)``."""
        return self._ask("predict", X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, ``(n_samples, n_classes)``."""
        return self._ask("predict_proba", X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes, high is likely."""
        return self._ask("decision_function", X)

    @available_if(_has("transform"))
    def transform(self, X: Any) -> Any:
        """Codes, ``(n_samples, n_components)``."""
        return self._ask("transform", X)

    @available_if(_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Log density of each prepared row, ``(n_samples,)``."""
        return self._ask("score_samples", X)

    @available_if(_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The estimator's own score: accuracy, R² or mean log density."""
        if y is None and isinstance(X, Table) and X.target is not None:
            y = X.y
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self._ask("score", X, y, **weights))

    @available_if(_has("energy"))
    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row; what is not passed is marginalised, ``(n_samples,)``."""
        return self._ask("energy", X, y, z)

    @available_if(_has("infer"))
    def infer(
        self,
        observed: Any,
        free: str | tuple[str, ...],
        mode: Literal["min", "marginal", "sample"] = "min",
        *,
        n: int = 1,
        T: float = 1.0,
        random_state: Any = None,
    ) -> Any:
        """Fix what is observed and minimise, marginalise or sample the rest.

        Parameters
        ----------
        observed
            A table (its columns are x), or values by variable: ``"x"``, ``"y"`` or the target's
            name, ``"z"``.
        free
            Variables asked for; the target may be called by its name.
        mode, n, T, random_state
            As in every estimator's ``infer``.

        Returns
        -------
        As in every estimator's ``infer``; values of x come as a frame with the table's columns.
        """
        check_is_fitted(self, "estimator_")
        names = (free,) if isinstance(free, str) else tuple(free)
        asked = tuple(self._variable(name) for name in names)
        named = isinstance(observed, Mapping) and all(
            self._variable(k) in ("x", "y", "z") for k in observed
        )
        given = observed if named else {"x": observed}
        values = {self._variable(k): v for k, v in given.items()}
        if "x" in values:
            values["x"] = self.prepare(values["x"])
        found = self.estimator_.infer(values, asked, mode, n=n, T=T, random_state=random_state)
        if mode == "marginal":
            return found
        out = {k: self._columns(found[v]) if v == "x" else found[v] for k, v in zip(names, asked)}
        return out[free] if isinstance(free, str) else out

    @available_if(_has("sample"))
    def sample(self, n_samples: int = 1, random_state: Any = None) -> pl.DataFrame:
        """Draw rows from the learned law, as a frame with the table's columns.

        A law of rows and labels together gives both.
        """
        check_is_fitted(self, "estimator_")
        seeded = "random_state" in signature(self.estimator_.sample).parameters
        options = {"random_state": random_state} if seeded else {}
        drawn = self.estimator_.sample(n_samples, **options)
        x, *labels = drawn if isinstance(drawn, tuple) else (drawn,)
        rows = self._columns(x)
        if labels and hasattr(self, "classes_"):
            rows = rows.with_columns(pl.Series(self.target_, np.asarray(labels[0])))
        return rows

    def save(self, path: str | Path) -> Path:
        """Write preparation, schema and estimator to one file (JSON and safetensors)."""
        from groundstate.store import save

        check_is_fitted(self, "estimator_")
        return save(self, path)

    def _variable(self, name: str) -> str:
        return "y" if name == self.target_ else name

    def _columns(self, x: Any) -> pl.DataFrame:
        energy = getattr(self.estimator_, "energy_", None)
        if energy is not None and not isinstance(energy.spaces["x"], Real):
            raise Unsupported(
                f"{type(self.estimator_).__name__} draws {energy.spaces['x']!r}, from which the "
                "columns of the table cannot be told; use a model of real numbers"
            )
        rows = np.asarray(x)
        return restored(self.preparation_, rows.reshape(-1, rows.shape[-1]))


__all__ = ["TablePredictor", "asks_single_columns"]
