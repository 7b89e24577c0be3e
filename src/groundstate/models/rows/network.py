"""Estimators around a network, for rows of any kind: what they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import torch
from sklearn.utils import Tags
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.compute.rows import Rows, count, part, split, to_device
from groundstate.energy.base import Energy
from groundstate.energy.spaces import RaggedOf, Space
from groundstate.energy.spaces import Real as RealSpace
from groundstate.errors import DataError
from groundstate.learn import L2, NLL
from groundstate.learn.base import Batch, History, Rule
from groundstate.learn.solvers.networks.descent import Descent
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.learn.solvers.networks.stopping import Score
from groundstate.learn.train.optimizers import OPTIMIZERS
from groundstate.learn.train.precision import PRECISIONS
from groundstate.learn.train.stochastic import Stochastic
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.networks.population import network_members
from groundstate.models.networks.seeds import common_seed, init_key, order_key
from groundstate.models.rows.budget import Budget
from groundstate.models.rows.kinds import check_form, tagged
from groundstate.models.rows.making import make_network
from groundstate.models.traits import Traits

CHUNK = 256  # rows answered at once
HELD_OUT = 0.1  # share of the rows that decides when to stop, where nothing else is said
TOL = 1e-4  # a smaller gain of the watched value is none
ROUTE = "network__"
DESCENTS: dict[str, Callable[[float], Descent]] = {
    "adam": lambda decay: Descent("adam"),
    "adamw": lambda decay: Descent("adamw", decay=decay),
    "sgd": lambda decay: Descent("sgd", momentum=0.0, nesterov=False),
    "momentum": lambda decay: Descent("sgd", nesterov=False),
    "nesterov": lambda decay: Descent("sgd"),
}


class RowNetwork(EnergyEstimator):
    r"""Base of the estimators around a network, whatever their rows are.

    .. math:: J(\theta) = \frac{1}{\sum_i w_i}\sum_i w_i\,L(e_\theta; x_i, y_i)

    is lowered on mini-batches of the weight line. A part of the rows is held out: training stops when
    its loss has not improved for ``patience`` epochs, and the best weights come back. A subclass
    declares ``rows`` and writes ``_energy_of``, and ``_sizes``, ``_space``, ``_prepared``,
    ``_learn_preparation``, ``_loss``, ``_score_of`` and ``_row_target`` where the given ones do not
    fit.

    Parameters
    ----------
    network : str, module, class or function
        Name of an architecture (``groundstate.nn.architectures.list()``), a torch module, which is
        copied with its weights, or a class or function that makes one and takes the sizes of the
        data by the names it has parameters for.
    network_params : dict
        Further arguments of the constructor; ``set_params(network__depth=3)`` and search spaces
        reach each of them.
    max_epochs : int or None
        Passes over the rows at most; None takes as many as make ``budget.steps`` steps, so that few rows
        are seen often.
    batch_size : int
        Rows (units of weight) of a step.
    optimizer : str or callable
        "adamw", "adam", "sgd", "momentum", "nesterov" or another name of
        ``groundstate.learn.train.optimizers``, or ``(parameters, lr) -> torch.optim.Optimizer``.
    lr : float
        Learning rate.
    weight_decay : float
        Decoupled for "adamw"; for the others :math:`\tfrac\lambda2\|W\|^2` beside the mean loss.
    val_fraction : float or None
        Share of the rows that is held out; 0 watches the loss of the rows that are learned from, None
        holds a tenth out where ``patience`` is given. Equal rows are always on the same side.
    patience : int or None
        Epochs without an improvement after which training stops; None runs all.
    schedule : str, schedule or callable
        Factor on the rate; see ``groundstate.learn.train.schedules``.
    clip_norm : float
        Largest norm of a gradient.
    precision : "auto", "32", "tf32", "bf16" or "fp16"
        Of the products in a training step; "auto" is "bf16" on a GPU and "32" elsewhere.
    compile : bool or str
        Run the network through ``torch.compile``; a text names its mode.
    device : str or torch.device
        "auto" is the GPU where there is one, None is where X is.
    solver : str or callable
        "adam", "adamw", "sgd" or another name of ``groundstate.learn.train.optimizers``.

    Attributes
    ----------
    network_ : the fitted module
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "network": [str, nn.Module, callable],
        "network_params": [dict, None],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), None],
        "optimizer": [StrOptions(set(OPTIMIZERS)), callable],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "val_fraction": [Interval(Real, 0, 1, closed="left"), None],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "schedule": "no_validation",
        "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
        "precision": [StrOptions(set(PRECISIONS))],
        "compile": ["boolean", str],
        "class_weight": "no_validation",
        "random_state": "no_validation",
    }
    traits = Traits(
        program=network_members,
        steps="max_epochs",
        space={
            "lr": settings.Real(1e-4, 3e-2, log=True),
            "weight_decay": settings.Real(1e-6, 1e-1, log=True),
        },
    )
    _store_private: ClassVar[tuple[str, ...]] = ("_moments", "_epochs")
    network_kind: ClassVar[str | None] = None  # of architectures, where it is not that of the rows
    budget: ClassVar[Budget] = Budget(1000, least=10, most=300)  # where max_epochs is None

    network: Any
    network_params: dict[str, Any] | None
    max_epochs: int | None
    batch_size: Any
    optimizer: Any
    lr: float
    weight_decay: float
    val_fraction: float | None
    patience: int | None
    schedule: Any
    clip_norm: float | None
    precision: str
    compile: bool | str
    warm_start: bool
    random_state: Any
    _moments: dict[str, Any] | None
    _epochs: int
    _partial: bool = False

    def __sklearn_tags__(self) -> Tags:
        return tagged(super().__sklearn_tags__(), self.rows)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; ``deep`` names the settings of the network one by one as well."""
        found: dict[str, Any] = super().get_params(deep)
        inner = self.network_params or {}
        return {**found, **{ROUTE + k: v for k, v in inner.items()}} if deep else found

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``network__x`` is the setting x of the network's constructor."""
        own = {k: v for k, v in params.items() if not k.startswith(ROUTE)}
        inner = {k[len(ROUTE) :]: v for k, v in params.items() if k.startswith(ROUTE)}
        super().set_params(**own)
        if inner:
            self.network_params = {**(self.network_params or {}), **inner}
        return self

    # --- what a preset fills in ----------------------------------------------------------

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        """Learn from the rows of positive weight how rows are prepared."""

    def _prepared(self, X: Any) -> Any:
        """Rows as the energy takes them."""
        return X

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        """What the constructor of the network is given, such as ``num_classes``."""
        return {}

    def _space(self, X: Any) -> Space:
        """The space of prepared rows."""
        first: Any = to_device(part(X, 0, 1), torch.device("cpu"))  # of files, one is read
        if isinstance(first, Tensor):
            return RealSpace(*first.shape[1:])
        return RaggedOf(RealSpace(*first.item_shape))

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        """The energy around a new network, for prepared rows."""
        raise TypeError(f"{type(self).__name__} must define _energy_of(net, X, y)")

    def _loss(self, energy: Energy) -> Rule:
        return NLL()

    def _score_of(self, rule: Rule) -> Score:
        """The score of held-out rows, high is good: minus their mean loss."""
        return partial(minus_loss, rule)

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X, their targets y and weights; a weight of 2 is the row twice.

        Under ``torchrun`` every process calls it with rows of its own, and all learn from all of them.
        """
        seed, self.random_state = self.random_state, common_seed(self.random_state)
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self.random_state = seed

    def _build(self, X: Any, y: Any, weight: Tensor | None) -> Plan:
        goes_on = (self.warm_start or self._partial) and hasattr(self, "energy_")
        if not goes_on:
            self._learn_preparation(X, y, weight)
        rows = self._prepared(X)
        if goes_on:
            check_form(self, rows)
            energy = self._continued(rows, y)
        else:
            energy = self._energy_of(self._made(rows, y), rows, y)
            self._moments, self._epochs = None, 0
        energy.eval()  # the state in which it answers; training switches for its own time
        total = float(count(X)) if weight is None else math.fsum(weight.tolist())
        total = float(current().sum(torch.tensor(total, dtype=torch.float64)))
        rule = self._loss(energy)
        if rule.stateful and goes_on and hasattr(self, "rule_"):
            rule = self.rule_
        decoupled = self.optimizer == "adamw" or callable(self.optimizer)
        penalty = None if decoupled or not self.weight_decay else L2(self.weight_decay * total)
        data = {"x": rows} if y is None else {"x": rows, "y": y}
        return Plan(energy, rule, self._training(rule, total), penalty, data)

    def _made(self, X: Any, y: Any) -> nn.Module:
        key = init_key(self.random_state).fold("init")
        network, given = self._architecture()
        kind = self.network_kind or self.rows
        return make_network(network, self._sizes(X, y), given, kind, key)

    def _architecture(self) -> tuple[Any, Mapping[str, Any]]:
        """The network that is asked for, and further arguments of its constructor."""
        return self.network, self.network_params or {}

    def _continued(self, X: Any, y: Any) -> Energy:
        """The energy that is there, for further rows."""
        return self.energy_

    @property
    def _rate_schedule(self) -> Any:
        """Factor on the learning rate; models that call something else ``schedule`` have their own."""
        return self.schedule

    def _rows_of_a_step(self, total: float) -> float:
        """Units of weight of a mini-batch."""
        return float(self.batch_size)

    @property
    def _rate(self) -> float:
        """The learning rate."""
        return self.lr

    @property
    def _held_out(self) -> float:
        """Share of the rows that judges the others."""
        if self.val_fraction is not None:
            return self.val_fraction
        return 0.0 if self.patience is None else HELD_OUT

    def _passes(self, total: float, size: float) -> int:
        """Over rows of this weight, in steps of that size."""
        if self.max_epochs is not None:
            return self.max_epochs
        return self.budget.epochs(total * (1 - self._held_out), size)

    def _training(self, rule: Rule, total: float) -> NetworkTraining:
        optimizer: Any = self.optimizer
        if isinstance(optimizer, str) and optimizer in DESCENTS:
            optimizer = DESCENTS[optimizer](self.weight_decay)
            optimizer.state = self._moments if self._partial else None
        self._descent = optimizer if isinstance(optimizer, Descent) else None
        held_out = 0.0 if self._partial else self._held_out
        size = self._rows_of_a_step(total)
        stochastic = Stochastic(
            optimizer,
            self._rate,
            None if size >= total * (1 - held_out) else int(size),
            1 if self._partial else self._passes(total, size),
            tol=None,
            schedule=self._rate_schedule,
            clip_norm=self.clip_norm,
            precision=self.precision,
            compile=self.compile,
        )
        rests = math.inf if self._partial or self.patience is None else self.patience
        return NetworkTraining(
            stochastic,
            TOL,
            rests,
            held_out,
            True,
            self._score_of(rule),
            warns=False,
            sums_scores=True,
        )

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        seed, self.random_state = self.random_state, order_key(self.random_state)
        if self._epochs:  # another order than last time
            self.random_state = self.random_state.fold("epochs", self._epochs)
        try:
            history = super()._run(plan, data, weight, callbacks, True)
        except DataError as error:
            raise DataError(_in_own_words(str(error))) from error
        finally:
            self.random_state = seed
        self._describe(history, plan)
        return history

    def _describe(self, history: History, plan: Plan) -> None:
        self._epochs += history.n_iter
        self._moments = self._descent.packed() if self._partial and self._descent else None
        del self._descent

    def partial_fit(
        self, X: Any, y: Any = None, *, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Go once over these rows, from where the model and its optimiser stand.

        A classifier needs ``classes``, all labels that will ever come, in its first call.
        """
        self._partial = True
        try:
            return self.fit(X, y, sample_weight)
        finally:
            del self._partial

    # --- answers -------------------------------------------------------------------------

    @property
    def network_(self) -> nn.Module:
        return self._net

    @property
    def _net(self) -> nn.Module:
        """What maps prepared rows to answers, with the scales of these."""
        net: Any = self.energy_.net
        assert isinstance(net, nn.Module)
        return net

    def _rows(self, X: Any) -> tuple[Any, Home]:
        rows, home = super()._rows(X)
        rows = self._prepared(rows)
        check_form(self, rows)
        return rows, home

    def _in_chunks(self, ask: Callable[[Any], Tensor], x: Any, size: int = CHUNK) -> Tensor:
        """An answer for many rows, a part of them at a time on the device of θ."""
        device = self.energy_.placement()[0]
        return torch.cat([ask(rows) for rows in pieces(x, device, size)])


def pieces(x: Rows, device: torch.device, size: int = CHUNK) -> Any:
    """Parts of some rows, each on the device when its turn comes; files are read."""
    n = count(x)
    sizes = [min(size, n - at) for at in range(0, n, size)]
    return (to_device(rows, device) for rows in split(x, sizes)) if sizes else iter((x,))


@torch.no_grad()
def minus_loss(
    rule: Rule, energy: Energy, rows: Batch, weight: Tensor | None, size: int = CHUNK
) -> float:
    """Minus the mean loss of the rows of all processes, so many at a time."""
    device = energy.placement()[0]
    n = count(next(iter(rows.values())))
    sizes = [min(size, n - at) for at in range(0, n, size)]
    parts: Mapping[str, Any] = {name: split(v, sizes) for name, v in rows.items()}
    weights = torch.ones(n, device=device) if weight is None else weight.to(device)
    total = float(current().sum(weights.double().sum()))
    lost = torch.zeros((), dtype=torch.float64, device=device)
    for i, own in enumerate(weights.split(sizes)):
        batch: dict[str, Any] = {name: to_device(v[i], device) for name, v in parts.items()}
        lost += rule.mean(energy, batch, own, total)[0].double()
    return -float(current().sum(lost))


def _in_own_words(message: str) -> str:
    """Advice of the trainer with the names of these estimators' parameters."""
    return message.replace("validation_fraction", "val_fraction").replace(
        "early_stopping=False", "val_fraction=0"
    )
