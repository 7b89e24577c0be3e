"""Mixture of Gaussians."""

from __future__ import annotations

import copy
import math
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import DensityMixin as SklearnDensityMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn import NLL, MixtureEM
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.imputation import impute
from groundstate.models.learned import Learned
from groundstate.models.roles import DensityMixin
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="mixtures", task="density", role="density")
class GaussianMixture(DensityMixin, SklearnDensityMixin, EnergyEstimator):
    r"""A weighted sum of Gaussians, learned by expectation maximisation.

    .. math::
        e(x, z) = -\log\pi_z - \log N(x; \mu_z, \Sigma_z), \qquad
        \min_{\pi, \mu, \Sigma}\; -\sum_i w_i \log\sum_z e^{-e(x_i, z)} .

    Free z is clustering with probabilities, free x generation, and x known in part is filled in.
    An iteration completes the data with :math:`r_{iz} = p(z \mid x_i)` and takes the weighted
    moments; the likelihood never falls.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Each component its own covariance, one for all, axis-parallel, or a ball.
    tol : float, default=1e-3
        Stop when the mean log-likelihood rises by less.
    reg_covar : float, default=1e-6
        Added to the diagonal of every covariance.
    max_iter : int, default=100
    n_init : int, default=1
        Starts that are tried; the best is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
    weights_init : (n_components,) array, default=None
    means_init : (n_components, n_features) array, default=None
    precisions_init : array in the shape of ``precisions_``, default=None
    random_state : int, default=None
    warm_start : bool, default=False
        Go on from the last fit instead of starting afresh.
    verbose : int, default=0
        Above zero, a progress bar.
    verbose_interval : int, default=10
        Kept for scikit-learn's signature; the bar shows every iteration.
    device : str or torch.device, default=None
        Where to compute; None is where X is.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    weights_ : (n_components,) array
    means_ : (n_components, n_features) array
    covariances_ : (k, d, d) full, (d, d) tied, (k, d) diag, (k,) spherical
    precisions_, precisions_cholesky_ : in the shape of ``covariances_``;
        precision = U Uᵀ with U upper triangular
    converged_ : bool
    lower_bound_ : float
        Mean log-likelihood of the training rows at the learned parameters.
    lower_bounds_ : list of float
        The same after each iteration.
    energy_ : GaussianMixtureEnergy
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GaussianMixture
    >>> X = np.array([[-2.0], [-1.0], [-1.5], [8.0], [9.0], [8.5]])
    >>> model = GaussianMixture(2, random_state=0).fit(X)
    >>> sorted(model.means_.ravel().round(3).tolist()), model.weights_.round(3).tolist()
    ([-1.5, 8.5], [0.5, 0.5])
    """

    traits = Traits(
        space={
            "n_components": settings.Whole(1, 12),
            "covariance_type": settings.Choice("full", "tied", "diag", "spherical"),
            "reg_covar": settings.Real(1e-6, 1e-1, log=True),
        },
        steps="max_iter",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.device = device
        self.callbacks = callbacks

    # --- learning ------------------------------------------------------------------------

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if len(X) < self.n_components and current().world == 1:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {len(X)}"
            )
        energy = GaussianMixtureEnergy(
            self.n_components, X.shape[1], self.covariance_type, reg_covar=self.reg_covar
        )
        last = getattr(self, "energy_", None) if self.warm_start else None
        if isinstance(last, GaussianMixtureEnergy) and last.config() == energy.config():
            solver = MixtureEM(max_iter=self.max_iter, tol=self.tol)
            return Plan(energy=copy.deepcopy(last), rule=NLL(), solver=solver)
        solver = MixtureEM(
            max_iter=self.max_iter,
            tol=self.tol,
            n_init=self.n_init,
            init=self.init_params,
            given=self._given(energy, X),
        )
        return Plan(energy=energy, rule=NLL(), solver=solver)

    def _given(self, energy: GaussianMixtureEnergy, X: Tensor) -> dict[str, Tensor]:
        """Starting values that the user passed, checked."""
        shapes = {"weights": energy.logits, "means": energy.mu, "precisions": energy.U}
        given = {}
        for name, like in shapes.items():
            values = getattr(self, f"{name}_init")
            if values is None:
                continue
            array = check_array(
                values, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=f"{name}_init"
            )
            if array.shape != tuple(like.shape):
                raise ValueError(
                    f"{name}_init must have shape {tuple(like.shape)}, got {array.shape}"
                )
            given[name] = torch.from_numpy(array.copy()).to(X.device)
        weights = given.get("weights")
        if weights is not None and not (
            bool((weights >= 0).all()) and math.isclose(float(weights.sum()), 1.0, abs_tol=1e-6)
        ):
            raise ValueError("weights_init must be non-negative and sum to one")
        return given

    impute = impute
    weights_ = Learned(
        lambda model: model.energy_.log_weights.exp(),
        lambda model, pi: model.energy_.logits.copy_(pi.log()),
    )
    means_ = Learned(lambda model: model.energy_.mu)
    precisions_cholesky_ = Learned(
        lambda model: model._factors(), lambda model, U: model.energy_.U.copy_(U)
    )
    covariances_ = Learned(
        lambda model: model.energy_.covariances().to(model.energy_.mu.dtype),
        instead="set precisions_cholesky_",
    )
    precisions_ = Learned(lambda model: model._precisions(), instead="set precisions_cholesky_")

    def _factors(self) -> Any:
        U: Any = self.energy_.U
        return U.triu() if U.ndim > 1 and self._whole else U.abs()

    def _precisions(self) -> Any:
        factors = self._factors()
        return factors @ factors.mT if self._whole else factors.square()

    @property
    def _whole(self) -> bool:
        return self.covariance_type in ("full", "tied")

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        history = self.history_
        self.converged_ = history.converged
        self.lower_bounds_ = [-value for value in history.objective]
        self.lower_bound_ = self.lower_bounds_[-1]
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then the most probable component of each row."""
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    # --- answers -------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """The component of lowest energy, ``(n_samples,)``."""
        x, home = self._rows(X)
        with torch.no_grad():
            return home.give(self.energy_.table("z", x=x).argmin(1))

    def predict_proba(self, X: Any) -> Any:
        """Probability of each component, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        with torch.no_grad():
            return home.give(torch.softmax(-self.energy_.table("z", x=x), 1))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(np.mean(np.asarray(self.score_samples(X), dtype=np.float64)))

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw rows ``(n_samples, n_features)`` and the components they come from."""
        if n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples} . The sampling requires at least one "
                "sample."
            )
        check_is_fitted(self, "energy_")
        key = Key.of(self.random_state if random_state is None else random_state)
        energy = self.energy_
        assert isinstance(energy, GaussianMixtureEnergy)
        with torch.no_grad():
            drawn = energy.ancestral(n_samples, generator=key.torch(energy.mu.device))
        return Home().give(drawn["x"]), Home().give(drawn["z"])

    def _n_parameters(self) -> int:
        """Free parameters of the model."""
        k, d = self.means_.shape
        covariance = {
            "full": k * d * (d + 1) / 2,
            "diag": k * d,
            "tied": d * (d + 1) / 2,
            "spherical": k,
        }
        return int(covariance[self.covariance_type] + k * d + k - 1)

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X; low is good."""
        n = len(X)
        return -2 * self.score(X) * n + self._n_parameters() * math.log(n)

    def aic(self, X: Any) -> float:
        """Akaike information criterion on X; low is good."""
        return -2 * self.score(X) * len(X) + 2 * self._n_parameters()
