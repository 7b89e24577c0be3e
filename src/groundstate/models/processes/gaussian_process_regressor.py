"""Gaussian process regression."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.device import resolve_device
from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy, ProcessEnergy
from groundstate.energy.kernels.gaussian_process.inducing import InducingProcessEnergy
from groundstate.energy.kernels.gaussian_process.iterative import IterativeProcessEnergy
from groundstate.energy.kernels.gaussian_process.predictive import ProcessDistribution
from groundstate.errors import Unsupported
from groundstate.learn.base import Solver
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.gp.evidence import Conditioning, Evidence, evidence
from groundstate.learn.solvers.gp.inducing import Inducing
from groundstate.learn.solvers.gp.inducing_stochastic import VariationalInducing
from groundstate.learn.solvers.gp.iterative import IterativeConditioning, IterativeEvidence
from groundstate.math.kernels import RBF, Constant, Kernel, White
from groundstate.math.linalg.gaussian_process import draws
from groundstate.models import settings
from groundstate.models.arrays import Home, tensor, unwrap
from groundstate.models.base import Plan
from groundstate.models.kernels.nested import NestedKernel, by_column
from groundstate.models.learned import Learned
from groundstate.models.leverage import process_leverage
from groundstate.models.processes.foreign import own_kernel
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Cost, Traits
from groundstate.models.validation import validate_data
from groundstate.registry import models


def _part(name: str, kind: type[Energy]) -> Learned:
    """Rows, targets or weights that an energy of some kind keeps, whose factors belong to them."""

    def read(model: Any) -> Tensor:
        if not isinstance(model.energy_, kind):
            raise AttributeError(f"method={model.method!r} keeps no {name}")
        part: Tensor = getattr(model.energy_, name).clone()
        return part[:, 0] if name in "ya" and model._flat_target else part

    return Learned(read, instead="call fit with other rows")


@models.register(
    family="processes", task="regression", role="regressor", max_rows=5_000, shortlist=8,
    shortlist_rows=1_000,
)  # fmt: skip
class GaussianProcessRegressor(NestedKernel, EnergyRegressor):
    r"""A distribution over functions, conditioned on the rows.

    .. math::
        e(x, y) = -\log N(y;\, m(x), v(x) + \alpha), \qquad
        m(x) = k_x^\top K^{-1}y, \quad v(x) = k(x, x) - k_x^\top K^{-1}k_x, \quad
        K_{ij} = k(x_i, x_j) + \alpha\delta_{ij} .

    The parameters of the kernel maximise the marginal likelihood, by L-BFGS within their bounds.

    Parameters
    ----------
    kernel : kernel object or function, default=None
        None is ``Constant() * RBF()``, whose two parameters are learned. Kernels of scikit-learn
        are understood, and functions of two arrays of rows.
    alpha : float or (n_samples,), default=1e-10
        Variance of the noise of each row.
    optimizer : "fmin_l_bfgs_b" (or "lbfgs"), callable or None
        None keeps the kernel as it is.
    n_restarts_optimizer : int, default=0
        Further starts, drawn within the bounds.
    normalize_y : bool, default=False
        Learn on centred and scaled targets.
    copy_X_train : bool, default=True
        Accepted for scikit-learn's sake; the rows are always kept as a copy.
    n_targets : int, default=None
        Outputs of the prior, before fit.
    relevance : bool, default=False
        Learn a length scale for each column, from that of the kernel: columns that do not matter get
        long ones (automatic relevance determination).
    max_iter : int, default=None
        Iterations of L-BFGS for the kernel at most; None goes on until nothing changes.
    method : {"exact", "cg", "inducing"}, default="exact"
        "exact" factors K. "cg" never stores it: solutions by conjugate gradients, the evidence by
        random probes. "inducing" knows the function through its values at a few rows, in time
        linear in the rows, and learns from a bound of the evidence.
    n_inducing : int, default=512
        Inducing points at most, for ``method="inducing"``.
    batch_size : int, default=None
        Rows of a batch, for ``method="inducing"``: the kernel is then learned by stochastic
        variational steps. None takes all rows in each step.
    random_state : int, default=None
        Of the restarts, probes and batches.

    Attributes
    ----------
    kernel_ : the kernel with learned parameters
    X_train_, y_train_ : the rows; equal rows are kept once, with their weight
    alpha_ : (n_samples,) or (n_samples, n_targets), :math:`K^{-1}y`
    L_ : (n_samples, n_samples), the factor of K
    inducing_points_ : (n_inducing, n_features), for ``method="inducing"``, which keeps no rows
    log_marginal_likelihood_value_ : float, estimated for "cg", a lower bound for "inducing"
    energy_ : ProcessEnergy, IterativeProcessEnergy or InducingProcessEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GaussianProcessRegressor
    >>> from groundstate.math.kernels import RBF
    >>> X, kernel = np.array([[0.0], [1.0]]), RBF(1.0, "fixed")
    >>> model = GaussianProcessRegressor(kernel).fit(X, [0.0, 1.0])
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> mean.round(4).tolist(), std.round(4).tolist()
    ([0.5493], [0.1745])
    """

    traits = Traits(
        scaled_target=True,
        leverage=process_leverage,
        cost=Cost(1.0, rows=2.0, columns=0.2, start=0.08),
        # the last iterations change the scales and next to no answers
        preset={"kernel": Constant(1.0) * RBF(3.0) + White(0.3), "relevance": True, "max_iter": 20},
        space={
            "relevance": settings.Choice(True, False),
            "alpha": settings.Real(1e-8, 1.0, log=True),
            "normalize_y": settings.Choice(True, False),
        },
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [None, Kernel, object],
        "alpha": [Interval(Real, 0, None, closed="left"), np.ndarray],
        "optimizer": [StrOptions({"fmin_l_bfgs_b", "lbfgs"}), callable, None],
        "n_restarts_optimizer": [Interval(Integral, 0, None, closed="left")],
        "normalize_y": ["boolean"],
        "copy_X_train": ["boolean"],
        "n_targets": [Interval(Integral, 1, None, closed="left"), None],
        "relevance": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "method": [StrOptions({"exact", "cg", "inducing"})],
        "n_inducing": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = 1e-10,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        relevance: bool = False,
        max_iter: int | None = None,
        method: str = "exact",
        n_inducing: int = 512,
        batch_size: int | None = None,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _prior_kernel(self) -> Kernel:
        if self.kernel is None:
            return Constant() * RBF()
        return own_kernel(self.kernel)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        X, y, encoded = super()._checked(X, y)
        if np.ndim(self.alpha) and np.shape(self.alpha) != (len(X),):
            raise ValueError(
                f"alpha must be a number or have one entry for each of the {len(X)} rows, got "
                f"shape {np.shape(self.alpha)}"
            )
        # factors of covariances need all the digits there are
        if isinstance(X, Tensor):
            return X.double(), None if y is None else y.double(), encoded
        return X.astype(np.float64), None if y is None else y.astype(np.float64), encoded

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        if self.n_targets is not None and y.shape[1] != self.n_targets:
            raise ValueError(f"y has {y.shape[1]} targets, n_targets={self.n_targets}")
        known = 0.0 if np.ndim(self.alpha) else float(self.alpha)
        energy = self._distribution(X, y.shape[1], known)
        if self.normalize_y:
            w = torch.ones(len(y)).to(y) if weight is None else weight
            energy.shift = w @ y / w.sum()
            spread = (w @ (y - energy.shift).square() / w.sum()).sqrt()
            energy.scale = torch.where(spread > 0, spread, torch.ones_like(spread))
        return Plan(energy, Naive(over="y"), self._solver())

    def _distribution(self, X: Tensor, m: int, noise: float) -> ProcessDistribution:
        kernel, d = self._prior_kernel(), X.shape[1]
        kernel = by_column(kernel, d) if self.relevance and d > 1 else kernel
        if self.method == "inducing":
            return InducingProcessEnergy(d, m, kernel, noise=noise).double()
        if self.method == "cg":
            return IterativeProcessEnergy(
                d, m, kernel, noise=noise, rank=max(100, int(4 * len(X) ** 0.5)),
                single=X.device.type != "cpu",  # accelerators are many times faster in float32
            ).double()  # fmt: skip
        return ProcessEnergy(d, m, kernel, noise=noise).double()

    def _solver(self) -> Solver:
        noise = np.asarray(self.alpha, float)
        chosen = "lbfgs" if self.optimizer == "fmin_l_bfgs_b" else self.optimizer
        most = {} if self.max_iter is None else {"max_iter": self.max_iter}
        found = Evidence(self.n_restarts_optimizer, chosen, **most)
        if self.method == "exact":
            return Conditioning(noise, found)
        if self.method == "cg":
            return IterativeConditioning(noise, found)
        if self.batch_size is None:
            return Inducing(noise, self.n_inducing, found)
        return VariationalInducing(noise, self.n_inducing, found, batch_size=self.batch_size)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {"kernel_": energy.kernel}

    X_train_ = _part("x", ProcessEnergy)
    y_train_ = _part("y", ProcessEnergy)
    alpha_ = _part("a", ProcessEnergy)
    inducing_points_ = _part("u", InducingProcessEnergy)

    @property
    def L_(self) -> NDArray[np.float64]:
        energy = self.energy_
        if self.method != "exact" or not isinstance(energy, ProcessEnergy):
            raise AttributeError(f"method={self.method!r} keeps no factor of K; use method='exact'")
        factor: NDArray[np.float64] = energy.factor().cpu().numpy()
        return factor

    @property
    def log_marginal_likelihood_value_(self) -> float:
        return self.history_.extra["log_marginal_likelihood"][0]

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of the function, with its standard deviation ``(n_samples,)`` or covariance
        ``(n_samples, n_samples)`` where asked; before ``fit`` those of the prior.
        """
        if return_std and return_cov:
            raise RuntimeError("ask for return_std or return_cov, not for both")
        x, home, energy = self._at(X)
        with answering(energy, x):
            if return_cov:
                mean = energy.mean(x)
                cov = energy.joint(x)[..., None] * energy.scale.square()  # (B, B, m)
                return self._shaped(mean, home), self._shaped(cov, home)
            if return_std:
                mean, v = energy.predict(x)
                return self._shaped(mean, home), self._shaped(v.sqrt(), home)
            return self._shaped(energy.mean(x), home)

    def _at(self, X: Any) -> tuple[Tensor, Home, ProcessDistribution]:
        if hasattr(self, "energy_"):
            x, home = self._rows(X)
            energy = self.energy_
        else:
            X, home = unwrap(X)
            x = tensor(validate_data(self, X, dtype=np.float64), resolve_device(self.device))
            prior = ProcessEnergy(x.shape[1], self.n_targets or 1, self._prior_kernel())
            energy = prior.to(x.device, torch.float64)
        assert isinstance(energy, ProcessDistribution)
        return x, home, energy

    def _shaped(self, values: Tensor, home: Home) -> Any:
        """One output has no axis of its own, not even that of a column of targets."""
        return home.give(values[..., 0] if values.shape[-1] == 1 else values)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Any:
        """Draws of the function, ``(n_samples_X, n_samples)`` (targets in the middle), from the
        posterior (for ``method="exact"`` by Matheron's rule); before ``fit`` from the prior.
        """
        x, home, energy = self._at(X)
        generator = Key.of(random_state).torch(x.device)
        with answering(energy, x):
            found = energy.functions(x, n_samples, generator)  # (n, B, m)
        found = found.permute(1, 2, 0)
        return home.give(found[:, 0] if found.shape[1] == 1 else found)

    def sample_prior(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Any:
        """Draws from the prior with the kernel as it is, ``(n_samples_X, n_samples)``."""
        x, home, energy = self._at(X)
        generator = Key.of(random_state).torch(x.device)
        with answering(energy, x):
            return home.give(draws(energy.prior(x), n_samples, generator).T)

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Log marginal likelihood at ``theta`` (the learned one by default), and its gradient."""
        if theta is None:
            if eval_gradient:
                raise ValueError("the gradient is of a given theta; pass theta as well")
            return self.log_marginal_likelihood_value_
        energy = self.energy_
        if not isinstance(energy, ProcessEnergy):
            raise Unsupported(
                "the bound at another theta needs the rows, which method='inducing' does not keep; "
                "use method='exact' or 'cg'"
            )
        noise, weight = self._noise(energy)
        field = FieldEnergy(energy.x, energy.kernel.clone_with_theta(theta), noise, weight)
        if isinstance(energy, IterativeProcessEnergy):
            by_probes = IterativeEvidence(
                field, energy.y.T, Key.of(self.random_state), rank=energy.rank, single=energy.single
            )
            value, gradient = by_probes.at(np.asarray(theta, float), eval_gradient)
            return (-value, -gradient) if eval_gradient else -value
        point = evidence(field, energy.y.T, slope=eval_gradient)
        return (-point.value, -point.gradient) if eval_gradient else -point.value

    def _noise(self, energy: ProcessEnergy) -> tuple[Tensor, Tensor | None]:
        extra = self.history_.extra
        weight = torch.tensor(extra["weight"]).to(energy.x) if "weight" in extra else None
        return torch.tensor(extra["noise"]).to(energy.x), weight
