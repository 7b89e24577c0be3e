r"""Scores of a directed graph that are sums over its families, :math:`S = \sum_iS(i, pa(i))`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

F64 = NDArray[np.float64]


class FamilyScore(Protocol):
    """What structure search climbs: the score of one variable given its parents; high is good."""

    @property
    def n_variables(self) -> int: ...

    def family(self, node: int, parents: Iterable[int]) -> float: ...


@dataclass
class _Counted:
    """Counts of level numbers.

    Parameters
    ----------
    x : ``(n, d)`` level numbers
    levels : number of values of each column
    weight : of the rows, ``(n,)``
    """

    x: NDArray[np.int64]
    levels: Sequence[int]
    weight: F64 | None = None
    _kept: dict[Any, float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.x = np.ascontiguousarray(np.asarray(self.x, np.int64).T)  # columns, each in one piece

    @property
    def n_variables(self) -> int:
        return len(self.levels)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.x.shape[1] if self.weight is None else self.weight.sum())

    def counts(self, node: int, parents: Sequence[int]) -> F64:
        """How often each value of a variable occurs with each joint value of others, ``(q, r)``."""
        code, q = np.zeros(self.x.shape[1], np.int64), 1
        for p in parents:
            code = code * self.levels[p] + self.x[p]
            q *= self.levels[p]
        r = self.levels[node]
        code = code * r + self.x[node]
        if q * r > 4 * len(code) + 1024:  # most joint values never occur
            _, code = np.unique(code // r, return_inverse=True)
            q = int(code.max()) + 1
            code = code * r + self.x[node]
        found = np.bincount(code, self.weight, minlength=q * r)
        return found.astype(np.float64).reshape(q, r)

    def family(self, node: int, parents: Iterable[int]) -> float:
        """The score of one variable given its parents, kept once computed."""
        above = tuple(sorted(parents))
        if (node, above) not in self._kept:
            self._kept[node, above] = self._family(node, above)
        return self._kept[node, above]

    def _family(self, node: int, parents: tuple[int, ...]) -> float:
        raise TypeError(f"{type(self).__name__} must define _family(node, parents)")

    def total_score(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a whole graph: the sum over its families."""
        return sum(self.family(i, above) for i, above in enumerate(parents))


@dataclass
class DiscreteBIC(_Counted):
    r"""Log-likelihood less half a log for each parameter.

    .. math:: S(i) = \sum_{jk}N_{ijk}\log\frac{N_{ijk}}{N_{ij}} - \tfrac12\log N\;q_i(r_i - 1)

    Examples
    --------
    >>> x = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> score = DiscreteBIC(x, [2, 2])
    >>> bool(score.family(1, [0]) > score.family(1, []))
    True
    """

    def _family(self, node: int, parents: tuple[int, ...]) -> float:
        n = self.counts(node, parents)
        total = n.sum(1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = float(np.where(n > 0, n * np.log(n / total), 0.0).sum())
        q = math.prod(self.levels[p] for p in parents)
        return likelihood - 0.5 * math.log(self.total) * q * (self.levels[node] - 1)


@dataclass
class BDeu(_Counted):
    r"""Log marginal likelihood with uniform Dirichlet priors that weigh ``equivalent_sample_size`` rows.

    .. math:: S(i) = \sum_j\log\frac{\Gamma(\alpha_{ij})}{\Gamma(\alpha_{ij} + N_{ij})}
              + \sum_{jk}\log\frac{\Gamma(\alpha_{ijk} + N_{ijk})}{\Gamma(\alpha_{ijk})},
              \qquad \alpha_{ijk} = \frac{s}{q_ir_i}
    """

    equivalent_sample_size: float = 10.0

    def _family(self, node: int, parents: tuple[int, ...]) -> float:
        n = self.counts(node, parents)
        q = math.prod(self.levels[p] for p in parents)
        alpha = self.equivalent_sample_size / q
        each = alpha / self.levels[node]
        joint = gammaln(alpha) - gammaln(alpha + n.sum(1))  # 0 where nothing was seen
        return float(joint.sum() + (gammaln(each + n) - gammaln(each)).sum())


@dataclass
class GaussianBIC:
    r"""BIC of linear regressions, :math:`S(i) = -\tfrac N2\log\hat v_i - \tfrac12\log N\,|pa(i)|`.

    Parameters
    ----------
    cov : ``(d, d)`` covariance of the rows
    total : number of rows
    """

    cov: F64
    total: float
    _kept: dict[Any, float] = field(default_factory=dict, repr=False)

    @property
    def n_variables(self) -> int:
        return len(self.cov)

    def family(self, node: int, parents: Iterable[int]) -> float:
        """The score of one variable given its parents."""
        above = sorted(parents)
        key = (node, tuple(above))
        if key not in self._kept:
            left = self.cov[node, node]
            if above:
                inner, cross = self.cov[np.ix_(above, above)], self.cov[above, node]
                left = left - cross @ np.linalg.pinv(inner, hermitian=True) @ cross
            floor = 1e-12 * max(self.cov[node, node], 1e-300)
            fit = -0.5 * self.total * math.log(max(float(left), floor))
            self._kept[key] = fit - 0.5 * math.log(self.total) * (len(above) + 2)
        return self._kept[key]

    def total_score(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a whole graph: the sum over its families."""
        return sum(self.family(i, above) for i, above in enumerate(parents))
