r"""The rows a physics-informed network learns from: where the equation speaks, where u is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.models.physics.conditions import Piece, values_at
from groundstate.models.physics.domain import Points
from groundstate.models.physics.problem import Problem

TERMS = ("equation", "conditions", "data")


@dataclass(frozen=True)
class Rows:
    r"""Points with what is asked of u there.

    Attributes
    ----------
    x : ``(N, d)``
    y : values of u, NaN where there are none, ``(N, m)``
    kind : 0, or the number of the condition that speaks, ``(N,)``
    term : 0 equation, 1 conditions, 2 data, ``(N,)``
    weight : of each row within its term, ``(N,)``
    """

    x: Tensor
    y: Tensor
    kind: Tensor
    term: Tensor
    weight: Tensor

    @property
    def present(self) -> list[int]:
        return [t for t in range(len(TERMS)) if bool((self.term == t).any())]

    def collocated(self, x: Tensor) -> Rows:
        """The same with other points for the equation."""
        old = self.term != 0
        n, m = len(x), self.y.shape[1]
        return replace(
            self,
            x=torch.cat([x, self.x[old]]),
            y=torch.cat([x.new_full((n, m), torch.nan), self.y[old]]),
            kind=torch.cat([self.kind.new_zeros(n), self.kind[old]]),
            term=torch.cat([self.term.new_zeros(n), self.term[old]]),
            weight=torch.cat([x.new_ones(n), self.weight[old]]),
        )

    def row_weights(self, terms: Sequence[float]) -> Tensor:
        r"""Weights :math:`\lambda_t w_i/\sum_{j\in t}w_j` of rows: terms count as means."""
        out = torch.zeros_like(self.weight)
        for t in self.present:
            own = self.term == t
            out = torch.where(own, terms[t] * self.weight / self.weight[own].sum(), out)
        return out

    def data(self, kinds: bool) -> dict[str, Tensor]:
        found = {"x": self.x, "y": self.y}
        return {**found, "kind": self.kind} if kinds else found


def assembled(
    problem: Problem, pieces: Sequence[Piece], collocation: Points,
    X: NDArray[np.float64] | None, u: NDArray[np.float64] | None, weight: NDArray[np.float64] | None,
    device: torch.device, dtype: torch.dtype,
) -> Rows:  # fmt: skip
    """All rows: collocation points, points of conditions, measurements."""
    m, number = len(problem.unknowns), 0
    n = len(collocation)
    parts = [(collocation, np.full((n, m), np.nan), 0, 0, np.ones(n))]
    for piece in pieces:
        n = len(piece.points)
        y, kind = np.full((n, m), np.nan), 0
        if piece.rule is None:
            c = problem.unknowns.index(piece.of)
            y[:, c] = values_at(piece.value, piece.points, problem.domain.names, problem.parameters)
            if not np.isfinite(y[:, c]).all():
                raise ValueError(f"the condition {piece.value!r} gives NaN or infinity on its side")
        else:
            number += 1
            kind = number
        parts.append((piece.points, y, kind, 1, np.ones(n)))
    if X is not None and u is not None:
        parts.append((X, u, 0, 2, np.ones(len(X)) if weight is None else weight))
    xs, ys, kinds, terms, weights = zip(*parts)
    sizes = [len(x) for x in xs]
    return Rows(
        torch.as_tensor(np.concatenate(xs), device=device, dtype=dtype),
        torch.as_tensor(np.concatenate(ys), device=device, dtype=dtype),
        torch.as_tensor(np.repeat(kinds, sizes), device=device),
        torch.as_tensor(np.repeat(terms, sizes), device=device),
        torch.as_tensor(np.concatenate(weights), device=device, dtype=dtype),
    )
