"""Linear discriminant analysis."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from torch import Tensor

from groundstate.compute.foreign.sklearn import HasMethods, Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.classes.discriminant import GaussianClassEnergy
from groundstate.errors import Unsupported
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.bayes.closed_form import ClosedFormClassifier, class_probabilities
from groundstate.models.discriminant.estimated import with_covariances
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models


def _computed(name: str) -> Learned:
    read = lambda model: model._directions()[name]  # noqa: E731
    return Learned(read, instead="set means_ or priors_, from which it follows")


@models.register(family="discriminant", task="classification", role="classifier")
class LinearDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClosedFormClassifier
):
    r"""Classes are Gaussians that share one covariance; energies differ by linear functions of x.

    .. math::
        e(x, y) = -\log\pi_y + \tfrac12(x - \mu_y)^\top\Sigma^{-1}(x - \mu_y) + \text{const},
        \qquad \Sigma = \sum_k \pi_k\hat\Sigma_k .

    The class of lowest energy is the nearest mean in Mahalanobis distance, up to
    :math:`\log\pi`. ``transform`` projects on the directions :math:`S_B v = \lambda S_W v` that
    separate the classes most.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        All three give the same classifier; "svd" leaves out directions without variance and has
        no shrinkage.
    n_components : int, default=None
        Directions of ``transform``; None is min(n_classes - 1, n_features).
    store_covariance : bool, default=False
        Keep ``covariance_`` with solver "svd" too.
    tol : float, default=1e-4
        Relative standard deviation below which a direction has no variance.

    Attributes
    ----------
    coef_ : (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    means_ : (n_classes, n_features) array
    priors_ : (n_classes,) array
    covariance_ : (n_features, n_features) array
    xbar_ : (n_features,) array
    scalings_ : (n_features, rank) array
    explained_variance_ratio_ : (n_components,) array
    energy_ : GaussianClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LinearDiscriminantAnalysis
    >>> X = np.array([(0, 0), (2, 0), (1, 1), (1, -1), (4, 2), (6, 2), (5, 3), (5, 1)])
    >>> model = LinearDiscriminantAnalysis().fit(X, [0] * 4 + [1] * 4)
    >>> model.coef_.round(6).tolist(), model.intercept_.round(6).tolist()
    ([[8.0, 4.0]], [-28.0])
    """

    traits = Traits(space={"solver": settings.Choice("lsqr"), "shrinkage": settings.Real(0.0, 1.0)})

    _store_skip: ClassVar[tuple[str, ...]] = ("callbacks", "covariance_estimator")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions({"svd", "lsqr", "eigen"})],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "store_covariance": ["boolean"],
        "covariance_estimator": [HasMethods("fit"), None],
    }

    def __init__(
        self,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        *,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if len(X) == len(self.classes_):
            raise ValueError("The number of samples must be more than the number of classes.")
        assert y is not None
        return with_covariances(self, super()._build(X, y, weight), X, y, weight)

    def _energy(self, x: Tensor, y: Tensor, weight: Tensor | None) -> GaussianClassEnergy:
        k, d = len(self.classes_), x.shape[1]
        if self.solver == "svd" and self.shrinkage is not None:
            raise Unsupported("shrinkage needs solver='lsqr' or 'eigen'; solver='svd' has none")
        most = min(k - 1, d)
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                "n_components cannot be larger than min(n_features, n_classes - 1) = "
                f"{most}, got {self.n_components}."
            )
        prior = proportions(self.priors, k)
        energy = GaussianClassEnergy(
            k, d, "tied", shrinkage=self.shrinkage, tol=self.tol, prior=prior,
            by_prior=self.solver != "svd", dtype=x.dtype,
        ).to(x.device, x.dtype)  # fmt: skip
        energy.centre(x, y, weight)
        return energy

    means_ = Learned(lambda model: model.energy_.mu)
    priors_ = class_probabilities()
    coef_ = _computed("coef_")
    intercept_ = _computed("intercept_")
    xbar_ = _computed("xbar_")
    scalings_ = _computed("scalings_")
    explained_variance_ratio_ = _computed("explained_variance_ratio_")

    def _attributes(self, energy: Any, sums: dict[str, Tensor]) -> dict[str, Any]:
        if not self.store_covariance and self.solver == "svd":
            return {}
        return {"covariance_": energy.tied_covariance().to(energy.mu.dtype).cpu().numpy()}

    def _directions(self) -> dict[str, Tensor]:
        """What scikit-learn keeps of the model: scores, and the axes that separate the classes."""
        energy: Any = self.energy_
        mu, U, log_prior = (v.double() for v in (energy.mu, energy.root(), energy.log_prior))
        prior = log_prior.exp()
        xbar = prior @ mu
        middle = (mu - xbar) @ U
        svd = self.solver == "svd"
        white = middle if svd else mu @ U  # (k, d)
        coef = white @ U.T
        intercept = log_prior - 0.5 * white.square().sum(1)
        if svd:
            intercept = intercept - coef @ xbar
        s, vt = torch.linalg.svd(prior.sqrt()[:, None] * middle, full_matrices=False)[1:]
        most = min(len(mu) - 1, mu.shape[1]) if self.n_components is None else self.n_components
        rank = int((s > self.tol * s[0]).sum())
        shares = s.square() / s.square().sum().clamp_min(1e-300)
        if len(mu) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        named = {
            "coef_": coef, "intercept_": intercept, "xbar_": xbar,
            "scalings_": U @ vt[:rank].T, "explained_variance_ratio_": shares[:most],
        }  # fmt: skip
        return {name: value.to(energy.mu.dtype) for name, value in named.items()}

    def _class_table(self, x: Tensor) -> Tensor:
        energies: Tensor = self.energy_.linear_energies(x)  # type: ignore[operator]
        return energies

    def decision_function(self, X: Any) -> Any:
        """Scores :math:`Wx + b`, ``(n_samples, n_classes)``; ``(n_samples,)`` for two classes."""
        if len(getattr(self, "classes_", ())) <= 2:
            return super().decision_function(X)
        x, home = self._rows(X)
        with answering(self.energy_, x):
            found = self._directions()
            return home.give(torch.nn.functional.linear(x, found["coef_"], found["intercept_"]))

    def transform(self, X: Any) -> Any:
        """Rows in the directions that separate the classes, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            found = self._directions()
            scalings = found["scalings_"][:, : len(found["explained_variance_ratio_"])]
            return home.give((x - found["xbar_"] if self.solver == "svd" else x) @ scalings)

    @property
    def _n_features_out(self) -> int:
        return min(len(self.explained_variance_ratio_), self.scalings_.shape[1])


def proportions(priors: Any, classes: int) -> list[float] | None:
    """Given class probabilities, made to sum to one with a warning where they do not."""
    if priors is None:
        return None
    values = np.asarray(priors, dtype=np.float64)
    if values.shape != (classes,):
        raise ValueError(f"priors must have one entry per class ({classes}), got {values.shape}")
    if (values < 0).any():
        raise ValueError("priors must be non-negative")
    if abs(values.sum() - 1.0) > 1e-5:
        warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=6)
    return (values / values.sum()).tolist()
