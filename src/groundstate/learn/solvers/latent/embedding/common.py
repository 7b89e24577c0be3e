"""What the solvers of maps share: rows that are there, a start, the door."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.base import Energy
from groundstate.errors import DataError, Unsupported
from groundstate.learn.base import Problem


def reason_against(problem: Problem, kind: type[Energy]) -> str | None:
    """Why a solver for maps of this kind cannot run, or None."""
    if not isinstance(problem.energy, kind):
        return f"it is for {kind.__name__}"
    if not problem.is_resident or set(problem.names) != {"x"}:
        return "it needs resident x, and z unknown"
    if problem.penalty is not None:
        return "it has no penalty"
    return None


def repeated(x: Tensor, weight: Tensor | None) -> Tensor:
    """Numbers of the rows that take part, each as often as its weight says, ``(n,)``."""
    every = torch.arange(len(x), device=x.device)
    if weight is None:
        return every
    count = weight.round()
    if not bool((count == weight).all()):
        raise DataError(
            "a map places rows, and half a row has no place: sample_weight must hold whole numbers, "
            f"got {float(weight[count != weight][0]):g}"
        )
    return every.repeat_interleave(count.long())


def in_line(x: Tensor, index: Tensor) -> Tensor:
    """Rows in an order that their content gives, so that theirs in the table does not matter."""
    key = torch.from_numpy(row_hash(x.detach()).view("int64")).to(x.device)
    return index[key[index].argsort(stable=True)]


def taken(x: Tensor, index: Tensor, square: bool) -> Tensor:
    """The rows of x with these numbers; of distances also the columns."""
    if square:
        return x[index][:, index]
    return x[index]


def laid_out(energy: Any, x: Tensor, index: Tensor, Y: Tensor) -> Tensor:
    """Coordinates of all rows in their order: of copies the first, of rows left out by their energy.

    Parameters
    ----------
    energy : the map, with its rows remembered
    x : all rows
    index : numbers of the rows of Y
    Y : coordinates ``(len(index), p)``
    """
    out = torch.full((len(x), Y.shape[1]), torch.nan, dtype=x.dtype, device=x.device)
    first = torch.full((len(x),), len(index), device=x.device)
    first.scatter_reduce_(0, index, torch.arange(len(index), device=x.device), "amin")
    there = first < len(index)
    out[there] = Y[first[there]].to(x.dtype)
    if not bool(there.all()):
        out[~there] = energy.place(x[~there])
    return out


def metric_of(memory: Any) -> tuple[Any, dict[str, Any] | None]:
    """The metric of a memory in the words of `groundstate.math.neighbors.pairwise`."""
    metric = memory.metric
    if metric == "minkowski" and len(memory.root):
        raise Unsupported("weights w of the features are for neighbour models; scale the columns")
    if metric == "minkowski":
        return ("euclidean", None) if memory.p == 2 else ("minkowski", {"p": memory.p})
    if metric == "mahalanobis":
        root = memory.root.double()
        return "mahalanobis", {"VI": (root @ root.T).cpu().numpy()}
    return metric, None


def no_signs(Y: Tensor) -> Tensor:
    """Coordinates with the entry of largest modulus of each column positive."""
    if not len(Y):
        return Y
    top = Y.gather(0, Y.abs().argmax(0, keepdim=True))
    return Y * torch.where(top < 0, -1.0, 1.0).to(Y)
