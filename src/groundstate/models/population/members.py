"""Many fits of one estimator as one program: rows checked once, members told apart by weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import InvalidParameterError
from groundstate.energy.base import Energy
from groundstate.errors import NotApplicable
from groundstate.learn.base import History

F64 = NDArray[np.float64]
Settings = Sequence[Mapping[str, Any]]


def distinct(weights: F64) -> tuple[F64, NDArray[np.int64]]:
    """The different rows of weights ``(F, n)``, in order of their first, and of each row which."""
    keys: dict[bytes, int] = {}
    of = np.array([keys.setdefault(row.tobytes(), len(keys)) for row in weights], np.int64)
    return weights[np.unique(of, return_index=True)[1]], of


@dataclass(frozen=True)
class Together:
    """A program of one family, as ``Traits.program`` takes it.

    Attributes
    ----------
    fit : `Members` to fitted models by their places
    settings : names that may differ from member to member
    """

    fit: Callable[[Members], Mapping[int, Any]]
    settings: frozenset[str]

    def __call__(
        self, estimator: Any, X: Any, y: Any, weights: F64 | None, settings: Settings
    ) -> list[Any]:
        """Fitted clones; ``NotApplicable`` where they are fitted one after the other."""
        found = Members.of_rows(estimator, X, y, weights, settings, self.settings)
        out = self.fit(found)
        return [out[at] for at in range(len(found.models))]


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
        self.weights, self.of = distinct(weights)

    @classmethod
    def of_rows(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        weights: F64 | None,
        settings: Settings,
        may_differ: frozenset[str],
    ) -> Members:
        """Members of an estimator. Seeds may differ too: nothing about these fits is random."""
        fixed = estimator.get_params(deep=False)
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            raise NotApplicable(f"members share rows of one array (n, d), got {type(X).__name__}")
        if (
            any(fixed.get(name) is not None for name in ("device", "callbacks"))
            or getattr(estimator, "_skl_callbacks", False)
            or hasattr(estimator, "_parent_callback_ctx")
        ):
            raise NotApplicable("a device or callbacks belong to one fit")
        others = sorted({name for p in settings for name in p} - may_differ - {"random_state"})
        if others:
            raise NotApplicable(f"members cannot differ in {', '.join(others)}")
        table = np.ones((len(settings), len(X))) if weights is None else weights
        if not (table >= 0).all() or not table.any(1).all():
            raise NotApplicable("a member has no rows, or negative weights")
        first = type(estimator)(**fixed)
        models = [type(estimator)(**{**fixed, **p}) for p in settings]
        try:
            for model in models:
                model._validate_params()
        except InvalidParameterError as error:
            raise NotApplicable(
                f"a member has a setting that its own fit refuses: {error}"
            ) from error
        x, target, attributes = first._checked(X, y)
        if not isinstance(x, np.ndarray):
            raise NotApplicable("the rows are sparse")
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
