r"""Rows for compiled solvers of linear machines: dense or CSR, one at a time, by the same code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from torch import Tensor

from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.compute.random import Key
from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import Penalty, Problem
from groundstate.learn.penalties.norms import L1, L2, SeparablePenalty, SumPenalty

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


SUMS = {"contract", "reassoc", "nsz"}  # sums in any order
jit, inside = outer(fastmath=SUMS), inner(fastmath=SUMS)


class Rows(NamedTuple):
    """``x`` ``(n, d)`` for dense rows, else the three arrays of CSR; the other one is None.

    Loops over the one kind are not compiled for the other, and count no references to it.
    """

    x: NDArray[Any] | None
    sparse: tuple[F64, I64, I64] | None


def rows_of(x: Tensor) -> Rows:
    """The rows of a tensor on the CPU, without a copy where they are dense."""
    if x.layout == torch.sparse_csr:
        data = np.ascontiguousarray(x.values().double().numpy())
        return Rows(None, (data, x.col_indices().numpy(), x.crow_indices().numpy()))
    return Rows(np.ascontiguousarray(x.detach().numpy()), None)


def matrix_of(x: Tensor) -> Any:
    """A CSR tensor as SciPy's, anything else as it is."""
    if x.layout != torch.sparse_csr:
        return x
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return csr_matrix(parts, shape=tuple(x.shape))


def dense_rows(matrix: Any, index: I64) -> F64:
    """Some rows of what ``matrix_of`` gave, dense, float64."""
    some = matrix[index]
    return np.asarray(some.toarray() if issparse(some) else some.numpy(), np.float64)


def squared_norms(x: Tensor) -> F64:
    """‖x‖² of every row, float64."""
    if x.layout == torch.sparse_csr:
        square = matrix_of(x).astype(np.float64).power(2).sum(1)
        return np.asarray(square, np.float64).ravel()
    d = x.detach().numpy()
    return np.einsum("ij,ij->i", d, d, dtype=np.float64)


@inside
def dot_row(x: Any, sparse: Any, i: int, theta: Any) -> float:
    """xᵢ·θ over the features; θ may be longer."""
    total = 0.0
    if x is not None:
        for j in range(x.shape[1]):
            total += x[i, j] * theta[j]
    if sparse is not None:
        data, columns, starts = sparse
        for at in range(starts[i], starts[i + 1]):
            total += data[at] * theta[columns[at]]
    return total


@inside
def square_of(x: Any, sparse: Any, i: int) -> float:
    """‖xᵢ‖²."""
    total = 0.0
    if x is not None:
        for j in range(x.shape[1]):
            total += x[i, j] ** 2
    if sparse is not None:
        data, _, starts = sparse
        for at in range(starts[i], starts[i + 1]):
            total += data[at] ** 2
    return total


@inside
def add_row(x: Any, sparse: Any, i: int, by: float, theta: Any) -> None:
    """θ += by · xᵢ over the features."""
    if x is not None:
        for j in range(x.shape[1]):
            theta[j] += by * x[i, j]
    if sparse is not None:
        data, columns, starts = sparse
        for at in range(starts[i], starts[i + 1]):
            theta[columns[at]] += by * data[at]


@jit
def shuffle(place: Any, size: int, state: Any) -> None:
    """A fresh order of the first ``size`` entries, drawn from a SplitMix64 state ``(1,)``."""
    for p in range(size - 1, 0, -1):
        state[0] += np.uint64(0x9E3779B97F4A7C15)
        z = state[0]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        q = np.int64((z >> np.uint64(32)) * np.uint64(p + 1) >> np.uint64(32))
        place[p], place[q] = place[q], place[p]


def stream(key: Key) -> NDArray[np.uint64]:
    """The state from which ``shuffle`` draws."""
    return np.array([key.low], np.uint64)


def strengths(penalty: Penalty | None, kind: type[L1 | L2]) -> tuple[float, float] | None:
    """Strength of a penalty on the weights and on the intercepts, where it is of that kind."""
    if isinstance(penalty, SumPenalty) and len(penalty.parts) == 2:
        first, second = penalty.parts
        if not (isinstance(first, kind) and isinstance(second, kind)):
            return None
        if _picks(second) != ("b",) or first.select is not None or first.intercept:
            return None
        return float(first.strength), float(second.strength)
    if not isinstance(penalty, kind) or penalty.select is not None:
        return None
    return float(penalty.strength), float(penalty.strength) if penalty.intercept else 0.0


def _picks(penalty: SeparablePenalty) -> tuple[str, ...] | None:
    chosen = penalty.select
    if chosen is None or callable(chosen):
        return None
    return (chosen,) if isinstance(chosen, str) else tuple(chosen)


def reason_against(problem: Problem, kind: type[L1 | L2]) -> str | None:
    """What the solvers of linear machines have in common."""
    if not problem.is_resident or set(problem.names) != {"x", "y"}:
        return "it needs resident x and y"
    found = strengths(problem.penalty, kind)
    if found is None or found[0] <= 0:
        return f"it needs an {kind.__name__} penalty, without which the solution is not unique"
    return None


def wanted_classes(energy: LinearEnergy) -> list[int]:
    """The class of each separate problem: with two classes the second, else all."""
    k = energy.W.shape[0]
    return [1] if k == 2 else list(range(k))


def store(energy: LinearEnergy, thetas: Sequence[F64] | F64) -> None:
    """Put ``(d,)`` or ``(d + 1,)`` weights of each separate problem into the energy."""
    rows = list(thetas)
    theta = np.stack([-0.5 * rows[0], 0.5 * rows[0]] if len(rows) == 1 else rows)
    write(energy.W, theta[:, : energy.W.shape[1]])
    if energy.b is not None:
        write(energy.b, theta[:, -1])


@torch.no_grad()
def write(parameter: Tensor, values: F64) -> None:
    """Put an array into a parameter, wherever it is."""
    if parameter.device.type == "cpu":
        parameter.detach().numpy()[...] = values
    else:
        parameter.copy_(torch.from_numpy(np.ascontiguousarray(values)))
