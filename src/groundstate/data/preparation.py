"""`Preparation`: from a table's columns to numbers, learned from training rows only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from groundstate.data.encoders import Category, Date, Encoder, Numeric, Text, encoder_from_state
from groundstate.data.reader import read
from groundstate.data.schema import Schema
from groundstate.data.table import Table
from groundstate.data.weighted import check_weights
from groundstate.data.words import listing
from groundstate.errors import DataError


class Preparation:
    r"""Columns of every kind to a real matrix, with what was learned from the training rows.

    =========  =====================================================================
    numeric    :math:`(v - \bar v)/s`; the median where missing; an indicator column
    category   one column per level; unseen: all zeros; rare beyond the limit: other
    date       days elapsed, year, month, weekday, hour, each standardised
    text       words hashed into bins
    id         left out, as are constant columns
    =========  =====================================================================

    A weight of 2 gives exactly what the row twice gives, whatever the order of the rows.

    Parameters
    ----------
    max_categories
        Most columns a category may turn into (before the one for missing).
    text_bins
        Number of hash bins per text column.

    Attributes
    ----------
    schema_ : Schema
        The features it was fitted on.
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
    notes_: tuple[str, ...]
    _encoders: dict[str, Encoder]

    def __init__(self, max_categories: int = 50, text_bins: int = 64) -> None:
        self.max_categories = max_categories
        self.text_bins = text_bins

    def fit(self, table: Any, sample_weight: ArrayLike | None = None) -> Preparation:
        """Learn medians, means, scales and levels from the features of training rows.

        Parameters
        ----------
        table
            A `Table` or anything `read` takes; its target is left aside.
        sample_weight
            Weights (n,); rows of weight zero count as absent.
        """
        for name in ("max_categories", "text_bins"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 2:
                raise DataError(f"{name} must be a whole number of at least 2")
        features = (table if isinstance(table, Table) else read(table)).features
        weights = check_weights(sample_weight, features.n_rows)
        encoders: dict[str, Encoder] = {}
        dropped: dict[str, list[str]] = {"id": [], "constant": []}
        for column in features.schema:
            values = features.frame[column.name]
            if column.kind in dropped:
                dropped[column.kind].append(column.name)
            elif column.kind == "numeric":
                encoders[column.name] = Numeric.fit(values, weights)
            elif column.kind == "category":
                encoders[column.name] = Category.fit(values, weights, self.max_categories)
            elif column.kind == "date":
                encoders[column.name] = Date.fit(values, weights)
            else:
                encoders[column.name] = Text(self.text_bins)
        if not encoders:
            raise DataError(
                f"{features.name!r} has no usable feature: every column is constant or an "
                f"identifier ({listing(features.columns)})"
            )
        self.schema_ = features.schema
        self.notes_ = tuple(
            f"{'identifier' if kind == 'id' else 'constant'} columns left out: {listing(names)}"
            for kind, names in dropped.items()
            if names
        )
        self._encoders = encoders
        return self

    def transform(self, table: Any) -> NDArray[np.float64]:
        """The features as numbers (n, d), finite everywhere.

        Columns are found by name, so their order and further columns do not matter.
        """
        self._check_fitted()
        features = self._conform(table)
        blocks = [
            encoder.transform(features[name]) for name, encoder in self._encoders.items()
        ]  # each (n, k)
        return np.concatenate(blocks, axis=1)

    def fit_transform(self, table: Any, sample_weight: ArrayLike | None = None) -> Any:
        """`fit`, then `transform` of the same rows."""
        table = table if isinstance(table, Table) else read(table)
        return self.fit(table, sample_weight).transform(table)

    def feature_names_out(self) -> list[str]:
        """Names of the d columns of `transform`."""
        self._check_fitted()
        named = [encoder.names(name) for name, encoder in self._encoders.items()]
        return [name for names in named for name in names]

    def to_state(self) -> dict[str, Any]:
        """Everything learned, as plain JSON values."""
        self._check_fitted()
        encoders = {n: {"kind": e.kind, **e.to_state()} for n, e in self._encoders.items()}
        return {
            "max_categories": self.max_categories,
            "text_bins": self.text_bins,
            "schema": self.schema_.to_dict(),
            "notes": list(self.notes_),
            "encoders": encoders,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Preparation:
        """The fitted preparation that `to_state` described."""
        try:
            made = cls(state["max_categories"], state["text_bins"])
            made.schema_ = Schema.from_dict(state["schema"])
            made.notes_ = tuple(state["notes"])
            made._encoders = {n: encoder_from_state(e) for n, e in state["encoders"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"this is not the state of a Preparation: {error!r}") from None
        return made

    def _check_fitted(self) -> None:
        if not hasattr(self, "_encoders"):
            raise DataError("this Preparation has learned nothing yet; call fit(table) first")

    def _conform(self, table: Any) -> pl.DataFrame:
        if isinstance(table, Table):
            # a few new rows may look constant or like identifiers; then they are read again
            known = table.schema
            if all(n in known and known[n].kind == self.schema_[n].kind for n in self._encoders):
                return table.frame
            table = table.frame
        return read(table, schema=self.schema_).frame
