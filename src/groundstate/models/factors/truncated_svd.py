"""The largest singular values of rows as they are, not centred."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.energy.latent.codes import LinearCodeEnergy
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.principal_axes import PrincipalAxes
from groundstate.math.linalg.range_finder import CentredRows
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.factors.linear_codes import LinearCodes
from groundstate.models.factors.pca import SPREAD
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="factors", task="representation", role="transformer")
class TruncatedSVD(ClassNamePrefixFeaturesOutMixin, LinearCodes):
    r"""The subspace of least squared distance to the rows, through the origin: rows stay sparse.

    .. math::
        e(x, z) = \tfrac12\|x - Wz\|^2 + \text{const}, \quad W^\top W = I, \qquad
        X \approx \sum_{i\le l}\sigma_i u_i w_i^\top .

    Known as latent semantic analysis on tables of counts of words.

    Parameters
    ----------
    n_components : int, default=2
    algorithm : {"randomized", "arpack"}, default="randomized"
        Products with random vectors, or Lanczos' method, which is exact.
    n_iter : int, default=5
        Power steps of "randomized".
    n_oversamples : int, default=10
        Random vectors of "randomized" beyond the components.
    random_state : int, default=None
    tol : float, default=0
        Of "arpack".

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Right singular vectors, the entry of largest modulus positive.
    singular_values_ : (n_components,) array
    explained_variance_ : (n_components,) array
        Variances of the codes, by the number of rows; not sorted, as the rows are not centred.
    explained_variance_ratio_ : (n_components,) array
    energy_ : LinearCodeEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from groundstate import TruncatedSVD
    >>> X = csr_matrix(np.diag([3.0, 2.0, 1.0]))
    >>> TruncatedSVD(2, random_state=0).fit(X).singular_values_.round(6).tolist()
    [3.0, 2.0]
    """

    traits = Traits(space={"n_components": settings.Whole(1, 100, log=True)})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "algorithm": [StrOptions({"arpack", "randomized"})],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "n_oversamples": [Interval(Integral, 1, None, closed="left")],
        "power_iteration_normalizer": [StrOptions({"auto", "QR", "LU", "none"})],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "randomized",
        n_iter: int = 5,
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
        tol: float = 0.0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if self.n_components > X.shape[1]:
            raise ValueError(
                f"n_components({self.n_components}) must be <= n_features({X.shape[1]})."
            )
        few = min(self.n_components, *X.shape)
        if self.algorithm == "arpack" and self.n_components == min(X.shape):
            solver = PrincipalAxes(few, "full" if X.layout == torch.strided else "arpack")
        else:
            solver = PrincipalAxes(few, self.algorithm, self.tol, self.n_iter, self.n_oversamples)
        energy = LinearCodeEnergy(X.shape[1], few, centred=False, dtype=X.dtype)
        self._seen = X, weight
        return Plan(energy, Naive(latent="minimise"), solver)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        """Variances about the means, which the subspace through the origin does not know."""
        assert isinstance(energy, LinearCodeEnergy)
        X, weight = self.__dict__.pop("_seen")
        with torch.no_grad():
            one = torch.ones(len(X)).to(energy.W) if weight is None else weight
            total = float(one.double().sum())
            mean = CentredRows(X).tdot(one.to(X.dtype)).double() / total
            code = mean @ energy.W.double()
            self.singular_values_ = (energy.variance.double() * total).sqrt().to(
                energy.W
            ).cpu().numpy()  # fmt: skip
            variance = (energy.variance.double() - code.square()).clamp_min(0)
            whole = max(0.0, energy.total - float(mean.square().sum()))
            energy.set(energy.W, None, variance, total=whole)
        return {}

    components_ = Learned(lambda model: model.energy_.W.T)
    # codes do not depend on it: a copy, so that writing is refused
    explained_variance_ = Learned(lambda model: model.energy_.variance.clone(), instead=SPREAD)
    explained_variance_ratio_ = Learned(
        lambda model: model.energy_.variance / (model.energy_.total or 1.0), instead=SPREAD
    )
