"""Mixture of Gaussians."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Categorical

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.energy.latent.gaussian_mixture import COVARIANCES, GaussianMixtureEnergy
from groundstate.errors import DataError, NotConverged
from groundstate.learn import NLL, MixtureEM
from groundstate.learn.solvers.latent.mixtures.online import (
    Stepwise,
    gradient_rate,
    gradient_step,
)
from groundstate.learn.solvers.latent.mixtures.starts import has_nan
from groundstate.math.info.free_energy import boltzmann_logits
from groundstate.models import settings
from groundstate.models.arrays import tensor
from groundstate.models.base import Plan
from groundstate.models.imputation import impute
from groundstate.models.mixtures.gaussians import GaussianAnswers
from groundstate.models.mixtures.regularisation import chosen_reg_covar
from groundstate.models.streamed import Mapped
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="mixtures", task="density", role="density")
class GaussianMixture(Mapped, GaussianAnswers):
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
    covariance_type : {"full", "tied", "diag", "spherical", "identity"}, default="full"
        Each component its own covariance, one for all, axis-parallel, a ball, or Σ = I, not learned.
    tol : float, default=1e-3
        Stop when the mean log-likelihood rises by less.
    reg_covar : float or "auto", default=1e-6
        Added to the diagonal of every covariance. "auto" chooses it by the likelihood of held-out
        rows, which keeps components from collapsing on discrete or repeated values.
    max_iter : int, default=100
        0 leaves the parameters at the start.
    n_init : int, default=1
        Starts that are tried; the best is kept.
    weights : {"learned", "uniform"}, default="learned"
        Whether π is learned or 1/k.
    temperature : float, default=1.0
        Divides the energy in the E-step and in ``predict_proba``; 0 assigns every row whole.
    batch_size : int, default=None
        Rows of a mini-batch of stepwise EM: statistics move by
        :math:`s \leftarrow (1-\rho_t)s + \rho_t s_{batch}`, :math:`\rho_t = (t+2)^{-0.7}`, and memory
        does not grow with the rows. ``partial_fit`` does the same with the rows it gets. None uses
        all rows in every iteration.
    online : {"stepwise", "gradient"}, default="stepwise"
        How ``batch_size`` and ``partial_fit`` move the parameters: "gradient" is
        :math:`\mu_z \leftarrow \mu_z + \eta_t\,\overline{\alpha_z(x - \mu_z)}` over the batch, and the
        like for weights and covariances, and remembers nothing but the parameters.
    learning_rate : float, default=None
        :math:`\eta` of "gradient", in (0, 1]; None is :math:`\min(1, k(t+2)^{-0.7})`.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        Moments of clusters, of rows far from each other, of random responsibilities or of random rows. Of
        more than 16,384 rows "kmeans" finds its centroids on a sample, the best of four runs.
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
    restarts_ : list of float
        The lower bound that each start ended with.
    n_reseeded_ : int
        Components that lost all their rows and began again at a row of lowest density.
    reg_covar_ : float
    n_steps_ : int
        Calls of ``partial_fit`` since the last ``fit``.
    energy_ : GaussianMixtureEnergy
    n_iter_ : int

    Notes
    -----
    NaN are values missing at random: rows count with what is observed of them, and ``impute`` fills
    them in.

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

    _allow_nan: ClassVar[bool] = True
    _store_private: ClassVar[tuple[str, ...]] = ("_sums",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(COVARIANCES))],
        "reg_covar": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "weights": [StrOptions({"learned", "uniform"})],
        "temperature": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "online": [StrOptions({"stepwise", "gradient"})],
        "learning_rate": [Interval(Real, 0, 1, closed="right"), None],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: Any = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        weights: str = "learned",
        temperature: float = 1.0,
        batch_size: int | None = None,
        online: str = "stepwise",
        learning_rate: float | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if len(X) < self.n_components and current().world == 1:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {len(X)}"
            )
        if self.batch_size is not None and has_nan(X):
            raise DataError(
                "mini-batches take rows without NaN; batch_size=None learns from missing values"
            )
        if self.reg_covar == "auto":
            self.reg_covar_ = chosen_reg_covar(self, X, weight)
        else:
            self.reg_covar_ = float(self.reg_covar)
        energy = GaussianMixtureEnergy(
            self.n_components,
            X.shape[1],
            self.covariance_type,
            reg_covar=self.reg_covar_,
            uniform=self.weights == "uniform",
            scale=0.0,
        )
        last = getattr(self, "energy_", None) if self.warm_start else None
        if isinstance(last, GaussianMixtureEnergy) and last.config() == energy.config():
            solver = MixtureEM(max_iter=self.max_iter, tol=self.tol, T=self.temperature)
            return Plan(energy=copy.deepcopy(last), rule=NLL(), solver=solver)
        solver = MixtureEM(
            max_iter=self.max_iter,
            tol=self.tol,
            T=self.temperature,
            batch_size=self.batch_size,
            online=self.online,
            rate=self.learning_rate,
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
                what = f"{self.covariance_type} precision" if name == "precisions" else name
                raise ValueError(
                    f"The parameter '{what}' should have the shape of {tuple(like.shape)}, but got "
                    f"{array.shape}"
                )
            given[name] = torch.from_numpy(array.copy()).to(X.device)
        weights = given.get("weights")
        if weights is None:
            return given
        low, high, total = (float(v) for v in (weights.min(), weights.max(), weights.sum()))
        if low < 0 or high > 1:
            raise ValueError(
                "The parameter 'weights' should be in the range [0, 1], but got max value "
                f"{high:.5f}, min value {low:.5f}"
            )
        if not math.isclose(total, 1.0, abs_tol=1e-6):
            raise ValueError(
                f"The parameter 'weights' should be normalized, but got sum(weights) = {total:.5f}"
            )
        return given

    impute = impute

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        history = self.history_
        self.converged_ = history.converged
        self.lower_bounds_ = [-value for value in history.objective]
        self.lower_bound_ = (self.lower_bounds_ or history.extra["log_likelihood"])[-1]
        self.restarts_ = list(history.extra.get("restarts", [self.lower_bound_]))
        self.n_reseeded_ = int(getattr(self.energy_, "reseeded", 0))
        self.__dict__.pop("_sums", None)
        self.n_steps_ = 0
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        r"""One step of stepwise EM with these rows: statistics are a moving average over calls.

        The first call starts as ``fit`` does, from its own rows.
        """
        self._validate_params()
        if not hasattr(self, "energy_"):
            once = clone(self).set_params(batch_size=None, max_iter=1, tol=0.0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConverged)
                once.fit(X, sample_weight=sample_weight)
            for name in [k for k in vars(once) if k.endswith("_")]:
                setattr(self, name, getattr(once, name))
        x, _ = self._rows(X)
        weight = self._checked_weight(sample_weight, x)
        wt = None if weight is None else tensor(weight, x.device)
        if bool(torch.isnan(x).any()):
            raise DataError(
                "partial_fit takes rows without NaN; fit on all rows learns from missing values"
            )
        energy = self.energy_
        assert isinstance(energy, GaussianMixtureEnergy)
        with torch.no_grad():
            table = energy.table("z", x=x)
            posterior = Categorical(logits=boltzmann_logits(table, self.temperature))
            sums = energy.stats(wt, x, posterior)
            total = float(len(x) if wt is None else wt.sum())
            unit = current().sum_dict({**sums, "total": sums["n"].new_tensor([total])})
            mass = unit.pop("total")
            unit = {name: value / mass for name, value in unit.items()}
            if self.online == "gradient":
                eta = gradient_rate(self.learning_rate, self.n_components, self.n_steps_)
                gradient_step(energy, unit, eta)
            else:
                move = Stepwise(energy, self._average(x.device))
                move.step(unit, self.n_steps_)
                self._sums = {name: value.cpu().numpy() for name, value in move.average.items()}
        self.n_steps_ += 1
        self.lower_bound_ = float(torch.logsumexp(-table, 1).mean())
        self.lower_bounds_ = [*self.lower_bounds_, self.lower_bound_]
        return self

    def _average(self, device: torch.device) -> dict[str, Tensor]:
        """Statistics of a unit of weight that the calls so far left."""
        kept: dict[str, Any] = getattr(self, "_sums", {})
        return {name: torch.from_numpy(np.array(v)).to(device) for name, v in kept.items()}

    # --- answers -------------------------------------------------------------------------

    def _energies(self, x: Tensor) -> Tensor:
        energy = self.energy_
        assert isinstance(energy, GaussianMixtureEnergy)
        return energy.observed_energies(x)

    def _n_parameters(self) -> int:
        k, d = self.means_.shape
        covariance = {
            "full": k * d * (d + 1) / 2,
            "diag": k * d,
            "tied": d * (d + 1) / 2,
            "spherical": k,
            "identity": 0,
        }
        free = k - 1 if self.weights == "learned" else 0
        return int(covariance[self.covariance_type] + k * d + free)

    def condition(self, known: Mapping[int, float]) -> GaussianMixture:
        r"""The mixture of the other columns given values of some, :math:`p(x_m \mid x_o)`.

        Parameters
        ----------
        known : values by column number
        """
        check_is_fitted(self, "energy_")
        energy = self.energy_
        assert isinstance(energy, GaussianMixtureEnergy)
        k, d = energy.mu.shape
        at = sorted(known)
        if not at or at[0] < 0 or at[-1] >= d or len(at) == d:
            raise ValueError(
                f"condition takes values of some of the {d} columns by number, got {dict(known)}"
            )
        mask = torch.zeros(d, dtype=torch.bool, device=energy.mu.device)
        mask[at] = True
        values = torch.full((1, d), torch.nan, dtype=torch.float64, device=mask.device)
        values[0, at] = values.new_tensor([float(known[j]) for j in at])
        with torch.no_grad():
            log_pi = torch.log_softmax(-energy.observed_energies(values.to(energy.mu)), 1)[0]
            mu, cov = energy.mu.double(), energy.full_covariances()
            gain = torch.linalg.solve(cov[:, mask][:, :, mask], cov[:, mask][:, :, ~mask])
            diff = values[:, mask] - mu[:, mask]  # (k, o)
            mean = mu[:, ~mask] + (diff[:, None] @ gain)[:, 0]
            rest = cov[:, ~mask][:, :, ~mask] - cov[:, ~mask][:, :, mask] @ gain
            out = clone(self).set_params(covariance_type="full", weights="learned")
            new = GaussianMixtureEnergy(k, d - len(at), reg_covar=0.0).to(energy.mu)
            new.from_moments(log_pi.double().exp(), mean, rest)
            new.mu.copy_(mean)
            new.logits.copy_(log_pi)  # also of components that are all but impossible
        out.energy_, out.n_features_in_ = new, d - len(at)
        out.history_, out.n_iter_ = self.history_, self.n_iter_
        out.converged_, out.lower_bound_ = self.converged_, self.lower_bound_
        return out
