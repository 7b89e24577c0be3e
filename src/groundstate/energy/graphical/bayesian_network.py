r"""A directed graph of discrete variables, :math:`e(x) = -\sum_i\log p(x_i \mid x_{pa(i)})`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Levels
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import fresh
from groundstate.math.graphs.dags import topological_order
from groundstate.math.graphs.elimination import NEVER, invert
from groundstate.math.graphs.factor_graph import FactorGraphDistribution


def _example() -> BayesianNetworkEnergy:
    energy = BayesianNetworkEnergy([[], [0], [0, 1]], [2, 3, 2])
    generator = torch.Generator().manual_seed(0)
    energy.logits.data.normal_(generator=generator)
    return energy


@registered(r"e(x) = -\sum_i \log p(x_i \mid x_{pa(i)})", _example)
class BayesianNetworkEnergy(Energy):
    r"""A product of conditional probability tables,
    :math:`e(x) = -\sum_i\log p(x_i \mid x_{pa(i)})`.

    Normalised over x. Offers the exact distribution of any part of x given the rest, by variable
    elimination, and its closed form from counts.

    Parameters
    ----------
    parents : of each variable, by number
    levels : number of values of each variable
    equivalent_sample_size : of a uniform Dirichlet prior (BDeu),
        :math:`\alpha_{ijk} = s/(q_ir_i)`; 0 is maximum likelihood

    Attributes
    ----------
    scopes : of each table its parents, then the variable itself
    logits : Parameter, all tables one after the other, each ``(*levels of parents, levels[i])``

    Examples
    --------
    >>> e = BayesianNetworkEnergy([[], [0]], [2, 2])
    >>> e.set_table(0, [0.5, 0.5]); e.set_table(1, [[0.9, 0.1], [0.2, 0.8]])
    >>> [round(v, 4) for v in e(x=torch.tensor([[0.0, 0.0], [1.0, 1.0]])).exp().tolist()]
    [2.2222, 2.5]
    """

    normalised = frozenset({"x"})
    missing = frozenset({"x"})
    logits: Tensor
    row: Tensor
    strides: Tensor
    first: Tensor

    def __init__(
        self,
        parents: Sequence[Sequence[int]],
        levels: Sequence[int],
        equivalent_sample_size: float = 0.0,
    ) -> None:
        super().__init__(x=Levels(levels))
        self.parents = [[int(p) for p in above] for above in parents]
        self.scopes = tuple((*above, i) for i, above in enumerate(self.parents))
        self.levels = [int(k) for k in levels]
        self.equivalent_sample_size = float(equivalent_sample_size)
        d = len(self.levels)
        if len(self.parents) != d:
            raise ValueError(f"{len(self.parents)} lists of parents for {d} levels")
        self.order = topological_order(self.parents)
        self.shapes = [
            (*(self.levels[p] for p in above), self.levels[i])
            for i, above in enumerate(self.parents)
        ]
        starts, rows, at, row = [], [], 0, 0
        strides = torch.zeros(d, d, dtype=torch.int64)
        for i, shape in enumerate(self.shapes):
            starts.append(at)
            size, k = math.prod(shape), shape[-1]
            rows.append(row + torch.arange(size) // k)
            for j, v in enumerate((*self.parents[i], i)):
                strides[v, i] = math.prod(shape[j + 1 :])
            at, row = at + size, row + size // k
        self.starts, self.n_rows = [*starts, at], row
        self.logits = nn.Parameter(torch.zeros(at))
        self.register_buffer("row", torch.cat(rows) if rows else torch.zeros(0), persistent=False)
        self.register_buffer("strides", strides, persistent=False)
        self.register_buffer("first", torch.tensor(starts, dtype=torch.int64), persistent=False)

    def config(self) -> dict[str, Any]:
        return {
            "parents": self.parents,
            "levels": self.levels,
            "equivalent_sample_size": self.equivalent_sample_size,
        }

    # --- tables --------------------------------------------------------------------------

    def log_probabilities(self) -> Tensor:
        """All tables one after the other, each conditional row summing to one."""
        logits = self.logits.clamp_min(NEVER)
        top = logits.new_full((self.n_rows,), NEVER)
        top = top.scatter_reduce(0, self.row, logits.detach(), "amax")
        moved = logits - top[self.row]
        total = torch.zeros_like(top).index_add(0, self.row, moved.exp())
        return (moved - total.log()[self.row]).clamp_min(NEVER)

    def tables(self) -> list[Tensor]:
        r""":math:`\log p(x_i \mid x_{pa(i)})` of each variable, ``(*levels of parents, levels[i])``."""
        flat = self.log_probabilities()
        return [
            flat[a:b].view(shape)
            for a, b, shape in zip(self.starts, self.starts[1:], self.shapes, strict=False)
        ]

    def on_host(self) -> NDArray[np.float64]:
        """Probabilities of all tables one after the other, kept until the parameters change."""
        state = (self.logits._version, self.logits.data_ptr())
        kept = vars(self).get("_on_host")
        if kept is None or kept[0] != state:
            with torch.no_grad():
                flat = self.log_probabilities().double().exp().cpu().numpy()
            kept = vars(self)["_on_host"] = (state, flat)
        found: NDArray[np.float64] = kept[1]
        return found

    @torch.no_grad()
    def set_table(self, i: int, probabilities: Any) -> None:
        """Set :math:`p(x_i \\mid x_{pa(i)})`, an array ``(*levels of parents, levels[i])``."""
        table = torch.as_tensor(probabilities, dtype=torch.float64)
        if tuple(table.shape) != self.shapes[i]:
            raise ValueError(
                f"the table of variable {i} has one axis for each of its parents "
                f"{self.parents[i]} and one for itself, shape {self.shapes[i]}; got "
                f"{tuple(table.shape)}"
            )
        if bool((table < 0).any()) or not bool(torch.isfinite(table).all()):
            raise ValueError(f"the table of variable {i} holds numbers that are no probabilities")
        total = table.sum(-1)
        if not torch.allclose(total, torch.ones_like(total), atol=1e-6):
            worst = float(total.flatten()[(total - 1).abs().flatten().argmax()])
            raise ValueError(
                f"the table of variable {i} must sum to 1 over its last axis, the values of the "
                f"variable itself; one row sums to {worst:g}"
            )
        self.logits[self.starts[i] : self.starts[i + 1]] = table.log().flatten().to(self.logits)

    def cells(self, x: Tensor) -> Tensor:
        """Place of every row's value in the tables, ``(B, D)`` int64."""
        return (x.double() @ self.strides.double()).round().long() + self.first

    # --- energy --------------------------------------------------------------------------

    def forward(self, x: Tensor) -> Tensor:
        e = -self.log_probabilities()[self.cells(x)].sum(1)
        return torch.where(e > -NEVER / 10, torch.inf, e)

    def distribution(
        self, x: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> FactorGraphDistribution:
        """The exact distribution of the free variables given the others."""
        tables = [-t for t in self.tables()]
        return FactorGraphDistribution(self.scopes, tables, self.levels, x, mask, T)

    @offers.conditional("x", partial=True)
    def conditional(
        self, x: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> FactorGraphDistribution:
        return self.distribution(x, mask, T)

    @offers.log_partition("x")
    def total(self, T: float = 1.0) -> Tensor:
        """0 at T = 1, by elimination at others."""
        if T == 1:
            return self.logits.new_zeros(1)
        return self.distribution(T=T).log_partition

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Independent draws, every variable after its parents; T divides the logits of each table."""
        if not T > 0:
            raise Unsupported(f"ancestral draws need T > 0, got T={T}")
        generator = fresh(generator)
        with torch.no_grad():
            tables = self.tables()
            size = (n, len(self.levels))
            noise = torch.rand(size, generator=generator, device=generator.device)
            noise, x = noise.to(self.logits.device), None
            x = torch.zeros(size, dtype=torch.int64, device=noise.device)
            for i in self.order:
                logits = tables[i][tuple(x[:, p] for p in self.parents[i])] / T
                logits = logits.expand(n, -1) if logits.ndim == 1 else logits
                x[:, i] = invert(logits, noise[:, i])
        return {"x": x.to(self.logits.dtype)}

    # --- learning ------------------------------------------------------------------------

    @offers.stats
    def stats(self, weights: Tensor | None, x: Tensor) -> dict[str, Tensor]:
        """How often each cell of each table occurs."""
        cells = self.cells(x)
        w = x.new_ones(len(x)) if weights is None else weights
        counts = torch.zeros(self.starts[-1], dtype=torch.float64, device=x.device)
        each = w.double()[:, None].expand(cells.shape).reshape(-1)
        return {"counts": counts.index_add(0, cells.reshape(-1), each)}

    def expected(self, weights: Tensor | None, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Expected ``stats`` of rows whose NaN are unknown, and log p of what is known, ``(B,)``."""
        free = torch.isnan(x)
        if not bool(free.any()):
            return self.stats(weights, x), -self(x=x)
        known = torch.where(free, 0.0, x)
        w = None if weights is None else weights.to(self.logits)
        with torch.no_grad():
            counts, log_p = self.distribution(known, free).expected_counts(w)
        return {"counts": torch.cat([c.flatten() for c in counts]).double()}, log_p

    @offers.from_stats
    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """The tables of highest likelihood (posterior mode with a prior); unseen rows are uniform."""
        counts = stats["counts"].double()
        if self.equivalent_sample_size > 0:
            cells = torch.tensor([math.prod(s) for s in self.shapes], device=counts.device)
            each = self.equivalent_sample_size / cells.double()
            counts = counts + each.repeat_interleave(cells)
        total = torch.zeros(self.n_rows, dtype=torch.float64, device=counts.device)
        total = total.index_add(0, self.row, counts)[self.row]
        self.logits.copy_(torch.where(total > 0, counts.log(), 0.0).clamp_min(NEVER))
