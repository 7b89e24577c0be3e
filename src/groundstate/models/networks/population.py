"""Fits of one estimator on many weights and settings at once: folds, grids, seeds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from torch import Tensor

from groundstate.compute.device import resolve_device
from groundstate.errors import NotConverged, ShapeError
from groundstate.learn.base import History
from groundstate.learn.descent import Descent
from groundstate.learn.network_training import NetworkTraining
from groundstate.learn.population import fit_population
from groundstate.learn.population_stop import Plateaus, Rests
from groundstate.learn.trainer import Stochastic
from groundstate.models.arrays import tensor
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.networks.seeds import order_key

if TYPE_CHECKING:
    _Base = EnergyEstimator
else:
    _Base = object


class _Member(NamedTuple):
    model: Any
    plan: Plan
    total: float


class PopulationMixin(_Base):
    """An estimator whose ``_build`` plans a ``NetworkTraining``, fitted many at a time.

    ``_fit_population`` gives what as many clones would give with ``fit``, trained as one program;
    None where the settings ask for something that members cannot do side by side, and the caller
    fits them one after the other (`population_folds` does both).
    """

    def _fit_population(
        self,
        X: Any,
        y: Any,
        weights: ArrayLike | None = None,
        params: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[Self] | None:
        """Fitted clones, one for each row of weights ``(P, N)`` and each entry of params."""
        rows, own = _pairs(X, weights, params)
        members, data = [], None
        for weight, changes in zip(rows, own, strict=True):
            model: Any = clone(self).set_params(**changes)
            model._validate_params()
            planned = _planned(model, X, y, weight, data)
            if planned is None:
                return None
            plan, data, total = planned
            members.append(_Member(model, plan, total))
        groups: dict[Any, list[int]] = {}
        for i, (_, plan, _) in enumerate(members):
            groups.setdefault(_kind(plan), []).append(i)
        for chosen in groups.values():
            _learn([members[i] for i in chosen], [rows[i] for i in chosen], data)
        return [m.model for m in members]


def population_folds(
    estimator: Any,
    X: Any,
    y: Any,
    weights: ArrayLike | None = None,
    params: Sequence[Mapping[str, Any]] | None = None,
) -> list[Any]:
    r"""Clones of an estimator fitted to many weightings of the rows and with many settings.

    Member p minimises :math:`\sum_i w_{pi} L_i` with its own settings. Estimators that can train side
    by side do so; others are fitted one after the other, with the same result.

    Parameters
    ----------
    estimator : takes ``sample_weight`` where weights are given
    X, y : all rows
    weights : ``(P, N)``, ``(N,)`` or None; a fold is a row with zeros
    params : P settings by name, or None

    Returns
    -------
    list of P fitted clones

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Ridge
    >>> x = np.arange(6.0)[:, None]
    >>> folds = np.ones((2, 6))
    >>> folds[0, :3] = folds[1, 3:] = 0
    >>> models = population_folds(Ridge(alpha=1e-9), x, 2 * x[:, 0], folds)
    >>> [round(float(m.coef_[0]), 6) for m in models]
    [2.0, 2.0]
    """
    together = getattr(estimator, "_fit_population", None)
    found: list[Any] | None = None if together is None else together(X, y, weights, params)
    if found is not None:
        return found
    rows, own = _pairs(X, weights, params)
    return [
        clone(estimator)
        .set_params(**changes)
        .fit(X, y, **({} if w is None else {"sample_weight": w}))
        for w, changes in zip(rows, own, strict=True)
    ]


def _pairs(
    X: Any, weights: ArrayLike | None, params: Sequence[Mapping[str, Any]] | None
) -> tuple[list[NDArray[Any] | None], list[Mapping[str, Any]]]:
    """Weights and settings of every member."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    table = None if weights is None else np.asarray(weights, dtype=np.float64)
    if table is not None and (table.ndim not in (1, 2) or table.shape[-1] != n):
        raise ShapeError(f"weights must be (P, {n}) or ({n},), got {table.shape}")
    sizes = {len(params)} if params is not None else set()
    sizes |= {len(table)} if table is not None and table.ndim == 2 else set()
    if len(sizes) > 1:
        raise ShapeError(
            f"there are {len(params or ())} settings for {0 if table is None else len(table)} rows of "
            "weights; pass one for each"
        )
    (size,) = sizes or {1}
    rows: list[NDArray[Any] | None] = [None] * size
    if table is not None:
        rows = list(table) if table.ndim == 2 else [table] * size
    return rows, [{}] * size if params is None else list(params)


def _planned(
    model: Any, X: Any, y: Any, weight: NDArray[Any] | None, data: dict[str, Tensor] | None
) -> tuple[Plan, dict[str, Tensor], float] | None:
    """The plan of one member, the rows, and its weight; None where it must be fitted alone."""
    if getattr(model, "callbacks", None) or getattr(model, "warm_start", False):
        return None
    if getattr(model, "verbose", False) or getattr(model, "class_weight", None) is not None:
        return None
    X_, y_, encoded = model._checked(X, y)
    checked = model._checked_weight(weight, X_)
    where = getattr(model, "device", None)
    device = X_.device if where is None and isinstance(X_, Tensor) else resolve_device(where)
    if data is None or data["x"].device != device:
        x = tensor(X_, device)
        data = {"x": x if x.layout == torch.strided else x.to_dense(), "y": tensor(y_, device)}
    for name, value in encoded.items():
        setattr(model, name, value)
    row_weight = model._row_weight(y_, checked)
    w = None if row_weight is None else tensor(row_weight, device)
    plan = model._build(data["x"], data["y"], w)
    plan.energy.to(device, data["x"].dtype)
    total = float(len(data["x"]) if w is None else w.double().sum())
    solver = plan.solver
    able = (
        isinstance(solver, NetworkTraining)
        and isinstance(solver.solver, Stochastic)
        and isinstance(solver.solver.optimizer, Descent)
        and not solver.solver.optimizer.scale
        and not solver.held_out
        and solver.rates == "constant"
        and solver.shuffle
        and solver.solver.batch_size is not None  # all rows at once: equal ones are merged
    )
    return (plan, data, total) if able else None


def _kind(plan: Plan) -> tuple[Any, ...]:
    """What members of one run share."""
    training: Any = plan.solver
    inner, descent = training.solver, training.solver.optimizer
    settings = [getattr(inner, name) for name in ("batch_size", "max_epochs")]
    nesterov = descent.nesterov and descent.momentum > 0
    return (*settings, training.tol, training.patience, descent.kind, nesterov)


def _learn(
    members: list[_Member], rows: list[NDArray[Any] | None], data: dict[str, Tensor] | None
) -> None:
    assert data is not None
    training: Any = members[0].plan.solver
    descents = [m.plan.solver.solver.optimizer for m in members]  # type: ignore[union-attr]
    kind = descents[0].kind
    name = "nesterov" if kind == "sgd" and descents[0].nesterov else kind
    settings: dict[str, Any] = {"momentum": [d.momentum for d in descents]}
    if kind == "adam":
        beta1, beta2 = zip(*(d.betas for d in descents), strict=True)
        settings = {"beta1": beta1, "beta2": beta2, "eps": [d.eps for d in descents]}
    elif not any(settings["momentum"]):
        name, settings = "sgd", {}

    def rest(size: int) -> Plateaus:
        return Rests(size, training.tol, training.patience)

    weighted = any(row is not None for row in rows)
    full = [np.ones(len(data["x"])) if row is None else row for row in rows]
    histories = fit_population(
        [m.plan.energy for m in members],
        data,
        members[0].plan.rule,
        Stochastic(
            name,
            batch_size=training.solver.batch_size,
            max_epochs=training.solver.max_epochs,
            tol=None,
        ),
        lr=[m.plan.solver.solver.lr for m in members],  # type: ignore[union-attr]
        strength=[float(getattr(m.plan.penalty, "strength", 0.0)) for m in members],
        settings=settings,
        sample_weight=torch.from_numpy(np.stack(full)) if weighted else None,
        random_state=[order_key(getattr(m.model, "random_state", 0)) for m in members],
        rest=rest,
    )
    for member, history in zip(members, histories, strict=True):
        _finish(member, history, training)


def _finish(member: _Member, history: History, training: Any) -> None:
    model, plan, total = member
    if "the loss became" in history.stop:
        raise FloatingPointError(history.stop)
    history.extra["loss"] = list(history.objective)
    history.extra["seen"] = [total * history.n_iter]
    history.solver = "NetworkTraining"
    plan.energy.eval()
    if hasattr(model, "_describe"):
        model._describe(history, plan)
    model.energy_, model.history_ = plan.energy, history
    model.n_iter_ = max(1, history.n_iter)
    for name, value in model._learned(plan.energy).items():
        setattr(model, name, value)
    if history.stop == "max_epochs" and training.patience < math.inf:
        warnings.warn(
            f"training stopped at max_iter={training.solver.max_epochs} epochs before the objective "
            "rested; raise max_iter, or set n_iter_no_change=inf to ask for exactly that many",
            NotConverged,
            stacklevel=5,
        )


__all__ = ["PopulationMixin", "population_folds"]
