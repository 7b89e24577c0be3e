"""What scikit-learn keeps private: checks of parameters, rows and weights, callbacks around a fit."""

from __future__ import annotations

from typing import Any

from sklearn.callback._callback_support import callback_management_context
from sklearn.metrics._dist_metrics import DistanceMetric32
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Hidden,
    Interval,
    InvalidParameterError,
    Options,
    RealNotInt,
    StrOptions,
    make_constraint,
)
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.multiclass import _check_partial_fit_first_call as check_partial_fit_first_call
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

__all__ = [
    "DistanceMetric32",
    "HasMethods",
    "Hidden",
    "Interval",
    "InvalidParameterError",
    "Options",
    "RealNotInt",
    "StrOptions",
    "make_constraint",
    "check_partial_fit_first_call",
    "check_sample_weight",
    "safe_indexing",
    "BaseComposition",
    "callback_management_context",
    "fit_checked",
]


def fit_checked(agglomerative: Any, rows: Any) -> Any:
    """``AgglomerativeClustering.fit`` for two or more rows that were checked before."""
    return agglomerative._fit(rows)
