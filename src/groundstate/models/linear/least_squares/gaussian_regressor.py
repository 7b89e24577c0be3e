"""Linear regression with learned noise."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.linear.learned_noise import LINKS, NOISE, GaussianNoiseEnergy
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.glm.learned_noise import NoiseScoring
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import output_part
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class GaussianRegressor(EnergyRegressor):
    r"""A linear mean with a noise that depends on x as well.

    .. math::
        e(x, y) = \tfrac12\log 2\pi\sigma^2(x) + \frac{(y - \mu(x))^2}{2\sigma^2(x)}, \quad
        \mu = Wx + b, \quad \log\sigma^2 = Vx + c, \qquad \min_\theta \sum_i w_i\, e(x_i, y_i) .

    Rows with small noise count more for the mean. With constant noise this is least squares and
    :math:`\hat\sigma^2 = \mathrm{SSE}/n`. ``GaussianNoiseEnergy`` accepts any module in place of
    the two lines.

    Parameters
    ----------
    noise : {"log-linear", "constant"}, default="log-linear"
    link : {"log", "square"}, default="log"
        Whether :math:`\log\sigma^2` or σ itself is linear.
    fit_intercept : bool, default=True
        Of the mean; the noise always has one.
    max_iter : int, default=200
    tol : float, default=1e-10
        Fall of the mean objective in one round at the end.

    Attributes
    ----------
    coef_, noise_coef_ : (n_features,) or (n_targets, n_features)
    intercept_, noise_intercept_ : float or (n_targets,)
    energy_ : GaussianNoiseEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GaussianRegressor
    >>> X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), [1.0, 3.0, 0.0, 6.0]
    >>> model = GaussianRegressor().fit(X, y)
    >>> mean, std = model.predict([[0.0], [1.0]], return_std=True)
    >>> mean.round(4).tolist(), std.round(4).tolist()
    ([2.0, 3.0], [1.0, 3.0])
    """

    traits = Traits(space={"noise": settings.Choice("log-linear", "constant")})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "noise": [StrOptions(set(NOISE))],
        "link": [StrOptions(set(LINKS))],
    }

    def __init__(
        self,
        *,
        noise: str = "log-linear",
        link: str = "log",
        fit_intercept: bool = True,
        max_iter: int = 200,
        tol: float = 1e-10,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        energy = GaussianNoiseEnergy(
            X.shape[1], y.shape[1], self.noise, self.link, self.fit_intercept
        )
        return Plan(energy=energy, rule=NLL(), solver=NoiseScoring(self.max_iter, self.tol))

    coef_ = output_part("W")
    intercept_ = output_part("b")
    noise_coef_ = output_part("V")
    noise_intercept_ = output_part("c")

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means, ``(n_samples,)`` or ``(n_samples, n_targets)``; with ``return_std`` also σ."""
        x, home = self._rows(X)
        assert isinstance(self.energy_, GaussianNoiseEnergy)
        with answering(self.energy_, x):
            mu, sigma = self.energy_.predict(x)
        mean = self._given(mu, home)
        return (mean, self._given(sigma, home)) if return_std else mean

    def _given(self, values: Tensor, home: Home) -> Any:
        return home.give(values[:, 0] if self._flat_target else values)

    def predict_interval(self, X: Any, level: float = 0.9) -> Any:
        """The central interval that holds y with probability ``level``, ``(n_samples, 2)``
        or ``(n_samples, n_targets, 2)``.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        mean, std = self.predict(X, return_std=True)
        reach = float(torch.special.ndtri(torch.tensor(0.5 * (1 + level), dtype=torch.float64)))
        stack = torch.stack if isinstance(mean, Tensor) else np.stack
        return stack([mean - reach * std, mean + reach * std], -1)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws of y for each row, ``(n_rows, n_samples)`` (targets in the middle)."""
        x, home = self._rows(X)
        assert isinstance(self.energy_, GaussianNoiseEnergy)
        generator = Key.of(random_state).torch(x.device)
        with answering(self.energy_, x):
            mu, sigma = self.energy_.predict(x)
            size = (n_samples, *mu.shape)
            noise = torch.randn(size, generator=generator, device=x.device, dtype=mu.dtype)
            draws = (mu + sigma * noise).permute(1, 2, 0)  # (B, m, n)
        return home.give(draws[:, 0] if self._flat_target else draws)
