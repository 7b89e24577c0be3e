"""What a model asks of the numbers it is given: single columns, or a target of unit scale."""

from __future__ import annotations

from typing import Any

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


_NEEDY = (
    "MLP", "Neural", "SeedEnsemble", "SnapshotEnsemble", "GaussianProcess", "KernelRidge", "SVR",
    "SGD",
)  # fmt: skip
# distributions of positive, whole or bounded values, which a shift would leave
_UNMOVED = frozenset({
    "poisson", "negative_binomial", "gamma", "exponential", "lognormal", "beta", "von_mises",
})  # fmt: skip


def asks_scaled_target(estimator: Any) -> bool:
    """Whether a regressor learns badly from a target that is far from zero or not of unit scale.

    Networks, whose first outputs are near zero, and kernel machines and Gaussian processes without
    an intercept or a centring of their own; by name. Distributions of counts and of positive values
    are never moved.

    >>> from groundstate import GaussianProcessRegressor, MLPRegressor, Ridge
    >>> asks_scaled_target(MLPRegressor()), asks_scaled_target(MLPRegressor(loss="gamma"))
    (True, False)
    >>> asks_scaled_target(GaussianProcessRegressor(normalize_y=True)), asks_scaled_target(Ridge())
    (False, False)
    """
    from sklearn.base import is_regressor

    steps = getattr(estimator, "steps", None)
    inner = steps[-1][1] if steps else getattr(estimator, "estimator", None)
    if inner is not None:  # a pipeline, a bag or a crowd of something
        return asks_scaled_target(inner)
    if not is_regressor(estimator) or getattr(estimator, "normalize_y", False):
        return False
    loss = getattr(estimator, "loss", None)
    distribution = str(getattr(loss, "name", loss))  # a head knows its name
    return distribution not in _UNMOVED and any(word in type(estimator).__name__ for word in _NEEDY)


__all__ = ["asks_scaled_target", "asks_single_columns"]
