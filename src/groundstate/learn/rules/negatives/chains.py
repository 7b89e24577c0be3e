r"""Negatives from Markov chains: started at the data, or kept from one step to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.infer.sampling.gibbs import Gibbs
from groundstate.infer.sampling.langevin import Langevin
from groundstate.infer.sampling.metropolis import Metropolis
from groundstate.learn.base import Batch
from groundstate.learn.rules.common import Plan
from groundstate.learn.rules.negatives.sources import Negatives, Source, evaluate
from groundstate.math.distributions.operations import draw

SETTLE = (
    10  # steps that bring latents without a known distribution near the data before a chain starts
)


def default_kernel(energy: Energy, over: tuple[str, ...], latents: tuple[str, ...]) -> Any:
    """The sampler for these variables: Gibbs where every block is exact, MALA on reals, else
    Metropolis. Latents come first, so that their start is forgotten."""
    blocks = (*latents, *over)
    gibbs = Gibbs(blocks=blocks)
    if gibbs.reason_against(energy, "sample", blocks) is None:
        return gibbs
    if all(energy.spaces[name].is_real for name in blocks):
        mala = Langevin(step_size=0.01)
        if mala.reason_against(energy, "sample", blocks) is None:
            return mala
    return Metropolis()


class _ChainSource(Source):
    """Common part of the chain sources: which kernel moves what."""

    is_objective = False

    def __init__(self, k: int, kernel: Any, n_chains: int) -> None:
        super().__init__()
        if k < 1 or n_chains < 1:
            raise ValueError(f"k and n_chains must be at least 1, got k={k}, n_chains={n_chains}")
        self.k, self.kernel, self.n_chains = k, kernel, n_chains
        self._made: tuple[Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}

    def method(self, plan: Plan, energy: Energy) -> Any:
        """The sampler, found once per plan."""
        if self.kernel is not None:
            return self.kernel
        if self._made is None or self._made[0] is not plan:
            self._made = (plan, default_kernel(energy, plan.over, plan.latents))
        return self._made[1]

    @torch.no_grad()
    def moved(
        self,
        plan: Plan,
        energy: Energy,
        known: Mapping[str, Tensor],
        start: Mapping[str, Tensor],
        generator: torch.Generator | None,
    ) -> dict[str, Tensor]:
        """Values after k steps of the kernel at the current θ."""
        kernel = self.method(plan, energy).kernel(energy, dict(known))
        moved: dict[str, Tensor] = kernel.run(start, self.k, generator)
        return {name: v.detach() for name, v in moved.items()}

    @torch.no_grad()
    def start_latents(
        self,
        plan: Plan,
        energy: Energy,
        values: Mapping[str, Tensor],
        generator: torch.Generator | None,
    ) -> dict[str, Tensor]:
        """Latents that go with the values: from their distribution where known, else by a few steps."""
        rows = next(iter(values.values())).shape[0]
        device, dtype = energy.placement(values)
        started: dict[str, Tensor] = {}
        distribution = (
            energy.ability("conditional", *plan.latents) if len(plan.latents) == 1 else None
        )
        if distribution is not None:
            return {plan.latents[0]: draw(distribution(**values), 1, generator)[0]}
        for name in plan.latents:
            started[name] = energy.spaces[name].draw(
                rows, generator=generator, device=device, dtype=dtype
            )
        method = self.method(plan, energy)
        if not started or isinstance(method, Gibbs):
            return started  # Gibbs forgets them at once
        settled: dict[str, Tensor] = method.kernel(energy, dict(values)).run(
            started, SETTLE, generator
        )
        return settled


class Chain(_ChainSource):
    """k kernel steps from the row's own value, the negatives of contrastive divergence.

    Parameters
    ----------
    k : int, default=1
    kernel : Gibbs, Langevin, HMC or Metropolis, optional
        None takes Gibbs where every block is exact, MALA on reals, else Metropolis.
    n_chains : int, default=1
        Chains per row.
    """

    def __init__(self, k: int = 1, kernel: Any = None, n_chains: int = 1) -> None:
        super().__init__(k, kernel, n_chains)

    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        n, rows = self.n_chains, batch[plan.over[0]].shape[0]
        wide = {m: v.repeat(n, *(1,) * (v.ndim - 1)) for m, v in batch.items()} if n > 1 else batch
        start = {name: wide[name].detach() for name in plan.over}
        if plan.latents:
            start |= self.start_latents(plan, energy, wide, generator)
        known = {name: wide[name] for name in plan.given}
        moved = self.moved(plan, energy, known, start, generator)
        values = {name: moved[name].reshape(n, rows, *moved[name].shape[1:]) for name in plan.over}
        return Negatives(evaluate(plan, batch, values, generator))


class Persistent(_ChainSource):
    r"""Chains that go on from where the last step left them, moved with the current θ.

    Their state lives in buffers named ``chain_<variable>`` and is saved with the rule. Where
    something is given, row i of a batch continues chain i modulo ``n_chains``.

    Parameters
    ----------
    n_chains : int, default=100
    k : int, default=1
        Kernel steps per learning step.
    reset_prob : float in [0, 1], default=0.0
        Chance of a chain to start afresh before a step.
    kernel : sampler, optional
        As in ``Chain``.
    """

    def __init__(
        self, n_chains: int = 100, k: int = 1, reset_prob: float = 0.0, kernel: Any = None
    ) -> None:
        super().__init__(k, kernel, n_chains)
        if not 0 <= reset_prob <= 1:
            raise ValueError(f"reset_prob must be in [0, 1], got {reset_prob}")
        self.reset_prob = reset_prob

    @property
    def chains(self) -> dict[str, Tensor]:
        """Where the chains stand, ``(n_chains, *event)`` by variable; none before the first step."""
        return {
            name.removeprefix("chain_"): v
            for name, v in self._buffers.items()
            if name.startswith("chain_") and v is not None
        }

    def _fresh(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> dict[str, Tensor]:
        device, dtype = energy.placement(batch)
        return {
            name: energy.spaces[name].draw(
                self.n_chains, generator=generator, device=device, dtype=dtype
            )
            for name in (*plan.latents, *plan.over)
        }

    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        state = self.chains
        if not state:
            state = self._fresh(plan, energy, batch, generator)
        elif self.reset_prob > 0:
            state = self._reset(state, self._fresh(plan, energy, batch, generator), generator)
        if not plan.given:
            moved = self.moved(plan, energy, {}, state, generator)
            self._keep(moved)
            e = plan.positive({name: moved[name] for name in plan.over}, generator)  # (n,)
            rows = batch[plan.over[0]].shape[0]
            return Negatives(e[:, None].expand(-1, rows))
        rows = batch[plan.over[0]].shape[0]
        index = torch.arange(rows, device=batch[plan.over[0]].device) % self.n_chains
        start = {name: v[index] for name, v in state.items()}
        moved = self.moved(plan, energy, plan.known(batch), start, generator)
        used = min(rows, self.n_chains)
        after = {name: v.clone() for name, v in state.items()}
        for name, v in moved.items():
            after[name][:used] = v[:used]
        self._keep(after)
        return Negatives(
            evaluate(plan, batch, {name: moved[name][None] for name in plan.over}, generator)
        )

    def _reset(
        self,
        state: dict[str, Tensor],
        fresh: dict[str, Tensor],
        generator: torch.Generator | None,
    ) -> dict[str, Tensor]:
        device = next(iter(state.values())).device
        again = torch.rand(self.n_chains, generator=generator, device=device) < self.reset_prob
        return {
            name: torch.where(again.reshape(-1, *(1,) * (v.ndim - 1)), fresh[name], v)
            for name, v in state.items()
        }

    def make_room(self, state: Mapping[str, Any]) -> None:
        """Buffers for chains of such shapes: there are none before the first step."""
        for name, v in state.items():
            if name.startswith("chain_"):
                self.register_buffer(name, torch.empty_like(v))

    def _keep(self, state: Mapping[str, Tensor]) -> None:
        for name, v in state.items():
            self.register_buffer(f"chain_{name}", v.detach())

    def _load_from_state_dict(
        self, state_dict: dict[str, Tensor], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        # Chains exist only after the first step; a fresh rule makes room for saved ones.
        self.make_room({k.removeprefix(prefix): v for k, v in state_dict.items()})
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
