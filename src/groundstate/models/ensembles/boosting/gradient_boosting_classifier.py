"""Gradient boosting of classes with any base learner and loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import HasMethods, StrOptions
from groundstate.energy.trees.additive import AdditiveClassEnergy
from groundstate.energy.trees.additive_losses import AdditiveLoss, Exponential, Logistic
from groundstate.learn import SoftMin
from groundstate.models.base import Plan
from groundstate.models.ensembles.boosting.functional import FunctionalBooster
from groundstate.models.roles import EnergyClassifier
from groundstate.models.trees.inputs import started
from groundstate.registry import models

LOSSES = ("log_loss", "exponential")


@models.register(
    family="ensembles", task="classification", role="classifier", max_rows=10_000, auto=False
)
class GradientBoostingClassifier(FunctionalBooster, EnergyClassifier):
    r"""A sum of small members, each fitted to the negative gradients of the loss.

    .. math::
        e(x, y) = -F_y(x), \qquad F \leftarrow F + \nu\gamma h, \qquad
        h = \arg\min_h \sum_i w_i(r_i - h(x_i))^2,\quad r = y - p .

    :math:`F_0` is the best constant. In every step h is fitted by least squares to
    :math:`r = -\partial L/\partial F`, and γ comes from ``line_search``. Trees are cut exactly; for
    large tables use ``HistGradientBoostingClassifier``, which bins its columns.

    Parameters
    ----------
    loss : {"log_loss", "exponential"}, default="log_loss"
        :math:`-\log p(y)`, or for two classes AdaBoost's :math:`e^{-tF}`.
    init : classifier of any kind, "zero" or None
        Start at its answers, at zero, or at the best constant.

    Attributes
    ----------
    oob_improvement_, oob_scores_ : (n_estimators_,) arrays, with ``subsample``
    energy_ : AdditiveClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import GradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> model.estimators_.shape, bool(model.score(X, y) > 0.97)
    ((20, 3), True)
    """

    _single_class: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES))],
        "init": [StrOptions({"zero"}), None, HasMethods(["fit", "predict_proba"])],
    }

    def __init__(
        self,
        *,
        loss: Any = "log_loss",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "squared_error",
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        estimator: Any = None,
        line_search: str = "leaf",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    _classes: ClassVar[bool] = False  # its trees hold values

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        k = len(self.classes_)
        loss: AdditiveLoss = Exponential() if self.loss == "exponential" else Logistic()
        if self.loss == "exponential" and k != 2:
            raise ValueError(f"loss='exponential' is for two classes, got {k}; use 'log_loss'")
        energy = started(self, AdditiveClassEnergy(X.shape[1], k, loss), self._steps_done)
        return Plan(energy, SoftMin(), self._booster(X, weight, k))

    def _factor(self) -> float:
        return 2.0 if len(self.classes_) == 2 and self.loss == "log_loss" else 1.0  # the deviance

    @property
    def n_classes_(self) -> int:
        """How many classes there are."""
        return len(self.classes_)

    def apply(self, X: Any) -> Any:
        """Number of the leaf of each row, ``(n_samples, n_estimators_, n_scores)``."""
        leaves = super().apply(X)
        return leaves.reshape(len(leaves), -1, self.n_trees_per_iteration_)

    def decision_function(self, X: Any) -> Any:
        """Scores F, ``(n_samples, n_classes)``, or ``(n_samples,)`` for two classes."""
        x, home = self._rows(X)
        with torch.no_grad():
            F = self.energy_.raw(x)
        return home.give(F[:, 0] if F.shape[1] == 1 else F)

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """`decision_function` after every step."""
        for F, home in self._staged(X):
            yield home.give(F[:, 0] if F.shape[1] == 1 else F)

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """`predict` after every step."""
        for F, home in self._staged(X):
            best = self.energy_.spread(F).argmax(1)
            yield home.give(self.classes_[best.cpu().numpy()])

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """`predict_proba` after every step."""
        for F, home in self._staged(X):
            yield home.give(torch.softmax(self.energy_.spread(F), 1))
