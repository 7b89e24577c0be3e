"""Many fits of one estimator as one program: rows checked once, members told apart by weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import History

F64 = NDArray[np.float64]


class FittedTogether:
    """Estimators of which many are fitted as one program, by their function ``_members``."""

    _members: ClassVar[Callable[..., list[Any] | None]]

    def _fit_population(
        self,
        X: Any,
        y: Any,
        weights: Any = None,
        params: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[Self] | None:
        """Fitted clones, one for each row of weights ``(P, N)`` and each entry of params."""
        return type(self)._members(self, X, y, weights, params)


class Members:
    """Unfitted members with their settings, the checked rows, and the different weights.

    Attributes
    ----------
    models : P unfitted estimators
    x, y : ``(n, d)``, and targets ``(n, m)`` or class numbers ``(n,)``
    weights : ``(F, n)``, the different rows of weights
    of : ``(P,)``, which of them a member has
    """

    def __init__(self, models: list[Any], first: Any, x: Tensor, y: Tensor, weights: F64) -> None:
        self.models, self.x, self.y = models, x, y
        self._shared = {
            name: value
            for name, value in first.__dict__.items()
            if name
            in ("n_features_in_", "feature_names_in_", "_flat_target", "_column_target", "classes_")
        }
        keys: dict[bytes, int] = {}
        self.of = np.array([keys.setdefault(row.tobytes(), len(keys)) for row in weights])
        if len(weights) == 1:
            self.of = np.zeros(len(models), np.int64)
        first_of = np.unique(self.of, return_index=True)[1]
        self.weights: F64 = weights[first_of]

    @classmethod
    def of_rows(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        weights: Any,
        params: Sequence[Mapping[str, Any]] | None,
        may_differ: frozenset[str],
    ) -> Members | None:
        """Members of an estimator; None where they are better fitted one after the other.

        Seeds may differ too: nothing about these fits is random.
        """
        fixed = estimator.get_params(deep=False)
        own = [dict(p) for p in params] if params is not None else None
        if own is None:
            own = [{}] * (1 if weights is None or np.ndim(weights) < 2 else len(weights))
        if (
            not isinstance(X, np.ndarray)
            or X.ndim != 2
            or any(fixed.get(name) is not None for name in ("device", "callbacks"))
            or getattr(estimator, "_skl_callbacks", False)
            or hasattr(estimator, "_parent_callback_ctx")
            or any(set(p) - may_differ - {"random_state"} for p in own)
        ):
            return None
        table = np.ones((1, len(X))) if weights is None else np.atleast_2d(weights)
        table = np.ascontiguousarray(table, dtype=np.float64)
        if len(table) not in (1, len(own)) or not (table >= 0).all() or not table.any(1).all():
            return None
        first = type(estimator)(**fixed)
        try:
            models = [type(estimator)(**{**fixed, **p}) for p in own]
            for model in models:
                model._validate_params()
            x, target, attributes = first._checked(X, y)
        except ValueError:  # each error belongs to its own fit
            return None
        if not isinstance(x, np.ndarray):
            return None
        for name, value in attributes.items():
            setattr(first, name, value)
        return cls(models, first, torch.from_numpy(x), torch.from_numpy(target), table)

    def groups(self, *names: str) -> list[list[int]]:
        """Members with equal values of all settings but these and the seed."""
        found: list[tuple[dict[str, Any], list[int]]] = []
        left_out = {*names, "random_state"}
        for at, model in enumerate(self.models):
            settings = {k: v for k, v in vars(model).items() if k not in left_out}
            for known, members in found:
                if all(known[k] is v or _same(known[k], v) for k, v in settings.items()):
                    members.append(at)
                    break
            else:
                found.append((settings, [at]))
        return [members for _, members in found]

    def have_all_classes(self) -> bool:
        """Whether the rows of every member hold every class."""
        labels = self.y.numpy()
        many = int(labels.max()) + 1
        return all(np.bincount(labels, row > 0, many).all() for row in self.weights)

    def fitted(self, at: int, energy: Energy, solver: str, history: History | None = None) -> Any:
        """Member ``at`` with its learned energy and the attributes of a fit."""
        model = self.models[at]
        model.__dict__.update(self._shared)
        model.energy_ = energy
        if history is None:
            history = History(n_iter=1, converged=True, solver=solver, stop="closed form")
        model.history_ = history
        model.n_iter_ = max(1, history.n_iter)
        for name, value in model._learned(energy).items():
            setattr(model, name, value)
        return model


def _same(a: Any, b: Any) -> bool:
    plain = (str, bool, int, float, type(None))
    return isinstance(a, plain) and isinstance(b, plain) and a == b


__all__ = ["FittedTogether", "Members"]
