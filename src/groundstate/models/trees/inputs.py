"""Where trees begin: the levels of categories, trees that are there already, weights of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from groundstate.energy.base import Energy
from groundstate.models.arrays import unwrap


def started(model: Any, fresh: Energy, done: Callable[[Any], int] | None = None) -> Energy:
    """The energy to learn: a new one, or with ``warm_start`` the one that is there.

    ``done`` says how many steps an energy holds, which are its trees unless it is given.
    """
    old: Any = getattr(model, "energy_", None)
    same = type(old) is type(fresh) and repr(old.spaces) == repr(fresh.spaces)
    if not getattr(model, "warm_start", False) or not same:
        return fresh
    check_not_fewer(model, int(old.nodes.n_trees) if done is None else done(old))
    return old


def category_sizes(model: Any, d: int) -> tuple[int, ...] | None:
    """Levels per column, 0 for numbers; None when there are no categories."""
    levels = model._levels
    return tuple(len(levels[j]) if j in levels else 0 for j in range(d)) if levels else None


def check_not_fewer(model: Any, done: int) -> None:
    """Say so where ``warm_start`` would have to forget members."""
    name = "max_iter" if hasattr(model, "max_iter") else "n_estimators"
    asked = getattr(model, name)
    if asked < done:
        raise ValueError(
            f"{name}={asked} is less than the {done} that warm_start keeps from the last fit; ask "
            "for more, or set warm_start=False to begin anew"
        )


def class_factors(
    balance: Any, classes: NDArray[Any], y: Any, weight: Any
) -> tuple[float, ...] | None:
    """What a row of each class counts by ``class_weight``; None where all count one."""
    if balance is None:
        return None
    given = None if weight is None else np.asarray(unwrap(weight)[0], np.float64)
    labels = classes[np.asarray(unwrap(y)[0])]
    found = compute_class_weight(balance, classes=classes, y=labels, sample_weight=given)
    return tuple(np.asarray(found, np.float64).tolist())


def row_factors(balance: Any, classes: Any, y: Any, weight: Any) -> NDArray[np.float64]:
    """What each row counts by ``class_weight``, ``(n,)``; factors of several outputs multiply."""
    labels = np.asarray(unwrap(y)[0])
    if labels.ndim == 1:
        return np.array(class_factors(balance, classes, labels, weight))[labels]
    each = [balance] * labels.shape[1] if isinstance(balance, str) else balance
    if isinstance(each, dict) or len(each) != labels.shape[1]:
        raise ValueError(
            f'class_weight={balance!r} for {labels.shape[1]} outputs; give "balanced" or a list '
            "with one dict per output"
        )
    parts = [row_factors(own, known, column, weight)
             for own, known, column in zip(each, classes, labels.T)]  # fmt: skip
    return np.asarray(np.prod(parts, axis=0))
