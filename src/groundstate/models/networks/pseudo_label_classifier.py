"""Labels for rows without one, by the network itself."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule
from groundstate.learn.rules.pseudo_label import Clock, PseudoLabel
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.learn.solvers.networks.stopping import Score
from groundstate.models.base import Plan
from groundstate.models.networks.answers import NetworkClassifier
from groundstate.models.networks.mlp import (
    MLP_TRAITS,
    biases_of_layers,
    n_layers,
    n_outputs,
    out_activation,
    perceptron,
    weights_of_layers,
)
from groundstate.registry import models


@models.register(
    family="networks", task="classification", role="classifier", max_rows=200_000, auto=False
)
class PseudoLabelClassifier(NetworkClassifier):
    r"""A multilayer perceptron that also learns from rows without a label.

    .. math::
        J = \frac{1}{n_{lab}}\sum_{y_i \ne -1} L_i + \alpha(t)\,\frac{1}{n_{unl}}\sum_{y_i = -1}
        L(x_i, \hat y_i), \qquad \hat y_i = \arg\min_y e(x_i, y) .

    A target of −1 marks a row without a label. Its label of lowest energy stands in for it, found anew
    in every step; the share :math:`\alpha(t)` is 0 until epoch T1 and grows to :math:`\alpha_f` at
    T2. Where fewer than two other classes are there, −1 is a class like any other.

    Parameters
    ----------
    alpha_f : float, default=3.0
        Final share of the rows without a label; 0 is supervised learning.
    T1, T2 : float, default=100 and 600
        Epochs between which the share grows.
    n_iter_no_change : int or inf, default=inf
        inf runs exactly ``max_iter`` epochs; 10 where every row has a label, so that there is no
        share to wait for.

    Attributes
    ----------
    energy_ : NetworkClassEnergy
    coefs_, intercepts_ : lists of arrays, (in, out) and (out,)
    n_layers_, n_outputs_ : int
    out_activation_ : str

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from groundstate import PseudoLabelClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> some = np.where(np.arange(200) < 20, y, -1)
    >>> model = PseudoLabelClassifier(1.0, 20, 60, learning_rate_init=0.01, max_iter=80,
    ...                               random_state=0).fit(X, some)
    >>> model.classes_.tolist(), model.score(X, y) > 0.8
    ([0, 1], True)
    """

    traits = replace(MLP_TRAITS, program=None)  # members would share the clock

    _network = perceptron
    coefs_ = weights_of_layers()
    intercepts_ = biases_of_layers()
    n_layers_ = property(n_layers)
    n_outputs_ = property(n_outputs)
    out_activation_ = property(out_activation)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha_f": [Interval(Real, 0, None, closed="left")],
        "T1": [Interval(Real, 0, None, closed="left")],
        "T2": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        alpha_f: float = 3.0,
        T1: float = 100,
        T2: float = 600,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 700,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: Any = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = float("inf"),
        max_fun: int = 15000,
        dropout: float = 0.0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    loss = "log_loss"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_label = False
        return tags

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        y = np.asarray(y)
        blank = np.zeros(len(y), bool) if y.ndim != 1 or y.dtype.kind in "USb" else y == -1
        if not blank.any() or (len(np.unique(y[~blank])) < 2 and not self._goes_on()):
            return super()._target(y)
        known, attributes = super()._target(y[~blank])
        encoded = np.full(len(y), -1, np.int64)
        encoded[~blank] = known
        return encoded, attributes

    def _resident_target(self, y: Any, X: Tensor) -> tuple[Tensor, dict[str, Any]] | None:
        return None  # rows without a label are found on the host

    def _rule(self, energy: Energy) -> Rule:
        if self._multilabel:
            raise ValueError("pseudo-labels are for one label per row, y has several columns")
        return PseudoLabel(self.alpha_f, self.T1, self.T2)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        plan = super()._build(X, y, weight)
        assert y is not None
        if bool((y < 0).any()):
            return plan
        solver, waits = plan.solver, self.n_iter_no_change == float("inf") and not self._partial
        if isinstance(solver, NetworkTraining) and waits:
            solver = replace(solver, patience=10, warns=False)
        return replace(plan, rule=SoftMin(), solver=solver)

    def _run(self, plan: Any, data: Any, weight: Any, callbacks: Any, checked: bool) -> Any:
        clock = [Clock(plan.rule)] if isinstance(plan.rule, PseudoLabel) else []
        return super()._run(plan, data, weight, [*clock, *callbacks], checked)

    def _judge(self, energy: Energy) -> Score:
        judge = super()._judge(energy)

        def accuracy(energy: Energy, rows: Batch, weight: Tensor | None) -> float:
            known = (rows["y"] >= 0).nonzero()[:, 0]
            own = {name: v.index_select(0, known) for name, v in rows.items()}
            return judge(energy, own, None if weight is None else weight.index_select(0, known))

        return accuracy
