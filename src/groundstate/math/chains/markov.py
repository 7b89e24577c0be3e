r"""Finite Markov chains, exactly: :math:`p_{t+1} = P p_t` with ``P[new, old]``."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import ShapeError

TOL = 1e-12


class MarkovChain:
    r"""A chain on states ``0..n-1`` with transition matrix :math:`P_{new,old}`.

    Columns sum to one: column ``j`` is the distribution of the next state after ``j``.
    Probabilities below 1e-12 count as impossible.

    Parameters
    ----------
    P : Tensor, ``(n, n)``
    rows : bool, default=False
        True when ``P`` is row-stochastic (``P[old, new]``); it is transposed.

    Examples
    --------
    >>> swap = MarkovChain(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> swap.stationary().tolist(), swap.period, swap.is_ergodic
    ([0.5, 0.5], 2, False)
    """

    def __init__(self, P: Tensor, rows: bool = False) -> None:
        P = torch.as_tensor(P).to(torch.float64)
        if P.ndim != 2 or P.shape[0] != P.shape[1] or not len(P):
            raise ShapeError(f"a transition matrix is square, got {tuple(P.shape)}")
        P = P.T.contiguous() if rows else P
        if bool((P < -TOL).any()) or not torch.allclose(P.sum(0), torch.ones_like(P[0]), atol=1e-6):
            raise ValueError(
                "the columns of P must be probabilities that sum to one; pass rows=True when the "
                "rows do"
            )
        self.P = P.clamp_min(0.0) / P.clamp_min(0.0).sum(0)  # exact, whatever dtype came in

    def __len__(self) -> int:
        return len(self.P)

    @cached_property
    def _classes(self) -> list[list[int]]:
        """Closed communicating classes: once entered, never left, and all of it is reachable."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        edges = (self.P.T > TOL).numpy()
        count, label = connected_components(csr_matrix(edges), connection="strong")
        groups = [np.flatnonzero(label == k) for k in range(count)]
        return [g.tolist() for g in groups if not edges[g][:, label != label[g[0]]].any()]

    @property
    def is_irreducible(self) -> bool:
        """Every state can be reached from every state."""
        return len(self._classes) == 1 and len(self._classes[0]) == len(self)

    @cached_property
    def period(self) -> int:
        """Greatest common divisor of the lengths of all returns, over the closed classes."""
        found = 1
        for group in self._classes:
            level = {group[0]: 0}
            queue, g = [group[0]], 0
            for i in queue:  # breadth first; the list grows while it is read
                for j in group:
                    if self.P[j, i] <= TOL:
                        continue
                    if j in level:
                        g = math.gcd(g, level[i] + 1 - level[j])
                    else:
                        level[j] = level[i] + 1
                        queue.append(j)
            found = math.lcm(found, max(g, 1))
        return found

    @property
    def is_ergodic(self) -> bool:
        """One closed class and no period: the marginal converges from every start."""
        return len(self._classes) == 1 and self.period == 1

    def stationary(self) -> Tensor:
        """The distribution with ``P p = p``, ``(n,)``; an error when there are several."""
        if len(self._classes) != 1:
            raise ValueError(
                f"the chain has {len(self._classes)} closed classes of states, hence many "
                "stationary distributions; connect them"
            )
        n = len(self)
        A = torch.cat([self.P - torch.eye(n, dtype=torch.float64), torch.ones(1, n).double()])
        b = torch.zeros(n + 1, dtype=torch.float64)
        b[-1] = 1.0
        p = torch.linalg.lstsq(A, b[:, None], driver="gelsd").solution[:, 0].clamp_min(0.0)
        return p / p.sum()

    def is_reversible(self, p: Tensor | None = None, tol: float = 1e-10) -> bool:
        """Detailed balance ``P[i, j] p[j] = P[j, i] p[i]``, by default for the stationary distribution."""
        p = self.stationary() if p is None else torch.as_tensor(p).to(torch.float64)
        flow = self.P * p
        return bool((flow - flow.T).abs().max() <= tol)

    @cached_property
    def eigenvalues(self) -> Tensor:
        """Complex eigenvalues, largest modulus first (then largest real part), ``(n,)``."""
        values = torch.linalg.eigvals(self.P)
        order = sorted(range(len(values)), key=lambda i: self._rank(values[i]))
        return values[order]

    @staticmethod
    def _rank(value: Tensor) -> tuple[float, float]:
        return -round(float(value.abs()), 12), -float(value.real)

    @property
    def spectral_gap(self) -> float:
        r""":math:`1 - |\lambda_2|`: the rate at which the start is forgotten."""
        return 1.0 if len(self) == 1 else 1.0 - float(self.eigenvalues[1].abs())

    def run(self, p: Tensor, n_steps: int) -> Tensor:
        """Marginals ``p, Pp, P²p, ...``, ``(n_steps + 1, n)``."""
        p = torch.as_tensor(p).to(torch.float64)
        if p.shape != (len(self),):
            raise ShapeError(
                f"a distribution on {len(self)} states is ({len(self)},), got {tuple(p.shape)}"
            )
        distributions = [p]
        for _ in range(n_steps):
            distributions.append(self.P @ distributions[-1])
        return torch.stack(distributions)

    def sample(
        self, start: Tensor, n_steps: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """Paths from ``start`` ``(C,)``, ``(n_steps + 1, C)`` int64."""
        if generator is None:
            generator = torch.Generator()
            generator.seed()
        cumulative = self.P.cumsum(0)  # (new, old)
        u = torch.rand(n_steps, len(start), generator=generator, dtype=torch.float64)
        path = [start.to(torch.int64)]
        for step in u:
            distribution = cumulative[:, path[-1]]  # (n, C)
            path.append((distribution <= step * distribution[-1]).sum(0).clamp_max(len(self) - 1))
        return torch.stack(path)
