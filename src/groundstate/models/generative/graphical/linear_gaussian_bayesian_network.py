"""Bayesian networks of real columns."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.graphical.linear_gaussian_network import LinearGaussianNetworkEnergy
from groundstate.learn.solvers.closed import Closed
from groundstate.learn.solvers.em.expected import ExpectedEM
from groundstate.models.generative.graphical.arrows import Arrows
from groundstate.models.generative.graphical.edges import gaussian_parents, parents_of
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="graphical", task="generation", role="generator", auto=False)
class LinearGaussianBayesianNetwork(Arrows):
    r"""A directed graph of real columns, each a linear function of its parents plus noise.

    .. math:: e(x) = \sum_i\frac{(x_i - b_i - \sum_{j \in pa(i)}W_{ij}x_j)^2}{2v_i}
              + \tfrac12\log 2\pi v_i

    All columns together are Gaussian, so any of them given others are: means and variances in closed
    form. Learning is a regression for each column; with missing values (NaN) it is EM.

    Parameters
    ----------
    edges : list of pairs, "chow_liu" or "hill_climbing", default="chow_liu"
        Arrows (from, to) between columns, by name or number, or how to learn them: the best tree, or
        the graph of highest BIC that a search finds.
    scale : {"standard", "minmax"} or None, default=None
        Columns as they are, unless their units differ by many powers of ten.
    tol : float, default=1e-8
        EM stops when an iteration gains less, in nats per row.

    Attributes
    ----------
    edges_ : list of pairs of column names
    parents_ : dict of lists of column names
    coef_ : (n_features, n_features) array
        Row i holds the weights of the parents of column i, in the units of the columns.
    intercept_ : (n_features,) array
    noise_variance_ : (n_features,) array
    mean_ : (n_features,) array
    covariance_ : (n_features, n_features) array

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LinearGaussianBayesianNetwork
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=2000)
    >>> X = np.column_stack([a, 2 * a + 1 + 0.5 * rng.normal(size=2000)])
    >>> net = LinearGaussianBayesianNetwork([(0, 1)]).fit(X)
    >>> round(float(net.coef_[1, 0]), 1), net.intercept_.round(1).tolist()
    (2.0, [-0.0, 1.0])
    """

    traits = Traits(space={})
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "edges": [StrOptions({"chow_liu", "hill_climbing"}), list, tuple],
        "max_parents": [Interval(Integral, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        edges: Any = "chow_liu",
        *,
        max_parents: int | None = None,
        scale: str | None = None,
        tol: float = 1e-8,
        max_iter: int = 500,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _part(self, x: Tensor, weight: Tensor | None) -> LinearGaussianNetworkEnergy:
        if not isinstance(self.edges, str):
            return LinearGaussianNetworkEnergy(
                parents_of(self.edges, self._number, self._column_names)
            )
        _, cov, total = self._moments(x, weight)
        return LinearGaussianNetworkEnergy(
            gaussian_parents(self.edges, cov, total, self.max_parents)
        )

    @staticmethod
    def _moments(
        x: Tensor, weight: Tensor | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Mean and covariance with gaps filled by the columns' means, and the number of rows."""
        rows = x.double().cpu().numpy()
        w = np.ones(len(rows)) if weight is None else weight.double().cpu().numpy()
        known = ~np.isnan(rows)
        filled = np.where(known, rows, 0.0)
        mean = w @ filled / np.maximum(w @ known, 1e-300)
        off = np.where(known, rows - mean, 0.0)
        return mean, (off * w[:, None]).T @ off / w.sum(), float(w.sum())

    def _solver(self, x: Tensor) -> Any:
        if not bool(torch.isnan(x).any()):
            return Closed(with_objective=False)
        return ExpectedEM(self.tol, self.max_iter)

    def _start(self, energy: Any, x: Tensor, weight: Tensor | None, key: Any) -> None:
        """The diagonal of the moments: EM finds the rest."""
        if bool(torch.isnan(x).any()):
            mean, cov, total = self._moments(x, weight)
            square = np.diag(np.maximum(np.diag(cov), 1e-12)) + np.outer(mean, mean)
            sums = {"n": np.array(total), "sum": total * mean, "square": total * square}
            energy.from_stats({k: torch.from_numpy(v).to(x.device) for k, v in sums.items()})

    # --- learned -------------------------------------------------------------------------

    @property
    def _units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.coding_.mean, self.coding_.scale

    @property
    def coef_(self) -> NDArray[Any]:
        """``(n_features, n_features)``: row i holds the weights of the parents of column i."""
        W, (_, s) = self._alone.matrix().detach().double().cpu().numpy(), self._units
        return np.asarray(W * s[:, None] / s)

    @property
    def intercept_(self) -> NDArray[Any]:
        """``(n_features,)``."""
        energy, (m, s) = self._alone, self._units
        W, b = (v.detach().double().cpu().numpy() for v in (energy.matrix(), energy.b))
        return np.asarray(m + s * b - s * (W @ (m / s)))

    @property
    def noise_variance_(self) -> NDArray[Any]:
        """``(n_features,)``."""
        return np.asarray(self._alone.log_noise.detach().double().exp().cpu() * self._units[1] ** 2)

    @property
    def mean_(self) -> NDArray[Any]:
        """``(n_features,)``."""
        m, s = self._units
        return np.asarray(m + s * self._alone.mean().detach().double().cpu().numpy())

    @property
    def covariance_(self) -> NDArray[Any]:
        """``(n_features, n_features)``."""
        cov = self._alone.covariance().detach().double().cpu().numpy()
        return np.asarray(cov * np.outer(self._units[1], self._units[1]))

    def conditional(self, evidence: dict[Any, float]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and covariance of the other columns, in their order, given values of some."""
        known = {self._number(k): float(v) for k, v in evidence.items()}
        at = sorted(known)
        free = [i for i in range(self.n_features_in_) if i not in known]
        if not free:
            raise ValueError("every column is given; leave at least one out")
        cov, mean = self.covariance_, self.mean_
        gain = np.linalg.solve(cov[np.ix_(at, at)], cov[np.ix_(at, free)]).T
        off = np.array([known[i] for i in at]) - mean[at]
        return mean[free] + gain @ off, cov[np.ix_(free, free)] - gain @ cov[np.ix_(at, free)]
