"""Generators that are networks: one set of parameters, one engine."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.utils import Tags
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, Options, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.learn import L2, NLL
from groundstate.learn.base import History, Rule
from groundstate.learn.callbacks import EMA
from groundstate.learn.rules.augmented import Dequantised
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.learn.train.optimizers import OPTIMIZERS
from groundstate.models import settings
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.generative.base import GenerativeEstimator
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.network import RowNetwork
from groundstate.models.traits import Traits
from groundstate.nn.blocks.mlp import ACTIVATIONS


class NetworkGenerator(GenerativeEstimator, RowNetwork):
    r"""Base of the generators around networks.

    .. math:: J(\theta) = \frac{1}{\sum_i w_i}\sum_i w_i\,L(e_\theta; x_i, y_i)

    is lowered on mini-batches of the weight line. A subclass writes ``_energy_of`` and where needed
    ``_loss``, ``_log_prob``, ``_draw`` and ``_fill``.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of every hidden layer.
    activation : str
        Of the hidden layers, a name of ``groundstate.nn.blocks.mlp.ACTIVATIONS``.
    learning_rate_init : float
    batch_size : int or "auto"
        Rows (units of weight) of a step. "auto", where a model has it, is a 32nd of the rows, at least
        32 and at most 128: steps teach, not epochs, and a small table has few of them.
    max_iter : int
        Epochs at most.
    alpha : float
        Strength of the penalty :math:`\tfrac\alpha2\|W\|^2` beside the mean loss.
    early_stopping : bool
        Hold out rows, stop when their loss rests, and keep the best weights; else the loss of the rows
        that are learned from is watched, where it is an objective. Equal rows are always on the same
        side.
    validation_fraction : float
        Share of the rows that is held out.
    n_iter_no_change : int
        Epochs that may pass without an improvement of ``tol``.
    tol : float
    ema_decay : float or None
        Answer with the running mean of the weights, which this share stays of in each step.
    clip_norm : float or None
        Largest norm of a gradient.
    schedule : str or None
        Factor on the rate over the steps; see ``groundstate.learn.train.schedules``.

    Attributes
    ----------
    loss_curve_ : list of float, the objective of every epoch
    validation_scores_ : list of float or None, minus the loss of the held-out rows
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "solver": [StrOptions(set(OPTIMIZERS)), callable],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), Options(Real, {math.inf})],
        "ema_decay": [Interval(Real, 0, 1, closed="left"), None],
        "network": [str, nn.Module, callable, None],
    }
    traits = Traits(
        program=None,
        steps="max_iter",
        space={"learning_rate_init": settings.Real(1e-4, 1e-2, log=True)},
    )
    rows: ClassVar[str] = "table"
    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)  # of Adam

    hidden_layer_sizes: Any
    activation: str
    solver: Any
    learning_rate_init: float
    max_iter: int
    alpha: float
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: float
    tol: float
    ema_decay: float | None = None
    # settings of the engine that these estimators leave alone unless they have the parameter
    schedule: Any = None
    clip_norm: float | None = None
    precision: str = "auto"
    compile: bool | str = False
    network_params: dict[str, Any] | None = None
    network: Any = None

    def __sklearn_tags__(self) -> Tags:
        return GenerativeEstimator.__sklearn_tags__(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters."""
        found: dict[str, Any] = EnergyEstimator.get_params(self, deep)
        return found

    # --- the engine's words for scikit-learn's --------------------------------------------

    @property
    def max_epochs(self) -> int:  # type: ignore[override]
        return self.max_iter

    @property
    def lr(self) -> float:  # type: ignore[override]
        return self.learning_rate_init

    @property
    def optimizer(self) -> Any:
        return self.solver

    @property
    def weight_decay(self) -> float:  # type: ignore[override]
        return self.alpha

    @property
    def val_fraction(self) -> float:  # type: ignore[override]
        return self.validation_fraction if self.early_stopping else 0.0

    @property
    def patience(self) -> Any:  # type: ignore[override]
        return None if math.isinf(self.n_iter_no_change) else self.n_iter_no_change

    def _rows_of_a_step(self, total: float) -> float:
        if self.batch_size == "auto":
            return min(max(total // 32, 32.0), 128.0)
        return super()._rows_of_a_step(total)

    @property
    def _goes_on(self) -> bool:
        return (self.warm_start or self._partial) and hasattr(self, "energy_")

    # --- what a family fills in ----------------------------------------------------------

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> Energy:  # type: ignore[override]
        """A new energy for coded rows ``(n, D)`` and contexts ``(n, q)`` or None."""
        raise TypeError(f"{type(self).__name__} must define _energy_of(x, y, key)")

    def _loss(self, energy: Energy) -> Rule:
        return NLL(over="x")

    # --- learning ------------------------------------------------------------------------

    def _prepared(self, X: Any) -> Any:
        return self.coding_.encode(X)

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        self._learn_coding(X, weight)

    @property
    def _hidden(self) -> tuple[int, ...]:
        sizes = self.hidden_layer_sizes
        return (int(sizes),) if isinstance(sizes, Integral) else tuple(int(n) for n in sizes)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        goes_on = self._goes_on
        if not goes_on:
            self._learn_preparation(X, y, weight)
        rows = self._prepared(X)
        if goes_on:
            energy = self.energy_
            if rows.shape[1] != energy.spaces["x"].shape[0]:
                raise ValueError(
                    f"the model was fitted to {energy.spaces['x'].shape[0]} coded columns, now it gets "
                    f"{rows.shape[1]}; use warm_start=False for other data"
                )
        else:
            energy = self._energy_of(rows, y, init_key(self.random_state).fold("init"))
            self._moments, self._epochs = None, 0
            self._curves: dict[str, list[float]] = {"loss": [], "validation": []}
        energy.eval()
        total = float(len(X)) if weight is None else math.fsum(weight.tolist())
        rule = self.rule_ if goes_on and hasattr(self, "rule_") else self._loss(energy)
        if self.coding_.is_spread and not isinstance(rule, Dequantised):
            rule = Dequantised(rule, torch.from_numpy(self.coding_.cells))
        rule.to(rows.device, rows.dtype)
        penalty = self._weight_penalty(total)
        data = {"x": rows} if y is None else {"x": rows, "y": y}
        return Plan(energy, rule, self._training(rule, total), penalty, data)

    def _weight_penalty(self, total: float) -> Any:
        decoupled = self.solver == "adamw" or callable(self.solver)
        return None if decoupled or not self.alpha else L2(self.alpha * total)

    def _training(self, rule: Rule, total: float) -> NetworkTraining:
        made = super()._training(rule, total)
        if self._descent is not None and self._descent.kind != "sgd":
            self._descent.betas = self.betas
        watched = made.patience if rule.is_objective or self.early_stopping else math.inf
        return replace(made, tol=self.tol, patience=watched)

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        if self.ema_decay is not None:
            callbacks = [*callbacks, EMA(self.ema_decay)]
        return super()._run(plan, data, weight, callbacks, checked)

    def _describe(self, history: History, plan: Plan) -> None:
        extra = history.extra
        self._curves["loss"] += [float(v) for v in extra.get("loss", history.objective)]
        self._curves["validation"] += [float(v) for v in extra.get("validation", ())]
        super()._describe(history, plan)

    @property
    def loss_curve_(self) -> list[float]:
        return list(self._curves["loss"])

    @property
    def validation_scores_(self) -> list[float] | None:
        return list(self._curves["validation"]) if self.early_stopping else None

    _store_private: ClassVar[tuple[str, ...]] = ("_moments", "_epochs", "_curves")

    @property
    def network_(self) -> nn.Module:
        return self.energy_
