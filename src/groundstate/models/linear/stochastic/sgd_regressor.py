"""Linear regression by stochastic descent."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils import Tags

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.learn import Naive
from groundstate.learn.solvers.online_numba import State
from groundstate.math.losses import ResidualLoss
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.linear.stochastic.sgd import RESIDUALS, SGDEstimator
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class SGDRegressor(SGDEstimator, EnergyRegressor):
    r"""A line, one row at a time, for streams and very long tables.

    .. math::
        e(x, y) = \rho(y - Wx - b), \qquad
        \theta \leftarrow (1 - \eta_t\alpha)\,\theta - \eta_t w\,\rho'\,\tilde x .

    The steps lower :math:`\tfrac{1}{\sum w}\sum_i w_i e(x_i, y_i) + \tfrac\alpha2\|W\|^2`. Columns
    should be of one scale. A weight of 2 is the row twice.

    Parameters
    ----------
    loss : {"squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"}
        ρ; squares are halved.
    alpha : float, default=0.0001
        Strength of the penalty on the mean loss.
    verbose : int
        Accepted for scikit-learn's sake; use ``callbacks``.
    epsilon : float, default=0.1
        δ of "huber", half the width of the tube of the last two.
    learning_rate : {"invscaling", "optimal", "constant", "adaptive", "pa1", "pa2"}
        :math:`\eta_0/t^p`; :math:`1/\alpha(t_0 + t)`; η₀; η₀, divided by 5 whenever the loss stalls;
        passive-aggressive with the bound η₀.
    eta0, power_t : float, defaults 0.01 and 0.25
        η₀ and p.
    early_stopping : bool, default=False
        Watch R² of held-out rows instead of the loss.

    Attributes
    ----------
    coef_ : (n_features,)
    intercept_ : (1,)
    energy_ : LinearLossEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SGDRegressor
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> SGDRegressor(eta0=0.1, random_state=0).fit(X, 2 * X[:, 0] + 1).predict([[0.5]]).round(1).tolist()
    [2.0]
    """

    traits = Traits(steps="max_iter", space={"alpha": settings.Real(1e-7, 1e-1, log=True)})
    _multi_output: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(RESIDUALS))],
    }

    def __init__(
        self,
        loss: str = "squared_error",
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
        random_state: Any = None,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        average: bool | int = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _plan(self, d: int, total: float, state: State | None, **given: Any) -> Plan:
        loss = self._loss()
        assert isinstance(loss, ResidualLoss)
        energy = LinearLossEnergy(d, loss, self.fit_intercept)
        return Plan(energy, Naive(), self._solver(state=state, **given), self._prior(total))

    coef_ = Learned(lambda model: model.energy_.W[0])
    intercept_ = Learned(lambda model: model.energy_.b)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch over further rows ``X`` with targets ``y``, from where the weights are."""
        self._validate_params()
        return self._part(X, y, sample_weight, not hasattr(self, "energy_"))

    def _part_target(self, y: Any) -> tuple[Any, dict[str, Any]]:
        return self._target(y)
