"""`Preparation`: from a table's columns to numbers, learned from training rows only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from groundstate.data.messages import listing
from groundstate.data.preparation.encoders import (
    Clock,
    Date,
    Encoder,
    Numeric,
    Scaling,
    days_between,
)
from groundstate.data.preparation.levels import (
    Category,
    Items,
    Ordinal,
    TargetMean,
    weigh_levels,
)
from groundstate.data.preparation.target import Target
from groundstate.data.preparation.terms import Terms
from groundstate.data.preparation.topics import Text
from groundstate.data.preparation.weighted import check_weights, tally
from groundstate.data.preparation.words import Words
from groundstate.data.reader import read
from groundstate.data.tables.schema import Column, Schema
from groundstate.data.tables.table import Table
from groundstate.errors import DataError


class Preparation:
    r"""Columns of every kind to a real matrix, with what was learned from the training rows.

    =========  =====================================================================
    numeric    the median where missing and a column that says so; :math:`(v - \bar v)/s`; of hours of
               the day also their sine and cosine
    category   one column per level up to `max_categories`; with more levels the mean of the
               target by level, cross-fitted; unseen levels are no error
    date       days elapsed, year, month, day, weekday, hour and their cycles, each like a number;
               days between every two columns of dates
    list       one column per item, and their number
    text       hashed words by TF-IDF along `text_size` directions; with `sparse` words, pairs of
               words and pieces of words by TF-IDF; with `words` the numbers of its words in order
    id         left out, as are constant columns
    =========  =====================================================================

    For trees, which ask about one column at a time, numbers are not scaled and labels are numbered.
    A weight of 2 gives exactly what the row twice gives, whatever the order of the rows.

    Parameters
    ----------
    max_categories
        Most levels that get a column each (before the one for missing). Beyond, the target stands
        for them; without a target the heaviest levels keep theirs and the rest shares one.
    text_bins, text_size
        Number of hash bins and of directions per text column.
    trees
        Whether the numbers are for trees.
    sparse
        Whether free text becomes thousands of columns of terms, mostly zero. A table with text is
        then prepared as a sparse matrix, any other as ever.
    positive
        Whether the numbers are for a model of counts: numbers lie between 0 and 1 instead of
        around 0, and no label is encoded by the target.
    words
        Most words of a text that are numbered in their order, for a model that reads them; 0: text
        becomes terms or directions.

    Attributes
    ----------
    schema_ : Schema
        The features it was fitted on.
    encoders_ : dict of Encoder
        By column.
    gaps_ : dict of Numeric
        Days between two columns of dates, by their names; their numbers come last.
    notes_ : tuple of str
        Which columns were left out, and why.

    Examples
    --------
    >>> train = read({"size": [1.0, 3.0, None], "colour": ["red", "blue", "red"]})
    >>> prep = Preparation().fit(train)
    >>> prep.feature_names_out()
    ['size', 'size missing', 'colour=blue', 'colour=red']
    >>> prep.transform({"size": [2.0], "colour": ["green"]}).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    """

    schema_: Schema
    encoders_: dict[str, Encoder]
    gaps_: dict[tuple[str, str], Numeric]
    notes_: tuple[str, ...]

    def __init__(
        self,
        max_categories: int = 20,
        text_bins: int = 4096,
        text_size: int = 50,
        trees: bool = False,
        sparse: bool = False,
        positive: bool = False,
        words: int = 0,
    ) -> None:
        self.max_categories = max_categories
        self.text_bins = text_bins
        self.text_size = text_size
        self.trees = trees
        self.sparse = sparse
        self.positive = positive
        self.words = words

    def fit(
        self,
        table: Any,
        sample_weight: ArrayLike | None = None,
        *,
        y: Any = None,
        classes: bool | None = None,
    ) -> Preparation:
        """Learn medians, means, scales and levels from the features of training rows.

        Parameters
        ----------
        table
            A `Table` or anything `read` takes; its target is left aside.
        sample_weight
            Weights (n,); rows of weight zero count as absent.
        y
            Targets (n,), for labels with many levels.
        classes
            Whether they are classes; by default when they are not real numbers.
        """
        self.fit_transform(table, sample_weight, y=y, classes=classes)
        return self

    def fit_transform(
        self,
        table: Any,
        sample_weight: ArrayLike | None = None,
        *,
        y: Any = None,
        classes: bool | None = None,
    ) -> Any:
        """`fit`, and the training rows as numbers (n, d).

        They are those of `transform` but for labels that the target encodes: a training row is
        encoded by rows of other parts, never by its own target.
        """
        for name in ("max_categories", "text_bins", "text_size"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 2:
                raise DataError(f"{name} must be a whole number of at least 2")
        features = (table if isinstance(table, Table) else read(table)).features
        weights = check_weights(sample_weight, features.n_rows)
        target = Target(features, y, classes)
        encoders: dict[str, Encoder] = {}
        blocks: list[Any] = []
        dropped: dict[str, list[str]] = {"id": [], "constant": []}
        for column in features.schema:
            if column.kind in dropped:
                dropped[column.kind].append(column.name)
                continue
            values = features.frame[column.name]
            encoder, block = self._learn(column, values, weights, target)
            encoders[column.name] = encoder
            blocks.append(encoder.transform(values) if block is None else block)
        if not encoders:
            raise without_features(features)
        self.schema_ = features.schema
        self.notes_ = tuple(
            f"{'identifier' if kind == 'id' else 'constant'} columns left out: {listing(names)}"
            for kind, names in dropped.items()
            if names
        )
        self.encoders_ = encoders
        self.gaps_ = self._learn_gaps(features, weights)
        return _joined([*blocks, *self._gap_blocks(features.frame)])

    @property
    def _scaling(self) -> Scaling:
        return "none" if self.trees else "positive" if self.positive else "standard"

    def _learn(
        self,
        column: Column,
        values: pl.Series,
        weights: NDArray[np.float64] | None,
        target: Target,
    ) -> tuple[Encoder, Any]:
        """The encoder of a column, and its training rows where they are not its transform."""
        kind, scaling = column.kind, self._scaling
        if kind == "numeric":
            if column.form == "clock" and scaling == "standard" and _of_day(values):
                return Clock.fit(values, weights), None
            return Numeric.fit(values, weights, scaling), None
        if kind == "date":
            return Date.fit(values, weights, scaling), None
        if kind == "list":
            most = 2 * self.max_categories
            return Items.fit(values, weights, column.form, most, scaling), None
        if kind == "text":
            if self.words:
                return Words.fit(values, weights, self.words), None
            if self.sparse:
                return Terms.fit_transform(values, weights)
            return Text.fit(values, weights, self.text_bins, self.text_size), None
        if self.trees:
            return Ordinal.fit(values, weights), None
        if (
            not self.positive
            and target.known
            and len(weigh_levels(values, weights)[0]) > self.max_categories
        ):
            return TargetMean.cross_fit(values, target.values, target.labels, target.part, weights)
        return Category.fit(values, weights, self.max_categories), None

    def _learn_gaps(
        self, features: Table, weights: NDArray[np.float64] | None
    ) -> dict[tuple[str, str], Numeric]:
        """Days between dates, where they vary."""
        dates = features.schema.of_kind("date")[:_MOST_DATES]
        found = {}
        for later, earlier in combinations(reversed(dates), 2):
            days = days_between(features.frame[later], features.frame[earlier])
            if len(tally(days, weights)[0]) > 1:
                learned = Numeric.of(days, weights, self._scaling)
                found[later, earlier] = replace(learned, indicator=False)  # the dates have theirs
        return found

    def _gap_blocks(self, frame: pl.DataFrame) -> list[NDArray[np.float64]]:
        pairs = self.gaps_.items()
        return [
            n.apply(days_between(frame[later], frame[earlier])) for (later, earlier), n in pairs
        ]

    def transform(self, table: Any) -> Any:
        """The features as numbers (n, d), finite everywhere; sparse where terms of a text are.

        Columns are found by name, so their order and further columns do not matter.
        """
        self._check_fitted()
        features = self._conform(table)
        blocks = [
            encoder.transform(features[name]) for name, encoder in self.encoders_.items()
        ]  # each (n, k)
        return _joined([*blocks, *self._gap_blocks(features)])

    def feature_names_out(self) -> list[str]:
        """Names of the d columns of `transform`."""
        self._check_fitted()
        named = [encoder.names(name) for name, encoder in self.encoders_.items()]
        named.append([f"{later} after {earlier}" for later, earlier in self.gaps_])
        return [name for names in named for name in names]

    def word_columns(self) -> tuple[tuple[int, int], ...]:
        """Where the words of each text stand in a row: their first column and the one behind the last."""
        self._check_fitted()
        found, at = [], 0
        for name, encoder in self.encoders_.items():
            behind = at + len(encoder.names(name))
            if isinstance(encoder, Words):
                found.append((at, behind))
            at = behind
        return tuple(found)

    def to_state(self) -> dict[str, Any]:
        """Everything learned, as plain JSON values."""
        self._check_fitted()
        encoders = {n: {"kind": e.kind, **e.to_state()} for n, e in self.encoders_.items()}
        return {
            "max_categories": self.max_categories,
            "text_bins": self.text_bins,
            "text_size": self.text_size,
            "trees": self.trees,
            "sparse": self.sparse,
            "positive": self.positive,
            "words": self.words,
            "gaps": [[*pair, n.to_state()] for pair, n in self.gaps_.items()],
            "schema": self.schema_.to_dict(),
            "notes": list(self.notes_),
            "encoders": encoders,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Preparation:
        """The fitted preparation that `to_state` described."""
        try:
            made = cls(
                state["max_categories"],
                state["text_bins"],
                state["text_size"],
                state["trees"],
                state.get("sparse", False),  # older files have none of these
                state.get("positive", False),
                state.get("words", 0),
            )
            made.gaps_ = {(a, b): Numeric(**n) for a, b, n in state.get("gaps", ())}
            made.schema_ = Schema.from_dict(state["schema"])
            made.notes_ = tuple(state["notes"])
            made.encoders_ = {n: _encoder(e) for n, e in state["encoders"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"this is not the state of a Preparation: {error!r}") from None
        return made

    def _check_fitted(self) -> None:
        if not hasattr(self, "encoders_"):
            raise DataError("this Preparation has learned nothing yet; call fit(table) first")

    def _conform(self, table: Any) -> pl.DataFrame:
        if isinstance(table, Table):
            # a few new rows may look constant or like identifiers; then they are read again
            known = table.schema
            if all(n in known and known[n].kind == self.schema_[n].kind for n in self.encoders_):
                return table.frame
            table = table.frame
        return read(table, schema=self.schema_).frame


_ENCODERS: dict[str, Any] = {
    encoder.kind: encoder
    for encoder in (Numeric, Clock, Category, Items, Ordinal, TargetMean, Date, Text, Terms, Words)
}
_MOST_DATES = 5  # columns whose differences are looked at


def _of_day(hours: pl.Series) -> bool:
    """Whether clock times are of one day; else they are what something takes."""
    return bool(hours.is_between(0, 24).fill_null(True).all())


def _joined(blocks: list[Any]) -> Any:
    """Blocks of columns side by side; sparse as soon as one is."""
    if not any(scipy.sparse.issparse(block) for block in blocks):
        return np.concatenate(blocks, axis=1)
    parts = [b if scipy.sparse.issparse(b) else scipy.sparse.csr_array(b) for b in blocks]
    return parts[0] if len(parts) == 1 else scipy.sparse.hstack(parts, format="csr")


def without_features(features: Table) -> DataError:
    """The error for a table whose columns are all constant or names of rows."""
    return DataError(
        f"{features.name!r} has no usable feature: every column is constant or an "
        f"identifier ({listing(features.columns)})"
    )


def _encoder(state: Mapping[str, Any]) -> Encoder:
    """The encoder written by `to_state` together with its kind."""
    values = {name: value for name, value in state.items() if name != "kind"}
    found: Encoder = _ENCODERS[state["kind"]].from_state(values)
    return found
