r"""Gibbs sampling: every block in turn from its exact distribution given all the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Finite
from groundstate.infer.base import Draws, Query
from groundstate.infer.exact.grid import alphabet
from groundstate.infer.sampling.chains import draw_chains
from groundstate.infer.sampling.gibbs_moves import ColourMove, DistributionMove, ListMove, SiteMove
from groundstate.infer.sampling.transitions import Kernel, Move, Sampler, Target
from groundstate.registry import methods

LISTED = 4096  # values of a block that are listed in each step
Block = str | tuple[str, ...]


@methods.register(formula=r"v_b \sim p(v_b\mid v_{-b})", make=lambda energy: Gibbs(n_steps=20))
@dataclass(frozen=True)
class Gibbs(Sampler):
    r"""Every block in turn from its exact distribution given the rest, :math:`v_b \sim p(v_b\mid v_{-b})`.

    A block is a variable with a declared ``conditional`` or ``chain``, a finite variable (or
    several together) that is listed, coordinates that do not touch each other (of an energy that
    declares ``sites``), or one coordinate of a discrete variable. Nothing is ever
    rejected. Chains and rows run in parallel; two layers of bits alternate as two matrix products.

    Parameters
    ----------
    blocks : tuple of names or of tuples of names, optional
        The order of the blocks; tuples of names are drawn jointly. By default every free variable
        in the order of ``energy.spaces``.
    scan : {"systematic", "random"}, default="systematic"
        All blocks in order in each step, or one block chosen uniformly.
    n_steps : int, default=100
        Steps of every chain; the last state is the draw.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import TableEnergy
    >>> from groundstate.infer import kernel_matrix
    >>> joint = torch.tensor([[0.4, 0.1], [0.2, 0.3]], dtype=torch.float64)
    >>> P = kernel_matrix(Gibbs(scan="random"), TableEnergy(-joint.log()))
    >>> [round(float(v), 4) for v in torch.linalg.eigvals(P).real.sort(descending=True).values[:2]]
    [1.0, 0.7041]
    """

    blocks: tuple[Block, ...] | None = None
    scan: Literal["systematic", "random"] = "systematic"
    n_steps: int = 100

    def __post_init__(self) -> None:
        if self.scan not in ("systematic", "random"):
            raise ValueError(f"scan must be 'systematic' or 'random', got {self.scan!r}")

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        names: list[str] = []
        for block in self.blocks or free:
            group = (block,) if isinstance(block, str) else block
            names += group
            for name in group:
                if name in free and _way(energy, name, name in masks, len(group) > 1) is None:
                    return (
                        f"block {name!r} has no conditional and is not finite"
                        if name not in masks
                        else f"block {name!r}, known in part, has no conditional(partial=True)"
                    )
        if sorted(names) != sorted(free):
            return f"its blocks {', '.join(names)} are not the free variables {', '.join(free)}"
        return None

    def _kernel(self, target: Target) -> Kernel:
        moves: list[Move] = []
        for block in self.blocks or target.free:
            group = (block,) if isinstance(block, str) else tuple(block)
            if len(group) > 1:
                moves.append(ListMove(target, group))
                continue
            moves += _moves(target, group[0])
        return Kernel(target, moves, self.scan)

    def sample(self, query: Query, n: int) -> Draws:
        return draw_chains(query, n, self._kernel, self.n_steps)


def _way(energy: Energy, name: str, masked: bool, joint: bool = False) -> str | None:
    """How a block is drawn: "distribution", "colours", "list", "sites" or None."""
    space = energy.spaces[name]
    if joint:
        return "list" if space.size <= LISTED and not masked else None
    offer = energy.offer("conditional", name)
    if offer is not None and (offer.partial or not masked):
        return "distribution"
    if not masked and energy.ability("chain", name) is not None:
        return "distribution"
    if energy.ability("sites", name) is not None:
        return "colours"
    if isinstance(space, Finite):
        return "sites" if masked else "list"
    return "sites" if alphabet(space) is not None else None


def _moves(target: Target, name: str) -> list[Move]:
    mask = target.masks.get(name)
    way = _way(target.energy, name, name in target.partly)
    if way == "distribution":
        return [DistributionMove(target, name)]
    if way == "list":
        return [ListMove(target, (name,))]
    if way == "colours":
        groups: list[list[int]] = getattr(target.energy, "colours", None) or [
            [i] for i in range(target.energy.spaces[name].shape[0])
        ]
        return [ColourMove(target, name, group) for group in groups]
    sites = [True] * math.prod(target.energy.spaces[name].shape)
    if mask is not None:  # coordinates that are known in every chain need no move
        sites = mask.reshape(len(mask), -1).any(0).tolist()
    return [SiteMove(target, name, i) for i, moves in enumerate(sites) if moves]
