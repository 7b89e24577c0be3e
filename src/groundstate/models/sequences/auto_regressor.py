"""Linear autoregression."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.data.sequences.windows import Windows
from groundstate.energy.base import Energy
from groundstate.energy.linear.learned_noise import GaussianNoiseEnergy
from groundstate.errors import DataError
from groundstate.learn import NLL
from groundstate.learn.solvers.linear.constant_noise import ConstantNoise
from groundstate.math.chains.autoregression import ar_covariance, ar_response, ar_roots
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.sequences.forecaster_role import EnergyForecaster
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="sequences", task="forecasting", role="forecaster", auto=False)
class AutoRegressor(EnergyForecaster):
    r"""The next number is a linear function of the p before it, plus noise.

    .. math::
        x_i = c + \sum_{k=1}^p\theta_kx_{i-k} + \varepsilon_i, \qquad
        e = \sum_{i>p}\tfrac12\log 2\pi\sigma^2 + \frac{(x_i - c - \sum_k\theta_kx_{i-k})^2}{2\sigma^2}

    given the first p. The minimum over θ, c and :math:`\sigma^2` is least squares. Forecasts repeat
    the equation with zero noise; h steps ahead their error has the variance
    :math:`\sigma^2\sum_{j<h}\psi_j^2`, :math:`\psi_j` the response to a shock. X is one series of numbers
    ``(T,)``, or a list of them with one equation for all.

    Parameters
    ----------
    p : int, default=1
        How many items to look back.
    fit_intercept : bool, default=True
        Whether there is a c.

    Attributes
    ----------
    coef_ : (p,) array
        :math:`\theta_1, \dots, \theta_p`.
    intercept_ : float
        c.
    noise_variance_ : float
        :math:`\sigma^2`, the mean square of the residuals.
    roots_ : complex array
        Roots of :math:`1 - \sum_k\theta_kz^k`, by modulus.
    is_stationary_ : bool
        Whether all roots lie outside the unit circle.
    last_ : (n_series, p, 1) array
    n_features_in_ : int
        1.
    energy_ : GaussianNoiseEnergy

    Examples
    --------
    >>> from groundstate import AutoRegressor
    >>> model = AutoRegressor(1).fit([1.0, 1.5, 1.75, 1.875, 1.9375])
    >>> model.coef_.round(6).tolist(), round(model.intercept_, 6), model.predict(steps=2).round(5).tolist()
    ([0.5], 1.0, [1.96875, 1.98438])
    """

    traits = Traits(space={"p": settings.Whole(1, 12)})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Integral, 1, None, closed="left")],
    }
    _store_private: ClassVar[tuple[str, ...]] = ("_form",)
    _form: tuple[bool, bool]
    p: int
    fit_intercept: bool
    energy_: Any

    def __init__(
        self, p: int = 1, *, fit_intercept: bool = True, device: Any = None, callbacks: Any = None
    ) -> None:
        self._keep(locals())

    coef_ = Learned(lambda model: model.energy_.W[0])
    intercept_ = Learned(lambda model: None if model.energy_.b is None else model.energy_.b[0])
    noise_variance_ = Learned(
        lambda model: model.energy_.c[0].exp(),
        lambda model, value: model.energy_.c.copy_(value.log().reshape(1)),
    )

    def _reach(self) -> tuple[int, int, int]:
        return self.p, 1, 1

    def _pairs(self, made: Windows) -> tuple[Tensor, Tensor]:
        if made.past.shape[-1] != 1:
            raise DataError(
                f"AutoRegressor takes series of one column, got {made.past.shape[-1]}; use Forecaster "
                "for several, or one AutoRegressor for each"
            )
        return made.past[..., 0].flip(1), made.future[..., 0]  # the newest item first

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        energy = GaussianNoiseEnergy(self.p, noise="constant", bias=self.fit_intercept)
        return Plan(energy=energy, rule=NLL(), solver=ConstantNoise())

    def _learned(self, energy: Energy) -> dict[str, Any]:
        roots: Any = ar_roots(self._theta(energy))
        return {"roots_": roots, "is_stationary_": bool((abs(roots) > 1).all())}

    def _future(
        self, past: Tensor, steps: int, level: float | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        state, made = past[..., 0].flip(1), []
        for _ in range(steps):
            new = self.energy_.scores(state)[0]  # (n, 1)
            state = torch.cat([new, state[:, :-1]], 1)
            made.append(new)
        mean = torch.cat(made, 1)[..., None]  # (n, steps, 1)
        if level is None:
            return mean, mean, mean
        psi = ar_response(self.energy_.W[0], steps)
        variance = self.energy_.c[0].exp() * psi.square().cumsum(0)
        reach = torch.special.ndtri(torch.tensor(0.5 + level / 2, dtype=torch.float64)).to(mean)
        off = (reach * variance.sqrt())[:, None].expand_as(mean)
        return mean, mean - off, mean + off

    def autocovariance(self, lags: int = 0) -> Any:
        r"""Covariances :math:`\mathrm{cov}(x_i, x_{i-j})` of the stationary process for j up to ``lags``."""
        check_is_fitted(self, "energy_")
        return ar_covariance(self._theta(self.energy_), float(self.noise_variance_), lags)

    @staticmethod
    def _theta(energy: Any) -> Any:
        return energy.W[0].detach().double().cpu().numpy()
