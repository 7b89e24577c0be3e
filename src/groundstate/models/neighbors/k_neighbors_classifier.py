"""Classification by the nearest rows."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from groundstate.energy.neighbors.votes import NeighborClassEnergy
from groundstate.learn import NLL
from groundstate.learn.solvers.neighbors import Memorise
from groundstate.models.base import Plan
from groundstate.models.neighbors.joint_labels import JointLabels
from groundstate.models.neighbors.search import NeighborSearch
from groundstate.registry import models


@models.register(
    family="neighbors", task="classification", role="classifier", shortlist=4, shortlist_rows=20_000
)
class KNeighborsClassifier(NeighborSearch, JointLabels):
    r"""The nearest remembered rows vote on the class.

    .. math:: e(x, y) = -\log\sum_{i \in N_k(x)} s_i(x)\,[y_i = y] ,

    with shares s that sum to one. Nothing is learned but the rows. A tie goes to the first class,
    equally distant rows to the one that came first; a row of weight w is w rows. Rows may have
    several labels, y of shape (n_samples, n_outputs), each of which is voted on.

    ``predict(None)`` answers for the fitted rows, each by all others: what it would be if that row had been
    left out.

    Parameters
    ----------
    weights : {"uniform", "distance"} or callable, default="uniform"
        Votes of equal weight, of 1/distance (where exact hits win), or a function of the distances.

    Attributes
    ----------
    energy_ : NeighborClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import KNeighborsClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [10.0]]), ["a", "a", "b", "b"]
    >>> [KNeighborsClassifier(3, weights=w).fit(X, y).predict([[3.0]]).tolist()
    ...  for w in ("uniform", "distance")]
    [['a'], ['b']]
    """

    _single_class: ClassVar[bool] = True

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        energy = NeighborClassEnergy(self._combinations(), X.shape[1], **self._memory())
        return Plan(energy=energy, rule=NLL(), solver=Memorise())
