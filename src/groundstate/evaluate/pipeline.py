"""The preparation that every fit of a table learns by itself, from the kinds of its columns."""

from __future__ import annotations

from typing import Any

from groundstate.data import Table, read
from groundstate.data.messages import listing
from groundstate.errors import DataError
from groundstate.models.tables.table import TablePredictor

_LEFT_OUT = ("id", "constant")


def default_pipeline(X: Any, estimator: Any) -> Any:
    """Preparation by kind of column, then the estimator; unfitted, so that each fold learns its own.

    =========  ============================================================================
    numeric    median where missing and a flag for it; standardised for models that need it
    category   one column per level up to 20, else the mean of the target by level, cross-fitted;
               numbers of the levels for trees
    date       year, month, weekday, days elapsed
    text       hashed words, TF-IDF, 50 directions
    id, const  left out; ``dropped_`` of what is returned lists them
    =========  ============================================================================

    Parameters
    ----------
    X : a `Table`, a frame, or anything ``data.read`` takes; only what the columns are is taken
        from it, no statistic
    estimator : unfitted; a pipeline brings its own preparation and comes back as it is

    Returns
    -------
    TablePredictor
        What ``assess`` and ``groundstate fit`` put around every model: it can be cloned,
        cross-validated by scikit-learn, saved without pickle, and asked about raw rows.

    Examples
    --------
    >>> from groundstate import LogisticRegression
    >>> X = {"size": [1.0, 2.0, None, 4.0] * 5, "colour": ["red", "blue"] * 10, "same": [1] * 20}
    >>> made = default_pipeline(X, LogisticRegression())
    >>> made.dropped_
    ['same']
    >>> made.fit(X, [0, 1] * 10).score(X, [0, 1] * 10)
    1.0
    """
    if isinstance(estimator, TablePredictor) or hasattr(estimator, "steps"):
        return estimator
    table = (X if isinstance(X, Table) else read(X)).features
    if all(column.kind in _LEFT_OUT for column in table.schema):
        raise DataError(
            "there is no usable column: every one is constant or an identifier "
            f"({listing(table.columns)})"
        )
    return TablePredictor(estimator, schema=table.schema)
