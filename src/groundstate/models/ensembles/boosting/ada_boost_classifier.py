"""AdaBoost for classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.energy.trees.leaves import TreeClassEnergy
from groundstate.energy.trees.votes import VoteEnergy
from groundstate.learn import SoftMin
from groundstate.learn.solvers.boosting.ada_boost import AdaBoost
from groundstate.learn.solvers.trees.member import GrownMember
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.ensembles.member import member
from groundstate.models.ensembles.sequence import each_member, member_at
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyClassifier
from groundstate.models.tables.categories import Categories
from groundstate.models.traits import Traits
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier
from groundstate.models.trees.inputs import category_sizes
from groundstate.registry import models


@models.register(family="ensembles", task="classification", role="classifier")
class AdaBoostClassifier(EnergyClassifier):
    r"""A weighted vote of weak members, each fitted to what the ones before got wrong.

    .. math::
        e(x, y) = -\sum_m a_m 1[h_m(x) = y], \qquad
        a_m = \nu\Bigl(\ln\frac{1-\varepsilon_m}{\varepsilon_m} + \ln(K-1)\Bigr), \qquad
        w_i \leftarrow w_i e^{a_m 1[h_m(x_i) \ne y_i]} .

    This is SAMME: with two classes, stage-wise minimisation of the exponential loss
    :math:`\sum_i e^{-t_i f(x_i)/2}`.

    Parameters
    ----------
    estimator : classifier of any kind that takes sample weights, default=None
        A decision tree with one cut unless given.
    n_estimators : int, default=50
        At most; fewer when a member makes no error or is no better than chance.
    learning_rate : float, default=1.0
        ν.
    random_state : int, default=None
        Of members that have a ``random_state``.
    device : str or torch.device, default=None
        Where to predict; None is where X is.

    Attributes
    ----------
    estimators_ : list of fitted members
    estimator_weights_, estimator_errors_ : (n_members,) arrays
    feature_importances_ : (n_features,) array, where members have it
    energy_ : VoteEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import AdaBoostClassifier
    >>> X, y = np.arange(10)[:, None], list("+++---+++-")
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> model.estimator_weights_.round(6).tolist(), model.score(X, y)
    ([0.847298, 1.299283, 1.504077], 1.0)
    """

    __getitem__, __iter__ = member_at, each_member

    traits = Traits(
        single_columns=True,
        summed=True,
        space={
            "n_estimators": settings.Whole(10, 300, log=True),
            "learning_rate": settings.Real(0.01, 2.0, log=True),
        },
    )

    _single_class: ClassVar[bool] = True
    _categories: ClassVar[Any] = Categories()
    _allow_nan: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = "dense"
    _runs_on: Any = "cpu"  # members may be foreign
    energy_: Any

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        k = len(self.classes_)
        grown = GrownMember(categories=category_sizes(self, X.shape[1]))
        fits: Any = grown if self.estimator is None else member(self.estimator, k)
        energy = VoteEnergy(X.shape[1], k)
        return Plan(energy, SoftMin(), AdaBoost(self.n_estimators, self.learning_rate, fits))

    estimator_weights_ = Learned(
        lambda model: model.energy_.a.double(), lambda model, a: model.energy_.a.copy_(a)
    )

    def _learned(self, energy: Any) -> dict[str, Any]:
        errors = self.history_.extra.get("error", []) if hasattr(self, "history_") else []
        return {
            "estimator_errors_": np.array(errors[: len(energy.members)]),
        }

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members, which know classes by number."""
        check_is_fitted(self, "energy_")
        return [
            self._stump(one) if isinstance(one, TreeClassEnergy) else one.estimator
            for one in self.energy_.members
        ]

    def _stump(self, energy: TreeClassEnergy) -> DecisionTreeClassifier:
        model = DecisionTreeClassifier(max_depth=1)
        model.energy_, model.n_features_in_ = energy, self.n_features_in_
        model._levels, model.classes_ = self._levels, np.arange(len(self.classes_))
        return model

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """`predict` after every member."""
        x, home = self._rows(X)
        for score in self.energy_.staged(x):
            yield home.give(self.classes_[score.argmax(1).cpu().numpy()])

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """`decision_function` after every member."""
        x, home = self._rows(X)
        for score in self.energy_.staged(x):
            yield home.give(score[:, 1] - score[:, 0] if score.shape[1] == 2 else score)

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """`predict_proba` after every member."""
        x, home = self._rows(X)
        for score in self.energy_.staged(x):
            yield home.give(torch.softmax(score, 1))

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Accuracy after every member."""
        for labels in self.staged_predict(X):
            yield float(accuracy_score(y, labels, sample_weight=sample_weight))

    @property
    def n_classes_(self) -> int:
        """How many classes there are."""
        return len(self.classes_)

    @property
    def estimator_(self) -> Any:
        """The member that is cloned."""
        return DecisionTreeClassifier(max_depth=1) if self.estimator is None else self.estimator

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importances of the members, weighted by their votes."""
        parts = [one.feature_importances_ for one in self.estimators_]
        mean = np.average(parts, axis=0, weights=self.estimator_weights_)
        total = mean.sum()
        return mean / total if total > 0 else mean
