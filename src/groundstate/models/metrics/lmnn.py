"""Large margin nearest neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.learn import Margin
from groundstate.learn.solvers.metrics.large_margin import LargeMargin
from groundstate.learn.solvers.metrics.starts import STARTS
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.metrics.linear_metric import LinearMetricLearner
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="metrics", task="representation", role="transformer")
class LMNN(LinearMetricLearner):
    r"""A linear map under which the nearest rows are of one's own class, by a margin of one.

    .. math::
        \min_J\ (1 - \mu)\sum_{i,\,j \in T_i}d_{ij} + \mu\sum_{i,\,j \in T_i}\ \sum_{l:\,y_l \ne y_i}
        [\,1 + d_{ij} - d_{il}\,]_+, \qquad d_{ij} = \|J(x_i - x_j)\|^2 .

    The targets :math:`T_i` are the k nearest rows of one's class before learning: they are pulled, and
    rows of other classes that come nearer than a target plus one are pushed away. The energy is that of
    `NeighborhoodComponentsAnalysis`.

    Parameters
    ----------
    n_neighbors : int, default=3
        Targets k of each row.
    init : as in `NeighborhoodComponentsAnalysis`, default="auto"
    regularization : float, default=0.5
        μ, the share of the push.
    tol : float, default=1e-5
    verbose : int, default=0
    device : str or torch.device, default=None
    callbacks : sequence, default=None

    Attributes
    ----------
    components_ : (n_components, n_features) array
        J.
    classes_ : (n_classes,) array
    n_iter_ : int
    energy_ : LinearMetricEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LMNN
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = np.column_stack([y + 0.2 * rng.normal(size=60), 5 * rng.normal(size=60)])
    >>> M = LMNN().fit(X, y).get_mahalanobis_matrix()
    >>> bool(M[0, 0] > 20 * M[1, 1])
    True
    """

    traits = Traits(
        space={"n_neighbors": settings.Whole(1, 8), "regularization": settings.Real(0.1, 0.9)}
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(set(STARTS)), np.ndarray],
        "regularization": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        init: Any = "auto",
        regularization: float = 0.5,
        n_components: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-5,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        solver = LargeMargin(
            self.n_neighbors, self.regularization, self._start(X), self.max_iter, self.tol
        )
        return Plan(energy=self._energy(X), rule=Margin(), solver=solver)
