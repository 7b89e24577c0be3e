"""What a fitted mixture answers: components, densities, draws, bounds, entropies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import DensityMixin as SklearnDensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator
from groundstate.models.roles import DensityMixin
from groundstate.models.validation import checked_count


@dataclass(frozen=True)
class Entropy:
    """Entropy of a mixture in nats: an estimate with its standard error, inside an exact bracket."""

    value: float
    standard_error: float
    lower: float
    upper: float


class MixtureAnswers(DensityMixin, SklearnDensityMixin, EnergyEstimator):
    r"""Answers of :math:`p(x) = \sum_z\pi_z\,p(x \mid z)` from :math:`e(x, z)`.

    Notes
    -----
    With a ``temperature`` the energy is divided by it wherever z is summed out.
    """

    temperature: float = 1.0

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then the most probable component of each row."""
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    def _energies(self, x: Tensor) -> Tensor:
        """Energies of all components at the parameters learned, ``(B, k)``."""
        return self.energy_.table("z", x=x)

    def _table(self, x: Tensor) -> Tensor:
        """What components are judged by, ``(B, k)``: their energies, where parameters are points."""
        return self._energies(x)

    def predict(self, X: Any) -> Any:
        """The component of lowest energy, ``(n_samples,)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._table(x).argmin(1))

    def predict_proba(self, X: Any) -> Any:
        """Probability of each component, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(torch.softmax(-self._table(x) / self.temperature, 1))

    def _log_density(self, x: Tensor) -> Tensor:
        return torch.logsumexp(-self._table(x), 1)

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row with its component, ``(n_samples,)``.

        What is not known is marginalised: cells that are NaN, and the component where z is None.
        """
        if y is not None:
            raise ValueError(f"{type(self).__name__} has no variable 'y'; it knows x and z")
        if z is None:
            return self.free_energy(X)
        x, home = self._rows(X)
        with answering(self.energy_, x):
            chosen = self._observed({"z": z})["z"].long()
            return home.give(self._energies(x).gather(1, chosen[:, None]).squeeze(1))

    def free_energy(self, X: Any, T: float = 1.0) -> Any:
        r""":math:`-T\log\sum_z e^{-e(x, z)/T}` of each row, ``(n_samples,)``; at T = 1, −log p(x)."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(-T * torch.logsumexp(-self._energies(x) / T, 1))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        values = self.score_samples(X)
        values = values.cpu().numpy() if isinstance(values, Tensor) else values
        return float(np.mean(np.asarray(values, dtype=np.float64)))

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw rows ``(n_samples, n_features)`` and the components they come from."""
        check_is_fitted(self, "energy_")
        if n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples} . The sampling requires at least one "
                "sample."
            )
        key = Key.of(self.random_state if random_state is None else random_state)
        energy: Any = self.energy_
        n = checked_count(n_samples)
        with answering(energy, torch.empty(n, 0)):
            drawn = energy.ancestral(n, generator=key.torch(energy.placement()[0]))
        return Home().give(drawn["x"]), Home().give(drawn["z"])

    random_state: Any

    def bound(self, X: Any, alpha: Any = None) -> float:
        r"""Lower bound of the mean log-likelihood for given responsibilities.

        .. math:: J = \frac1n\sum_i\sum_z\alpha_{iz}\bigl[\log\pi_z + \log p(x_i\mid z)
                  - \log\alpha_{iz}\bigr]

        Parameters
        ----------
        alpha : (n_samples, n_components) array, default=None
            Rows that sum to one; None takes the posterior, where the bound is the likelihood.
        """
        x, _ = self._rows(X)
        with answering(self.energy_, x):
            table = self._table(x).double()
            if alpha is None:
                return float(torch.logsumexp(-table, 1).mean())
            r = torch.as_tensor(np.asarray(alpha, dtype=np.float64)).to(table.device)
            if r.shape != table.shape or not bool(
                torch.allclose(r.sum(1), r.new_ones(()), atol=1e-6)
            ):
                raise ValueError(
                    f"alpha must be {tuple(table.shape)} with rows that sum to one, got "
                    f"{tuple(r.shape)}"
                )
            return float((-(r * table) - torch.xlogy(r, r)).sum(1).mean())

    def _n_parameters(self) -> int:
        """Free parameters of the model."""
        raise TypeError(f"{type(self).__name__} does not count its parameters")

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X; low is good."""
        n = len(X)
        return -2 * self.score(X) * n + self._n_parameters() * math.log(n)

    def aic(self, X: Any) -> float:
        """Akaike information criterion on X; low is good."""
        return -2 * self.score(X) * len(X) + 2 * self._n_parameters()

    def _component_entropies(self) -> Tensor:
        """Entropy of each component in nats, ``(k,)``."""
        raise TypeError(f"{type(self).__name__} has no closed entropies of its components")

    def entropy(self, n_samples: int = 10_000, random_state: Any = None) -> Entropy:
        r"""Entropy in nats by Monte Carlo, with :math:`\sum\pi_zH_z \le H \le \sum\pi_zH_z + H(\pi)`."""
        check_is_fitted(self, "energy_")
        pi = torch.from_numpy(np.array(self.weights_, np.float64))
        lower = float((pi * self._component_entropies().double().cpu()).sum())
        upper = lower - float(torch.xlogy(pi, pi).sum())
        x, _ = self.sample(n_samples, random_state)
        values = -np.asarray(self.score_samples(x), np.float64)
        spread = float(values.std(ddof=1) / math.sqrt(n_samples)) if n_samples > 1 else math.inf
        return Entropy(float(values.mean()), spread, lower, upper)

    weights_: Any
