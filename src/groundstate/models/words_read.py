"""Models that read the words of texts in their order, and how they are told where these stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from groundstate.models.traits import inner_of, traits_of


def reads_words(estimator: Any) -> str | None:
    """The parameter of a model that is told which columns hold words of texts; None of others.

    >>> from groundstate import Ridge, TextCNNRegressor
    >>> reads_words(TextCNNRegressor()), reads_words(Ridge())
    ('texts', None)
    """
    inner = inner_of(estimator)
    return traits_of(estimator).words if inner is None else reads_words(inner)


def with_words(estimator: Any, columns: Sequence[tuple[int, int]]) -> Any:
    """A clone that knows which columns hold words of texts, where it reads them.

    >>> from groundstate import Ridge, TextCNNRegressor
    >>> with_words(TextCNNRegressor(), [(0, 5)]), with_words(Ridge(), [])
    (TextCNNRegressor(texts=[(0, 5)]), Ridge())
    """
    made, parameter = clone(estimator), reads_words(estimator)
    return made if parameter is None else made.set_params(**{parameter: columns})
