"""Trees whose classes weigh differently: rows are drawn as they are, and weighed after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.line import WeightLine
from groundstate.learn.tree import GrowTrees

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class WeighClasses(GrowTrees):
    r"""`GrowTrees` on bootstrap draws in which a row of class c counts :math:`a_c` times.

    The draws do not look at the classes: with weights inside them, a rare class of large weight
    would be in every bag and never outside.

    Parameters
    ----------
    labels : (n,) class of each row
    factors : (k,) a; None balances each bag, :math:`a_c = n / (k\,n_c)` with its own counts

    Examples
    --------
    >>> import numpy as np
    >>> WeighClasses(labels=np.array([0, 0, 0, 1])).weighed(np.array([1.0, 0.0, 2.0, 1.0]))
    array([0.66666667, 0.        , 1.33333333, 2.        ])
    """

    labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    factors: tuple[float, ...] | None = None

    def weighed(self, counts: F64) -> F64:
        """Draws of each row times the factor of its class, ``(n,)``."""
        if self.factors is not None:
            return counts * np.array(self.factors)[self.labels]
        mass = np.bincount(self.labels, counts)
        seen = np.maximum(mass, 1e-300)  # rows of a class that was not drawn count zero anyway
        return counts * (mass.sum() / (np.count_nonzero(mass) * seen))[self.labels]

    def _bag(self, line: WeightLine, weight: F64, key: Any) -> F64:
        return self.weighed(super()._bag(line, weight, key))


__all__ = ["WeighClasses"]
