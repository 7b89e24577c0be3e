"""A table in, answers out: the preparation of columns and an estimator as one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from groundstate.data import Preparation, Schema, Table, read
from groundstate.energy.spaces import Real
from groundstate.errors import DataError, Unsupported
from groundstate.models.tables.dequantise import dequantised
from groundstate.models.tables.explained import Explained
from groundstate.models.tables.restored import kept, opened, restored
from groundstate.models.tables.scaled_target import TargetScale, scale_for
from groundstate.models.traits import Traits, asks_single_columns, takes_sparse_rows
from groundstate.models.words_read import reads_words, with_words


def _has(name: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)  # its own error explains best
        return True

    return check


class TablePredictor(Explained, MetaEstimatorMixin, BaseEstimator):
    r"""Columns of any kind to numbers, learned from the training rows, then an estimator.

    .. math:: e_\text{table}(\text{row}, y) = e(\varphi(\text{row}), y; \theta),

    where :math:`\varphi` (:class:`groundstate.data.Preparation`) and θ are both learned in ``fit``
    from the rows it is given, so that a fold never sees medians or levels of its held-out rows.
    With a scaled target the estimator learns :math:`\tilde y = (y - m)/s`, with mean and spread of
    the training rows, and every answer comes in the target's units: values, intervals and draws are
    :math:`m + s\tilde y`, the energy of a distribution of y gains :math:`\log s`, so that :math:`e^{-e}` is a
    density of y, and any other energy is :math:`e(\varphi(\text{row}), \tilde y)` as it is.

    Parameters
    ----------
    estimator : estimator
        What learns from the prepared numbers; it is cloned, never changed.
    max_categories : int, default=20
        Most levels of a category that get a column each; beyond, the target encodes them.
    text_bins, text_size, text_words : int, default=4096, 50 and 256
        Hash bins and directions per text column that becomes dense numbers; most words that are read.
    trees : bool or None
        Whether the numbers are for trees (unscaled numbers, numbered labels); by the estimator
        when None.
    sparse : bool or None
        Whether text becomes sparse terms instead of few directions; by the estimator when None.
    schema : Schema, optional
        What the columns hold; read from the training rows when None.
    scale_target : bool or None
        Whether a regressor learns from a target of mean 0 and spread 1. When None those do that
        need it: networks, and kernel machines and Gaussian processes that centre nothing
        themselves, but no distribution of counts or of positive values.
    dequantise : bool, default=False
        For densities: spread values that come in steps over their step before learning, so that
        none grows without bound at a value that many rows share. Takes no ``sample_weight``.

    Attributes
    ----------
    estimator_ : the fitted estimator
    target_scale_ : TargetScale or None
        Mean and spread of the target in the training rows, where it is scaled.
    steps_ : (n_prepared,) array or None, the step of every prepared column that is spread
    preparation_ : Preparation
    schema_ : Schema of the training table, with its target when it had one
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

    traits = Traits(prepares=True)

    _store_skip: ClassVar[tuple[str, ...]] = ()
    estimator_: Any
    preparation_: Preparation
    target_scale_: TargetScale | None = None
    steps_: NDArray[np.float64] | None = None
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
        text_words: int = 256,
        trees: bool | None = None,
        sparse: bool | None = None,
        schema: Schema | None = None,
        scale_target: bool | None = None,
        dequantise: bool = False,
    ) -> None:
        self.estimator = estimator
        self.max_categories = max_categories
        self.text_bins = text_bins
        self.text_size = text_size
        self.text_words = text_words
        self.trees = trees
        self.sparse = sparse
        self.schema = schema
        self.scale_target = scale_target
        self.dequantise = dequantise

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
        prepared, target = self._learn_preparation(X, y, sample_weight)
        weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
        unfitted = with_words(self.estimator, self.preparation_.word_columns())
        return self._take(unfitted.fit(prepared, target, **weights))

    def _learn_preparation(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Learn all but the estimator; what that learns from."""
        table = X if isinstance(X, Table) else read(X, schema=self.schema)
        if y is None and table.target is not None:
            y = table.y
        features = table.features
        if y is not None and len(y) != table.n_rows:
            raise DataError(f"X has {table.n_rows} rows but y has {len(y)}")
        weight = None if sample_weight is None else np.asarray(sample_weight)
        if weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise Unsupported(
                f"{type(self.estimator).__name__} takes no sample_weight; fit without weights"
            )
        trees = asks_single_columns(self.estimator) if self.trees is None else bool(self.trees)
        sparse = takes_sparse_rows(self.estimator) if self.sparse is None else bool(self.sparse)
        positive = get_tags(self.estimator).input_tags.positive_only
        words = self.text_words if reads_words(self.estimator) else 0
        sizes = self.max_categories, self.text_bins, self.text_size
        self.preparation_ = Preparation(*sizes, trees, sparse, positive, words)
        # labels of many levels are encoded by the target, a training row never by its own
        targets: dict[str, Any] = {}
        if (kind := get_tags(self.estimator).estimator_type) in ("classifier", "regressor"):
            targets = {"y": y, "classes": kind == "classifier"}
        prepared = self.preparation_.fit_transform(features, weight, **targets)
        self.schema_, self.target_ = table.schema, table.target or "y"
        self.n_features_in_ = features.n_columns
        self.feature_names_in_ = np.array(features.columns, dtype=object)
        self.target_scale_ = scale_for(self.estimator, self.scale_target, y, sample_weight)
        if self.dequantise:
            prepared, self.steps_ = dequantised(prepared, sample_weight)
        return prepared, self._there(y)

    def _take(self, fitted: Any) -> Self:
        self.estimator_ = fitted
        if hasattr(fitted, "classes_"):
            self.classes_ = fitted.classes_
        return self

    def _around(self, fitted: Any, settings: Mapping[str, Any]) -> Self:
        """A clone with these settings, this preparation and a fitted estimator."""
        own = clone(self).set_params(**settings)
        own.__dict__.update({k: v for k, v in vars(self).items() if k.endswith("_")})
        return own._take(fitted)

    def _there(self, y: Any) -> Any:
        """The target as the estimator knows it."""
        return y if self.target_scale_ is None or y is None else self.target_scale_.there(y)

    def _back(self, y: Any) -> Any:
        """The estimator's values in the target's units."""
        return y if self.target_scale_ is None else self.target_scale_.back(y)

    def _energy_shift(self, given: bool, T: float = 1.0) -> float:
        """What an energy gains when y is in the target's units."""
        scale = self.target_scale_
        return 0.0 if scale is None else scale.energy_shift(self._is_distribution(), given, T)

    def _is_distribution(self) -> bool:
        energy = getattr(self.estimator_, "energy_", None)
        return "y" in getattr(energy, "normalised", ())

    # --- questions -----------------------------------------------------------------------

    def prepare(self, X: Any) -> Any:
        """New rows as the numbers the estimator sees, ``(n_samples, n_prepared)``, dense or sparse."""
        check_is_fitted(self, "estimator_")
        return self.preparation_.transform(X)

    def _ask(self, question: str, X: Any, *values: Any, **options: Any) -> Any:
        prepared = self.prepare(X)
        return getattr(self.estimator_, question)(prepared, *values, **options)

    @available_if(_has("predict"))
    def predict(self, X: Any, **options: Any) -> Any:
        """Labels, values or clusters of lowest energy, ``(n_samples,)``.

        Options are those of the estimator's own ``predict``, such as ``return_std=True``, which
        gives the standard deviations too.
        """
        if not options:
            return self._back(self._ask("predict", X))
        unknown = set(options) - set(signature(self.estimator.predict).parameters)
        if unknown:
            raise Unsupported(
                f"predict of {type(self.estimator).__name__} has no option {min(unknown)!r}"
            )
        found = self._ask("predict", X, **options)
        if self.target_scale_ is None or not (
            options.get("return_std") or options.get("return_cov")
        ):
            return self._back(found)
        power = 1 if options.get("return_std") else 2
        return self._back(found[0]), found[1] * self.target_scale_.scale**power

    @available_if(_has("predict_interval"))
    def predict_interval(self, X: Any, level: float = 0.9) -> Any:
        """The interval that holds the value with probability ``level``, ``(n_samples, 2)``."""
        found = self._ask("predict_interval", X, level)
        return np.moveaxis(self._back(np.moveaxis(np.asarray(found), -1, 0)), 0, -1)

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
        found = float(self._ask("score", X, self._there(y), **weights))
        if getattr(type(self.estimator_), "score", None) is RegressorMixin.score:
            return found  # R² knows no units
        return found - self._energy_shift(given=True) * self._is_distribution()

    @available_if(_has("energy"))
    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row; what is not passed is marginalised, ``(n_samples,)``."""
        return self._ask("energy", X, self._there(y), z) + self._energy_shift(y is not None)

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
            name, ``"z"``. Where x is free too, its missing cells are inferred and the others stay.
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
        rows: Table | None = None
        if "x" in values and "x" in asked:
            given_x = values["x"]
            rows = given_x if isinstance(given_x, Table) else read(given_x, schema=self.schema_)
            values["x"] = opened(self.preparation_, rows)
        elif "x" in values:
            values["x"] = self.prepare(values["x"])
        if "y" in values:
            values["y"] = self._there(values["y"])
        found = self.estimator_.infer(values, asked, mode, n=n, T=T, random_state=random_state)
        if mode == "marginal":
            return found + self._energy_shift("y" in values, T)
        out = {k: self._answer(v, found[v]) for k, v in zip(names, asked)}
        if rows is not None:  # what is asked for there has a value, which nobody knows
            own = names[asked.index("x")]
            out[own] = kept(rows, self._columns(found["x"], present=True))
        return out[free] if isinstance(free, str) else out

    @available_if(_has("sample"))
    def sample(self, n_samples: int = 1, random_state: Any = None) -> pl.DataFrame:
        """Draw rows from the learned distribution, as a frame with the table's columns.

        A distribution of rows and labels together gives both.
        """
        check_is_fitted(self, "estimator_")
        if next(iter(signature(self.estimator_.sample).parameters)) == "X":
            raise Unsupported(
                f"{type(self.estimator_).__name__} draws the outcome of given rows and has no distribution of "
                f"the rows themselves; use infer(rows, {self.target_!r}, 'sample', n={n_samples})"
            )
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

    def _answer(self, variable: str, values: Any) -> Any:
        if variable == "x":
            return self._columns(values)
        return self._back(values) if variable == "y" else values

    def _columns(self, x: Any, *, present: bool = False) -> pl.DataFrame:
        energy = getattr(self.estimator_, "energy_", None)
        if energy is not None and not isinstance(energy.spaces["x"], Real):
            raise Unsupported(
                f"{type(self.estimator_).__name__} draws {energy.spaces['x']!r}, from which the "
                "columns of the table cannot be read back; use a model of real numbers"
            )
        rows = np.asarray(x)
        return restored(self.preparation_, rows.reshape(-1, rows.shape[-1]), present=present)
