"""The perceptron."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.reference import LinearEnergy
from groundstate.learn import OnlinePerceptron
from groundstate.learn import Perceptron as PerceptronRule
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import class_coefficients
from groundstate.models.roles import EnergyClassifier
from groundstate.registry import models


@models.register(family="linear", task="classification", role="classifier")
class Perceptron(EnergyClassifier):
    r"""Linear class energies, corrected on mistakes only.

    .. math::
        e(x, y) = -(Wx + b)_y, \qquad L = e(x, y) - \min_{y'} e(x, y'),

    so a row that is right teaches nothing; a mistake :math:`\hat y` moves
    :math:`W_y \leftarrow W_y + \eta x` and :math:`W_{\hat y} \leftarrow W_{\hat y} - \eta x`.
    All classes are learned together. On separable data the number of mistakes is finite.

    Parameters
    ----------
    fit_intercept : bool, default=True
    max_iter : int, default=1000
        Epochs at most.
    tol : float or None, default=1e-3
        Stop when the mean loss has not fallen by this for ``n_iter_no_change`` epochs.
    shuffle : bool, default=True
        A fresh order of the rows each epoch.
    eta0 : float, default=1.0
        Step size; it scales the weights and changes no prediction.
    random_state : int, default=0
    n_iter_no_change : int, default=5
    class_weight : dict, "balanced" or None
        Factors on the rows of each class.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    classes_ : (n_classes,) array
    coef_ : (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    energy_ : LinearEnergy
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Perceptron
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> Perceptron().fit(X, ["a", "a", "b", "b"]).predict([[-3.0], [3.0]]).tolist()
    ['a', 'b']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        eta0: float = 1.0,
        random_state: Any = 0,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.eta0 = eta0
        self.random_state = random_state
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.callbacks = callbacks

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        return Plan(
            energy=LinearEnergy(X.shape[1], len(self.classes_), self.fit_intercept),
            rule=PerceptronRule(),
            solver=OnlinePerceptron(
                eta=self.eta0,
                max_iter=self.max_iter,
                tol=self.tol,
                patience=self.n_iter_no_change,
                shuffle=self.shuffle,
            ),
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return class_coefficients(energy)
