"""What a network's outputs answer: labels, several labels at once, values and their distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.compute.foreign.sklearn import check_partial_fit_first_call
from groundstate.energy.base import Energy
from groundstate.energy.networks.location import LOCATIONS, LocationHead
from groundstate.energy.networks.network import NetworkClassEnergy, NetworkEnergy
from groundstate.errors import DataError, Unsupported
from groundstate.learn import NLL, Naive, SoftMin
from groundstate.learn.base import Batch, Rule, weighted_mean
from groundstate.learn.rules.score_loss import SCORE_LOSSES, ScoreLoss
from groundstate.learn.solvers.networks.stopping import Score
from groundstate.math.distributions.quantiles import interval
from groundstate.models.networks.model import NetworkModel
from groundstate.models.roles import EnergyClassifier, EnergyRegressor
from groundstate.nn.heads.base import FAMILIES, DistributionHead, Head

VALUES = tuple(
    name for name, family in FAMILIES.items() if family.kind not in ("labels", "ranking", "binary")
)


class NetworkClassifier(NetworkModel, EnergyClassifier):
    """A network whose outputs are scores of labels, of one label per row or of several."""

    classes_: NDArray[Any]
    loss: Any
    _multilabel: bool
    _store_private: ClassVar[tuple[str, ...]] = ("_multilabel",)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_label = True
        return tags

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        several = y.ndim == 2
        if several:
            kind = type_of_target(y)
            if kind != "multilabel-indicator":
                raise ValueError(
                    f"y has {y.shape[1]} columns of kind {kind}; several labels per row are columns "
                    "of zeros and ones (multilabel-indicator)"
                )
            if self._goes_on() and y.shape[1] != len(self.classes_):
                raise ValueError(f"y has {y.shape[1]} labels, was fitted to {len(self.classes_)}")
            return y.astype(np.float64), {
                "classes_": np.arange(y.shape[1]), "_multilabel": True,
            }  # fmt: skip
        if self._goes_on():
            return self._known(y), {"_multilabel": False}
        encoded, attributes = super()._target(y)
        return encoded, {**attributes, "_multilabel": False}

    def _resident_target(self, y: Any, X: Tensor) -> tuple[Tensor, dict[str, Any]] | None:
        found = None if self._goes_on() else super()._resident_target(y, X)
        return None if found is None else (found[0], {**found[1], "_multilabel": False})

    def _goes_on(self) -> bool:
        return hasattr(self, "classes_") and (
            self._partial or (self.warm_start and hasattr(self, "energy_"))
        )

    def _known(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Labels as numbers of the classes that are there."""
        seen = np.unique(y)
        foreign = np.setdiff1d(seen, self.classes_)
        if len(foreign) or (not self._partial and len(seen) < len(self.classes_)):
            way = "use warm_start=False to start anew"
            if self._partial:
                way = "name all classes that will ever come in the first call of partial_fit"
            raise ValueError(
                f"going on needs the same classes: the model knows {self.classes_.tolist()}, y has "
                f"{seen.tolist()}; {way}"
            )
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _outcome(self, X: Tensor, y: Tensor, net: Callable[[int], nn.Module]) -> Energy:
        d, k = X.shape[1], len(self.classes_)
        if self._multilabel:
            return NetworkEnergy(d, DistributionHead("bernoulli", k), net(k))
        return NetworkClassEnergy(d, k, net(self._n_scores(k)))

    def _n_scores(self, k: int) -> int:
        return 1 if k == 2 and self.loss != "squared_onehot" else k

    def _rule(self, energy: Energy) -> Rule:
        if isinstance(self.loss, Rule):
            return self.loss
        if self.loss in SCORE_LOSSES and not self._multilabel:
            rule = ScoreLoss(self.loss)
            rule.require(energy, {"y": torch.empty(0)})
            return rule
        if self.loss not in (None, "log_loss", "cross_entropy"):
            raise ValueError(
                f"loss={self.loss!r} is not known for {'several labels' if self._multilabel else 'one label'} "
                "per row; use 'log_loss', a learning rule over labels such as "
                f"groundstate.learn.Margin(), or for one label {', '.join(SCORE_LOSSES)}"
            )
        return NLL(over="y") if self._multilabel else SoftMin()

    def _judge(self, energy: Energy) -> Score:
        def accuracy(energy: Energy, rows: Batch, weight: Tensor | None) -> float:
            predicted = self._in_chunks(lambda x: _labels(energy, x), rows["x"])
            right = predicted == rows["y"]
            right = right if right.ndim == 1 else right.all(1)
            return float(weighted_mean(right.double(), None if weight is None else weight.double()))

        return accuracy

    # --- answers -------------------------------------------------------------------------

    def _class_table(self, x: Tensor) -> Tensor:
        return self._in_chunks(lambda piece: self.energy_.table("y", x=piece), x)

    def _logits(self, X: Any) -> tuple[Tensor, Any]:
        x, home = self._rows(X)
        assert isinstance(self.energy_, NetworkEnergy)
        with torch.no_grad():
            return self._in_chunks(self.energy_.net, x), home

    def predict(self, X: Any) -> Any:
        """Labels of lowest energy, ``(n_samples,)``; several labels are ``(n_samples, n_labels)``."""
        if not getattr(self, "_multilabel", False):
            return super().predict(X)
        logits, home = self._logits(X)
        return home.give((logits > 0).long())

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the labels, ``(n_samples, n_classes)``; of several labels, each its own."""
        if not getattr(self, "_multilabel", False):
            return super().predict_proba(X)
        logits, home = self._logits(X)
        return home.give(torch.sigmoid(logits))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, ``(n_samples, n_classes)``."""
        if not getattr(self, "_multilabel", False):
            return super().predict_log_proba(X)
        logits, home = self._logits(X)
        return home.give(nn.functional.logsigmoid(logits))

    def decision_function(self, X: Any) -> Any:
        """Scores, ``(n_samples, n_classes)``; for two classes their difference, ``(n_samples,)``."""
        if not getattr(self, "_multilabel", False):
            return super().decision_function(X)
        logits, home = self._logits(X)
        return home.give(logits)

    def predict_dist(self, X: Any) -> Distribution:
        """The distribution of the label, a torch ``Categorical`` (several labels: independent Bernoullis)."""
        x, _ = self._rows(X)
        if self._multilabel:
            logits, _ = self._logits(X)
            return D.Independent(D.Bernoulli(logits=logits, validate_args=False), 1)
        with torch.no_grad():
            return D.Categorical(logits=-self._class_table(x), validate_args=False)

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name == "y" and self._multilabel:
            return values.astype(np.float64)
        return super()._encoded(name, values)

    def _decoded(self, name: str, values: Tensor, home: Any) -> Any:
        if name == "y" and self._multilabel:
            return home.give(values.long())
        return super()._decoded(name, values, home)

    @available_if(lambda self: self._has_instalments())
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Self:
        """Go once over these rows, from where the model and its optimiser stand.

        The first call needs ``classes``, all labels that will ever come.
        """
        if not hasattr(self, "energy_") and type_of_target(y).startswith("multilabel"):
            return self._instalment(X, y, sample_weight)
        if check_partial_fit_first_call(self, classes) and len(self.classes_) < 2:
            one = self.classes_[0]
            del self.classes_
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, got one: {one!r}")
        return self._instalment(X, y, sample_weight)


def _labels(energy: Energy, x: Tensor) -> Tensor:
    if isinstance(energy, NetworkEnergy):
        return energy.mean(x)
    return energy.table("y", x=x).argmin(1)


class NetworkRegressor(NetworkModel, EnergyRegressor):
    """A network whose outputs are values, or the parameters of a distribution of the value.

    Attributes
    ----------
    scale_ : (n_targets,) array
        Root mean square of what is left on the rows learned from; the width of ``predict_dist`` for
        losses that have no width of their own.
    energy_ : NetworkEnergy
    loss_curve_ : list of float, the loss of every epoch with its penalty, as scikit-learn counts it:
        squared error as the mean over targets, Poisson as half the deviance
    scale_ : (n_targets,) array, root mean square error on the rows learned from
    """

    _predicts: ClassVar[str] = "mean"
    loss: Any
    scale_: NDArray[Any]

    def _head(self, m: int) -> Head:
        if isinstance(self.loss, Head):
            return self.loss
        names = {"squared": "squared_error", "absolute": "absolute_error", "student": "student_t"}
        name = names.get(self.loss, self.loss)
        if name in LOCATIONS:
            return LocationHead(name, m)
        if name in VALUES:
            return DistributionHead(name, m)
        sizes = isinstance(self.loss, tuple | list | int)
        hint = f" (layers are hidden_layer_sizes={self.loss!r})" if sizes else ""
        raise ValueError(
            f"loss={self.loss!r} is not known{hint}; use one of {', '.join((*LOCATIONS, *VALUES))}, "
            "or a head of groundstate.nn.heads.base"
        )

    def _outcome(self, X: Tensor, y: Tensor, net: Callable[[int], nn.Module]) -> Energy:
        head = self._head(y.shape[1])
        if head.m != y.shape[1]:
            raise ValueError(f"the head is for {head.m} targets, y has {y.shape[1]} columns")
        if head.name != "poisson":
            head.check(y)
        elif bool((y < 0).any()):  # as scikit-learn: any y >= 0, also between counts
            row, column = (y < 0).nonzero()[0].tolist()
            raise DataError(
                f"y[{row}, {column}] is {float(y[row, column]):g}, but loss='poisson' needs values of "
                "at least 0; fix the target or choose another loss"
            )
        return NetworkEnergy(X.shape[1], head, net(head.n_outputs))

    def _rule(self, energy: Energy) -> Rule:
        assert isinstance(energy, NetworkEnergy)
        return NLL(over="y") if energy.likelihood else Naive(over="y")

    def _reported(
        self, energy: Energy
    ) -> tuple[int, Callable[[Batch, Tensor | None], float] | None]:
        assert isinstance(energy, NetworkEnergy)
        head = energy.head
        return head.m if head.name == "squared_error" else 1, _half_deviance(head.name)

    def _judge(self, energy: Energy) -> Score:
        assert isinstance(energy, NetworkEnergy)
        return _r2 if energy.head.name == "squared_error" else _minus_loss

    def _run(self, plan: Any, data: Any, weight: Any, callbacks: Any, checked: bool) -> Any:
        history = super()._run(plan, data, weight, callbacks, checked)
        self._measure(plan.energy, data if self._stream is None else self._stream, weight)
        return history

    def _codes(self, y: NDArray[Any]) -> NDArray[Any]:
        values = np.asarray(y, dtype=np.float64)
        return values[:, None] if values.ndim == 1 else values

    @torch.no_grad()
    def _measure(self, energy: Any, data: Any, weight: Tensor | None) -> None:
        """What is left on the rows learned from."""
        device = energy.placement()[0]
        squares, total = torch.zeros((), dtype=torch.float64), 0.0
        for block in [{**data, "weight": weight}] if isinstance(data, Mapping) else data:
            predicted = self._in_chunks(energy.mean, block["x"].to(device))
            left = (block["y"].to(device) - predicted).double().square()
            own = block.get("weight")
            w = left.new_ones(len(left)) if own is None else own.to(device).double()
            squares = squares.to(device) + w @ left
            total += float(w.sum())
        self.scale_ = (squares / total).sqrt().cpu().numpy()

    def _forward(self, X: Any) -> tuple[Tensor, Any]:
        x, home = self._rows(X)
        assert isinstance(self.energy_, NetworkEnergy)
        with torch.no_grad():
            return self._in_chunks(self.energy_.net, x), home

    def predict(self, X: Any) -> Any:
        """The mean of the outcome (what the loss is least at), ``(n_samples[, n_targets])``."""
        raw, home = self._forward(X)
        y = self.energy_.head.predict(raw)  # type: ignore[union-attr, operator]
        return home.give(y[:, 0] if self._flat_target else y)

    def predict_dist(self, X: Any) -> Distribution:
        """The distribution of the outcome, a torch distribution of batch shape ``(n_samples,)``.

        Squared and absolute error have normal and Laplace noise of the width that the training rows
        leave; for one that follows x use ``loss="normal"`` or another distribution.
        """
        raw, _ = self._forward(X)
        head: Any = self.energy_.head
        if not isinstance(head, LocationHead):
            distribution: Distribution = head.dist(raw)
            return distribution
        width = torch.as_tensor(self.scale_).to(raw).clamp_min(torch.finfo(raw.dtype).tiny)
        if head.name == "squared_error":
            one: Any = D.Normal(raw, width.expand_as(raw), validate_args=False)
        elif head.name == "absolute_error":
            one = D.Laplace(raw, (width / math.sqrt(2)).expand_as(raw), validate_args=False)
        else:
            raise Unsupported(
                f"loss={head.name!r} predicts a value and no distribution; use one of {', '.join(VALUES)}"
            )
        return D.Independent(one, 1, validate_args=False)

    def predict_interval(self, X: Any, level: float = 0.9) -> Any:
        """The central interval that holds y with probability ``level``, ``(n_samples, 2)`` or
        ``(n_samples, n_targets, 2)``.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        _, home = self._rows(X)
        ends = interval(self.predict_dist(X), level).movedim(0, -1)  # (B, m, 2)
        return home.give(ends[:, 0] if self._flat_target else ends)


def _r2(energy: Energy, rows: Batch, weight: Tensor | None) -> float:
    assert isinstance(energy, NetworkEnergy)
    y = rows["y"].double()
    w = (torch.ones(len(y), device=y.device) if weight is None else weight).double()[:, None]
    left = (w * (y - energy.mean(rows["x"])).square()).sum(0)
    mean = (w * y).sum(0) / w.sum()
    spread = (w * (y - mean).square()).sum(0)
    share = 1 - left / spread
    return float(torch.where(spread > 0, share, (left == 0).double()).mean())


def _half_deviance(name: str) -> Callable[[Batch, Tensor | None], float] | None:
    r"""From Poisson's −log p to half its deviance, :math:`\sum_k y\log y - y - \log\Gamma(y+1)`."""
    if name != "poisson":
        return None

    def offset(rows: Batch, weight: Tensor | None) -> float:
        y = rows["y"].double()
        each = (torch.xlogy(y, y) - y - torch.lgamma(y + 1)).sum(1)
        return float(weighted_mean(each, None if weight is None else weight.double()))

    return offset


def _minus_loss(energy: Energy, rows: Batch, weight: Tensor | None) -> float:
    return -float(weighted_mean(energy(**rows), weight))
