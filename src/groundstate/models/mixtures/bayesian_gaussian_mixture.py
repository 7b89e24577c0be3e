"""Variational mixture of Gaussians."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn import NLL
from groundstate.learn.solvers.latent.mixtures.variational import Posterior, Prior, VariationalEM
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.mixtures.gaussians import GaussianAnswers
from groundstate.models.streamed import Mapped
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="mixtures", task="density", role="density", auto=False)
class BayesianGaussianMixture(Mapped, GaussianAnswers):
    r"""A mixture of Gaussians with distributions over its parameters, which empties unused components.

    .. math::
        e(x, z) = -\log\pi_z - \log N(x; \mu_z, \Sigma_z), \qquad
        \max_q\; E_q[\log p(x, z, \pi, \mu, \Sigma)] + H(q),\quad
        q = q(z)\,q(\pi)\,q(\mu, \Sigma),

    with a Dirichlet distribution or a Dirichlet process over π and Normal-Wishart distributions over
    the components. The bound never falls; the likelihood may.

    Parameters
    ----------
    n_components : int, default=1
        At most so many components are used.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
    tol : float, default=1e-3
        Stop when the bound rises by less.
    reg_covar : float, default=1e-6
    max_iter : int, default=100
    n_init : int, default=1
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
    weight_concentration_prior_type : {"dirichlet_process", "dirichlet_distribution"}, \
            default="dirichlet_process"
    weight_concentration_prior : float, default=None
        Low values use fewer components; None is 1 / n_components.
    mean_precision_prior : float, default=None
    mean_prior : (n_features,) array, default=None
    degrees_of_freedom_prior : float, default=None
    covariance_prior : float or array, default=None

    random_state : int, default=None
    warm_start : bool, default=False
        Go on from the last fit instead of starting afresh.
    verbose : int, default=0
        Above zero, a progress bar.
    verbose_interval : int, default=10
        Kept for scikit-learn's signature; the bar shows every iteration.

    Attributes
    ----------
    weights_ : (n_components,) array
    means_ : (n_components, n_features) array
    covariances_, precisions_, precisions_cholesky_ : arrays as in ``GaussianMixture``
    lower_bound_ : float
        The bound of all rows together, less constants, as in scikit-learn.
    lower_bounds_, restarts_ : lists of float
        The bound after each iteration, and the one that each start ended with.
    converged_ : bool
    weight_concentration_ : (n_components,) array of a Dirichlet distribution, \
            (2, n_components) of a process
    mean_precision_ : (n_components,) array
    degrees_of_freedom_ : (n_components,) array; one number where covariances are tied
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, \
            covariance_prior_ : what the priors are, those of None taken from the rows
    n_iter_ : int
    energy_ : GaussianMixtureEnergy
        Of the expected parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import BayesianGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (60, 1)), rng.normal(4, 1, (60, 1))])
    >>> model = BayesianGaussianMixture(6, random_state=0, max_iter=500).fit(X)
    >>> int((model.weights_ > 0.05).sum())
    2
    """

    traits = Traits(space={"n_components": settings.Whole(1, 12)}, steps="max_iter")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "weight_concentration_prior_type": [
            StrOptions({"dirichlet_process", "dirichlet_distribution"})
        ],
        "weight_concentration_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "mean_precision_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "mean_prior": [None, "array-like"],
        "degrees_of_freedom_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "covariance_prior": [None, "array-like", Interval(Real, 0.0, None, closed="neither")],
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
        weight_concentration_prior_type: str = "dirichlet_process",
        weight_concentration_prior: float | None = None,
        mean_precision_prior: float | None = None,
        mean_prior: Any = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if len(X) < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {len(X)}"
            )
        last = self._posterior() if self.warm_start and hasattr(self, "energy_") else None
        energy = GaussianMixtureEnergy(
            self.n_components, X.shape[1], self.covariance_type, reg_covar=self.reg_covar
        )
        if last is not None and last.covariance.shape != energy.U.shape:
            last = None
        solver = VariationalEM(
            self._prior(X.shape[1]), self.init_params, self.n_init, self.max_iter, self.tol, last
        )
        return Plan(energy=energy, rule=NLL(), solver=solver)

    def _prior(self, d: int) -> Prior:
        """Priors that the user gave, checked; None where they come from the rows."""
        degrees = self.degrees_of_freedom_prior
        if degrees is not None and not degrees > d - 1:
            raise ValueError(
                f"The parameter 'degrees_of_freedom_prior' should be greater than {d - 1}, but got "
                f"{degrees:.3f}."
            )
        shape: tuple[int, ...] = {"full": (d, d), "tied": (d, d), "diag": (d,)}.get(
            self.covariance_type, ()
        )
        cov = _given(self.covariance_prior, shape, f"{self.covariance_type} covariance_prior")
        if cov is not None:
            values = np.linalg.eigvalsh(cov) if cov.ndim == 2 else cov
            symmetric = cov.ndim < 2 or np.allclose(cov, cov.T)
            if not symmetric or not (values > 0).all():
                kind = "symmetric, positive-definite" if cov.ndim == 2 else "positive"
                raise ValueError(f"'{self.covariance_type} covariance_prior' should be {kind}")
        return Prior(
            process=self.weight_concentration_prior_type == "dirichlet_process",
            concentration=self.weight_concentration_prior,
            mean_precision=self.mean_precision_prior or 1.0,
            mean=_given(self.mean_prior, (d,), "means"),
            degrees=degrees,
            covariance=cov,
        )

    weight_concentration_: Any
    mean_precision_: Any
    degrees_of_freedom_: Any

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        history = self.history_
        prior, q = history.about.pop("prior"), history.about.pop("posterior")
        self.weight_concentration_ = q["concentration"]
        self.mean_precision_, self.degrees_of_freedom_ = q["mean_precision"], q["degrees"]
        self.weight_concentration_prior_ = prior["concentration"]
        self.mean_precision_prior_ = prior["mean_precision"]
        self.mean_prior_ = prior["mean"]
        self.degrees_of_freedom_prior_ = prior["degrees"]
        self.covariance_prior_ = prior["covariance"]
        self.converged_ = history.converged
        self.lower_bounds_ = list(history.extra["bound"])
        self.lower_bound_ = self.lower_bounds_[-1]
        self.restarts_ = list(history.extra["restarts"])
        return self

    def _posterior(self) -> Posterior:
        """q of the parameters."""
        energy = self.energy_
        assert isinstance(energy, GaussianMixtureEnergy)

        return Posterior(
            np.asarray(self.weight_concentration_),
            np.asarray(self.mean_precision_),
            energy.mu.detach().double().cpu().numpy(),
            np.asarray(self.degrees_of_freedom_),
            energy.covariances().cpu().numpy(),
        )

    def _table(self, x: Tensor) -> Tensor:
        r"""Expected energies under q, :math:`-E[\log\pi_z] - E[\log N(x; \mu_z, \Sigma_z)]`."""
        energy = self.energy_
        assert isinstance(energy, GaussianMixtureEnergy)
        offset = torch.from_numpy(self._posterior().offsets()).to(energy.mu) - energy.log_weights
        return energy.energies(x) - offset


def _given(values: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64] | None:
    if values is None:
        return None
    array = check_array(
        np.atleast_1d(np.asarray(values, np.float64)), ensure_2d=False, input_name=name
    )
    array = array.reshape(()) if not shape and array.size == 1 else array
    if array.shape != shape:
        raise ValueError(
            f"The parameter '{name}' should have the shape of {shape}, but got {array.shape}"
        )
    return array.copy()
