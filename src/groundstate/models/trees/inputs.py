"""What trees take: NaN as a value, and columns of categories."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.class_weight import compute_class_weight

from groundstate.energy.base import Energy
from groundstate.models.arrays import unwrap
from groundstate.models.categories import CategoryInputs


class TreeInputs(CategoryInputs):
    """Rows with NaN and categories at the door of a tree model; sparse ones are made dense."""

    _accept_sparse: ClassVar[bool | str] = "dense"
    _runs_on: Any = "answers"  # trees grow on the CPU

    def _table(self, X: Any) -> Any:
        X = super()._table(X)
        return X.toarray() if issparse(X) and self._accept_sparse else X

    def _start(self, fresh: Energy) -> Energy:
        """The energy to learn: a new one, or with ``warm_start`` the one that is there."""
        old = getattr(self, "energy_", None)
        same = type(old) is type(fresh) and repr(old.spaces) == repr(fresh.spaces)
        if not getattr(self, "warm_start", False) or not same or old is None:
            return fresh
        check_not_fewer(self, self._steps_done(old))
        return old

    def _steps_done(self, energy: Any) -> int:
        """How many steps an energy holds."""
        return int(energy.nodes.n_trees)

    def _category_sizes(self, d: int) -> tuple[int, ...] | None:
        """Levels per column, 0 for numbers; None when there are no categories."""
        if not self._levels:
            return None
        return tuple(len(self._levels[j]) if j in self._levels else 0 for j in range(d))


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


__all__ = ["TreeInputs", "check_not_fewer", "class_factors", "row_factors"]
