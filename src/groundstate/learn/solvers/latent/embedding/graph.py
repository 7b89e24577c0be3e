r"""Maps of a graph in closed form: eigenvectors of weights, and of local coordinates."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from groundstate.energy.latent.embedding.graph_map import BarycentreEnergy, LaplacianEnergy
from groundstate.errors import DataError, Unreliable
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.embedding.common import (
    in_line,
    reason_against,
    repeated,
    taken,
)
from groundstate.math.manifold.alignment import alignment
from groundstate.math.manifold.spectral import bottom_axes, graph_axes
from groundstate.math.neighbors.graph import nearest_others


@dataclass(frozen=True)
class LaplacianAxes:
    r"""The slowest functions on a graph of the rows, :math:`Wy = \lambda Dy` (Laplacian eigenmaps).

    Parameters
    ----------
    tol : relative accuracy of the eigenvalues; 0 is machine precision
    """

    tol: float = 0.0

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem, LaplacianEnergy)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        begin = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, LaplacianEnergy)
        x = problem.resident["x"]
        index, square = repeated(x, problem.sample_weight), energy.memory.metric == "precomputed"
        if not square:  # among equally near rows the order decides
            index = in_line(x, index)
        rows = taken(x, index, square)
        history = History(converged=True, solver="LaplacianAxes", stop="closed form", n_iter=1)
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            W = graph_of(energy, rows)
            parts = int(connected_components(W, directed=False)[0])
            if parts > 1:
                warnings.warn(
                    f"the graph of near rows has {parts} parts, it is not fully connected: the first "
                    "axes only tell the parts apart; raise n_neighbors or lower gamma",
                    Unreliable, stacklevel=2,
                )  # fmt: skip
            values, Y = graph_axes(W, energy.components, self.tol)
            energy.remember(x[index], torch.from_numpy(Y).to(x), index)
            energy.scale = torch.from_numpy(np.where(np.abs(values) > 1e-12, values, 1.0)).to(x)
            history.extra["eigenvalues"] = values.tolist()
            history.about["places"] = index
            history.seconds.append(time.perf_counter() - begin)
            monitor.epoch(float("nan"))
        return history


def graph_of(energy: LaplacianEnergy, rows: Tensor) -> Any:
    """Symmetric weights of all pairs of rows, sparse for neighbours."""
    if callable(energy.affinity):
        table = energy.affinity(rows.cpu().numpy())
        return _symmetric(table if issparse(table) else np.asarray(table, np.float64))
    if energy.affinity == "precomputed":
        return _symmetric(rows.double().cpu().numpy())
    if energy.affinity == "rbf":
        square = torch.cdist(rows.double(), rows.double()).square()
        return torch.exp(-energy.gamma * square).cpu().numpy()
    n, k = len(rows), energy.neighbors
    if k > n:
        raise DataError(
            f"Expected n_neighbors <= n_samples, but n_neighbors = {k}, n_samples = {n}"
        )
    metric = energy.memory.metric
    own = csr_array((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, n))
    if k == 1:
        return own
    near = nearest_others(rows, k - 1, metric)[1].cpu().numpy()  # a row is one of its own
    one = csr_array(
        (np.ones(near.size), near.reshape(-1), np.arange(0, near.size + 1, k - 1)), shape=(n, n)
    )
    return csr_array(0.5 * (one + one.T) + own)


def _symmetric(W: Any) -> Any:
    """Given weights; where those of i to j and of j to i differ, such as of nearest rows, their mean."""
    apart = abs(W - W.T).max()
    if not apart > 1e-10 * abs(W).max():
        return W
    warnings.warn(
        f"the affinities are not symmetric (they differ by up to {apart:.3g}); the mean of the matrix "
        "and its transpose is used",
        UserWarning,
        stacklevel=2,
    )
    return 0.5 * (W + W.T)


@dataclass(frozen=True)
class LocalAlignment:
    r"""Local coordinates aligned to a map, :math:`\min_Y\mathrm{tr}(Y^\top MY)` (locally linear embedding).

    Parameters
    ----------
    method, hessian_tol, modified_tol : see ``groundstate.math.manifold.alignment``
    tol, dense : accuracy of the eigenvalues, and whether all of them are found at once
    """

    method: str = "standard"
    tol: float = 0.0
    dense: bool = False
    hessian_tol: float = 1e-4
    modified_tol: float = 1e-12

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem, BarycentreEnergy)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        begin = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, BarycentreEnergy)
        x, p = problem.resident["x"], energy.components
        index = in_line(x, repeated(x, problem.sample_weight))
        rows, k = x[index], energy.neighbors
        if k >= len(rows):
            raise DataError(
                f"Expected n_neighbors < n_samples, but n_samples = {len(rows)}, n_neighbors = {k}"
            )
        history = History(converged=True, solver="LocalAlignment", stop="closed form", n_iter=1)
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            near = nearest_others(rows, k)[1]
            M = alignment(
                rows, near, p, self.method, reg=energy.reg, hessian_tol=self.hessian_tol,
                modified_tol=self.modified_tol,
            )  # fmt: skip
            values, Y = bottom_axes(M, p, self.tol, self.dense)
            energy.remember(rows, torch.from_numpy(Y).to(x), index)
            history.extra["eigenvalues"] = values.tolist()
            history.about["places"] = index
            history.seconds.append(time.perf_counter() - begin)
            monitor.epoch(float(values.sum()))
        return history
