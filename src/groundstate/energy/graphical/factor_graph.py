r"""An undirected graph of discrete variables, :math:`e(x) = \sum_f\theta_f(x_f)`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Levels
from groundstate.math.graphs.elimination import plan_of
from groundstate.math.graphs.factor_graph import FactorGraphDistribution

Interaction = Literal["table", "ising", "potts"]
EXACT = 2**22  # numbers in the largest table up to which sums are exact by default


def _example() -> FactorGraphEnergy:
    energy = FactorGraphEnergy([2, 3, 2], [(0,), (0, 1), (1, 2), (0, 2)])
    energy.theta.data.normal_(generator=torch.Generator().manual_seed(0))
    return energy


@registered(r"e(x) = \sum_f \theta_f(x_f)", _example)
class FactorGraphEnergy(Energy):
    r"""Discrete variables that interact in small groups,
    :math:`e(x) = \sum_f\theta_f(x_f)`.

    Parameters
    ----------
    levels : number of values of each variable
    scopes : the variables of each factor, by number
    interaction : what a factor may say.
        "table": any number for each joint value;
        "ising": :math:`-h_is_i` and :math:`-J_{ij}s_is_j` with :math:`s = \pm1`;
        "potts": :math:`-h_i(x_i)` and :math:`-J_{ij}[x_i = x_j]`.

    Attributes
    ----------
    theta : Parameter, the numbers of all factors one after the other

    Examples
    --------
    >>> chain = FactorGraphEnergy([2, 2, 2], [(0, 1), (1, 2)], "ising")
    >>> chain.theta.data.fill_(0.5)
    tensor([0.5000, 0.5000])
    >>> round(chain.double().log_partition().item(), 6)
    2.319671
    """

    theta: Tensor
    index: Tensor
    factor: Tensor
    strides: Tensor
    first: Tensor

    def __init__(
        self,
        levels: Sequence[int],
        scopes: Sequence[Sequence[int]],
        interaction: Interaction = "table",
    ) -> None:
        super().__init__(x=Levels(levels))
        self.levels = [int(k) for k in levels]
        self.scopes = [tuple(int(v) for v in scope) for scope in scopes]
        self.interaction = interaction
        index, sign, starts, sizes, at, cell = [], [], [], [], 0, 0
        strides = torch.zeros(len(self.levels), len(self.scopes), dtype=torch.int64)
        for f, scope in enumerate(self.scopes):
            self._check(scope)
            shape = [self.levels[v] for v in scope]
            where, by = _basis(interaction, shape)
            index += [at + k for k in where]
            sign += by
            sizes.append(max(where) + 1)
            starts.append(cell)
            for j, v in enumerate(scope):
                strides[v, f] = math.prod(shape[j + 1 :])
            at, cell = at + sizes[-1], cell + math.prod(shape)
        self.sizes, self.starts = sizes, [*starts, cell]
        self.theta = nn.Parameter(torch.zeros(at))
        for name, values, dtype in (
            ("index", index, torch.int64), ("factor", sign, torch.float64),
            ("first", starts, torch.int64),
        ):  # fmt: skip
            self.register_buffer(name, torch.tensor(values, dtype=dtype), persistent=False)
        self.register_buffer("strides", strides, persistent=False)
        self._groups()

    def _check(self, scope: tuple[int, ...]) -> None:
        d = len(self.levels)
        if not scope or len(set(scope)) < len(scope) or not all(0 <= v < d for v in scope):
            raise ValueError(f"a factor needs different variables among 0..{d - 1}, got {scope}")
        if self.interaction != "table" and len(scope) > 2:
            raise ValueError(
                f"interaction={self.interaction!r} is about single variables and pairs, got the "
                f"factor {scope}; use interaction='table'"
            )
        if self.interaction == "ising" and any(self.levels[v] != 2 for v in scope):
            raise ValueError(
                f"interaction='ising' needs two values for each variable, those of {scope} have "
                f"{[self.levels[v] for v in scope]}; use 'potts'"
            )
        if self.interaction == "potts" and len({self.levels[v] for v in scope}) > 1:
            raise ValueError(
                f"interaction='potts' needs pairs with the same number of values, those of {scope} "
                f"have {[self.levels[v] for v in scope]}; use 'table'"
            )

    def _groups(self) -> None:
        """Pairs (variable, factor), and variables that share no factor in the same colour."""
        d = len(self.levels)
        near: list[set[int]] = [set() for _ in range(d)]
        pairs: list[list[int]] = [[] for _ in range(d)]
        for f, scope in enumerate(self.scopes):
            for v in scope:
                near[v].update(scope)
                pairs[v].append(f)
        colour: dict[int, int] = {}
        for v in range(d):
            taken = {colour[u] for u in near[v] if u in colour}
            colour[v] = next(c for c in range(d + 1) if c not in taken)
        self.colours = [
            [v for v in range(d) if colour[v] == c]
            for c in range(max(colour.values(), default=-1) + 1)
        ]
        self._pairs = pairs

    def config(self) -> dict[str, Any]:
        return {
            "levels": self.levels,
            "scopes": [list(scope) for scope in self.scopes],
            "interaction": self.interaction,
        }

    # --- tables --------------------------------------------------------------------------

    def cell_energies(self) -> Tensor:
        """All tables one after the other."""
        return self.theta[self.index] * self.factor.to(self.theta)

    def tables(self) -> list[Tensor]:
        """Energies of each factor, one axis for each of its variables."""
        flat = self.cell_energies()
        return [
            flat[a:b].view(*(self.levels[v] for v in scope))
            for a, b, scope in zip(self.starts, self.starts[1:], self.scopes, strict=False)
        ]

    def cells(self, x: Tensor) -> Tensor:
        """Place of every row in the tables, ``(B, F)`` int64."""
        return (x.double() @ self.strides.double()).round().long() + self.first

    def forward(self, x: Tensor) -> Tensor:
        if not self.scopes:
            return self.theta.new_zeros(len(x))
        return self.cell_energies()[self.cells(x)].sum(1)

    # --- sums ----------------------------------------------------------------------------

    @property
    def exact(self) -> bool:
        """Whether sums over all of x are cheap by elimination."""
        if "_exact" not in vars(self):
            plan = plan_of(tuple(self.scopes), tuple(self.levels))
            vars(self)["_exact"] = plan.largest <= EXACT
        return bool(vars(self)["_exact"])

    def distribution(
        self, x: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> FactorGraphDistribution:
        """The exact distribution of the free variables given the others."""
        scopes, tables = self.scopes, self.tables()
        if not tables:
            scopes, tables = [(0,)], [self.theta.new_zeros(self.levels[0])]
        return FactorGraphDistribution(scopes, tables, self.levels, x, mask, T)

    @offers.conditional("x", partial=True, when=lambda e: e.exact)
    def conditional(
        self, x: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> FactorGraphDistribution:
        return self.distribution(x, mask, T)

    @offers.log_partition("x", when=lambda e: e.exact)
    def log_partition(self, T: float = 1.0) -> Tensor:
        """log Z by elimination, ``(1,)``."""
        return self.distribution(T=T).log_partition

    @offers.sites("x")
    def site_energies(self, x: Tensor, members: Sequence[int] | None = None) -> Tensor:
        """Energies of all values of some variables given all others, ``(B, m, K)``."""
        members = range(len(self.levels)) if members is None else members
        k = max(self.levels)
        flat, cells, at = self.cell_energies(), self.cells(x), x.long()
        here = [(j, v, f) for j, v in enumerate(members) for f in self._pairs[v]]
        e = flat.new_zeros(len(x), len(members), k)
        if here:
            j, v, f = (torch.tensor(part, device=x.device) for part in zip(*here, strict=True))
            step = self.strides[v, f].long()  # (P,)
            values = torch.arange(k, device=x.device)
            sizes = torch.tensor(self.levels, device=x.device)[v]
            move = torch.minimum(values, sizes[:, None] - 1)[None] - at[:, v, None]  # (B, P, K)
            e = e.index_add(1, j, flat[cells[:, f, None] + move * step[:, None]])
        over = (
            torch.arange(k, device=x.device)
            >= torch.tensor([self.levels[v] for v in members], device=x.device)[:, None]
        )
        return e.masked_fill(over, torch.inf)


def _basis(interaction: str, shape: list[int]) -> tuple[list[int], list[float]]:
    """For each cell of a table the number of its parameter within the factor, and its factor."""
    cells = list(product(*map(range, shape)))
    if interaction == "table":
        return list(range(len(cells))), [1.0] * len(cells)
    if interaction == "ising":
        return [0] * len(cells), [-math.prod(2.0 * v - 1.0 for v in cell) for cell in cells]
    if interaction == "potts":
        if len(shape) == 1:
            return list(range(len(cells))), [-1.0] * len(cells)
        return [0] * len(cells), [-float(a == b) for a, b in cells]
    raise ValueError(f"interaction must be 'table', 'ising' or 'potts', got {interaction!r}")
