"""The space of settings worth searching: what a model declares, or parameters known by their names."""

from __future__ import annotations

from typing import Any

from groundstate.errors import Unsupported
from groundstate.models.settings import Real, Setting, Whole
from groundstate.models.traits import traits_of
from groundstate.tune.space import Space

# parameters that mean the same in every estimator that has them and declares no space
COMMON: dict[str, Setting] = {
    "C": Real(1e-4, 1e4, log=True),
    "alpha": Real(1e-6, 1e1, log=True),
    "gamma": Real(1e-4, 1e1, log=True),
    "learning_rate": Real(1e-4, 1e-1, log=True),
    "learning_rate_init": Real(1e-4, 1e-1, log=True),
    "weight_decay": Real(1e-6, 1e-1, log=True),
    "dropout": Real(0.0, 0.5),
    "n_neighbors": Whole(1, 50, log=True),
    "n_clusters": Whole(2, 20),
    "min_samples_leaf": Whole(1, 50, log=True),
    "max_depth": Whole(1, 20, log=True),
    "l1_ratio": Real(0.05, 1.0),
    "reg_covar": Real(1e-6, 1e-1, log=True),
}


def default_space(estimator: Any) -> Space:
    """The settings of an estimator that are worth searching, with their ranges.

    A model declares them (``traits.space``). Any other estimator gets the common parameters that it
    has with a positive number as their value; 0 switches a setting off, and often its solver needs
    that. The last step of a pipeline gets its space under its name.

    Examples
    --------
    >>> import groundstate
    >>> default_space(groundstate.SVC()).names
    ['C', 'gamma']
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> default_space(make_pipeline(StandardScaler(), groundstate.Ridge())).names
    ['ridge__alpha']
    """
    if not hasattr(estimator, "get_params"):
        raise Unsupported(
            f"{type(estimator).__name__} has no get_params; pass an estimator with scikit-learn's "
            "contract"
        )
    steps = getattr(estimator, "steps", None)
    if steps:
        name, last = steps[-1]
        inner = default_space(last)
        return Space({f"{name}__{key}": inner[key] for key in inner})
    own = estimator.get_params(deep=False)
    declared = traits_of(estimator).space
    if declared is not None:
        return Space({key: value for key, value in declared.items() if key in own})
    return Space(
        {
            key: value
            for key, value in COMMON.items()
            if isinstance(own.get(key), (int, float))
            and not isinstance(own[key], bool)
            and own[key] > 0
        }
    )
