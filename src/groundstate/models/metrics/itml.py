"""Information-theoretic metric learning."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.learn import Naive
from groundstate.learn.solvers.metrics.information_theoretic import InformationTheoretic
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.metrics.from_pairs import PRIORS, PairMetricLearner
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="metrics", task="representation", role="transformer")
class ITML(PairMetricLearner):
    r"""The metric nearest to a prior under which similar pairs are near and different ones far.

    .. math::
        \min_{M \succeq 0}\ \operatorname{tr}(MM_0^{-1}) - \log\det(MM_0^{-1}), \qquad
        \|v\|_M^2 \le u \text{ for similar pairs}, \quad \|v\|_M^2 \ge l \text{ for different ones},

    v the difference of the rows of a pair. The objective is twice the divergence of the Gaussians with
    precisions M and :math:`M_0`; bounds may be missed at a price that γ sets. No eigenvalues are needed
    and M stays positive definite. Learns from labelled rows (``fit``), pairs (``fit_pairs``) or triplets
    (``fit_triplets``). The energy is that of `NeighborhoodComponentsAnalysis`.

    Parameters
    ----------
    gamma : float, default=1.0
        Price of the slack; infinity allows none.
    prior : {"identity", "covariance"} or array (n_features, n_features), default="identity"
        :math:`M_0`; "covariance" is the inverse covariance of the rows.
    bounds : (float, float), default=None
        u and l; None are the 5 % and 95 % quantiles of the distances of all rows.
    n_components : int, default=None
        Rows of J; None is as many as features. Fewer are the directions of largest eigenvalues of M.
    max_iter : int, default=1000
        Passes over the pairs.
    tol : float, default=1e-3
        Relative change of the duals at which to stop.
    device : str or torch.device, default=None
    callbacks : sequence, default=None

    Attributes
    ----------
    components_ : (n_components, n_features) array
        J.
    bounds_ : (2,) array
    classes_ : (n_classes,) array
    n_iter_ : int
    energy_ : LinearMetricEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ITML
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = np.column_stack([y + 0.2 * rng.normal(size=60), 5 * rng.normal(size=60)])
    >>> M = ITML(random_state=0).fit(X, y).get_mahalanobis_matrix()
    >>> bool(M[0, 0] > 20 * M[1, 1])
    True
    >>> pairs = [[[0, 0], [0, 3]], [[1, 0], [1, 3]], [[0, 0], [1, 0]], [[0, 3], [1, 3]]]
    >>> M = ITML().fit_pairs(pairs, [1, 1, -1, -1]).get_mahalanobis_matrix()
    >>> bool(M[0, 0] > 20 * M[1, 1])
    True
    """

    traits = Traits(space={"gamma": settings.Real(1e-2, 1e2, log=True)})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [Interval(Real, 0, None, closed="right")],
        "prior": [StrOptions(set(PRIORS)), np.ndarray],
        "bounds": ["array-like", None],
    }
    bounds_: NDArray[np.float64]

    def __init__(
        self,
        gamma: float = 1.0,
        *,
        prior: Any = "identity",
        bounds: Any = None,
        n_constraints: int | None = None,
        n_components: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        x, w, pairs = self._pairs(X, y, weight)
        self.bounds_ = _bounds(self.bounds, x)
        solver = InformationTheoretic(
            pairs, self._first(self.prior, x, w, "prior"), (self.bounds_[0], self.bounds_[1]),
            float(self.gamma), self.max_iter, float(self.tol), self._given is None,
        )  # fmt: skip
        return Plan(energy=self._energy(X), rule=Naive(), solver=solver)


def _bounds(given: Any, x: NDArray[np.float64]) -> NDArray[np.float64]:
    if given is None:
        from scipy.spatial.distance import pdist, squareform

        rows = np.unique(x, axis=0)
        rows = rows[
            :: max(1, len(rows) // 2000)
        ]  # quantiles of 2 million distances are exact enough
        found = np.percentile(squareform(pdist(rows)), (5, 95))
    else:
        found = np.asarray(given, dtype=np.float64)
        if found.shape != (2,) or not (found >= 0).all() or not np.isfinite(found).all():
            raise ValueError(f"bounds are two finite numbers (u, l), at least 0, got {given!r}")
    return np.maximum(found, 1e-9)
