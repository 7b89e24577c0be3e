"""The risk of a fitted model on rows: minus its score."""

from __future__ import annotations

from typing import Any

from groundstate.tune.rows import Rows


def risk_of(model: Any, rows: Rows, scoring: Any = None) -> float:
    """Minus the score of a scorer's name or function; of the estimator itself when None."""
    from sklearn.metrics import check_scoring

    extra = {} if (rows.weight == 1).all() else {"sample_weight": rows.weight}
    if scoring is None:
        arguments = (rows.X,) if rows.y is None else (rows.X, rows.y)
        return -float(model.score(*arguments, **extra))
    if callable(scoring):
        return -float(scoring(model, rows.X, rows.y, **extra))
    scorer = check_scoring(model, scoring=scoring)
    return -float(scorer(model, rows.X, rows.y, **extra))
