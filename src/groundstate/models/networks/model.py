"""What estimators around a network share: the plan, warm starts, rows in instalments, the curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Self

import torch
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.learn import L2
from groundstate.learn.base import Batch, History, Rule
from groundstate.learn.solvers.lbfgs import LBFGS
from groundstate.learn.solvers.networks.descent import Descent
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.learn.solvers.networks.stopping import Score
from groundstate.learn.train.stochastic import Stochastic
from groundstate.models import settings
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.networks.parameters import CONSTRAINTS
from groundstate.models.networks.population import network_members
from groundstate.models.networks.seeds import init_key, order_key
from groundstate.models.networks.streams import Coded, Survey, stream_of
from groundstate.models.traits import Traits

CHUNK = 2**16  # rows answered at once
FTOL = 1e7 * 2.0**-52


class NetworkModel(EnergyEstimator):
    r"""A network, what its outputs mean, and how it is trained.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of every hidden layer; ``()`` is a linear model.
    activation : str
        Of the hidden layers: "identity", "logistic", "tanh", "relu", or any name of
        ``groundstate.nn.blocks.mlp.ACTIVATIONS``.
    solver : "adam", "sgd" or "lbfgs"
        Adam or momentum on mini-batches, or L-BFGS on all rows, which small tables like.
    alpha : float
        Strength of the penalty :math:`\tfrac\alpha2\|W\|^2`, divided by the rows of a step.
    batch_size : int or "auto"
        Rows of a mini-batch; "auto" is min(200, n_samples).
    learning_rate : "constant", "invscaling" or "adaptive"
        How the rate of "sgd" moves: not, as :math:`\eta_0/t^p` with p = ``power_t``, or divided by
        five whenever learning rests.
    learning_rate_init : float
    power_t : float
    max_iter : int
        Epochs at most (iterations of "lbfgs").
    shuffle : bool
        New mini-batches in every epoch; False keeps those of the first.
    tol : float
        Learning rests when more than ``n_iter_no_change`` epochs improve the loss (with early
        stopping the validation score) by less.
    verbose : bool
        A progress bar on a terminal.
    warm_start : bool
        Go on from the present weights in the next ``fit``.
    momentum : float
    nesterovs_momentum : bool
    early_stopping : bool
        Hold out rows, stop when their score rests, and keep the best weights. Equal rows are
        always on the same side.
    validation_fraction : float
    max_fun : int
        Evaluations of "lbfgs" at most.
    dropout : float
        Probability of leaving out each hidden unit in a training step.
    module_params : dict
        Further arguments of a class or function.
    input_shape : tuple of int
        Shape that a row has in the module, such as ``(1, 28, 28)``.
    clip_norm : float
        Largest norm of a gradient.
    schedule : str, schedule or callable
        Factor on the rate; see ``groundstate.learn.train.schedules``.
    precision : "32", "tf32", "bf16", "fp16", or "auto": "bf16" on a GPU and "32" elsewhere
        Of the products in a training step.
    compile : bool or str
        Run the module through ``torch.compile``; a text names its mode.
    beta_1, beta_2, epsilon : float
        Of Adam.
    n_iter_no_change : int or inf
        inf runs exactly ``max_iter`` epochs.

    Attributes
    ----------
    loss_curve_ : list of float, the objective of every epoch
    loss_ : float, the last of them
    best_loss_ : float or None, the least of them; None with early stopping
    validation_scores_ : list of float or None, of the held-out rows
    best_validation_score_ : float or None
    t_ : int, rows seen
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    traits = Traits(
        program=network_members,
        scaled_target=True,
        steps="max_iter",
        space={
            "alpha": settings.Real(1e-6, 1e-1, log=True),
            "learning_rate_init": settings.Real(1e-4, 3e-2, log=True),
        },
    )

    _accept_sparse: ClassVar[bool | str] = "dense"  # mini-batches are cut from a matrix
    _multi_output: ClassVar[bool] = True
    _store_private: ClassVar[tuple[str, ...]] = ("_moments",)

    solver: str
    alpha: float
    batch_size: Any
    learning_rate: str
    learning_rate_init: float
    power_t: float
    max_iter: int
    shuffle: bool
    random_state: Any
    tol: float
    verbose: Any
    warm_start: bool
    momentum: float
    nesterovs_momentum: bool
    early_stopping: bool
    validation_fraction: float
    beta_1: float
    beta_2: float
    epsilon: float
    n_iter_no_change: float
    max_fun: int
    loss_curve_: list[float]
    t_: int
    _moments: dict[str, Any] | None
    _partial: bool = False
    _stream: Coded | None = None

    # --- what a family of networks fills in ----------------------------------------------

    def _network(self, d: int, outputs: int, key: Key) -> nn.Module:
        """A new network from d columns to so many outputs."""
        raise TypeError(f"{type(self).__name__} must define _network(d, outputs, key)")

    def _outcome(self, X: Tensor, y: Tensor, net: Callable[[int], nn.Module]) -> Energy:
        """The energy around the network that ``net(outputs)`` gives."""
        raise TypeError(f"{type(self).__name__} must define _outcome(X, y, net)")

    def _rule(self, energy: Energy) -> Rule:
        raise TypeError(f"{type(self).__name__} must define _rule(energy)")

    def _judge(self, energy: Energy) -> Score:
        """The score of held-out rows, high is good."""
        raise TypeError(f"{type(self).__name__} must define _judge(energy)")

    def _reported(
        self, energy: Energy
    ) -> tuple[int, Callable[[Batch, Tensor | None], float] | None]:
        """Targets whose mean is reported, and a constant that is added: scikit-learn's conventions."""
        return 1, None

    def _rates_of(self, energy: Energy) -> Mapping[int, float]:
        """Factors on the rate of single parameters, by id."""
        found: dict[int, float] = {}
        for module in energy.modules():
            factors = getattr(module, "learning_rate_scales", None)
            if callable(factors):
                found.update({id(p): s for p, s in factors()})
        return found

    # --- learning ------------------------------------------------------------------------

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        energy = self._continued(X, y)
        if energy is None:
            key = init_key(self.random_state).fold("init")
            d = X.shape[1]
            energy = self._outcome(X, y, lambda outputs: self._network(d, outputs, key))
            self._forget()
        if self._holds_out and self.validation_fraction == 0:
            raise ValueError(
                "early_stopping=True watches held-out rows, but validation_fraction=0 holds out none; "
                "use a fraction such as 0.1, or early_stopping=False"
            )
        energy.eval()  # the state in which it answers; training switches for its own time
        total = float(len(X) if weight is None else weight.double().sum())
        total = total if self._stream is None else self._stream.total
        rows = total * (1 - self.validation_fraction) if self._holds_out else total
        size = min(self._batch_rows(rows), rows)
        self._descent = self._optimizer(energy)
        # as in scikit-learn: every step adds alpha/2 ‖W‖² divided by the rows of the step
        steps = rows / size if self.solver != "lbfgs" else 1.0
        penalty = L2(self.alpha * steps) if self.alpha > 0 else None
        rule = self._rule(energy)
        goes_on = energy is getattr(self, "energy_", None) and hasattr(self, "rule_")
        if rule.stateful:  # a parameter is not changed by a fit
            rule = self.rule_ if goes_on else deepcopy(rule)
        return Plan(
            energy,
            rule,
            self._training(energy, rows, size),
            penalty,
            {"x": X, "y": y},
        )

    def _batch_rows(self, rows: float) -> float:
        """Rows of a mini-batch."""
        return 200.0 if self.batch_size == "auto" else float(self.batch_size)

    def _optimizer(self, energy: Energy) -> Descent:
        return Descent(
            "sgd" if self.solver == "sgd" else "adam",
            self.momentum,
            self.nesterovs_momentum,
            (self.beta_1, self.beta_2),
            self.epsilon,
            self._rates_of(energy),
            self._moments if self._partial else None,
        )

    @property
    def _holds_out(self) -> bool:
        return self.early_stopping and self.solver != "lbfgs"

    def _training(self, energy: Energy, rows: float, size: float) -> NetworkTraining:
        if self.solver == "lbfgs":
            # kinks of the activations keep gradients from vanishing: SciPy's own ftol ends the run,
            # unless tol asks for more
            ftol = min(FTOL, self.tol)
            solver = LBFGS(self.max_iter, self.tol, max_fun=self.max_fun, ftol=ftol)
            return NetworkTraining(solver, offset=self._reported(energy)[1])
        stochastic = Stochastic(
            self._descent,
            self.learning_rate_init,
            None if size >= rows else int(size),
            1 if self._partial else self.max_iter,
            tol=None,
            **self._engine(),
        )
        targets, offset = self._reported(energy)
        return NetworkTraining(
            stochastic,
            self.tol,
            math.inf if self._partial else self.n_iter_no_change,
            self.validation_fraction if self._holds_out else 0.0,
            True,
            self._judge(energy),
            self.learning_rate if self.solver == "sgd" else "constant",  # type: ignore[arg-type]
            self.power_t,
            self.shuffle,
            self.t_,
            targets=targets,
            offset=offset,
        )

    def _engine(self) -> dict[str, Any]:
        """Further settings of the trainer."""
        return {}

    def _continued(self, X: Tensor, y: Tensor) -> Energy | None:
        """The energy that is there, where it goes on: in ``partial_fit`` and with ``warm_start``."""
        old: Energy | None = getattr(self, "energy_", None)
        if old is None or not (self._partial or self.warm_start):
            return None
        made = self._outcome(X, y, lambda outputs: self._probe(old, outputs))
        if type(made) is type(old) and repr(made.spaces) == repr(old.spaces):
            return old
        raise ValueError(
            f"the model was fitted to {old.spaces['x']!r} -> {old.spaces['y']!r}, now it gets "
            f"{made.spaces['x']!r} -> {made.spaces['y']!r}; use warm_start=False for other data"
        )

    def _probe(self, old: Energy, outputs: int) -> nn.Module:
        net: Any = old.net
        return _Outputs(net, outputs)

    def _forget(self) -> None:
        self.loss_curve_, self.t_, self._moments = [], 0, None
        self._scores: list[float] = []

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        source = stream_of(X, y)
        if source is None:
            return super()._fit(X, y, sample_weight)
        if sample_weight is not None:
            raise ValueError("with a stream of rows, put the weights into it as 'weight'")
        survey = Survey.of(source)
        try:
            self._stream = Coded(source, self._codes, survey.total)
            return super()._fit(survey, None, None)
        finally:
            self.__dict__.pop("_stream", None)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        if not isinstance(X, Survey):
            return super()._checked(X, y)
        self.n_features_in_ = X.x.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        codes, attributes = self._target(X.y)
        return (
            X.x,
            None
            if codes is None
            else codes[: len(X.x)].astype(X.x.dtype if codes.dtype.kind == "f" else codes.dtype),
            attributes,
        )

    def _codes(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets of a piece of a stream as the energy knows them."""
        return self._encoded("y", y)

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        data = data if self._stream is None else self._stream
        seed, self.random_state = self.random_state, order_key(self.random_state)
        if self._partial and self.t_:  # another order than last time
            self.random_state = self.random_state.fold("t", self.t_)
        try:
            history = super()._run(plan, data, weight, callbacks, True)
        except (FloatingPointError, ValueError) as error:
            message = self._in_own_words(str(error))
            if message == str(error):
                raise
            raise type(error)(message) from error
        finally:
            self.random_state = seed
        self._describe(history, plan)
        return history

    def _in_own_words(self, message: str) -> str:
        """Advice of the trainer with the names of this estimator's parameters."""
        message = message.replace("lower lr", "lower learning_rate_init")
        for name, advice in (
            ("clip_norm", "set clip_norm=1.0, "),
            ("drop_last", "drop_last=True to leave out a last batch that is too small, or "),
        ):
            message = message if hasattr(self, name) else message.replace(advice, "")
        return message

    def _describe(self, history: History, plan: Plan) -> None:
        extra = history.extra
        losses = extra.pop("loss", history.objective)
        self.loss_curve_ = [*self.loss_curve_, *map(float, losses)]
        self.t_ = int(extra.pop("seen", [0.0])[0]) or self.t_
        self._moments = self._descent.packed() if self._partial else None
        del self._descent
        self.loss_ = self.loss_curve_[-1] if self.loss_curve_ else math.nan
        scores = [float(v) for v in extra.get("validation", ())]
        self.validation_scores_ = scores if self._holds_out else None
        self.best_validation_score_ = max(scores) if scores else None
        self.best_loss_ = None if self._holds_out else min(self.loss_curve_, default=math.nan)

    @available_if(lambda self: self._has_instalments())
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go once over these rows, from where the model and its optimiser stand."""
        return self._instalment(X, y, sample_weight)

    def _has_instalments(self) -> bool:
        if self.solver == "lbfgs":
            raise AttributeError("partial_fit needs solver='adam' or 'sgd'; lbfgs takes all rows")
        return True

    def _instalment(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if self.early_stopping:
            raise ValueError("partial_fit does not support early_stopping=True; use fit")
        if hasattr(self, "energy_"):
            self._rows(X)  # refuses other columns than those of the first call
        self._partial = True
        try:
            return self.fit(X, y, sample_weight)
        finally:
            del self._partial

    # --- answers -------------------------------------------------------------------------

    def _in_chunks(self, ask: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """An answer for many rows without all hidden layers of all rows at once."""
        if len(x) <= CHUNK:
            return ask(x)
        return torch.cat([ask(piece) for piece in x.split(CHUNK)])


class _Outputs(nn.Module):
    """Stands in for a fitted network when only the form of its energy is asked for."""

    def __init__(self, net: nn.Module, outputs: int) -> None:
        super().__init__()
        self.net, self.outputs = net, outputs

    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), self.outputs)
