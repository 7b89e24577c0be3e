r"""Many Markov chains at once: burn-in, thinning, streaming moments, restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.display import Displayed, span
from groundstate.infer.base import Draws, Query
from groundstate.infer.sampling.transitions import Kernel, State, Target, Values, fresh

BLOCK = 2**16  # random numbers drawn at once: few calls, and they stay in the cache
STEPS = 64  # steps between two looks at the energies


@dataclass(frozen=True)
class Chains(Displayed):
    """What ``run_chains`` returns.

    Attributes
    ----------
    values : kept states ``(n_kept, C, *event)``; empty when ``keep=False``
    energy : their energies ``(n_kept, C)``; empty when ``keep=False``
    mean, variance : moments of every chain over its kept states, ``(C, *event)``
    accept : mean acceptance after burn-in, ``(C,)``
    state : where the chains stand; pass it to ``run_chains`` to go on
    n_kept : number of kept states
    """

    values: Values
    energy: Tensor
    mean: Values
    variance: Values
    accept: Tensor
    state: State
    n_kept: int

    def _facts(self) -> dict[str, object]:
        return {"kept": self.n_kept, **self.values, "acceptance": span(self.accept)}


class Restart(dict[str, Tensor]):
    """Start values by name, ``(B, *event)``, that remember all ``n`` chains of every row."""

    def __init__(self, chains: Mapping[str, Tensor]) -> None:
        super().__init__({name: v[-1] for name, v in chains.items()})
        self.chains = dict(chains)  # (n, B, *event)


@torch.no_grad()
def run_chains(
    kernel: Kernel,
    state: State | Mapping[str, Tensor],
    n_steps: int,
    burn_in: int = 0,
    thin: int = 1,
    *,
    generator: torch.Generator | None = None,
    keep: bool = True,
) -> Chains:
    r"""Run chains and keep every ``thin``-th state after ``burn_in`` steps.

    The number of kept states is :math:`\lfloor (n_{steps} - burn\_in)/thin \rfloor`.

    Parameters
    ----------
    kernel : Kernel
    state : where to start, values ``(C, *event)`` by name or the ``state`` of an earlier run
    n_steps : transitions in all
    burn_in : transitions that are forgotten
    thin : distance between kept states
    generator : source of randomness; None is fresh entropy
    keep : False keeps the moments only, in constant memory

    Raises
    ------
    FloatingPointError
        When an energy becomes NaN or −inf; the message names the step and the chain.

    Examples
    --------
    >>> from groundstate.energy import TableEnergy
    >>> from groundstate.infer import Gibbs
    >>> kernel = Gibbs().kernel(TableEnergy(torch.tensor([0.0, 1.0])))
    >>> start = {"x": torch.zeros(3, dtype=torch.int64)}
    >>> run_chains(kernel, start, 10, burn_in=3, thin=2).n_kept
    3
    """
    if n_steps < 0 or not burn_in >= 0 or thin < 1:
        raise ValueError(
            f"run_chains needs n_steps >= 0, burn_in >= 0 and thin >= 1, got n_steps={n_steps}, "
            f"burn_in={burn_in}, thin={thin}"
        )
    state = state if isinstance(state, State) else kernel.start(state)
    generator = fresh(generator, kernel.target, state.values)
    kept: dict[str, list[Tensor]] = {name: [] for name in state.values}
    energies: list[Tensor] = []
    moments = _Moments(state.values)
    device, dtype = kernel.target.energy.placement(state.values)
    total = torch.zeros(state.chains, device=device, dtype=dtype)
    always = 0
    for t, now in walk(kernel, state, n_steps, generator):
        state = now
        if t < burn_in:
            continue
        if state.accept is None:
            always += 1
        else:
            total += state.accept
        if (t - burn_in + 1) % thin:
            continue
        moments.add(state.values)
        if keep:
            for name, v in state.values.items():
                kept[name].append(v)
            energies.append(_energy(kernel, state))
    counted = max(n_steps - burn_in, 1)
    accept = (total + always) / counted if n_steps > burn_in else torch.ones_like(total)
    values = {
        name: torch.stack(vs) if vs else state.values[name].new_empty(0, *state.values[name].shape)
        for name, vs in kept.items()
    }
    e = torch.stack(energies) if energies else total.new_empty(0, state.chains)
    mean, variance = moments.result()
    return Chains(values, e, mean, variance, accept, state, moments.n)


def walk(
    kernel: Kernel, state: State, n_steps: int, generator: torch.Generator
) -> Iterator[tuple[int, State]]:
    """States after each step. Noise comes in blocks; energies are looked at once per block."""
    size = max(1, sum(v.numel() for v in state.values.values()))
    block = max(1, min(STEPS, BLOCK // size))
    for first in range(0, n_steps, block):
        count = min(block, n_steps - first)
        seen = []
        for i, noise in enumerate(kernel.noise(count, state, generator)):
            state = kernel.step(state, noise)
            suspect = state.memory.get("suspect", state.energy)
            if suspect is not None:
                seen.append(suspect)
            yield first + i, state
        if seen:
            _report(torch.stack(seen), first, kernel)


def _report(e: Tensor, first: int, kernel: Kernel) -> None:
    bad = torch.isnan(e) | torch.isneginf(e)  # (block, C)
    if bool(bad.any()):
        step, chain = (int(i) for i in bad.nonzero()[0])
        raise FloatingPointError(
            f"the energy of {type(kernel.target.energy).__name__} is {float(e[step, chain])} in "
            f"step {first + step} of chain {chain}; energies are real or +inf, and a smaller step "
            "size keeps chains from running away"
        )


def _energy(kernel: Kernel, state: State) -> Tensor:
    if state.energy is None:
        state.energy = kernel.target(state.values)
        _report(state.energy[None], 0, kernel)
    return state.energy


class _Moments:
    """Welford's running mean and variance of every coordinate."""

    def __init__(self, values: Values) -> None:
        like = {n: v if v.is_floating_point() else v.double() for n, v in values.items()}
        self.mean = {n: torch.zeros_like(v) for n, v in like.items()}
        self.square = {n: torch.zeros_like(v) for n, v in like.items()}
        self.n = 0

    def add(self, values: Values) -> None:
        self.n += 1
        for name, v in values.items():
            gap = v - self.mean[name]
            self.mean[name] += gap / self.n
            self.square[name].addcmul_(gap, v - self.mean[name])

    def result(self) -> tuple[Values, Values]:
        return self.mean, {name: s / max(self.n, 1) for name, s in self.square.items()}


Adapt = Callable[[Kernel, State, torch.Generator], State]


@torch.no_grad()
def draw_chains(
    query: Query,
    n: int,
    build: Callable[[Target], Kernel],
    n_steps: int,
    adapt: Adapt | None = None,
) -> Draws:
    """``n`` independent chains per row, each ``n_steps`` long; their last states are the draws.

    ``adapt`` runs first, may tune the kernel and must take its own steps; afterwards the kernel is
    left alone, so that its invariant distribution is the target.
    """
    fixed = {k: _repeat(v, n) for k, v in query.fixed.items()}
    masks = {k: _repeat(v, n) for k, v in query.masks.items()}
    target = Target(query.energy, fixed, query.T, masks)
    kernel = build(target)
    generator = fresh(query.generator, target)
    state = kernel.start({name: _first(query, name, n, generator) for name in query.free})
    if adapt is not None:
        state = adapt(kernel, state, generator)
    done = run_chains(kernel, state, n_steps, generator=generator, thin=max(n_steps, 1), keep=False)
    e = _energy(kernel, done.state)
    values = {k: v.reshape(n, -1, *v.shape[1:]) for k, v in done.state.values.items()}
    accept = done.accept.reshape(n, -1).mean(0)
    return Draws(values, e.reshape(n, -1), "asymptotic", accept, state=Restart(values))


def _repeat(v: Tensor, n: int) -> Tensor:
    return v.repeat(n, *(1,) * (v.ndim - 1))


def _first(query: Query, name: str, n: int, generator: torch.Generator) -> Tensor:
    """Start values ``(n*B, *event)``: the chains of an earlier run, the init, or fresh draws."""
    init = query.init
    space, rows = query.space(name), query.rows
    if isinstance(init, Restart) and name in init:
        chains = init.chains[name]
        picked = torch.arange(n, device=chains.device) % len(chains)
        value = chains[picked].reshape(n * rows, *space.shape)
    elif init is not None and name in init:
        value = _repeat(init[name], n)
    else:
        value = space.draw(n * rows, generator=generator, device=query.device, dtype=query.dtype)
    if name in query.masks:
        known = _repeat(query.given[name], n)
        value = torch.where(_repeat(query.masks[name], n), value, known.to(value.dtype))
    return value.detach().clone()
