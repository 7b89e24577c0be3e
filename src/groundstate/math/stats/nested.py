r"""The F test of nested least-squares models.

.. math:: F = \frac{(\mathrm{SSE}_1 - \mathrm{SSE}_2)/(k_2 - k_1)}{\mathrm{SSE}_2/(n - k_2)}
          \sim F(k_2 - k_1,\, n - k_2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.errors import DataError


class HasResiduals(Protocol):
    """Anything that knows what it left over: ``evaluate.inference`` gives such a table."""

    @property
    def sse(self) -> float: ...

    @property
    def n_parameters(self) -> int: ...

    @property
    def n_rows(self) -> float: ...


@dataclass(frozen=True)
class Residuals:
    """What a least-squares fit left over.

    Parameters
    ----------
    sse : sum of squared residuals
    n_parameters : free parameters, intercept included
    n_rows : rows, or the sum of their weights
    """

    sse: float
    n_parameters: int
    n_rows: float

    @classmethod
    def of(cls, design: NDArray[Any], y: NDArray[Any]) -> Residuals:
        """The residuals of the best linear combination of the columns of ``design``.

        >>> Residuals.of(np.ones((4, 1)), np.array([1.0, 2.0, 2.0, 4.0])).sse
        4.75
        """
        found, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
        left = y - design @ found
        return cls(float(left @ left), int(rank), float(len(y)))


@dataclass(frozen=True)
class FTest:
    """Result of an F test; small p speaks for the larger model."""

    statistic: float
    p_value: float
    df: tuple[float, float]

    def __str__(self) -> str:
        return f"F({self.df[0]:g}, {self.df[1]:g}) = {self.statistic:.4g}, p = {self.p_value:.4g}"


def nested_f(small: HasResiduals, big: HasResiduals) -> FTest:
    r"""Does the larger of two nested least-squares models fit more than by chance?

    :math:`F = \frac{(\mathrm{SSE}_1-\mathrm{SSE}_2)/(k_2-k_1)}{\mathrm{SSE}_2/(n-k_2)}`.

    Parameters
    ----------
    small, big : ``Residuals``, or tables of ``groundstate.evaluate.inference``, of one set of rows;
        every function of ``small`` must be one of ``big`` too

    Examples
    --------
    >>> x, y = np.arange(4.0), np.array([1.0, 2.0, 2.0, 4.0])
    >>> small = Residuals.of(np.ones((4, 1)), y)
    >>> print(nested_f(small, Residuals.of(np.column_stack([np.ones(4), x]), y)))
    F(1, 2) = 11.57, p = 0.07662
    """
    if small.n_rows != big.n_rows:
        raise DataError(
            f"nested models are compared on the same rows, got {small.n_rows:g} and "
            f"{big.n_rows:g} of them"
        )
    added, free = big.n_parameters - small.n_parameters, big.n_rows - big.n_parameters
    if added <= 0 or free <= 0:
        raise DataError(
            f"the second model must have more parameters than the first and fewer than rows, got "
            f"{small.n_parameters} and {big.n_parameters} parameters for {big.n_rows:g} rows"
        )
    gained = small.sse - big.sse
    if gained < -1e-9 * small.sse:
        raise DataError(
            f"the larger model fits worse (SSE {big.sse:g} against {small.sse:g}), so the smaller "
            "is not nested in it"
        )
    gained = max(gained, 0.0)
    if big.sse <= 1e-30 * small.sse:
        return FTest(np.inf, 0.0, (added, free)) if gained > 0 else FTest(0.0, 1.0, (added, free))
    statistic = (gained / added) / (big.sse / free)
    return FTest(statistic, float(scipy.stats.f.sf(statistic, added, free)), (added, free))
