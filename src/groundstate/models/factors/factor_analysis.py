"""Factor analysis."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.latent.probabilistic_pca import FactorAnalysisEnergy
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.latent.factors.factor_em import FactorEM
from groundstate.learn.solvers.latent.factors.factor_profile import FactorProfile
from groundstate.learn.solvers.latent.factors.missing import MissingFactors
from groundstate.learn.solvers.latent.factors.rotation import rotation_of
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.factors.gaussian_factors import GaussianFactors
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models

SLOW = 1e-6  # nats per row that EM with missing values need not gain any more


@models.register(family="factors", task="representation", role="transformer")
class FactorAnalysis(ClassNamePrefixFeaturesOutMixin, GaussianFactors):
    r"""A Gaussian code, decoded linearly, with noise of its own on every feature.

    .. math::
        e(x, z) = \tfrac12\sum_j\frac{(x_j - w_j^\top z - b_j)^2}{\psi_j} + \tfrac12\|z\|^2 + \text{const},
        \qquad \min_{W, b, \psi}\; -\sum_i w_i\log\int e^{-e(x_i, z)}\,dz .

    What features share is in W, what is theirs alone in ψ. Scaling a feature scales its row of W and
    its ψ and changes nothing else, which is not so for `PCA`. Given ψ the best W is known, and ψ is
    found by Newton steps on matrices of the size of the covariance. NaN is a missing value in ``fit``,
    ``transform``, ``score_samples`` and ``impute``.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of factors; None is the number of features.
    tol : float, default=1e-8
        "profile": largest entry of the gradient, in nats per row. "em": gain of an iteration in nats
        per row, and at least 1e-6 where values are missing; "svd": in nats of all rows.
    copy : bool, default=True
        Kept for scikit-learn's signature; X is never changed.
    max_iter : int, default=1000
    solver : {"profile", "em", "svd"}, default="profile"
        "svd" is the iteration of scikit-learn.
    noise_variance_init : (n_features,) array, default=None
        Where ψ starts.
    svd_method, iterated_power : kept for scikit-learn's signature; covariances are decomposed exactly
    rotation : {None, "varimax", "quartimax"}, default=None
        Turn the factors so that few loadings are large.
    random_state : int, default=0
        Start of "em".

    Attributes
    ----------
    components_ : (n_components, n_features) array
        :math:`W^\top`.
    noise_variance_ : (n_features,) array, ψ
    mean_ : (n_features,) array
    loglike_ : list of float
        Log-likelihood of all rows after each iteration.
    n_iter_ : int
    energy_ : FactorAnalysisEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from groundstate import FactorAnalysis
    >>> X = scale(load_wine().data)
    >>> round(FactorAnalysis(2).fit(X).score(X), 6)
    -15.433658
    """

    traits = Traits(
        space={
            "n_components": settings.Whole(1, 3),
            "rotation": settings.Choice(None, "varimax"),
        }
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 0, None, closed="left"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "solver": [StrOptions({"profile", "em", "svd"})],
        "noise_variance_init": ["array-like", None],
        "svd_method": [StrOptions({"randomized", "lapack"})],
        "iterated_power": [Interval(Integral, 0, None, closed="left")],
        "rotation": [StrOptions({"varimax", "quartimax"}), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        tol: float = 1e-8,
        copy: bool = True,
        max_iter: int = 1000,
        solver: str = "profile",
        noise_variance_init: Any = None,
        svd_method: str = "randomized",
        iterated_power: int = 3,
        rotation: str | None = None,
        random_state: Any = 0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        d = X.shape[1]
        length = d if self.n_components is None else self.n_components
        if length > d:
            raise ValueError(f"n_components={length} must be at most n_features={d}")
        start = self.noise_variance_init
        if start is not None and len(start) != d:
            raise ValueError(
                f"noise_variance_init dimension does not match the number of features: "
                f"{len(start)} != {d}"
            )
        generator = None
        if self.solver == "em":
            generator = Key.of(self.random_state).fold("start").torch(torch.device("cpu"))
        energy = FactorAnalysisEnergy(d, length, generator=generator)
        solver: Any
        if self._counts_rows and not math.isfinite(float(X.sum())):
            solver = MissingFactors("ml", max(self.tol, SLOW), self.max_iter)
        elif self.solver == "em":
            solver = FactorEM("ml", None, self.tol, self.max_iter)
        else:
            method: Any = self.solver
            solver = FactorProfile(method, start, self.tol, self.max_iter)
        return Plan(energy=energy, rule=NLL(), solver=solver)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, FactorAnalysisEnergy)
        if self.rotation is not None and energy.W.shape[1]:
            method: Any = self.rotation
            with torch.no_grad():
                energy.W.copy_(energy.W.double() @ rotation_of(energy.W.double(), method))
        return {}

    components_ = Learned(lambda model: model.energy_.W.T)
    mean_ = Learned(lambda model: model.energy_.b)
    noise_variance_ = Learned(
        lambda model: model.energy_.noise,
        lambda model, value: model.energy_.log_noise.copy_(value.log()),
    )

    @property
    def loglike_(self) -> list[float]:
        """Log-likelihood of all rows after each iteration."""
        if "history_" not in vars(self):
            raise AttributeError("FactorAnalysis has loglike_ after fit, and is not fitted yet")
        return list(np.asarray(self.history_.extra["log_likelihood"], dtype=float))
