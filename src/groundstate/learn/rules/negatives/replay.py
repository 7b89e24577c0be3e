r"""A buffer of chains of which a few are moved in every step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch
from groundstate.learn.rules.common import Plan
from groundstate.learn.rules.negatives.chains import Persistent
from groundstate.learn.rules.negatives.sources import Negatives


class Replay(Persistent):
    r"""As many chains as a batch has rows, picked from a buffer, moved and put back.

    A chain keeps what it was given (its label), so that where something is given the negatives of
    every value are its own. Buffers are named ``chain_<variable>``.

    Parameters
    ----------
    n_chains : int, default=10000
        Size of the buffer.
    k : int, default=20
        Kernel steps of the picked chains.
    reset_prob : float in [0, 1], default=0.05
        Chance of a picked chain to start afresh.
    kernel : sampler, optional
        As in ``Chain``.
    """

    def __init__(
        self, n_chains: int = 10_000, k: int = 20, reset_prob: float = 0.05, kernel: Any = None
    ) -> None:
        super().__init__(n_chains, k, reset_prob, kernel)

    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        rows = batch[plan.over[0]].shape[0]
        device = batch[plan.over[0]].device
        place: dict[str, Any] = {"generator": generator, "device": device}
        state = self.chains
        if not state:
            state = self._fresh(plan, energy, batch, generator)
            label = torch.randint(rows, (self.n_chains,), **place)
            state |= {name: batch[name][label] for name in plan.given}
        picked = torch.randint(self.n_chains, (rows,), **place)
        moving = {name: v[picked] for name, v in state.items()}
        if self.reset_prob > 0:
            again = torch.rand(rows, **place) < self.reset_prob
            fresh = self._some(plan, energy, batch, rows, generator)
            moving = {name: _where(again, fresh[name], v) for name, v in moving.items()}
        known = {name: moving[name] for name in plan.given}
        free = {name: v for name, v in moving.items() if name not in plan.given}
        moved = self.moved(plan, energy, known, free, generator)
        for name, v in {**known, **moved}.items():
            state[name] = state[name].index_copy(0, picked, v.to(state[name].dtype))
        self._keep(state)
        own = {**known, **{name: moved[name] for name in plan.over}}
        e = plan.positive(own, generator)  # (rows,)
        return Negatives(e[:, None].expand(-1, rows))

    def _some(
        self, plan: Plan, energy: Energy, batch: Batch, n: int, generator: torch.Generator | None
    ) -> dict[str, Tensor]:
        device, dtype = energy.placement(batch)
        fresh = {
            name: energy.spaces[name].draw(n, generator=generator, device=device, dtype=dtype)
            for name in (*plan.latents, *plan.over)
        }
        label = torch.randint(n, (n,), generator=generator, device=device)
        return fresh | {name: batch[name][label] for name in plan.given}


def _where(chosen: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(chosen.reshape(-1, *(1,) * (old.ndim - 1)), new.to(old.dtype), old)
