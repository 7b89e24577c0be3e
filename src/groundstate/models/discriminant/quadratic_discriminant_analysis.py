"""Quadratic discriminant analysis."""

from __future__ import annotations

import math
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self

import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import HasMethods, Interval, StrOptions
from groundstate.energy.classes.discriminant import GaussianClassEnergy
from groundstate.energy.classes.discriminant_moments import RankDeficient
from groundstate.errors import Unsupported
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.base import Plan
from groundstate.models.bayes.closed_form import ClosedFormClassifier, class_probabilities
from groundstate.models.discriminant.estimated import with_covariances
from groundstate.models.discriminant.linear_discriminant_analysis import proportions
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="discriminant", task="classification", role="classifier")
class QuadraticDiscriminantAnalysis(ClosedFormClassifier):
    r"""Classes are Gaussians, each with a covariance of its own.

    .. math::
        e(x, y) = -\log\pi_y + \tfrac12\log|2\pi\Sigma_y|
        + \tfrac12(x - \mu_y)^\top\Sigma_y^{-1}(x - \mu_y) .

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Both give the same classifier; "svd" has no shrinkage.
    reg_param : float in [0, 1], default=0.0
        :math:`\Sigma \leftarrow (1 - r)\Sigma + rI`.
    store_covariance : bool, default=False
        Keep ``covariance_``.
    tol : float, default=1e-4
        Relative standard deviation below which a direction counts as one without variance, which
        is refused.

    Attributes
    ----------
    means_ : (n_classes, n_features) array
    priors_ : (n_classes,) array
    covariance_ : list of (n_features, n_features) arrays
    rotations_, scalings_ : lists of arrays
        Principal axes of every class and the variances along them.
    energy_ : GaussianClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import QuadraticDiscriminantAnalysis
    >>> X = np.array([(0, 0), (2, 0), (1, 1), (1, -1), (4, 2), (6, 2), (5, 3), (5, 1)])
    >>> model = QuadraticDiscriminantAnalysis().fit(X, [0] * 4 + [1] * 4)
    >>> model.predict_proba([[2, 1]]).round(6).tolist()
    [[0.999665, 0.000335]]
    """

    traits = Traits(space={"reg_param": settings.Real(0.0, 1.0)})

    _lacking: int  # the class without a covariance yet, after partial_fit
    _store_private: ClassVar[tuple[str, ...]] = ("_lacking",)
    _store_skip: ClassVar[tuple[str, ...]] = ("callbacks", "covariance_estimator")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions({"svd", "eigen"})],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
        "store_covariance": ["boolean"],
        "covariance_estimator": [HasMethods("fit"), None],
    }

    def __init__(
        self,
        *,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}

    def fit(self, X: Any, y: Any = None, **weights: Any) -> Self:  # type: ignore[override]
        """Learn from rows ``X``, labels ``y`` and, by keyword, ``sample_weight``.

        The weights stand outside the signature because scikit-learn's checks, seeing them there,
        fit rows with a singular class, which this model must refuse.
        """
        unknown = sorted(set(weights) - {"sample_weight"})
        if unknown:
            raise TypeError(f"fit takes X, y and sample_weight, got {unknown[0]!r}")
        return super().fit(X, y, weights.get("sample_weight"))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self.__dict__.pop("_lacking", None)
        try:
            return super()._fit(X, y, sample_weight)
        except RankDeficient as error:
            raise RankDeficient(error.index, self.classes_[error.index]) from None

    def _energy(self, x: Tensor, y: Tensor, weight: Tensor | None) -> GaussianClassEnergy:
        k = len(self.classes_)
        if self.solver == "svd" and self.shrinkage is not None:
            raise Unsupported("shrinkage needs solver='eigen'; solver='svd' has reg_param only")
        energy = GaussianClassEnergy(
            k, x.shape[1], "full", shrinkage=self.shrinkage, tol=self.tol,
            reg_param=self.reg_param, prior=proportions(self.priors, k), dtype=x.dtype,
        ).to(x.device, x.dtype)  # fmt: skip
        energy.centre(x, y, weight)
        return energy

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        plan = super()._build(X, y, weight)
        energy: Any = plan.energy
        n = energy.sums_of(X[:, :1], y, weight)["n"].tolist()
        if min(n) <= 1:
            label = self.classes_[[share <= 1 for share in n].index(True)]
            counted = "" if weight is None else " (counted by sample_weight)"
            raise ValueError(
                f"y has only 1 sample in class {label}{counted}, covariance is ill defined."
            )
        return with_covariances(self, plan, X, y, weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows; the result is that of ``fit`` on all rows seen so far.

        A class may have too few rows for a covariance at first; predictions wait for more.
        """
        self.__dict__.pop("_lacking", None)
        try:
            return super().partial_fit(X, y, classes, sample_weight)
        except RankDeficient as error:
            energy: Any = self.energy_
            self.statistics_ = {name: value.cpu() for name, value in energy.sums.items()}
            self._lacking = error.index
            return self

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        if hasattr(self, "_lacking"):
            raise RankDeficient(self._lacking, self.classes_[self._lacking])
        return super()._rows(X)

    means_ = Learned(lambda model: model.energy_.mu)
    priors_ = class_probabilities()

    def _attributes(self, energy: Any, sums: dict[str, Tensor]) -> dict[str, Any]:
        for name in ("scalings_", "rotations_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if not self.store_covariance:
            return {}
        scalings, rotations = _principal(energy)
        return {"covariance_": [(r * s) @ r.T for r, s in zip(rotations, scalings, strict=True)]}

    def decision_function(self, X: Any) -> Any:
        r"""Scores :math:`\log\pi_y - \tfrac12\log|\Sigma_y| - \tfrac12d_y(x)^2`,
        ``(n_samples, n_classes)``; for two classes their difference, ``(n_samples,)``.
        """
        if len(getattr(self, "classes_", ())) <= 2:
            return super().decision_function(X)
        x, home = self._rows(X)
        with torch.no_grad():
            constant = 0.5 * x.shape[1] * math.log(2 * math.pi)  # the same for all classes
            return home.give(constant - self._class_table(x))

    @cached_property
    def scalings_(self) -> list[NDArray[Any]]:
        """Variances along the principal axes of every class, found when first asked for."""
        return _principal(self.energy_)[0]

    @cached_property
    def rotations_(self) -> list[NDArray[Any]]:
        """Principal axes of every class, widest first, found when first asked for."""
        return _principal(self.energy_)[1]


def _principal(energy: Any) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Variances and axes of every class, from the precisions: lowest first is widest first."""
    U = energy.root().detach().double()
    values, axes = torch.linalg.eigh(U @ U.mT)
    dtype = energy.mu.dtype
    return list(values.reciprocal().to(dtype).cpu().numpy()), list(axes.to(dtype).cpu().numpy())
