r"""Sums and products of simple distributions, nested: a tractable circuit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.graphical.circuit_distribution import CircuitDistribution
from groundstate.energy.graphical.circuit_layers import Layer, layers_of
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Levels, Real
from groundstate.math.graphs.elimination import NEVER

Node = Sequence[Any]  # ("leaf", column) | ("sum", [nodes]) | ("product", [nodes])


def _example() -> CircuitEnergy:
    nodes = [("leaf", 0), ("leaf", 1), ("leaf", 0), ("leaf", 1)]
    circuit = CircuitEnergy(
        [*nodes, ("product", [0, 1]), ("product", [2, 3]), ("sum", [4, 5])], [2, 3]
    )
    generator = torch.Generator().manual_seed(0)
    circuit.tables.data.normal_(generator=generator)
    circuit.weights.data.normal_(generator=generator)
    return circuit


@registered(r"e(x) = -\log p(x),\quad p = \sum_k w_k\prod_j p_{kj}\ \text{nested}", _example)
class CircuitEnergy(Energy):
    r"""A sum-product network, :math:`e(x) = -\log p(x)` with p built from sums
    :math:`\sum_k w_kp_k(x)` of distributions of the same columns (smooth) and products
    :math:`\prod_kp_k(x_{(k)})` of distributions of different columns (decomposable).

    Because every sum is smooth and every product decomposable, a column is summed out by setting its
    leaves to 1: any marginal or conditional probability takes one pass.

    Parameters
    ----------
    nodes : children before parents, the root last: ``("leaf", column)``,
        ``("sum", [numbers of nodes])`` or ``("product", [numbers of nodes])``
    levels : number of values of each column, 0 for a real one, whose leaves are Gaussian
    smoothing : pseudo-count of each value of a leaf in ``from_stats``
    floor : smallest variance of a Gaussian leaf in ``from_stats``

    Attributes
    ----------
    weights : Parameter, logits of the edges of all sums
    tables : Parameter, ``(leaves of levels, largest number of levels)`` logits
    mean, log_var : Parameters, one for each Gaussian leaf

    Examples
    --------
    >>> nodes = [("leaf", 0), ("leaf", 1), ("leaf", 0), ("leaf", 1),
    ...          ("product", [0, 1]), ("product", [2, 3]), ("sum", [4, 5])]
    >>> e = CircuitEnergy(nodes, [2, 2])
    >>> e.set([[0.3, 0.7]], [[0.8, 0.2], [0.3, 0.7], [0.1, 0.9], [0.6, 0.4]])
    >>> round((-e(x=torch.tensor([[1.0, 1.0]]))).exp().item(), 6)
    0.294
    """

    normalised = frozenset({"x"})
    missing = frozenset({"x"})
    weights: Tensor
    tables: Tensor
    mean: Tensor
    log_var: Tensor

    def __init__(
        self,
        nodes: Sequence[Node],
        levels: Sequence[int],
        smoothing: float = 0.0,
        floor: float = 1e-6,
    ) -> None:
        levels = [int(k) for k in levels]
        super().__init__(x=Levels(levels) if any(levels) else Real(len(levels)))
        self.levels, self.smoothing, self.floor = levels, float(smoothing), float(floor)
        self.nodes = [_plain(node) for node in nodes]
        leaves = [n for n, node in enumerate(self.nodes) if node[0] == "leaf"]
        self.discrete = [n for n in leaves if levels[self.nodes[n][1]]]
        self.real = [n for n in leaves if not levels[self.nodes[n][1]]]
        self.sums = [n for n, node in enumerate(self.nodes) if node[0] == "sum"]
        scope_check(self.nodes, levels)
        self.layers: list[Layer] = layers_of(self.nodes, [*self.discrete, *self.real], self.sums)
        most = max((levels[self.nodes[n][1]] for n in self.discrete), default=1)
        self.tables = nn.Parameter(torch.zeros(len(self.discrete), most))
        self.mean = nn.Parameter(torch.zeros(len(self.real)))
        self.log_var = nn.Parameter(torch.zeros(len(self.real)))
        self.weights = nn.Parameter(torch.zeros(sum(len(self.nodes[n][1]) for n in self.sums)))
        sizes = torch.tensor([levels[self.nodes[n][1]] for n in self.discrete], dtype=torch.int64)
        self.register_buffer("sizes", sizes, persistent=False)

    def config(self) -> dict[str, Any]:
        return {
            "nodes": self.nodes, "levels": self.levels, "smoothing": self.smoothing,
            "floor": self.floor,
        }  # fmt: skip

    @torch.no_grad()
    def set(
        self, weights: Any = None, tables: Any = None, mean: Any = None, var: Any = None
    ) -> None:
        """Weights of each sum, probabilities of each discrete leaf, means and variances of the rest."""
        if weights is not None:
            flat = torch.cat([torch.as_tensor(w, dtype=torch.float64) for w in weights])
            self.weights.copy_(flat.log().clamp_min(NEVER))
        for k, row in enumerate(() if tables is None else tables):
            values = torch.as_tensor(row, dtype=torch.float64).log().clamp_min(NEVER)
            self.tables[k, : len(values)] = values.to(self.tables)
        if mean is not None:
            self.mean.copy_(torch.as_tensor(mean))
        if var is not None:
            self.log_var.copy_(torch.as_tensor(var).log())

    # --- pieces --------------------------------------------------------------------------

    def log_tables(self) -> Tensor:
        """Log probabilities of the discrete leaves, ``(leaves, K)``; NEVER behind their levels."""
        k = self.tables.shape[1]
        over = torch.arange(k, device=self.tables.device) >= self.sizes[:, None]  # type: ignore[index]
        return torch.log_softmax(self.tables.clamp_min(NEVER).masked_fill(over, NEVER), 1)

    def log_weights(self) -> list[Tensor]:
        """Log weights of each layer of sums, ``(nodes, children)``; NEVER for children that are not."""
        out = []
        for layer in self.layers:
            if layer.edges is not None:
                edges = layer.edges.to(self.weights.device)
                logits = self.weights.clamp_min(NEVER)[edges.clamp_min(0)]
                out.append(torch.log_softmax(logits.masked_fill(edges < 0, NEVER), 1))
        return out

    def leaf_scores(self, x: Tensor, free: Tensor | None = None, best: bool = False) -> Tensor:
        """Log densities of all leaves, ``(B, leaves)``; of free columns 0, or at the mode if best."""
        parts = []
        if self.discrete:
            at = [self.nodes[n][1] for n in self.discrete]
            log_p = self.log_tables()
            cell = x[:, at].long().clamp(0, log_p.shape[1] - 1)  # (B, leaves)
            score = log_p[torch.arange(len(at), device=x.device), cell]
            if free is not None:
                score = torch.where(free[:, at], log_p.amax(1) if best else 0.0, score)
            parts.append(score)
        if self.real:
            at = [self.nodes[n][1] for n in self.real]
            top = -0.5 * (self.log_var + math.log(2 * math.pi))
            score = top - 0.5 * (x[:, at] - self.mean).square() * (-self.log_var).exp()
            if free is not None:
                score = torch.where(free[:, at], top if best else 0.0, score)
            parts.append(score)
        return torch.cat(parts, 1)

    def up(self, leaves: Tensor, weights: list[Tensor], best: bool = False) -> Tensor:
        """Log values of all nodes in layer order behind a column of zeros, ``(B, 1 + nodes)``."""
        values = torch.cat([leaves.new_zeros(len(leaves), 1), leaves], 1)
        left = iter(weights)
        for layer in self.layers:
            below = values[:, layer.children.to(values.device)]  # (B, nodes, children)
            if layer.edges is None:
                new = below.sum(2)
            else:
                score = below + next(left)
                new = score.amax(2) if best else score.logsumexp(2)
            values = torch.cat([values, new.clamp_min(NEVER)], 1)
        return values

    def forward(self, x: Tensor) -> Tensor:
        e = -self.up(self.leaf_scores(x), self.log_weights())[:, -1]
        return torch.where(e > -NEVER / 10, torch.inf, e)

    def log_marginal(self, x: Tensor, free: Tensor) -> Tensor:
        """log p of the columns that are not free, ``(B,)``."""
        log_p = self.up(self.leaf_scores(x, free), self.log_weights())[:, -1]
        return torch.where(log_p < NEVER / 10, -torch.inf, log_p)

    @offers.conditional("x", partial=True, mode=False)
    def conditional(
        self, x: Tensor | None = None, mask: Tensor | None = None, T: float = 1.0
    ) -> CircuitDistribution:
        """The distribution of the free columns given the others."""
        return CircuitDistribution(self, x, mask, T)

    @offers.log_partition("x")
    def total(self, T: float = 1.0) -> Tensor:
        """0 at T = 1; a power of a sum is no circuit at others."""
        self.conditional(T=T)
        return self.weights.new_zeros(1)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Independent draws from the root down; T divides the logits of sums and leaves."""
        from groundstate.math.distributions.operations import fresh

        x = self.weights.new_zeros(n, len(self.levels))
        free = torch.ones_like(x, dtype=torch.bool)
        drawn = CircuitDistribution(self, x, free).draw(1, fresh(generator), T)[0]
        return {"x": drawn}

    # --- learning ------------------------------------------------------------------------

    def expected(self, weights: Tensor | None, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Expected uses of every edge and leaf, and log p of what is known of each row, ``(B,)``."""
        free = torch.isnan(x)
        known = torch.where(free, 0.0, x)
        w = self.weights.new_ones(len(x)) if weights is None else weights.to(self.weights)
        with torch.enable_grad():
            edges = [v.detach().requires_grad_() for v in self.log_weights()]
            leaves = self.leaf_scores(known, free).detach().requires_grad_()
            log_p = self.up(leaves, edges)[:, -1]
            flow, *used = torch.autograd.grad(log_p @ w, [leaves, *edges], allow_unused=True)
        with torch.no_grad():
            sums = {"edges": self._edge_counts(used), **self._leaf_sums(flow.double(), known, free)}
        return sums, log_p.detach()

    def _edge_counts(self, used: Sequence[Tensor]) -> Tensor:
        counts = torch.zeros(len(self.weights), dtype=torch.float64, device=self.weights.device)
        layers = [layer for layer in self.layers if layer.edges is not None]
        for layer, count in zip(layers, used, strict=True):
            assert layer.edges is not None
            real = layer.edges >= 0
            counts[layer.edges[real].to(counts.device)] = count.double()[real.to(count.device)]
        return counts

    def _leaf_sums(self, flow: Tensor, x: Tensor, free: Tensor) -> dict[str, Tensor]:
        k = len(self.discrete)
        sums = {}
        if k:
            at = [self.nodes[n][1] for n in self.discrete]
            table = self.log_tables().double().exp()
            hidden = free[:, at]
            counts = (flow[:, :k] * hidden).sum(0)[:, None] * table
            cells = x[:, at].long().clamp(0, table.shape[1] - 1)
            for j in range(k):
                counts[j].index_add_(0, cells[:, j], flow[:, j] * ~hidden[:, j])
            sums["counts"] = counts
        if self.real:
            at = [self.nodes[n][1] for n in self.real]
            f, hidden, m = flow[:, k:], free[:, at], self.mean.double()
            value = torch.where(hidden, m, x[:, at].double())
            extra = torch.where(hidden, self.log_var.double().exp(), 0.0)
            sums |= {
                "n": f.sum(0), "sum": (f * value).sum(0), "square": (f * (value**2 + extra)).sum(0),
            }  # fmt: skip
        return sums

    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Weights and leaves of highest likelihood given the uses; what is never used stays."""
        edges = stats["edges"]
        self.weights.copy_(torch.where(edges > 0, edges.log(), NEVER))
        for layer in self.layers:  # a sum that no row reaches keeps equal weights
            if layer.edges is not None:
                own = layer.edges.to(edges.device)
                idle = edges[own.clamp_min(0)].masked_fill(own < 0, 0.0).sum(1) <= 0
                self.weights[own[idle][own[idle] >= 0]] = 0.0
        if "counts" in stats:
            counts = stats["counts"] + self.smoothing
            new = counts.log().clamp_min(NEVER)
            idle = stats["counts"].sum(1, keepdim=True) <= 0
            self.tables.copy_(torch.where(idle, self.tables.double(), new))
        if "n" in stats:
            n = stats["n"]
            some = n > 1e-12
            mean = torch.where(some, stats["sum"] / n.clamp_min(1e-300), self.mean.double())
            var = (stats["square"] / n.clamp_min(1e-300) - mean**2).clamp_min(self.floor)
            self.mean.copy_(mean)
            self.log_var.copy_(torch.where(some, var.log(), self.log_var.double()))


def _plain(node: Node) -> list[Any]:
    kind, what = node
    if kind not in ("leaf", "sum", "product"):
        raise ValueError(f"a node is a 'leaf', a 'sum' or a 'product', got {kind!r}")
    return [str(kind), int(what) if kind == "leaf" else [int(c) for c in what]]


def scope_check(nodes: Sequence[Sequence[Any]], levels: Sequence[int]) -> None:
    """Refuse sums over different columns, products that share one, and roots that lack some."""
    scopes: list[frozenset[int]] = []
    for n, (kind, what) in enumerate(nodes):
        if kind == "leaf":
            if not 0 <= what < len(levels):
                raise ValueError(f"leaf {n} is about column {what} of {len(levels)}")
            scopes.append(frozenset({what}))
            continue
        if not what or any(not 0 <= c < n for c in what):
            raise ValueError(f"the children {what} of node {n} must be nodes before it")
        parts = [scopes[c] for c in what]
        union = frozenset().union(*parts)
        if kind == "sum" and any(p != union for p in parts):
            raise ValueError(
                f"sum {n} is not smooth: its children are about the columns "
                f"{[sorted(p) for p in parts]}, which must be the same"
            )
        if kind == "product" and sum(map(len, parts)) != len(union):
            raise ValueError(
                f"product {n} is not decomposable: its children are about the columns "
                f"{[sorted(p) for p in parts]}, which must not overlap"
            )
        scopes.append(union)
    if not nodes or scopes[-1] != frozenset(range(len(levels))):
        raise ValueError(f"the root, the last node, must be about all {len(levels)} columns")
