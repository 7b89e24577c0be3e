"""Gaussian process classification."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.kernels.gaussian_process.laplace import LaplaceClassEnergy, LaplaceEnergy
from groundstate.errors import Unsupported
from groundstate.learn import NLL
from groundstate.learn.solvers.gp.evidence import Evidence
from groundstate.learn.solvers.gp.laplace import Field, Laplace, tasks
from groundstate.math.kernels import RBF, Constant, Kernel
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.kernels.nested import NestedKernel
from groundstate.models.processes.foreign import own_kernel
from groundstate.models.roles import EnergyClassifier
from groundstate.models.traits import Cost, Traits
from groundstate.registry import models


@models.register(
    family="processes", task="classification", role="classifier", max_rows=2_000, auto=False,
    shortlist=8, shortlist_rows=500,
)  # fmt: skip
class GaussianProcessClassifier(NestedKernel, EnergyClassifier):
    r"""A distribution over functions whose sign is the class, given the rows.

    .. math::
        e(x, y) = -\log\int \sigma((2y - 1)f)\,N(f;\, m(x), v(x))\,df, \qquad
        \hat f = \arg\max_f \sum_i w_i\log\sigma((2y_i - 1)f_i) - \tfrac12 f^\top K^{-1}f ,

    with m and v by Laplace's approximation at the mode :math:`\hat f` (Rasmussen and Williams, 2006).
    The parameters of the kernel maximise the approximate marginal likelihood, by L-BFGS within their
    bounds. More than two classes are judged each against the rest, or in pairs.

    Parameters
    ----------
    kernel : kernel object or function, default=None
        None is ``Constant() * RBF()`` with parameters 1 that are kept. Kernels of scikit-learn are
        understood, and functions of two arrays of rows.
    optimizer : "fmin_l_bfgs_b" (or "lbfgs"), callable or None
        None keeps the kernel as it is.
    n_restarts_optimizer : int, default=0
        Further starts, drawn within the bounds.
    max_iter_predict : int, default=100
        Newton steps to the mode at most.
    warm_start : bool, default=False
        Start Newton's steps at the last mode while the kernel is learned.
    copy_X_train : bool, default=True
        Accepted for scikit-learn's sake; the rows are always kept as a copy.
    random_state : int, default=None
        Of the restarts.
    multi_class : {"one_vs_rest", "one_vs_one"}, default="one_vs_rest"
        "one_vs_one" needs fewer rows at a time and gives no probabilities.
    n_jobs : int, default=None
        Accepted for scikit-learn's sake; torch's number of threads counts.
    device : str or torch.device, default=None
        Where to compute; None is the CPU.

    Attributes
    ----------
    n_classes_ : int
    kernel_ : the kernel with learned parameters; a list of them for more than two classes
    log_marginal_likelihood_value_ : float, the mean of all problems of two classes
    energy_ : LaplaceEnergy or LaplaceClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from groundstate import GaussianProcessClassifier
    >>> from groundstate.math.kernels import RBF, Constant
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> model = GaussianProcessClassifier(Constant() * RBF()).fit(X, y)
    >>> model.score(X, y) > 0.9, round(model.log_marginal_likelihood_value_, 1)
    (True, -13.2)
    """

    traits = Traits(
        cost=Cost(4.0, rows=2.7, columns=0.2, classes=1.4, start=0.1),
        preset={"kernel": Constant(1.0) * RBF(3.0)},
        space={"n_restarts_optimizer": settings.Whole(0, 3)},
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [None, Kernel, object],
        "optimizer": [StrOptions({"fmin_l_bfgs_b", "lbfgs"}), callable, None],
        "n_restarts_optimizer": [Interval(Integral, 0, None, closed="left")],
        "max_iter_predict": [Interval(Integral, 1, None, closed="left")],
        "copy_X_train": ["boolean"],
        "multi_class": [StrOptions({"one_vs_rest", "one_vs_one"})],
    }
    _store_private: ClassVar[tuple[str, ...]] = ("_rows_and_classes",)
    _rows_and_classes: tuple[Any, Any, Any]

    def __init__(
        self,
        kernel: Any = None,
        *,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Any = None,
        multi_class: str = "one_vs_rest",
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _prior_kernel(self) -> Kernel:
        if self.kernel is None:
            return Constant(1.0, "fixed") * RBF(1.0, "fixed")
        return own_kernel(self.kernel)

    def _checked(self, X: Any, y: Any) -> Any:
        X, y, encoded = super()._checked(X, y)
        wide = X.double() if isinstance(X, Tensor) else X.astype(np.float64)
        return wide, y, encoded  # factors of covariances need all the digits

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        k, d, kernel = len(self.classes_), X.shape[1], self._prior_kernel()
        energy: Any = LaplaceEnergy(d, kernel)
        if k > 2:
            energy = LaplaceClassEnergy(d, k, [], self.multi_class)
        chosen = "lbfgs" if self.optimizer == "fmin_l_bfgs_b" else self.optimizer
        search = Evidence(self.n_restarts_optimizer, chosen)
        self._rows_and_classes = (X, y, weight)
        solver = Laplace(kernel, search, self.max_iter_predict, self.warm_start)
        return Plan(energy, NLL(), solver)

    @property
    def n_classes_(self) -> int:
        return len(self.classes_)

    def _each(self) -> list[Any]:
        energy: Any = self.energy_
        return [energy] if isinstance(energy, LaplaceEnergy) else list(energy.members)

    @property
    def kernel_(self) -> Any:
        found = [one.kernel for one in self._each()]
        return found[0] if len(found) == 1 else found

    @property
    def log_marginal_likelihood_value_(self) -> float:
        return float(np.mean(self.history_.extra["log_marginal_likelihood"]))

    def predict(self, X: Any) -> Any:
        """Labels of lowest energy, ``(n_samples,)``; of two, by the sign of the latent mean."""
        energy = getattr(self, "energy_", None)
        if not isinstance(energy, LaplaceEnergy):
            return super().predict(X)
        x, home = self._rows(X)
        with answering(self.energy_, x):
            won = energy.mean(x) > 0
        return home.give(self.classes_[won.long().cpu().numpy()])

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, ``(n_samples, n_classes)``; not for ``multi_class="one_vs_one"``."""
        self._check_probabilities()
        return super().predict_proba(X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class probabilities, ``(n_samples, n_classes)``."""
        self._check_probabilities()
        return super().predict_log_proba(X)

    def _check_probabilities(self) -> None:
        if len(getattr(self, "classes_", ())) > 2 and self.multi_class == "one_vs_one":
            raise ValueError(
                "one_vs_one multi-class mode does not support predicting probability estimates. "
                "Use one_vs_rest mode instead."
            )

    def latent_mean_and_variance(self, X: Any) -> tuple[Any, Any]:
        """Mean and variance of the latent function, ``(n_samples,)`` each, for two classes."""
        x, home = self._rows(X)
        energy = self.energy_
        if not isinstance(energy, LaplaceEnergy):
            raise ValueError("there is one latent function for two classes only")
        with answering(self.energy_, x):
            mean, var = energy.latent(x)
        return home.give(mean), home.give(var)

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Log marginal likelihood of the kernel's parameters, at those learned unless given.

        Parameters
        ----------
        theta : (m,) logarithms of the parameters; for many classes also those of all kernels
        eval_gradient : give the gradient too, for two classes
        clone_kernel : accepted for scikit-learn's sake
        """
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        at = np.asarray(theta, dtype=np.float64)
        x, y, weight = self._rows_and_classes
        each, kernel = tasks(self.energy_, y), self._prior_kernel()
        size = len(kernel.theta)
        if len(at) not in (size, size * len(each)):
            raise ValueError(
                f"Shape of theta must be either {size} or {size * len(each)}. Obtained theta with "
                f"shape {len(at)}."
            )
        if eval_gradient and len(each) > 1:
            raise Unsupported(
                "the gradient of the log marginal likelihood is that of two classes; with more, ask "
                "without eval_gradient"
            )
        parts: list[NDArray[np.float64]] = [at] * len(each)
        if len(at) > size:
            parts = np.split(at, len(each))
        values = []
        for (rows, label), own in zip(each, parts, strict=True):
            w = None if weight is None else weight[rows]
            field = Field(x[rows], label, w, kernel)
            mode, slope = field.evidence(own, self.max_iter_predict, slope=eval_gradient)
            values.append(mode.value)
        return (values[0], slope) if eval_gradient else float(np.mean(values))
