r"""Metropolis-Hastings: propose, then accept with probability
:math:`\alpha = \min(1, e^{-(e'-e)/T}\,q(v\mid v')/q(v'\mid v))`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Count, Simplex
from groundstate.infer.base import Draws, Query
from groundstate.infer.sampling.chains import draw_chains, walk
from groundstate.infer.sampling.random_walks import Walk, proposal_for
from groundstate.infer.sampling.transitions import (
    Kernel,
    Move,
    Outcome,
    Sampler,
    State,
    Target,
    Values,
)
from groundstate.registry import methods


class MetropolisMove(Move):
    """Propose a new value of one variable and accept or stay."""

    def __init__(self, target: Target, name: str, proposal: Any) -> None:
        self.target, self.name, self.proposal = target, name, proposal

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        v = state.values[self.name]
        size = (n, v.shape[0])
        u = torch.rand(size, generator=generator, device=v.device, dtype=torch.float64)
        log_u = torch.log1p(-u).to(self._real(state))  # 1 - u is never 0
        if hasattr(self.proposal, "noise"):
            return list(zip(log_u, self.proposal.noise(n, v, generator), strict=True))
        return [(row, generator) for row in log_u]

    def _real(self, state: State) -> torch.dtype:
        return self.target.energy.placement(state.values)[1]

    def step(self, state: State, noise: Any) -> State:
        log_u, own = noise
        v = state.values[self.name]
        if isinstance(own, torch.Generator):
            new, correction = self.proposal.propose(v, own)
        else:
            new, correction = self.proposal.move(v, own)
        e = self.target(state.values) if state.energy is None else state.energy
        inside = self.proposal.inside(new) if hasattr(self.proposal, "inside") else None
        if inside is not None:  # the energy need not be defined outside its space
            new = torch.where(inside.reshape(-1, *(1,) * (v.ndim - 1)), new, v)
        e_new = self.target({**state.values, self.name: new})
        log_a = self.target.log_ratio(e, e_new)
        if correction is not None:
            log_a = log_a + correction
        if inside is not None:
            log_a = torch.where(inside, log_a, -math.inf)
        accept = log_u < log_a
        values = dict(state.values)
        values[self.name] = torch.where(accept.reshape(-1, *(1,) * (v.ndim - 1)), new, v)
        memory = {**state.memory, "suspect": e_new}
        rate = log_a.clamp_max(0.0).exp()
        return State(values, torch.where(accept, e_new, e), rate, memory)

    def outcomes(self, values: Values) -> Iterable[Outcome]:
        v = values[self.name]
        e = self.target(values)
        stay = torch.zeros(v.shape[0], dtype=torch.float64, device=v.device)
        for q, new, correction in self.proposal.outcomes(v):
            after = {**values, self.name: new}
            log_a = self.target.log_ratio(e, self.target(after))
            if correction is not None:
                log_a = log_a + correction
            a = log_a.clamp_max(0.0).exp().double()
            yield q * a, after
            stay += q * (1 - a)  # the rejection mass sits on the current state
        yield stay, values


@methods.register(
    formula=r"\alpha = \min(1, e^{-(e'-e)/T}\,q(v\mid v')/q(v'\mid v))",
    make=lambda energy: Metropolis(n_steps=50),
)
@dataclass(frozen=True)
class Metropolis(Sampler):
    r"""Random proposals, accepted with :math:`\min(1, e^{-(e'-e)/T}\,q(v\mid v')/q(v'\mid v))`.

    A rejected state is counted again. The energy need not be normalised or differentiable, so
    this runs on everything. Free variables are moved one after the other in each step.

    Parameters
    ----------
    n_steps : int, default=1000
        Transitions of every chain after burn-in; the last state is the draw.
    proposal : Proposal or mapping of them by variable, optional
        Default: :math:`N(v, scale^2 I)` for real, a logistic walk for simplex, one changed
        coordinate for discrete variables.
    scale : float, default=1.0
        Width of the default real proposal; where it starts if it adapts.
    adapt : bool, default=True
        Tune the width towards an acceptance of .44 (one coordinate) to .234 (many), in burn-in
        only, separately for each row.
    burn_in : int, optional
        Transitions before the counted ones; by default ``n_steps // 2`` when the width adapts,
        else 0.

    Examples
    --------
    >>> from groundstate.energy import TableEnergy
    >>> from groundstate.infer import sample
    >>> energy = TableEnergy(-torch.tensor([0.1, 0.9]).log())
    >>> draws = sample(energy, "x", n=2000, method=Metropolis(n_steps=20),
    ...                generator=torch.Generator().manual_seed(0))
    >>> abs(draws["x"].double().mean() - 0.9).item() < 0.03
    True
    """

    n_steps: int = 1000
    proposal: Any = None
    scale: float = 1.0
    adapt: bool = True
    burn_in: int | None = None

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        for name in free:
            if name in masks and isinstance(energy.spaces[name], Simplex):
                return f"a point of a simplex ({name!r}) cannot be known in part"
            own = self.proposal.get(name) if isinstance(self.proposal, Mapping) else self.proposal
            if own is None and isinstance(energy.spaces[name], Count):
                return f"it has no default proposal for counts ({name!r}); pass one as proposal"
        return None

    def _kernel(self, target: Target) -> Kernel:
        moves = []
        for name in target.free:
            own = self.proposal
            if isinstance(own, Mapping):
                own = own.get(name)
            if own is None:
                space, mask = target.energy.spaces[name], target.masks.get(name)
                own = proposal_for(space, mask, float(self.scale))
            moves.append(MetropolisMove(target, name, own))
        return Kernel(target, moves)

    def sample(self, query: Query, n: int) -> Draws:
        burn_in = self.burn_in
        if burn_in is None:
            burn_in = self.n_steps // 2 if self.adapt else 0

        def adapt(kernel: Kernel, state: State, generator: torch.Generator) -> State:
            return _burn(kernel, state, generator, burn_in, query.rows if self.adapt else 0)

        return draw_chains(query, n, self._kernel, self.n_steps, adapt)


def _burn(
    kernel: Kernel, state: State, generator: torch.Generator, n_steps: int, rows: int
) -> State:
    """Burn-in; with ``rows`` > 0 the widths follow Robbins-Monro, pooled over a row's chains."""
    targets: dict[int, Tensor | float] = {}
    for k, move in enumerate(kernel.moves):
        assert isinstance(move, MetropolisMove)
        if rows and isinstance(move.proposal, Walk):
            v = state.values[move.name]
            mask = move.proposal.mask
            size: Tensor | float = float(max(1, math.prod(v.shape[1:])))
            if mask is not None:
                size = mask.flatten(1).sum(1).clamp_min(1)[:rows].to(v.dtype)
            targets[k] = 0.234 + 0.206 / size
            move.proposal.scale = v.new_full((rows,), float(move.proposal.scale))
    for t, now in walk(kernel, state, n_steps, generator):
        state = now
        for k, goal in targets.items():
            move, accept = kernel.moves[k], state.accepts[k]
            assert isinstance(move, MetropolisMove) and accept is not None
            gap = accept.reshape(-1, rows).mean(0) - goal
            move.proposal.scale *= torch.exp(gap * (2.0 / (t + 1) ** 0.6))
    return state
