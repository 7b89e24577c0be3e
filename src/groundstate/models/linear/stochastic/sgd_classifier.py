"""Linear classification by stochastic descent."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from groundstate.compute.foreign.sklearn import StrOptions, check_partial_fit_first_call
from groundstate.energy.basic import LinearEnergy
from groundstate.learn.rules.margins.one_vs_rest import OneVsRestLoss
from groundstate.learn.solvers.online_numba import State
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.base import Plan
from groundstate.models.linear.stochastic.sgd import RESIDUALS, SGDEstimator
from groundstate.models.roles import EnergyClassifier
from groundstate.models.traits import Traits
from groundstate.registry import models

LOSSES = ("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron", *RESIDUALS)


def _probable(model: Any) -> bool:
    if model.loss in ("log_loss", "modified_huber"):
        return True
    raise AttributeError(
        f"probability estimates are not available for loss={model.loss!r}; use loss='log_loss' or "
        "'modified_huber', or CalibratedClassifierCV"
    )


@models.register(family="linear", task="classification", role="classifier", auto=False)
class SGDClassifier(SGDEstimator, EnergyClassifier):
    r"""Linear class energies, one row at a time, for streams and very long tables.

    .. math::
        e(x, y) = -(Wx + b)_y, \qquad
        \theta \leftarrow (1 - \eta_t\alpha)\,\theta - \eta_t w\,\ell'\,\tilde x .

    Each class is learned against the rest, with two classes one against the other. The steps lower
    :math:`\tfrac{1}{\sum w}\sum_i w_i\,\ell(-e(x_i), y_i) + \tfrac\alpha2\|\theta\|^2`. Columns should be
    of one scale. A weight of 2 is the row twice.

    Parameters
    ----------
    loss : str, default="hinge"
        "hinge" (a linear support vector machine), "log_loss" (logistic regression),
        "modified_huber", "squared_hinge", "perceptron"; or a loss of ``SGDRegressor`` on ±1.
    alpha : float, default=0.0001
        Strength of the penalty on the mean loss; also sets the rate "optimal".
    verbose, n_jobs
        Accepted for scikit-learn's sake.
    epsilon : float, default=0.1
        Of the losses "huber", "epsilon_insensitive" and "squared_epsilon_insensitive".
    learning_rate : {"optimal", "invscaling", "constant", "adaptive", "pa1", "pa2"}
        As in ``SGDRegressor``.
    eta0, power_t : float, defaults 0.01 and 0.5
    early_stopping : bool, default=False
        Watch the errors of held-out rows instead of the loss.
    class_weight : dict, "balanced" or None
        Factors on the rows of each class.

    Attributes
    ----------
    coef_ : (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    energy_ : LinearEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SGDClassifier
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> SGDClassifier(random_state=0).fit(X, [1, 1, 2, 2]).predict([[-0.8, -1.0]]).tolist()
    [1]
    """

    traits = Traits(
        steps="max_iter",
        space={
            "alpha": settings.Real(1e-7, 1e-1, log=True),
            "loss": settings.Choice("hinge", "log_loss", "modified_huber"),
        },
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES))],
    }

    def __init__(
        self,
        loss: str = "hinge",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        average: bool | int = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _plan(self, d: int, total: float, state: State | None, **given: Any) -> Plan:
        classes = len(self.classes_)
        return Plan(
            energy=LinearEnergy(d, classes, self.fit_intercept),
            rule=OneVsRestLoss(self._loss()),
            solver=self._solver(state=state, **given),
            penalty=self._prior(total, classes == 2),
        )

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch over further rows, from where the weights are.

        Parameters
        ----------
        X, y : rows and labels
        classes : all labels that will ever come; needed in the first call only
        sample_weight : (n_samples,), optional
        """
        self._validate_params()
        if self.class_weight == "balanced":
            raise ValueError(
                "partial_fit knows no later rows, so it cannot balance over all of them, got "
                "class_weight='balanced'; pass the weights of the classes as a dict, or use fit"
            )
        first = check_partial_fit_first_call(self, classes)
        if first:
            self.classes_ = np.unique(np.asarray(classes))
        return self._part(X, y, sample_weight, first)

    def _part_target(self, y: Any) -> tuple[Any, dict[str, Any]]:
        return self._encoded("y", y).astype(np.int64), {}

    @available_if(_probable)
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, ``(n_samples, n_classes)``: of each class against the rest, normalised."""
        score, home = unwrap(self.decision_function(X))
        score = np.asarray(score, float)
        if self.loss == "log_loss":
            p = 0.5 + 0.5 * np.tanh(0.5 * score)
        else:
            p = np.clip(0.5 * (score + 1), 0, 1)
        if p.ndim == 1:
            return home.give(np.column_stack([1 - p, p]))
        total = p.sum(1, keepdims=True)
        return home.give(np.where(total > 0, p / np.where(total > 0, total, 1), 1 / p.shape[1]))

    @available_if(_probable)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class probabilities, ``(n_samples, n_classes)``."""
        p, home = unwrap(self.predict_proba(X))
        with np.errstate(divide="ignore"):
            return home.give(np.log(np.asarray(p)))
