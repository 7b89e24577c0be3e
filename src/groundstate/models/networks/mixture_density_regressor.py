"""Mixture density regression."""

from __future__ import annotations

from copy import deepcopy
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.networks.mixture_density import MixtureDensityEnergy
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.networks.mixture_density import MixtureDensityTraining
from groundstate.learn.train.stochastic import Stochastic
from groundstate.math.distributions.gaussian_mixtures import GaussianMixtureDistribution
from groundstate.math.distributions.highest_density import DensitySet, density_set
from groundstate.math.distributions.mixture_modes import modes
from groundstate.models import settings
from groundstate.models.arrays import Home, unwrap
from groundstate.models.base import Plan
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.nn.blocks.activations import HIDDEN
from groundstate.nn.heads.mixture import COVARIANCES, WEIGHTS
from groundstate.registry import models


@models.register(
    family="networks", task="regression", role="regressor", max_rows=100_000, auto=False
)
class MixtureDensityRegressor(EnergyRegressor):
    r"""The whole distribution of the outcome, as a mixture of Gaussians whose parameters a network gives.

    .. math::
        e(x, y) = -\log\sum_{z=1}^K\pi_z(x)\,N(y;\, \mu_z(x), \sigma_z^2(x)I) .

    One trunk serves all components; the weights are a softmax, the scales
    :math:`\sigma_{min} + e^a`. Learning is maximum likelihood by Adam on mini-batches, from means at
    clusters of y, until a held-out part of the rows no longer gains.

    Parameters
    ----------
    n_components : int, default=5
        K.
    hidden : sequence of int or torch module, default=(64,)
        Hidden sizes of the trunk (``()`` is linear), or any module from (B, n_features) to
        (B, width), which is copied.
    weights : "learned" or "uniform", default="learned"
        "uniform" keeps :math:`\pi_z = 1/K`.
    covariance : "isotropic", "diagonal" or "constant", default="isotropic"
        One scale per component, one per component and target, or one per component that does not
        depend on x.
    min_scale : float, default=1e-3
        Least :math:`\sigma`, in units of the standard deviation of y.
    activation : str, default="tanh"
        Of the hidden layers.
    learning_rate : float, default=0.005
    batch_size : int or "auto", default="auto"
        Rows of a mini-batch; "auto" is a sixteenth of the rows, but 32 to 256.
    max_iter : int, default=500
        Epochs at most.
    early_stopping : bool, default=True
        Hold out a part of the rows and keep the parameters that were best on it. Without it, and on
        tables too small for it, the loss of the training rows decides.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=20
        Epochs without a gain of ``tol`` before learning stops.
    tol : float, default=1e-4

    Attributes
    ----------
    energy_ : MixtureDensityEnergy
    history_ : History
    n_iter_ : int
        Epochs.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MixtureDensityRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (300, 1))
    >>> y = np.where(rng.random(300) < 0.5, 1, -1) * 2 + 0.1 * rng.normal(size=300)  # two branches
    >>> model = MixtureDensityRegressor(2, random_state=0).fit(x, y)
    >>> np.sort(model.predict([[0.0]], kind="modes")[0]).round().tolist()
    [-2.0, 2.0]
    """

    traits = Traits(
        space={
            "n_components": settings.Whole(1, 10),
            "learning_rate": settings.Real(1e-3, 3e-2, log=True),
            "hidden": settings.Choice((32,), (64,), (64, 64)),
        },
    )

    _predicts: ClassVar[str] = "mean"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden": ["array-like", torch.nn.Module],
        "weights": [StrOptions(set(WEIGHTS))],
        "covariance": [StrOptions(set(COVARIANCES))],
        "min_scale": [Interval(Real, 0, None, closed="neither")],
        "activation": [StrOptions(set(HIDDEN))],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 5,
        hidden: Any = (64,),
        weights: str = "learned",
        covariance: str = "isotropic",
        min_scale: float = 1e-3,
        *,
        activation: str = "tanh",
        learning_rate: float = 0.005,
        batch_size: int | Literal["auto"] = "auto",
        max_iter: int = 500,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-4,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.regressor_tags is not None
        tags.regressor_tags.poor_score = True  # score is a log-likelihood, which has no best value
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        module = isinstance(self.hidden, torch.nn.Module)
        energy = MixtureDensityEnergy(
            X.shape[1],
            y.shape[1],
            self.n_components,
            deepcopy(self.hidden) if module else [int(size) for size in self.hidden],
            self.weights,
            self.covariance,
            self.min_scale,
            self.activation,
            generator=Key.of(self.random_state).fold("init").torch(),
        )
        rows = float(len(X) if weight is None else weight.double().sum())
        batch = self.batch_size
        solver = Stochastic(
            lr=self.learning_rate,
            batch_size=min(256, max(32, int(rows / 16))) if batch == "auto" else batch,
            max_epochs=self.max_iter,
            tol=None,
        )
        share = self.validation_fraction if self.early_stopping else 0.0
        training = MixtureDensityTraining(solver, share, self.n_iter_no_change, self.tol)
        return Plan(energy, NLL(over="y"), training)

    # --- answers -------------------------------------------------------------------------

    def _distribution(self, X: Any) -> tuple[GaussianMixtureDistribution, Home]:
        check_is_fitted(self, "energy_")
        x, home = self._rows(X)
        assert isinstance(self.energy_, MixtureDensityEnergy)
        with torch.no_grad():
            return self.energy_.distribution(x), home

    def _flat(self, values: Tensor) -> Tensor:
        return values[..., 0] if self._flat_target else values

    def predict(self, X: Any, kind: Literal["mean", "mode", "modes"] = "mean") -> Any:
        """Point predictions, ``(n_samples,)`` or ``(n_samples, n_targets)``.

        Parameters
        ----------
        X : rows
        kind : "mean", the expected outcome; "mode", the most probable one, that is the one of lowest
            energy; "modes", all local maxima of the density by falling height, as a list of one
            array per row
        """
        distribution, home = self._distribution(X)
        if kind == "mean":
            return home.give(self._flat(distribution.mean))
        if kind == "mode":
            return home.give(self._flat(distribution.mode))
        if kind == "modes":
            return [home.give(self._flat(found)) for found in modes(distribution)]
        raise ValueError(f"kind must be 'mean', 'mode' or 'modes', got {kind!r}")

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws of the outcome of every row, ``(n_samples, n_rows)`` or ``(..., n_targets)``."""
        distribution, home = self._distribution(X)
        generator = Key.of(random_state).torch(distribution.mu.device)
        return home.give(self._flat(distribution.draw(n_samples, generator)))

    def predict_density(self, X: Any, y_grid: Any) -> Any:
        """Density of every row at points of the outcome ``(n_points,)`` or ``(n_points, n_targets)``.

        Returns ``(n_rows, n_points)``.
        """
        distribution, home = self._distribution(X)
        points = torch.as_tensor(np.asarray(unwrap(y_grid)[0])).to(distribution.mu)
        points = points.reshape(-1, 1, distribution.mu.shape[-1])  # (G, 1, m)
        return home.give(distribution.log_prob(points).exp().T)

    def credible_set(
        self, X: Any, level: float = 0.9, *, n_draws: int = 2000, random_state: Any = None
    ) -> DensitySet:
        r"""The smallest set that holds the outcome with probability ``level``.

        It holds where :math:`p(y\mid x)` exceeds its ``threshold``; ``contains(y)`` says for which
        rows, ``volume`` is its size, and for one target ``intervals`` are its disjoint pieces.
        """
        distribution, home = self._distribution(X)
        generator = Key.of(random_state).torch(distribution.mu.device)
        found = density_set(distribution, level, n_draws=n_draws, generator=generator)
        return found.given(home.give)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log-likelihood :math:`\\log p(y\\mid x)`, weighted."""
        e = self.energy(X, y)
        e = e.cpu().numpy() if isinstance(e, Tensor) else e
        return float(
            -np.average(e, weights=None if sample_weight is None else unwrap(sample_weight)[0])
        )
