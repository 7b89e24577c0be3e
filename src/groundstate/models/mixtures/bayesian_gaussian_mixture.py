"""Variational mixture of Gaussians."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy.special import digamma, logsumexp
from sklearn.mixture import BayesianGaussianMixture as Engine
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.basic import CentroidEnergy
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.errors import NotConverged
from groundstate.learn import NLL, Lloyd, Naive
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.kmeans.rows import nearest
from groundstate.learn.solvers.latent.kmeans.start import drawer_of
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.mixtures.gaussians import GaussianAnswers
from groundstate.models.traits import Traits
from groundstate.registry import models

KEPT = (
    "weight_concentration_", "weight_concentration_prior_", "mean_precision_",
    "mean_precision_prior_", "mean_prior_", "degrees_of_freedom_", "degrees_of_freedom_prior_",
    "covariance_prior_",
)  # fmt: skip


@dataclass(frozen=True)
class VariationalEM:
    """q(z), then q(π) q(μ, Σ), in turn; the update of a prior is scikit-learn's ``engine``."""

    engine: Any
    init: str
    n_init: int
    max_iter: int
    tol: float

    def reason_against(self, problem: Problem) -> str | None:
        return None if problem.is_resident else "it needs resident x"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        x = problem.resident["x"].cpu().numpy().astype(np.float64)
        weight = problem.sample_weight
        w = np.ones(len(x)) if weight is None else weight.double().cpu().numpy()
        engine, best = self.engine, None
        engine._validate_params()
        seen = np.repeat(x, 2, 0) if len(x) < 2 else x
        engine._check_parameters(seen)
        _weighted_priors(engine, x, w)
        ends: list[float] = []
        for i in range(self.n_init):
            found = self._one(problem, x, w, i)
            ends.append(found[0].extra["bound"][-1])
            if best is None or ends[-1] > best[0].extra["bound"][-1]:
                best = found
        assert best is not None
        history, parameters = best
        engine._set_parameters(parameters)
        history.extra["restarts"] = ends
        _into(problem.energy, engine)
        if not history.converged and self.tol > 0:
            warnings.warn(
                f"EM stopped after {self.max_iter} iterations while the bound still rose by more "
                f"than tol={self.tol}; raise max_iter or tol",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _one(self, problem: Problem, x: Any, w: Any, i: int) -> tuple[History, Any]:
        engine, history = self.engine, History(solver="VariationalEM")
        r = self._start(problem, i)
        with np.errstate(divide="ignore"):
            log_w = np.log(w)[:, None]
            log_r = np.log(r)
        engine._initialize(x, r * w[:, None])
        bound, kept = -np.inf, engine._get_parameters()
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            for _ in range(self.max_iter):
                start, before = time.perf_counter(), bound
                log_p = engine._estimate_weighted_log_prob(x)
                log_r = log_p - logsumexp(log_p, axis=1, keepdims=True)
                engine._m_step(x, log_r + log_w)
                plain = engine._compute_lower_bound(log_r, 0.0)
                r = np.exp(log_r)
                inner = np.where(r > 0, r * log_r, 0.0)
                bound = float(np.ravel(plain)[0] + inner.sum() - (w[:, None] * inner).sum())
                kept = engine._get_parameters()
                history.objective.append(-bound / w.sum())
                history.extra.setdefault("bound", []).append(bound)
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(history.objective[-1]):
                    history.stop = "callback"
                    break
                if abs(bound - before) < self.tol:
                    history.converged, history.stop = True, f"bound rose by less than {self.tol}"
                    break
        history.n_iter = len(history.objective)
        history.stop = history.stop or "max_iter"
        return history, kept

    def _start(self, problem: Problem, i: int) -> Any:
        """Responsibilities ``(N, k)``."""
        x, weight, k = problem.resident["x"], problem.sample_weight, self.engine.n_components
        key = problem.key.fold("start", i)
        if self.init == "random":
            u = drawer_of(x, weight, key).uniform(k).cpu().numpy()
            return u / u.sum(1, keepdims=True)
        if self.init == "kmeans":
            energy = CentroidEnergy(k, x.shape[1]).to(x)
            Lloyd().run(Problem(energy, Naive(latent="minimise"), {"x": x}, weight, key=key))
            centres: Tensor = energy.mu.detach()
        else:
            name = "k-means++" if self.init == "k-means++" else "random"
            centres = drawer_of(x, weight, key).start(name, k).to(x)
        return np.eye(k)[nearest(x, centres)[0].cpu().numpy()]


def _weighted_priors(engine: Any, x: Any, w: Any) -> None:
    """Priors that scikit-learn takes from the rows, with weights that mean repetition."""
    total = w.sum()
    if engine.mean_prior is None:
        engine.mean_prior_ = (w @ x) / total
    if engine.covariance_prior is None:
        diff = x - (w @ x) / total
        full = (diff * w[:, None]).T @ diff / max(total - 1, 1e-300)
        variance = np.diagonal(full)
        engine.covariance_prior_ = {
            "full": full, "tied": full, "diag": variance, "spherical": float(variance.mean()),
        }[engine.covariance_type]  # fmt: skip


@torch.no_grad()
def _into(energy: Any, engine: Any) -> None:
    """The energy of the expected distribution."""
    energy.logits.copy_(torch.from_numpy(np.log(np.maximum(engine.weights_, 1e-300))))
    energy.mu.copy_(torch.from_numpy(engine.means_))
    energy.U.copy_(torch.from_numpy(np.asarray(engine.precisions_cholesky_)))


@models.register(family="mixtures", task="density", role="density", auto=False)
class BayesianGaussianMixture(GaussianAnswers):
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

    Attributes
    ----------
    weights_ : (n_components,) array
    means_ : (n_components, n_features) array
    covariances_, precisions_, precisions_cholesky_ : arrays as in ``GaussianMixture``
    lower_bound_ : float
        The bound of all rows together, less constants, as in scikit-learn.
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
    _runs_on = "answers"

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
        verbose: int = 0,
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
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.random_state = random_state
        self.verbose = verbose
        self.device = device
        self.callbacks = callbacks

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if len(X) < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {len(X)}"
            )
        names = set(Engine().get_params()) & set(self.get_params(deep=False))
        given = {name: getattr(self, name) for name in names - {"random_state", "verbose"}}
        self._engine = Engine(**given)
        energy = GaussianMixtureEnergy(
            self.n_components, X.shape[1], self.covariance_type, reg_covar=self.reg_covar
        )
        solver = VariationalEM(self._engine, self.init_params, self.n_init, self.max_iter, self.tol)
        return Plan(energy=energy, rule=NLL(), solver=solver)

    _engine: Any
    weight_concentration_: Any
    mean_precision_: Any
    degrees_of_freedom_: Any

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        try:
            super()._fit(X, y, sample_weight)
            for name in KEPT:
                value = getattr(self._engine, name)
                if isinstance(value, tuple):
                    value = np.stack(value)
                setattr(self, name, value)
        finally:
            self.__dict__.pop("_engine", None)
        history = self.history_
        self.converged_ = history.converged
        self.lower_bounds_ = list(history.extra["bound"])
        self.lower_bound_ = self.lower_bounds_[-1]
        self.restarts_ = list(history.extra["restarts"])
        return self

    def _table(self, x: Tensor) -> Tensor:
        r"""Expected energies under q, :math:`-E[\log\pi_z] - E[\log N(x; \mu_z, \Sigma_z)]`."""
        energy = self.energy_
        assert isinstance(energy, GaussianMixtureEnergy)
        d, nu = energy.mu.shape[1], np.broadcast_to(self.degrees_of_freedom_, self.n_components)
        if isinstance(self.weight_concentration_, np.ndarray) and (
            self.weight_concentration_prior_type == "dirichlet_process"
        ):
            a, c = self.weight_concentration_
            both = digamma(a + c)
            broken = np.r_[0.0, np.cumsum(digamma(c) - both)[:-1]]
            log_pi = digamma(a) - both + broken
        else:
            log_pi = digamma(self.weight_concentration_) - digamma(self.weight_concentration_.sum())
        scatter = digamma(0.5 * (nu[:, None] - np.arange(d))).sum(1) + d * np.log(2.0 / nu)
        offset = log_pi + 0.5 * (scatter - d / self.mean_precision_)
        off = torch.from_numpy(offset).to(energy.mu) - energy.log_weights
        return energy.energies(x) - off
