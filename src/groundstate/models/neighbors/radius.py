"""Rows within a radius: methods of the models that look for them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.thread_policy import answering
from groundstate.math.neighbors.radius import Ragged
from groundstate.models.arrays import Home
from groundstate.models.neighbors.search import check_mode


def radius_neighbors(
    model: Any,
    X: Any = None,
    radius: Any = None,
    return_distance: bool = True,
    sort_results: bool = False,
) -> Any:
    """Distances and indices of all rows at most ``radius`` away.

    Parameters
    ----------
    X : rows to ask about; None asks about the fitted rows, which are then not their own
        neighbours
    radius : how far, one number or one for each query; None takes the model's
    return_distance : False gives the indices alone
    sort_results : the nearest first; else in the order of the rows

    Returns
    -------
    Two object arrays ``(n_queries,)`` of arrays of any length (lists of tensors for tensors).
    """
    if sort_results and not return_distance:
        raise ValueError("return_distance must be True if sort_results is True.")
    found, x, home = _found(model, X, radius, sort_results)
    ends = found.count.cumsum(0).tolist()
    index = _pieces(found.index, ends, home)
    if not return_distance:
        return index
    return _pieces(found.distance.to(x.dtype), ends, home), index


def radius_neighbors_graph(
    model: Any,
    X: Any = None,
    radius: Any = None,
    mode: str = "connectivity",
    sort_results: bool = False,
) -> csr_matrix:
    """Rows within the radius as a sparse matrix ``(n_queries, n_samples_fit)`` of ones or distances."""
    check_mode(mode)
    found, x, _ = _found(model, X, radius, sort_results)
    index = found.index.cpu().numpy()
    values = found.distance.to(x.dtype).cpu().numpy()
    values = np.ones(len(index)) if mode == "connectivity" else values
    starts = np.concatenate([[0], found.count.cpu().numpy().cumsum()])
    return csr_matrix((values, index, starts), shape=(len(x), model.n_samples_fit_))


def _found(
    model: Any, X: Any, radius: Any, sort_results: bool
) -> tuple[Ragged, torch.Tensor, Home]:
    check_is_fitted(model, "energy_")
    memory: Any = model.energy_.memory
    x, home = (memory.rows, Home()) if X is None else model._rows(X)
    r = _radii(model.radius if radius is None else radius, len(x))
    with answering(model.energy_, x):
        found = memory.within(x, float(r.max()) if len(x) else 0.0)
    if X is not None and not sort_results and not r.ndim:
        return found, x, home
    query = torch.arange(len(x), device=x.device).repeat_interleave(found.count)
    kept = torch.ones_like(query, dtype=torch.bool)
    if X is None:
        kept = found.index != query
        if len(memory.weight):  # a row of weight above one has a twin
            kept |= memory.weight[found.index] > 1
    if r.ndim:
        kept &= found.distance <= torch.from_numpy(r).to(x.device)[query]
    query = query[kept]
    count = torch.bincount(query, minlength=len(x))
    found = Ragged(count, found.index[kept], found.distance[kept])
    if sort_results:
        order = found.distance.sort(stable=True).indices
        order = order[query[order].sort(stable=True).indices]
        found = Ragged(found.count, found.index[order], found.distance[order])
    return found, x, home


def _radii(radius: Any, n: int) -> NDArray[np.float64]:
    """One radius, or one for each query."""
    try:
        r = np.asarray(radius, np.float64)
    except (TypeError, ValueError):
        r = np.asarray(np.nan)
    if r.shape not in ((), (n,)) or not (r >= 0).all():
        raise ValueError(
            f"radius must be a number of at least 0, or {n} of them, one a query, got {radius!r}"
        )
    return r


def _pieces(values: torch.Tensor, ends: list[int], home: Home) -> Any:
    whole = home.give(values)
    pieces = [whole[a:b] for a, b in pairwise([0, *ends])]
    if home.device is not None:
        return pieces
    out = np.empty(len(pieces), dtype=object)
    out[:] = pieces
    return out
