"""What the two networks for tables share: the network, its scales, the schedules and the optimiser."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.networks.location import LOCATIONS
from groundstate.learn.base import Batch, History, Rule, weighted_mean
from groundstate.learn.rules.members import MemberLoss
from groundstate.learn.solvers.networks.anneal import Anneal
from groundstate.learn.solvers.networks.descent import Descent
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.learn.solvers.networks.stopping import Score
from groundstate.learn.train.schedules import FlatCosine
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.networks.answers import NetworkClassifier, NetworkRegressor
from groundstate.models.networks.mlp import _sizes
from groundstate.models.networks.model import NetworkModel
from groundstate.models.networks.seeds import init_key
from groundstate.models.traits import Cost, Traits
from groundstate.nn.heads.base import Head
from groundstate.nn.tabular.net import TabularNet
from groundstate.nn.tabular.numbers import RobustScale

SMALL = 40  # rows below which none are held out: their score would be noise


class TabularModel(NetworkModel):
    r"""Members that share most of their parameters read scaled and embedded columns.

    Parameters
    ----------
    n_members : int
        Members M. All are trained at once and answer together.
    n_frequencies : int
        Waves by which every column of numbers is embedded; 0 passes the scaled numbers alone.
    embedding_size : int
        Numbers that stand for each column of numbers, itself included.
    frequency_scale : float
        Spread of the first frequencies, in waves per distance of the quartiles.
    weight_decay : float
        λ of :math:`W \leftarrow (1 - \eta\lambda)W`, on matrices only; fades as dropout does.
    batch_size : int or "auto"
        Rows of a mini-batch; "auto" is an eighth of the rows, but 32 to 256.
    tol : float
        Least gain of an epoch that counts.
    schedule : str, schedule or callable
        Factor on the rate; "coslog4" has four waves of growing length, each ending at 0.
    """

    traits = Traits(
        program=None,  # dropout and decay fade by a clock of each run
        scaled_target=False,
        cost=Cost(1.8, rows=0.65, columns=0.3, classes=0.3, start=0.3),
        preset={"hidden_layer_sizes": (64, 64)},
        space={
            "learning_rate_init": settings.Real(2e-3, 5e-2, log=True),
            "dropout": settings.Real(0.0, 0.4),
            "weight_decay": settings.Real(1e-2, 1.0, log=True),
            "frequency_scale": settings.Real(0.02, 0.5, log=True),
            "hidden_layer_sizes": settings.Choice((64, 64), (128, 128), (256, 256)),
        },
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_members": [Interval(Integral, 1, None, closed="left")],
        "n_frequencies": [Interval(Integral, 0, None, closed="left")],
        "embedding_size": [Interval(Integral, 2, None, closed="left")],
        "frequency_scale": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "label_smoothing": [Interval(Real, 0, 1, closed="left")],
    }

    # what a multilayer perceptron lets its users choose
    solver, alpha, learning_rate, power_t = "adam", 0.0, "constant", 0.5
    momentum, nesterovs_momentum, shuffle, max_fun = 0.9, True, True, 15000
    beta_1, beta_2, epsilon = 0.9, 0.95, 1e-8

    n_members: int
    n_frequencies: int
    embedding_size: int
    frequency_scale: float
    activation: str
    dropout: float
    weight_decay: float
    schedule: Any
    _averages: ClassVar[Any] = "outputs"  # what the members' mean is of
    _few: bool = False

    def _reader(self, X: Tensor, key: Key) -> nn.Module | None:
        """What reads columns that are no numbers, for rows to learn from."""
        return None

    def _network(self, d: int, outputs: int, key: Key) -> nn.Module:
        numbers = [self._rest[i] for i in self._scale.numbers.nonzero()[:, 0].tolist()]
        net = TabularNet(
            d, _sizes(self), outputs, members=self.n_members, numbers=numbers,
            frequencies=self.n_frequencies, size=self.embedding_size, sigma=self.frequency_scale,
            activation=self.activation, dropout=self.dropout, mean=self._averages,
            reader=self._read, generator=key.torch(),
        )  # fmt: skip
        net.scale = self._scale
        return net.to(self._scale.centre.device)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        total = float(len(X) if weight is None else weight.double().sum())
        self._few = total < SMALL
        if self._continued_or_none() is None:
            self._read = self._reader(X, init_key(self.random_state).fold("read"))
            others: Any = () if self._read is None else self._read.columns
            self._rest = [i for i in range(X.shape[1]) if i not in set(others)]
            own = X[:, self._rest] if others else X
            self._scale = RobustScale(own.shape[1]).to(X.device, torch.float64).fit(own, weight)
        try:
            plan = super()._build(X, y, weight)
        finally:
            for name in ("_scale", "_read", "_rest"):
                self.__dict__.pop(name, None)
        return plan

    def _continued_or_none(self) -> Energy | None:
        goes_on = self._partial or self.warm_start
        return getattr(self, "energy_", None) if goes_on else None

    @property
    def _holds_out(self) -> bool:
        return self.early_stopping and not self._few

    def _rule(self, energy: Energy) -> Rule:
        return MemberLoss(float(getattr(self, "label_smoothing", 0.0)))

    def _batch_rows(self, rows: float) -> float:
        if self.batch_size != "auto":
            return float(self.batch_size)
        return float(min(256, max(32, 2 ** round(math.log2(max(1.0, rows / 8))))))

    def _optimizer(self, energy: Energy) -> Descent:
        net: Any = energy.net
        return Descent(
            "adamw",
            betas=(self.beta_1, self.beta_2),
            eps=self.epsilon,
            scale=self._rates_of(energy),
            state=self._moments if self._partial else None,
            decay=self.weight_decay,
            undecayed=frozenset(map(id, net.undecayed())),
        )

    def _engine(self) -> dict[str, Any]:
        return {"schedule": None if self._partial else self.schedule}

    def _training(self, energy: Energy, rows: float, size: float) -> NetworkTraining:
        # a schedule is meant to be run to its end
        return replace(super()._training(energy, rows, size), warns=False)

    def _has_instalments(self) -> bool:
        if self.early_stopping:
            raise AttributeError("partial_fit holds no rows out; set early_stopping=False")
        return True

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        held = self.early_stopping and isinstance(X, np.memmap)  # a stream holds no rows out
        return super()._fit(np.asarray(X) if held else X, y, sample_weight)

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        net: Any = plan.energy.net
        dtype = net.shift.dtype
        if self._stream is None:
            net.single()  # half the time of double; what is rounded has been scaled before
        fade = [] if self._partial else [Anneal(FlatCosine(), self._descent)]
        try:
            return super()._run(plan, data, weight, [*fade, *callbacks], checked)
        finally:
            plan.energy.to(dtype)


class TabularClassifier(TabularModel, NetworkClassifier):
    """One label for each row, by the mean of the members' probabilities."""

    _averages: ClassVar[str] = "probabilities"
    loss = "log_loss"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_label = False
        return tags

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        shape = np.shape(y)
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(
                f"y has {shape[1]} columns, but this model gives one label per row; use MLPClassifier "
                "for several"
            )
        return super()._target(y)

    def _n_scores(self, k: int) -> int:
        return k

    def _judge(self, energy: Energy) -> Score:
        return minus_log_loss


class TabularRegressor(TabularModel, NetworkRegressor):
    """Values, by the mean of the members' outputs in units of the target's spread around its mean."""

    def _head(self, m: int) -> Head:
        head = super()._head(m)
        if head.name not in LOCATIONS:
            raise ValueError(
                f"loss={self.loss!r} is a distribution, but members average values; use one of "
                f"{', '.join(LOCATIONS)}, or MLPRegressor for a distribution"
            )
        return head

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        plan = super()._build(X, y, weight)
        if y is not None and plan.energy is not getattr(self, "energy_", None):
            share = torch.ones(len(y), dtype=torch.float64, device=y.device)
            share = share if weight is None else weight.double()
            share = share / share.sum()
            mean = share @ y.double()
            spread = (share @ (y.double() - mean).square()).sqrt()
            net: Any = plan.energy.net
            net.shift, net.gain = mean, torch.where(spread > 0, spread, 1.0)
        return plan


def minus_log_loss(energy: Energy, rows: Batch, weight: Tensor | None) -> float:
    """Mean log-probability of the right labels."""
    e = energy(**rows)
    return -float(weighted_mean(e.double(), None if weight is None else weight.double()))
