r"""Ancestral sampling: causes before effects, :math:`v_i \sim p(v_i\mid v_{<i})`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Categorical

from groundstate.energy.base import Energy
from groundstate.energy.sequences.step import StepState
from groundstate.errors import Unsupported
from groundstate.infer.base import Draws, Method, Query
from groundstate.infer.exact.closed import energies_of
from groundstate.math.distributions.operations import draw
from groundstate.registry import methods


@methods.register(formula=r"v_i \sim p(v_i\mid v_{<i})", make=lambda energy: Ancestral())
@dataclass(frozen=True)
class Ancestral(Method):
    r"""Independent exact draws of a directed energy, factor by factor.

    Runs when the energy has a method ``ancestral(n, T, generator)`` and everything is free, or
    declares ``step`` for a variable over which it is normalised. The factors of a chain rule are
    exact at T = 1; at other temperatures the draws come from Gibbs and are flagged so.

    Examples
    --------
    >>> from groundstate.energy import ChainRuleEnergy
    >>> from groundstate.infer import sample
    >>> energy = ChainRuleEnergy.from_joint(torch.tensor([[0.4, 0.1], [0.2, 0.3]]))
    >>> draws = sample(energy, "x", n=4000, method=Ancestral(),
    ...                generator=torch.Generator().manual_seed(0))
    >>> draws.kind, abs((draws["x"][:, 0].sum(-1) == 0).float().mean().item() - 0.4) < 0.02
    ('exact', True)
    """

    operations: ClassVar[frozenset[str]] = frozenset({"sample"})
    exact: ClassVar[bool] = True

    def reason_against(
        self,
        energy: Energy,
        operation: str,
        free: Any,
        given: Mapping[str, Tensor] | None = None,
    ) -> str | None:
        reason = super().reason_against(energy, operation, free, given)
        if reason is None and given and any(name in energy.spaces for name in given):
            names = [name for name in given if name in energy.spaces]
            if _way(energy, tuple(n for n in energy.spaces if n not in names)) == "joint":
                return f"{', '.join(map(repr, names))} is given, and nothing downstream may be"
        return reason

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        if masks:
            return f"{', '.join(map(repr, masks))} is known in part, and nothing downstream may be"
        if _way(energy, free) is None:
            if getattr(energy, "ancestral", None) is not None:
                return "something downstream is given; everything must be free"
            return "the energy is not directed: it has no ancestral order and no normalised step"
        return None

    @torch.no_grad()
    def sample(self, query: Query, n: int) -> Draws:
        try:
            values = self._values(query, n)
        except Unsupported:
            if query.T == 1.0:
                raise
            from groundstate.infer.sampling.gibbs import Gibbs

            return Gibbs().sample(query, n)
        return Draws(values, energies_of(query, values), "exact")

    def _values(self, query: Query, n: int) -> dict[str, Tensor]:
        energy, rows = query.energy, query.rows
        if _way(energy, query.free) == "joint":
            joint: Callable[..., dict[str, Tensor]] = getattr(energy, "ancestral")  # noqa: B009
            drawn = joint(n * rows, T=query.T, generator=query.generator)
            return {k: v.reshape(n, rows, *v.shape[1:]) for k, v in drawn.items()}
        (name,) = query.free
        if query.T != 1.0:
            raise Unsupported(f"ancestral draws by steps are exact at T=1 only, got T={query.T}")
        step = energy.ability("step", name)
        assert step is not None
        given = {k: v.repeat(n, *(1,) * (v.ndim - 1)) for k, v in query.fixed.items()}
        state: StepState
        increments, state = step(None, **given)
        if state.rows != n * rows:
            index = torch.zeros(n * rows, dtype=torch.int64, device=increments.device)
            increments, state = increments[index], state.pick(index)
        while True:
            distribution = Categorical(logits=-increments, validate_args=False)
            state = state.append(draw(distribution, 1, query.generator)[0])
            if state.done:
                return {name: state.value.reshape(n, rows, *state.value.shape[1:])}
            increments, state = step(state, **given)


def _way(energy: Energy, free: tuple[str, ...]) -> str | None:
    """How the draws are made: "step", "joint" or None."""
    if len(free) == 1 and free[0] in energy.normalised and energy.ability("step", *free):
        return "step"
    if getattr(energy, "ancestral", None) is not None and set(free) == set(energy.spaces):
        return "joint"
    return None
