"""Neighbourhood components analysis."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.errors import NotConverged
from groundstate.learn import SoftMin
from groundstate.learn.solvers.metrics.neighborhood import NeighborhoodComponents
from groundstate.learn.solvers.metrics.starts import STARTS
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.metrics.linear_metric import LinearMetricLearner
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="metrics", task="representation", role="transformer")
class NeighborhoodComponentsAnalysis(LinearMetricLearner):
    r"""A linear map under which the neighbour of a row, drawn at random, is of its own class.

    .. math::
        e(x, y) = -\log\sum_{i:\,y_i = y}w_i\,e^{-\|J(x - x_i)\|^2}, \qquad
        \max_J\ \sum_iw_i\sum_{j \ne i:\,y_j = y_i}p_{ij}, \quad
        p_{ij} \propto w_j\,e^{-\|J(x_i - x_j)\|^2} .

    With fewer components than features J is a reduction of dimension, and :math:`\|J(x - x')\|` a
    pseudometric.

    Parameters
    ----------
    init : {"auto", "pca", "lda", "identity", "random"} or array (n_components, n_features), default="auto"
        Where J starts. "auto" is "lda" where classes are enough for it, else "pca", and "identity" for as
        many components as features.
    warm_start : bool, default=False
        Start from the J of the fit before.
    tol : float, default=1e-5
    callback : callable, default=None
        Called with the entries of J and the number of the step after each one.
    verbose : int, default=0
        Above zero, a progress bar, and a warning where ``max_iter`` was not enough.

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
    >>> from groundstate import NeighborhoodComponentsAnalysis
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = np.column_stack([y + 0.2 * rng.normal(size=60), 5 * rng.normal(size=60)])
    >>> model = NeighborhoodComponentsAnalysis(1).fit(X, y)
    >>> J = np.abs(model.components_[0])
    >>> bool(J[0] > 20 * J[1])
    True
    """

    traits = Traits(
        space={"n_components": settings.Whole(1, 8), "init": settings.Choice("pca", "lda")}
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "init": [StrOptions(set(STARTS)), np.ndarray],
        "callback": [callable, None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: Any = "auto",
        warm_start: bool = False,
        max_iter: int = 50,
        tol: float = 1e-5,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        solver = NeighborhoodComponents(self._start(X), self.max_iter, self.tol, self.callback)
        return Plan(energy=self._energy(X), rule=SoftMin(), solver=solver)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        if self.verbose and not self.history_.converged:
            warnings.warn(
                f"[{type(self).__name__}] NCA did not converge: {self.history_.stop}; raise "
                f"max_iter={self.max_iter} or tol={self.tol:g}",
                NotConverged,
                stacklevel=3,
            )
        return self
