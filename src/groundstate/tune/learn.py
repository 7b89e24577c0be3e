r"""The operator Learn: rows and settings in, a fitted model with its provenance out."""

from __future__ import annotations

import copy
import platform
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.fitting import fit_clone
from groundstate.models.traits import last_step, traits_of
from groundstate.tune.rows import Rows, check_disjoint
from groundstate.tune.scoring import risk_of

STEPS = ("n_estimators", "max_iter", "n_iter")  # steps of estimators that do not declare them


class Learn:
    r"""Learn a model, :math:`\hat\theta = \mathrm{Learn}(D; \lambda, s)`.

    The result depends on the rows, the settings and the seed alone.

    Parameters
    ----------
    estimator : unfitted estimator; it is cloned
    checkpoints : with validation rows, stop so many times on the way and keep the model of the
        lowest validation risk, not of the lowest training loss (for estimators with
        ``warm_start``)
    scoring : scikit-learn's name or function of a score; the risk is minus it

    Examples
    --------
    >>> import numpy as np
    >>> import groundstate
    >>> X = np.arange(6.0)[:, None]; y = 2 * X[:, 0]
    >>> model = Learn(groundstate.Ridge())((X, y), {"alpha": 0.1}, random_state=0)
    >>> model.alpha, sorted(model.provenance_)[:4]
    (0.1, ['data', 'params', 'rows', 'seconds'])
    """

    def __init__(self, estimator: Any, checkpoints: int = 0, scoring: Any = None) -> None:
        self.estimator = estimator
        self.checkpoints = checkpoints
        self.scoring = scoring

    def __call__(
        self,
        D: Any,
        params: Mapping[str, Any] | None = None,
        random_state: RandomState = 0,
        validation: Any = None,
    ) -> Any:
        """Fit to ``D``, a tuple (X, y) or (X, y, sample_weight); X alone where there is no target.

        Returns
        -------
        fitted estimator with ``provenance_``: a dict with the data's hash, the number of rows, the
        settings, the seed, the versions and the seconds; with checkpoints also ``steps`` and
        ``validation_risk``.
        """
        rows = as_rows(D)
        key = Key.of(random_state)
        start = time.perf_counter()
        logged: dict[str, Any] = {}
        if validation is not None and self.checkpoints > 1:
            judge = as_rows(validation)
            check_disjoint(rows, judge)
            model = self._best_checkpoint(rows, judge, params, key, logged)
        else:
            model = fit(self.estimator, params, rows, key)
        seconds = time.perf_counter() - start
        model.provenance_ = {
            "data": rows.fingerprint(),
            "rows": len(rows),
            "params": dict(params or {}),
            "seed": random_state if isinstance(random_state, int) else [key.high, key.low],
            "versions": versions(),
            "seconds": seconds,
            **logged,
        }
        return model

    def _best_checkpoint(
        self,
        rows: Rows,
        judge: Rows,
        params: Mapping[str, Any] | None,
        key: Key,
        logged: dict[str, Any],
    ) -> Any:
        from sklearn.base import clone

        model = clone(self.estimator).set_params(**dict(params or {}))
        best: tuple[float, int, Any] | None = None
        before = 0
        for steps in schedule(model, self.checkpoints):
            model = step(model, rows, steps, key, before)
            before = steps
            risk = risk_of(model, judge, self.scoring)
            if best is None or risk < best[0]:
                best = (risk, steps, copy.deepcopy(model))
        assert best is not None
        logged["validation_risk"], logged["steps"] = best[0], best[1]
        return best[2]


def as_rows(D: Any) -> Rows:
    """Rows of a tuple, or of a table alone."""
    if isinstance(D, Rows):
        return D
    return Rows.of(*D) if isinstance(D, tuple) else Rows.of(D)


def fit(estimator: Any, params: Mapping[str, Any] | None, rows: Rows, key: Key) -> Any:
    """A fitted clone with these settings; seeds come from the key."""
    from sklearn.base import clone

    model = clone(estimator)
    for name, value in (params or {}).items():
        model.set_params(**{name: clone(value) if hasattr(value, "get_params") else value})
    return fit_clone(model, rows.X, rows.y, rows.weight, key)


def step_name(model: Any) -> str:
    """The parameter that says how many steps an iterative estimator takes."""
    params = model.get_params(deep=True)
    steps = getattr(model, "steps", None)
    prefix = f"{steps[-1][0]}__" if steps else ""
    declared = traits_of(last_step(model)).steps
    for name in STEPS if declared is None else (declared,):
        if prefix + name in params and f"{prefix}warm_start" in params:
            return prefix + name
    raise DataError(
        f"{type(model).__name__} has no warm_start with one of {', '.join(STEPS)}, so there are no "
        "checkpoints on the way; leave checkpoints at 0"
    )


def schedule(model: Any, checkpoints: int) -> list[int]:
    """Numbers of steps to stop at, evenly up to what the model would take."""
    name = step_name(model)
    most = model.get_params(deep=True)[name]
    if most is None:
        raise DataError(
            f"{name}=None lets {type(model).__name__} choose by the number of rows, so there is nothing to "
            f"divide into checkpoints; give {name} a number, or leave checkpoints at 0"
        )
    most = int(most)
    stops = np.unique(np.ceil(most * np.arange(1, checkpoints + 1) / checkpoints).astype(int))
    return [int(stop) for stop in stops]


def step(model: Any, rows: Rows, steps: int, key: Key, before: int = 0) -> Any:
    """Go on to that many steps from where the model is, after ``before`` steps.

    With ``warm_start`` an ensemble takes the number of all its trees, anything else (a network, a
    linear model) the number of steps from here on.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from groundstate.errors import NotConverged

    name = step_name(model)
    seeds = {
        parameter: int(key.fold(parameter).words(1)[0] % (2**31 - 1))
        for parameter, value in sorted(model.get_params(deep=True).items())
        if value is None and parameter.rpartition("__")[2] == "random_state"
    }
    warm = name.rpartition("__")[0]
    warm = f"{warm}__warm_start" if warm else "warm_start"
    last = last_step(model)
    total = traits_of(last).counts_all_steps
    if total is None:  # as in scikit-learn, whose histogram boosting alone counts trees as max_iter
        total = name.endswith("n_estimators") or hasattr(last, "n_trees_per_iteration_")
    model.set_params(**{name: steps if total else steps - before, warm: True}, **seeds)
    extra = {} if (rows.weight == 1).all() else {"sample_weight": rows.weight}
    with warnings.catch_warnings():  # a checkpoint on the way has not converged, by design
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", NotConverged)
        model.fit(rows.X, rows.y, **extra)
    return model.set_params(**{name: steps})


def versions() -> dict[str, str]:
    """Of Python and of what computes."""
    names = ("numpy", "scipy", "scikit-learn", "torch")
    return {
        "python": platform.python_version(),
        "groundstate": _own(),
        **{name: version(name) for name in names},
    }


def _own() -> str:
    import groundstate

    return groundstate.__version__
