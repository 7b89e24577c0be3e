r"""Negatives from chains at several temperatures that change places (parallel tempering)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.rules.common import Plan
from groundstate.learn.rules.negatives.chains import Persistent

State = dict[str, Tensor]


def exchange(
    states: Sequence[State],
    energies: Sequence[Tensor],
    temperatures: Sequence[float],
    generator: torch.Generator | None,
) -> list[State]:
    r"""Let neighbours change places with probability
    :math:`\min(1, e^{(1/T_r - 1/T_{r+1})(e_r - e_{r+1})})`, from the hottest pair to the coldest.

    Keeps :math:`\prod_r e^{-e(v_r)/T_r}`, so that the first states stay draws at their temperature.

    Parameters
    ----------
    states : values ``(n, *event)`` by variable, for each temperature
    energies : of these states, ``(n,)`` each
    temperatures : rising
    """
    out, e = [dict(s) for s in states], list(energies)
    for r in range(len(out) - 2, -1, -1):
        gap = (1 / temperatures[r] - 1 / temperatures[r + 1]) * (e[r] - e[r + 1])
        u = torch.rand(len(gap), generator=generator, device=gap.device, dtype=gap.dtype)
        swap = u.log() < gap
        for name, cold in out[r].items():
            hot = out[r + 1][name]
            wide = swap.reshape(-1, *(1,) * (cold.ndim - 1))
            out[r][name] = torch.where(wide, hot, cold)
            out[r + 1][name] = torch.where(wide, cold, hot)
        e[r], e[r + 1] = torch.where(swap, e[r + 1], e[r]), torch.where(swap, e[r], e[r + 1])
    return out


class Tempered(Persistent):
    r"""Persistent chains with hotter ones behind them, which pass hills and hand down what they find.

    Chains at :math:`1 = T_1 < T_2 < \dots` move at their own temperature and change places, and only
    those at 1 are negatives (Desjardins et al. 2010). The others live in buffers ``hot_<variable>``,
    ``(R - 1, n_chains, *event)``.

    Parameters
    ----------
    temperatures : rising from 1
    n_chains, k, reset_prob, kernel
        As in ``Persistent``.
    """

    def __init__(
        self,
        temperatures: Sequence[float],
        n_chains: int = 100,
        k: int = 1,
        reset_prob: float = 0.0,
        kernel: Any = None,
    ) -> None:
        super().__init__(n_chains, k, reset_prob, kernel)
        ladder = tuple(float(t) for t in temperatures)
        rising = all(a < b for a, b in pairwise(ladder))
        if len(ladder) < 2 or ladder[0] != 1 or not rising:
            raise ValueError(f"temperatures must rise from 1, at least two of them, got {ladder}")
        self.temperatures = ladder

    @property
    def hot(self) -> State:
        """Where the hotter chains stand, ``(R - 1, n_chains, *event)`` by variable."""
        return {
            name.removeprefix("hot_"): v
            for name, v in self._buffers.items()
            if name.startswith("hot_") and v is not None
        }

    def hot_start(self, draw: Any) -> State:
        """The hotter chains; they begin at ``draw(n)`` values ``(n, *event)`` by variable."""
        if not self.hot:
            many = len(self.temperatures) - 1
            for name, v in draw(many * self.n_chains).items():
                self.register_buffer(f"hot_{name}", v.reshape(many, self.n_chains, *v.shape[1:]))
        return self.hot

    def keep_hot(self, states: Sequence[State], used: int) -> None:
        """Store the first so many chains of every higher temperature."""
        for name, v in self.hot.items():
            after = v.clone()
            for r, state in enumerate(states):
                after[r, :used] = state[name][:used]
            self.register_buffer(f"hot_{name}", after)

    @torch.no_grad()
    def moved(
        self,
        plan: Plan,
        energy: Energy,
        known: Mapping[str, Tensor],
        start: Mapping[str, Tensor],
        generator: torch.Generator | None,
    ) -> State:
        first = next(iter(start.values()))
        device, dtype = energy.placement(start)

        def fresh(n: int) -> State:
            place: dict[str, Any] = {"generator": generator, "device": device, "dtype": dtype}
            return {name: energy.spaces[name].draw(n, **place) for name in start}

        hot, rows = self.hot_start(fresh), len(first)
        index = torch.arange(rows, device=first.device) % self.n_chains
        states = [dict(start)]
        states += [
            {name: v[r, index] for name, v in hot.items()}
            for r in range(len(self.temperatures) - 1)
        ]
        method, given = self.method(plan, energy), dict(known)
        states = [
            {n: v.detach() for n, v in method.kernel(energy, given, T).run(s, self.k, generator).items()}
            for T, s in zip(self.temperatures, states, strict=True)
        ]  # fmt: skip
        e = [energy(**given, **s) for s in states]
        states = exchange(states, e, self.temperatures, generator)
        self.keep_hot(states[1:], min(rows, self.n_chains))
        return states[0]

    def make_room(self, state: Mapping[str, Any]) -> None:
        super().make_room(state)
        for name, v in state.items():
            if name.startswith("hot_"):
                self.register_buffer(name, torch.empty_like(v))


def ladder(n: int) -> tuple[float, ...]:
    """n temperatures whose inverses fall evenly from 1 to 1/n.

    >>> ladder(4)
    (1.0, 1.3333333333333333, 2.0, 4.0)
    """
    return tuple(n / (n - r) for r in range(n))
