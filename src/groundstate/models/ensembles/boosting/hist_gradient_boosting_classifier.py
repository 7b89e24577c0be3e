"""Boosted trees for classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.energy.trees.boosted import BoostedClassEnergy
from groundstate.learn import SoftMin
from groundstate.models.base import Plan
from groundstate.models.ensembles.boosting.histogram import SMALL_TREES, HistogramBooster
from groundstate.models.roles import EnergyClassifier
from groundstate.models.traits import Traits
from groundstate.models.trees.inputs import class_factors, started
from groundstate.registry import models


@models.register(
    family="ensembles", task="classification", role="classifier", shortlist=2, shortlist_text=5
)
class HistGradientBoostingClassifier(HistogramBooster, EnergyClassifier):
    r"""A sum of small trees per class, grown on histograms of gradients.

    .. math::
        e(x, y) = -F_y(x), \qquad F = b + \nu\sum_t v_{\ell_t(x)}, \qquad
        v_\ell = -\frac{G_\ell}{H_\ell + \lambda},

    where G and H are sums over a leaf of the first and second derivatives of the cross-entropy
    :math:`e(x_i, y_i) - F(x_i)`. With two classes there is one score f and
    :math:`p(1\mid x) = \sigma(f)`. Missing values go to the better side of every cut.

    Parameters
    ----------
    loss : {"log_loss"}
    class_weight : dict, "balanced" or None
        What gradients of a class count; ``min_samples_leaf`` counts rows without it.

    Attributes
    ----------
    n_trees_per_iteration_ : int
    train_score_, validation_score_ : (n_iter_ + 1,) arrays, where early stopping watched
    energy_ : BoostedClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import HistGradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> HistGradientBoostingClassifier(max_iter=20).fit(X, y).score(X, y)
    0.98
    """

    # a leaf of few rows has next to no curvature: what its rows say for certain is drawn back
    traits = Traits(preset={**SMALL_TREES, "l2_regularization": 10.0})

    _single_class: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions({"log_loss"})],
    }

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        class_weight: Any = None,
        goss: Any = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        energy = started(self, BoostedClassEnergy(X.shape[1], len(self.classes_)), self._steps_done)
        factors = class_factors(self.class_weight, self.classes_, y, weight)
        return Plan(energy, SoftMin(), replace(self._solver(energy, X, y, weight), factors=factors))

    def _row_weight(self, y: Any, weight: Any) -> Any:
        return weight  # classes weigh in gradients: rows are counted as they are

    def _shown(self, y: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[y]

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """`decision_function` after every step."""
        for raw, home in self._staged(X):
            yield home.give(raw[:, 0] if len(self.classes_) == 2 else raw)

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """`predict_proba` after every step."""
        for raw, home in self._staged(X):
            scores = torch.cat([-raw, raw], 1) / 2 if len(self.classes_) == 2 else raw
            yield home.give(torch.softmax(scores, 1))

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """`predict` after every step."""
        for raw, home in self._staged(X):
            best = (raw[:, 0] > 0).long() if len(self.classes_) == 2 else raw.argmax(1)
            yield home.give(self.classes_[best.cpu().numpy()])
