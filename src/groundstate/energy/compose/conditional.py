r"""The density :math:`p(y \mid x)` of any energy, by its integral over y."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.basic import SquaredEnergy
from groundstate.energy.exact import Inference
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.errors import Unsupported

CHUNK = 2**20  # energies evaluated at once


def _example() -> ConditionalEnergy:
    energy = SquaredEnergy(2, 1)
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[0.3, -0.2]]))
    return ConditionalEnergy(energy, torch.linspace(-14.0, 14.0, 281))


@registered(r"e(x, y) + \log\int e^{-e(x, y')}dy'", _example)
class ConditionalEnergy(Energy):
    r"""Minus the log density of y given x, :math:`-\log p(y\mid x) = e(x, y) + \log Z(x)` with
    :math:`Z(x) = \int e^{-e(x, y)}dy`.

    For one or two real dimensions of y the integral is the trapezoid rule on a grid; for more,
    ``method`` is an estimator of ``groundstate.infer`` for Z, and ``sampler`` draws y, for instance by
    Markov chains, which need no Z. With a hidden z each :math:`e(x, \cdot, z)` is normalised first,
    then averaged over the prior of z:
    :math:`p(y\mid x) = \sum_z p(z)\,e^{-e(x, y, z)}/Z(x, z)`.

    Parameters
    ----------
    energy : e of y (real) and, where it has them, of x and z
    grid : increasing points ``(G,)`` for one dimension, two such axes for two; outside there is
        taken to be nothing
    prior : energy of z; None is uniform over a finite z. A real z is averaged over draws of it
    draws : of a real z
    method : estimator of Z where there is no grid
    sampler : inference method that draws y where there is no grid
    generator : of the draws of z

    Examples
    --------
    >>> e = SquaredEnergy(1, 1)
    >>> distribution = ConditionalEnergy(e, torch.linspace(-8, 8, 161))
    >>> x, y = torch.zeros(1, 1), torch.zeros(1, 1)
    >>> round(distribution(x=x, y=y).item(), 4)  # ½ log 2π
    0.9189
    >>> round(distribution.density(x).sum().item() * 0.1, 4)
    1.0
    """

    nodes: Tensor
    log_weight: Tensor
    z_nodes: Tensor
    z_log_weight: Tensor

    def __init__(
        self,
        energy: Energy,
        grid: Tensor | Sequence[Tensor] | None = None,
        prior: Energy | None = None,
        *,
        draws: int = 64,
        method: Inference | None = None,
        sampler: Inference | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        space = energy.spaces.get("y")
        if not isinstance(space, Real):
            raise ValueError(f"a density of y needs a real y, got {space!r}")
        super().__init__(**{n: s for n, s in energy.spaces.items() if n != "z"})
        self.energy, self.prior, self.draws = energy, prior, draws
        self.method, self.sampler = method, sampler
        self.context = energy.context
        d = math.prod(space.shape)
        axes = _axes(grid, d)
        self.axes = [axis.tolist() for axis in axes]
        nodes, log_weight = _rule(axes, space.shape)
        self.register_buffer("nodes", nodes)  # (G, *event)
        self.register_buffer("log_weight", log_weight)  # (G,)
        values, weights = self._latents(generator)
        self.register_buffer("z_nodes", values)
        self.register_buffer("z_log_weight", weights)
        if len(nodes):
            self.normalised = frozenset({"y"})
        elif method is None:
            raise Unsupported(
                f"y has {d} dimensions and there is no grid; pass a grid for one or two of them, or "
                "method= an estimator of groundstate.infer for Z (Annealed, Importance)"
            )

    def config(self) -> dict[str, Any]:
        return {
            "energy": self.energy, "grid": [torch.tensor(a) for a in self.axes] or None,
            "prior": self.prior, "draws": self.draws, "method": self.method, "sampler": self.sampler,
        }  # fmt: skip

    def _latents(self, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Values of z ``(M, *event)`` and the logarithms of their weights ``(M,)``."""
        space = self.energy.spaces.get("z")
        if space is None:
            return torch.zeros(0), torch.zeros(0)
        with torch.no_grad():
            if space.is_finite:
                values = space.enumerate()
                e = torch.zeros(len(values)) if self.prior is None else self.prior(z=values)
                return values, torch.log_softmax(-e, 0)
            draw = getattr(self.prior, "ancestral", None)
            if draw is None:
                raise Unsupported(
                    "a real z is averaged over draws of its prior; pass prior= an energy that can "
                    "draw, such as DensityEnergy(Normal(...), 'z')"
                )
            values = draw(self.draws, generator=generator)["z"]
            return values, torch.full((len(values),), -math.log(len(values)))

    def forward(self, y: Tensor, **given: Tensor) -> Tensor:
        if not len(self.z_nodes):
            return self.energy(y=y, **given) + self.log_normaliser(**given, rows=len(y))
        terms = []
        for z, log_p in zip(self.z_nodes, self.z_log_weight, strict=True):
            at = z.expand(len(y), *z.shape)
            e = self.energy(y=y, z=at, **given)
            terms.append(log_p - e - self.log_normaliser(z=at, **given, rows=len(y)))
        return -torch.logsumexp(torch.stack(terms), 0)

    def log_normaliser(self, rows: int, **given: Tensor) -> Tensor:
        r""":math:`\log Z` of every row, ``(rows,)``."""
        if not len(self.nodes):
            assert self.method is not None
            found: Tensor = self.method.answer("marginalise", self.energy, "y", given).value
            return -found.expand(rows)
        parts = [
            torch.logsumexp(self.log_weight - e, 1) for e in self._on_nodes(self.nodes, rows, given)
        ]
        return torch.cat(parts)

    def _on_nodes(self, nodes: Tensor, rows: int, given: dict[str, Tensor]) -> list[Tensor]:
        """Energies ``(b, G)`` of pieces of the rows at all nodes."""
        out, step, g = [], max(1, CHUNK // len(nodes)), len(nodes)
        for start in range(0, rows, step):
            piece = {n: v[start : start + step] for n, v in given.items()}
            b = min(step, rows - start)
            repeated = {n: v.repeat_interleave(g, 0) for n, v in piece.items()}
            y = nodes.repeat(b, *(1,) * (nodes.ndim - 1))
            out.append(self.energy(y=y, **repeated).view(b, g))
        return out

    @torch.no_grad()
    def density(self, x: Tensor) -> Tensor:
        """p(y | x) on the grid, ``(B, G)`` or ``(B, G1, G2)``."""
        shape = [len(axis) for axis in self.axes]
        if not shape:
            raise Unsupported("a density on the grid needs a grid")
        zs = list(zip(self.z_nodes, self.z_log_weight, strict=True)) or [(None, 0.0)]
        total = torch.zeros(len(x), len(self.nodes), dtype=x.dtype, device=x.device)
        for z, log_p in zs:
            given = {"x": x} if z is None else {"x": x, "z": z.expand(len(x), *z.shape)}
            e = torch.cat(self._on_nodes(self.nodes, len(x), given))
            log_z = torch.logsumexp(self.log_weight - e, 1, keepdim=True)
            total += (log_p - e - log_z).exp()
        return total.view(len(x), *shape)

    @torch.no_grad()
    def draw(self, x: Tensor, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws of y, ``(n, B, *event)``: from the cells of the grid, else by ``sampler``.

        Chains move on e itself, for which Z is not needed; a hidden z is drawn first.
        """
        if self.axes:
            p = self.density(x).flatten(1) * self.log_weight.exp()
            at = torch.multinomial(p, n, replacement=True, generator=generator)  # (B, n)
            shape = (n, len(x), len(self.axes))
            u = torch.rand(shape, generator=generator, dtype=x.dtype, device=x.device)
            low, high = (side[at.T] for side in self._cells(x))
            return (low + (high - low) * u).view(n, len(x), *self.nodes.shape[1:])
        if self.sampler is None:
            raise Unsupported(
                "y is drawn without a grid; pass sampler= of groundstate.infer (HMC, Metropolis)"
            )
        given = {"x": x.repeat(n, 1)}
        if len(self.z_nodes):
            distribution = self.z_log_weight.exp()
            at = torch.multinomial(distribution, n * len(x), replacement=True, generator=generator)
            given["z"] = self.z_nodes[at]
        found = self.sampler.answer("sample", self.energy, "y", given, n=1, generator=generator)
        drawn: Tensor = found.values["y"][0]
        return drawn.view(n, len(x), *drawn.shape[1:])

    def _cells(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Lower and upper corners of the cells around the nodes, ``(G, d)`` each."""
        lows, highs = [], []
        for axis in (torch.tensor(a).to(like) for a in self.axes):
            middle = 0.5 * (axis[1:] + axis[:-1])
            lows.append(torch.cat([axis[:1], middle]))
            highs.append(torch.cat([middle, axis[-1:]]))
        d = len(self.axes)
        return (
            torch.cartesian_prod(*lows).view(-1, d),
            torch.cartesian_prod(*highs).view(-1, d),
        )


def _axes(grid: Tensor | Sequence[Tensor] | None, d: int) -> list[Tensor]:
    if grid is None:
        return []
    axes = [grid] if isinstance(grid, Tensor) else list(grid)
    if d > 2 or len(axes) != d:
        raise ValueError(f"y has {d} dimensions; a grid has one axis for each of at most two")
    for axis in axes:
        if axis.ndim != 1 or len(axis) < 2 or not bool((axis.diff() > 0).all()):
            raise ValueError("each axis of the grid needs at least two increasing points")
    return axes


def _rule(axes: list[Tensor], event: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Nodes ``(G, *event)`` and log weights ``(G,)`` of the trapezoid rule."""
    if not axes:
        return torch.zeros(0, *event), torch.zeros(0)
    logs = []
    for axis in axes:
        steps = axis.diff()
        zero = steps.new_zeros(1)
        logs.append((0.5 * (torch.cat([steps, zero]) + torch.cat([zero, steps]))).log())
    points = torch.cartesian_prod(*axes).reshape(-1, *event)
    weights = torch.cartesian_prod(*logs).reshape(len(points), -1).sum(1)
    return points, weights
