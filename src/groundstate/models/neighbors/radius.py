"""Rows within a radius: methods of the models that look for them."""

from __future__ import annotations

from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from groundstate.math.neighbors.radius import Ragged
from groundstate.models.arrays import Home
from groundstate.models.neighbors.search import check_mode


def radius_neighbors(
    model: Any,
    X: Any = None,
    radius: float | None = None,
    return_distance: bool = True,
    sort_results: bool = False,
) -> Any:
    """Distances and indices of all rows at most ``radius`` away.

    Parameters
    ----------
    X : rows to ask about; None asks about the fitted rows, which are then not their own
        neighbours
    radius : how far; None takes the model's
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
    radius: float | None = None,
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
    model: Any, X: Any, radius: float | None, sort_results: bool
) -> tuple[Ragged, torch.Tensor, Home]:
    check_is_fitted(model, "energy_")
    r: Any = model.radius if radius is None else radius
    if not isinstance(r, Real) or not float(r) >= 0:
        raise ValueError(f"radius must be a number of at least 0, got {r!r}")
    memory: Any = model.energy_.memory
    x, home = (memory.rows, Home()) if X is None else model._rows(X)
    with torch.no_grad():
        found = memory.within(x, float(r))
    if X is not None and not sort_results:
        return found, x, home
    query = torch.arange(len(x), device=x.device).repeat_interleave(found.count)
    if X is None:
        other = found.index != query
        if len(memory.weight):  # a row of weight above one has a twin
            other |= memory.weight[found.index] > 1
        query = query[other]
        count = torch.bincount(query, minlength=len(x))
        found = Ragged(count, found.index[other], found.distance[other])
    if sort_results:
        order = found.distance.sort(stable=True).indices
        order = order[query[order].sort(stable=True).indices]
        found = Ragged(found.count, found.index[order], found.distance[order])
    return found, x, home


def _pieces(values: torch.Tensor, ends: list[int], home: Home) -> Any:
    whole = home.give(values)
    pieces = [whole[a:b] for a, b in pairwise([0, *ends])]
    if home.device is not None:
        return pieces
    out = np.empty(len(pieces), dtype=object)
    out[:] = pieces
    return out
