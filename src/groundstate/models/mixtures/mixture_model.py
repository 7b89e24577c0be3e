"""Mixtures with components of any family."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.custom_mixture import CustomMixtureEnergy
from groundstate.energy.latent.family_mixture import FAMILIES, FamilyMixtureEnergy
from groundstate.learn import NLL
from groundstate.learn.solvers.latent.mixtures.family_em import FamilyEM
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.mixtures.answers import MixtureAnswers
from groundstate.models.traits import Traits
from groundstate.registry import models


class Columns(dict[Any, str]):
    """Families by column, name or number: independent given the component.

    >>> Columns({"age": "gaussian", "city": "categorical"})
    Columns({'age': 'gaussian', 'city': 'categorical'})
    """

    def __repr__(self) -> str:
        return f"Columns({dict(self)!r})"


@models.register(family="mixtures", task="density", role="density", auto=False)
class MixtureModel(MixtureAnswers):
    r"""A weighted sum of distributions of a family, learned by the same EM whatever the family.

    .. math::
        e(x, z) = -\log\pi_z - \log p(x \mid \theta_z), \qquad
        \min_{\pi, \theta}\; -\sum_i w_i \log\sum_z e^{-e(x_i, z)} .

    Parameters
    ----------
    family : str, ``Columns`` or callable, default="gaussian"
        "bernoulli", "categorical", "multinomial", "poisson", "exponential", "gaussian" (diagonal),
        "student_t" or "von_mises_fisher" for all columns; ``Columns({"a": "gaussian", ...})`` for
        columns of different families, independent given the component; or a function of θ
        ``(k, p)`` that gives a ``torch.distributions.Distribution`` with k members, for which
        ``theta_init`` holds the start and every M-step is at most 20 steps of L-BFGS.
    n_components : int, default=1
    alpha : float, default=1e-3
        Counts added to every probability; 0 is the likelihood alone.
    tol : float, default=1e-3
        Stop when the mean log-likelihood rises by less.
    max_iter : int, default=100
    n_init : int, default=1
        Starts that are tried; the best is kept.
    init_params : {"kmeans", "random", "random_from_data"}, default="kmeans"
    theta_init : (n_components, p) array, default=None
        Parameters to start from where ``family`` is a function.
    resp_init : (n_samples, n_components) array, default=None
        Responsibilities to start from.

    Attributes
    ----------
    weights_ : (n_components,) array
    converged_ : bool
    lower_bound_ : float
        Mean log-likelihood of the training rows.
    lower_bounds_ : list of float
    restarts_ : list of float
    energy_ : FamilyMixtureEnergy
        Its ``families`` hold the parameters of the components.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MixtureModel
    >>> X = np.array([[0.0], [1.0], [0.0], [9.0], [11.0], [10.0]])
    >>> model = MixtureModel("poisson", 2, random_state=0).fit(X)
    >>> model.predict(X).tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    True
    """

    traits = Traits(space={"n_components": settings.Whole(1, 12)}, steps="max_iter")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "family": [StrOptions(set(FAMILIES)), dict, callable],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "random", "random_from_data"})],
        "theta_init": ["array-like", None],
        "resp_init": ["array-like", None],
    }

    def __init__(
        self,
        family: Any = "gaussian",
        n_components: int = 1,
        *,
        alpha: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        theta_init: Any = None,
        resp_init: Any = None,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.family = family
        self.n_components = n_components
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.theta_init = theta_init
        self.resp_init = resp_init
        self.random_state = random_state
        self.device = device
        self.callbacks = callbacks

    weights_ = Learned(
        lambda model: model.energy_.log_weights.exp(),
        lambda model, pi: model.energy_.logits.copy_(pi.log()),
    )

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if len(X) < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {len(X)}"
            )
        energy, init = self._energy(X)
        given = None
        if self.resp_init is not None:
            given = torch.from_numpy(np.asarray(self.resp_init, np.float64).copy())
            if given.shape != (len(X), self.n_components):
                raise ValueError(
                    f"resp_init must be ({len(X)}, {self.n_components}), got {tuple(given.shape)}"
                )
        solver = FamilyEM(
            init=init,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            responsibilities=given,
        )
        return Plan(energy=energy, rule=NLL(), solver=solver)

    def _energy(self, X: Tensor) -> tuple[Any, str | None]:
        k, d = self.n_components, X.shape[1]
        if callable(self.family):
            if self.theta_init is None:
                raise ValueError(
                    "a family written as a function needs theta_init, (n_components, p) parameters "
                    "to start from"
                )
            theta = torch.from_numpy(np.asarray(self.theta_init, np.float64).copy()).to(X)
            if theta.ndim != 2 or len(theta) != k:
                raise ValueError(f"theta_init must be ({k}, p), got {tuple(theta.shape)}")
            return CustomMixtureEnergy(self.family, theta, d), None
        family = self._by_number(d) if isinstance(self.family, Mapping) else self.family
        energy = FamilyMixtureEnergy(k, d, family)
        for part in energy.families:
            part.alpha = float(self.alpha)
        energy.to(X)
        energy.check(X)
        return energy, self.init_params

    def _by_number(self, d: int) -> dict[int, str]:
        """Families of all columns by number."""
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        found: dict[int, str] = {}
        for column, family in self.family.items():
            at = names.index(column) if column in names else column
            if not isinstance(at, Integral) or not 0 <= int(at) < d:
                raise ValueError(
                    f"there is no column {column!r}; X has {names or f'columns 0 to {d - 1}'}"
                )
            if family not in FAMILIES:
                raise ValueError(f"unknown family {family!r}; choose among {', '.join(FAMILIES)}")
            found[int(at)] = family
        missing = [j for j in range(d) if j not in found]
        if missing:
            raise ValueError(f"columns {missing} have no family; name one for every column")
        return found

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        history = self.history_
        self.converged_ = history.converged
        self.lower_bounds_ = [-value for value in history.objective]
        self.lower_bound_ = self.lower_bounds_[-1]
        self.restarts_ = list(history.extra["restarts"])
        return self

    def _n_parameters(self) -> int:
        energy: Any = self.energy_
        if isinstance(energy, FamilyMixtureEnergy):
            return energy.n_parameters()
        return int(self.n_components - 1 + energy.theta.numel())
