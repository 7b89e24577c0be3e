r"""A synthetic twin of a table: columns of any kind, a generator behind them, rows like the real ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.random import Key
from groundstate.data import read, written
from groundstate.data.tables.schema import Schema
from groundstate.data.tables.table import Table
from groundstate.errors import DataError, Unsupported
from groundstate.models.generative.tables.cells import (
    frame_of,
    learned_column,
    numbers_of,
    plain_of,
    series_of,
)
from groundstate.models.generative.tables.columns import (
    DAY,
    Coded,
    LevelColumn,
    NumberColumn,
    fixed_columns,
)
from groundstate.models.generative.tables.derived import DerivedColumn, derived_columns
from groundstate.models.generative.tables.formulas import (
    FormulaColumn,
    computed,
    given_to,
    is_number,
    learned_formulas,
)
from groundstate.models.generative.tables.gaps import (
    TRIES,
    drawn_given,
    filled,
    flag_of,
    replaced,
)
from groundstate.models.generative.tables.orders import Order, broken, learned_orders

F64 = NDArray[np.float64]
CLOCK = re.compile("%[HIMSTXcf]|^$")  # of the form of a date that has a time of day, or none known
PLACES = 4  # in the jumps of a row at which its density is taken


class TableGenerator(MetaEstimatorMixin, BaseEstimator):
    r"""Rows of a table of any columns, made by any generator.

    .. math:: z_j = \Phi^{-1}(F_j(x_j)), \qquad
        \log p(x) = \log p(z) + \sum_j\log\frac{dz_j}{dx_j}

    Numbers and dates become normal scores of their ranks, few distinct values and words become levels,
    a missing number a level of its own; ids are counted anew, constants stay, free text is left out. Of a
    column that says again what another one says (a class by number and by name) one is learned.
    The generator learns the coded table, and every draw comes back as a table with the columns,
    types and ranges of the training rows.

    Parameters
    ----------
    estimator : generator
        What learns from the coded table, such as ``AutoregressiveDensity()``; it is cloned.

    Attributes
    ----------
    estimator_ : the fitted generator
    columns_ : list of NumberColumn and LevelColumn
    derived_ : dict of DerivedColumn, columns of levels that another one decides, which is learned for both
    formulas_ : dict of FormulaColumn, columns of numbers that one or two others decide, such as an amount
    orders_ : list of pairs of columns (a, b) with a never above b; rows are drawn so
    schema_ : Schema of the training table
    names_ : list of str, the columns of a twin
    left_out_ : list of str, columns of free text
    notes_ : list of str, what was done to which column
    log_prob_kind_ : str, see ``GenerativeEstimator``

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import NormalizingFlow, TableGenerator
    >>> rng = np.random.default_rng(0)
    >>> table = {"size": rng.exponential(size=200), "colour": rng.choice(["red", "blue"], 200)}
    >>> model = TableGenerator(NormalizingFlow(max_iter=2, random_state=0)).fit(table)
    >>> model.sample(3, random_state=0).columns
    ['size', 'colour']
    """

    _store_private: ClassVar[tuple[str, ...]] = ("_ids", "_constants")
    estimator_: Any
    columns_: list[Coded]
    derived_: dict[str, DerivedColumn]
    formulas_: dict[str, FormulaColumn]
    orders_: list[Order]
    names_: list[str]
    schema_: Schema
    left_out_: list[str]
    _ids: list[str]
    _constants: dict[str, list[Any]]

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table: a frame, a mapping of columns, a path, or a ``Table``; y are conditions."""
        table = X if isinstance(X, Table) else read(X)
        if not table.n_rows:
            raise DataError("TableGenerator got no rows to learn from")
        weight = (
            np.ones(table.n_rows) if sample_weight is None else np.asarray(sample_weight, float)
        )
        self.schema_ = table.schema
        kinds = {name: str(table.column(name).kind) for name in table.columns}
        self._ids, constants, self.left_out_ = fixed_columns(kinds)
        self.names_ = [name for name in table.columns if name not in self.left_out_]
        self._constants = {name: table.frame[name].drop_nulls()[:1].to_list() for name in constants}
        self.columns_ = [
            learned_column(table, name, weight)
            for name in self.names_
            if name not in self._ids and name not in constants
        ]
        if not self.columns_:
            raise DataError("no column is left to learn from: all are ids, constants or free text")
        plain = {
            c.name: plain_of(table.frame[c.name], c)
            for c in self.columns_
            if isinstance(c, LevelColumn)
        }
        self.derived_ = derived_columns(self.columns_, plain, weight)
        self.columns_ = [c for c in self.columns_ if c.name not in self.derived_]
        self.notes_ = [f"{name}: free text, left out" for name in self.left_out_]
        self.notes_ += [f"{name}: an id, counted anew" for name in self._ids]
        self.notes_ += [f"{n}: always follows from {d.source}" for n, d in self.derived_.items()]
        numbers = {
            c.name: numbers_of(table.frame[c.name])
            for c in self.columns_
            if isinstance(c, NumberColumn) or is_number(c)
        }
        whole, tied = self.columns_, {d.source for d in self.derived_.values()}
        self.formulas_ = learned_formulas(whole, numbers, weight, tied)
        self.columns_ = [c for c in whole if c.name not in self.formulas_]
        self.notes_ += [f"{n}: always {f.text}" for n, f in self.formulas_.items()]
        self.orders_ = [
            pair
            for pair in learned_orders(whole, numbers, weight)
            if not any({name, *f.sources} >= set(pair) for name, f in self.formulas_.items())
        ]
        self.notes_ += [f"{a}: never above {b}, in new rows neither" for a, b in self.orders_]
        self.n_features_in_ = len(table.columns)
        self.feature_names_in_ = np.array(table.columns, dtype=object)
        inner = self._coded(table, Key.of(getattr(self.estimator, "random_state", 0)).fold("jumps"))
        self.estimator_ = clone(self.estimator).fit(inner, y, sample_weight)
        return self

    def _coded(self, table: Table, key: Key | None, u: float = 0.5) -> pl.DataFrame:
        """The table that the generator learns from; with a key, values that jump are spread at random."""
        made: dict[str, Any] = {}
        for column in self.columns_:
            if isinstance(column, NumberColumn):
                values = numbers_of(table.frame[column.name])
                place: Any = (
                    u if key is None else key.fold(column.name).numpy().uniform(size=len(values))
                )
                made[column.name] = np.nan_to_num(column.scores(values, place))
                if column.missing:
                    made[flag_of(column.name)] = np.where(np.isnan(values), "yes", "no").tolist()
            else:
                made[column.name] = column.words(plain_of(table.frame[column.name], column))
        return pl.DataFrame(made)

    def sample(
        self, n_samples: int = 1, y: Any = None, *, T: float = 1.0, random_state: Any = None
    ) -> pl.DataFrame:
        """New rows, a frame with the columns of the training table.

        Parameters
        ----------
        n_samples : int
        y : what to draw rows of: a label or values where the model was fitted with y, else values of
            columns by name, such as ``{"species": "Gentoo"}``, given which the others are drawn
        T : temperature; below 1 nearer to the modes
        random_state : the seed; the same gives the same rows
        """
        return pl.concat(list(self.iter_samples(n_samples, y, T=T, random_state=random_state)))

    def iter_samples(
        self, n_samples: int, y: Any = None, *, T: float = 1.0, random_state: Any = None
    ) -> Iterator[pl.DataFrame]:
        """The rows of ``sample`` in blocks, so that memory does not grow with their number."""
        check_is_fitted(self, "estimator_")
        if isinstance(y, Mapping):
            yield from drawn_given(self, n_samples, y, T, Key.of(random_state))
            return
        key, start = Key.of(random_state), 0
        blocks = self.estimator_.iter_samples(n_samples, y, T=T, random_state=key.fold("rows"))
        for i, drawn in enumerate(blocks):
            made = self._decoded(drawn, key.fold("rare", i), start)
            made = self._redrawn(made, y, T, key.fold("again", i), start, n_samples)
            start += len(made)
            yield made

    def _redrawn(
        self, made: pl.DataFrame, y: Any, T: float, key: Key, start: int, total: int
    ) -> pl.DataFrame:
        """Rows with new ones in the place of those that break an order."""
        each = np.ndim(y) > 0 and len(y) == total
        for attempt in range(TRIES):
            left = np.flatnonzero(broken(made, self.orders_))
            if not len(left):
                break
            own, given = key.fold(attempt), np.asarray(y)[start + left] if each else y
            drawn = self.estimator_.iter_samples(len(left), given, T=T, random_state=own)
            new = pl.concat([self._decoded(part, own.fold(j)) for j, part in enumerate(drawn)])
            made = replaced(made, left, new, self._ids)
        return made

    def _decoded(self, drawn: Any, key: Key, start: int = 0) -> pl.DataFrame:
        frame = frame_of(drawn)
        n = len(frame)
        made: dict[str, Any] = {}
        plain: dict[str, list[Any]] = {}
        for column in self.columns_:
            if isinstance(column, NumberColumn):
                values: list[Any] = column.values(numbers_of(frame[column.name])).tolist()
                if column.missing:
                    flags = frame[flag_of(column.name)].to_list()
                    values = [None if f == "yes" else v for v, f in zip(values, flags, strict=True)]
                made[column.name] = series_of(column, values)
            else:
                rng = key.fold(column.name).numpy()
                plain[column.name] = column.values(frame[column.name].to_list(), rng)
                made[column.name] = series_of(column, plain[column.name])
        for name, derived in self.derived_.items():
            made[name] = series_of(derived.column, derived.of(plain[derived.source]))
        made.update(computed(pl.DataFrame(made), self.formulas_).to_dict())
        for name in self._ids:
            made[name] = list(range(start + 1, start + n + 1))
        for name, value in self._constants.items():
            made[name] = value * n if value else [None] * n
        return self._typed(pl.DataFrame({name: made[name] for name in self.names_}))

    def _typed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Days and truths as such, as they were written in the training table."""
        days = {c.name for c in self.columns_ if isinstance(c, NumberColumn) and c.unit == DAY}
        made = []
        for name in frame.columns:
            column = self.schema_[name]
            if name in days and (column.dtype == "Date" or not CLOCK.search(column.form)):
                made.append(frame[name].cast(pl.Date))
            elif column.dtype == "Boolean" and frame[name].dtype == pl.String:
                made.append(frame[name].str.to_lowercase() == "true")
        return frame.with_columns(made)

    @property
    def log_prob_kind_(self) -> str:
        check_is_fitted(self, "estimator_")
        kind = str(self.estimator_.log_prob_kind_)
        return "bound" if (self._jumps or self.orders_) and kind == "exact" else kind

    @property
    def _jumps(self) -> bool:
        """Whether some value is shared by many rows."""
        numbers = (c for c in self.columns_ if isinstance(c, NumberColumn))
        return any(bool((np.diff(c.x) == 0).any()) for c in numbers)

    def score_samples(self, X: Any) -> F64:
        """Log density of each row in nats, ``(n_samples,)``; of levels and jumps a log probability.

        −inf of a row that is never drawn: with a level that was not seen in ``fit``, or with two columns
        that disagree where one follows from the other or is never above it. What the others gain by that is
        left out: a lower bound.
        """
        check_is_fitted(self, "estimator_")
        table = self._read(X)
        places = PLACES if self._jumps else 1
        each = [self._log_prob(table, u) for u in (np.arange(places) + 0.5) / places]
        return np.asarray(logsumexp(each, axis=0) - math.log(places))

    def _log_prob(self, table: Table, u: float) -> F64:
        """Log density of rows whose jumping values lie at u of their jumps."""
        coded = self._coded(table, None, u)
        foreign = np.zeros(len(coded), bool)
        for column in self.columns_:
            if isinstance(column, LevelColumn):
                foreign |= coded[column.name].is_null().to_numpy()
                coded = coded.with_columns(pl.col(column.name).fill_null(column.usual))
        foreign |= self._disagrees(table.frame) | broken(table.frame, self.orders_)
        found = np.asarray(self.estimator_.score_samples(coded), np.float64)
        found = np.where(foreign, -np.inf, found)
        for column in self.columns_:
            if isinstance(column, NumberColumn):
                values = numbers_of(table.frame[column.name])
                found = found + np.where(np.isnan(values), 0.0, column.log_slope(values, u))
        return found

    def _disagrees(self, frame: pl.DataFrame) -> NDArray[np.bool_]:
        """Rows in which a column is not what follows from the other one, ``(n,)``."""
        found = np.zeros(len(frame), bool)
        kept = {c.name: c for c in self.columns_ if isinstance(c, LevelColumn)}
        for name, derived in self.derived_.items():
            own = plain_of(frame[name], derived.column)
            theirs = plain_of(frame[derived.source], kept[derived.source])
            found |= ~derived.agrees(theirs, own)
        for name, formula in self.formulas_.items():
            found |= ~formula.agrees(given_to(formula, frame), numbers_of(frame[name]))
        return found

    @property
    def learned_names_(self) -> list[str]:
        """Columns of a twin that were learned, in the order of the table."""
        known = {c.name for c in self.columns_} | set(self.derived_) | set(self.formulas_)
        return [name for name in self.names_ if name in known]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows in nats."""
        return float(self.score_samples(X).mean())

    def impute(self, X: Any, how: str = "sample", *, random_state: Any = None) -> pl.DataFrame:
        """Fill in what is missing; what is known stays as it is.

        Parameters
        ----------
        X : table with gaps; a column that is absent is a gap in every row
        how : "mean" (of levels the most frequent), "minimise" or "sample"
        """
        check_is_fitted(self, "estimator_")
        return filled(self, self._read(X), how, Key.of(random_state))

    def infer(
        self, observed: Any, free: str = "x", mode: str = "sample", *, n: int = 1, T: float = 1.0,
        random_state: Any = None,
    ) -> Any:  # fmt: skip
        """Fill in the gaps of observed rows, or draw rows where none are observed.

        Several draws of observed rows follow each other, numbered in a first column ``draw``.
        """
        if free != "x" or mode == "marginal":
            raise Unsupported(
                "a TableGenerator infers missing cells of rows: free='x', mode min or sample"
            )
        rows = observed.get("x")
        if rows is None:
            return self.sample(n, observed.get("y"), T=T, random_state=random_state)
        if T != 1.0:
            raise Unsupported("a TableGenerator fills gaps at temperature 1 only")
        if mode == "min":
            return self.impute(rows, "minimise", random_state=random_state)
        key = Key.of(random_state)
        seeds = [key, *(key.fold("draw", i) for i in range(1, n))]
        drawn = [self.impute(rows, "sample", random_state=k) for k in seeds]
        if n == 1:
            return drawn[0]
        return pl.concat(
            [f.select(pl.lit(i + 1).alias("draw"), pl.all()) for i, f in enumerate(drawn)]
        )

    def _read(self, X: Any) -> Table:
        """A table with the columns that were learned, absent ones empty."""
        return written(X).table(schema=self.schema_.with_target(None), gaps=True)

    @staticmethod
    def upgrade_learned(learned: dict[str, Any]) -> dict[str, Any]:
        """What generators kept before columns could follow from others or be in order."""
        return {"derived_": {}, "formulas_": {}, "orders_": [], **learned}

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to one file (JSON and safetensors, atomically)."""
        from groundstate.store import save

        check_is_fitted(self, "estimator_")
        return save(self, path)
