r"""Langevin dynamics: downhill with noise,
:math:`x' = x - \eta\nabla e/T + \sqrt{2\eta}\,\xi`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real, Space
from groundstate.energy.spaces import Sequence as SequenceSpace
from groundstate.infer.base import Draws, Query
from groundstate.infer.pack import no_gradient
from groundstate.infer.sampling.chains import draw_chains, run_chains
from groundstate.infer.sampling.transitions import Kernel, Move, Sampler, State, Target, Values
from groundstate.registry import methods


def real_reason(energy: Energy, free: tuple[str, ...]) -> str | None:
    """Why gradient samplers cannot move these variables, or None."""
    for name in free:
        space = energy.spaces[name]
        item = space.item if isinstance(space, SequenceSpace) else space
        if not isinstance(item, Real):
            return f"{name!r} lives in {space!r}; gradient steps need a Real space"
        held = no_gradient(energy, name)
        if held is not None:
            return held
    return None


def bounds(space: Space) -> tuple[float | None, float | None]:
    """Box of a real space."""
    item = space.item if isinstance(space, SequenceSpace) else space
    return (item.low, item.high) if isinstance(item, Real) else (None, None)


class GradientMove(Move):
    """Shared by Langevin and Hamiltonian moves: gradient in memory, known coordinates at rest."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.names = target.free
        spaces = target.energy.spaces
        self.boxed = tuple(n for n in self.names if bounds(spaces[n]) != (None, None))

    def ready(self, state: State) -> tuple[Tensor, Values]:
        """Energy and gradient at the state, computed when they are not in memory."""
        slope = state.memory.get("slope")
        if slope is not None and state.energy is not None:
            return state.energy, slope
        state.energy, state.memory["slope"] = self.target.slope(state.values, self.names)
        return state.energy, state.memory["slope"]

    def normal(self, n: int, state: State, generator: torch.Generator) -> list[Values]:
        """Standard normal noise for ``n`` steps, zero on known coordinates."""
        blocks = {}
        for name in self.names:
            v = state.values[name]
            size = (n, *v.shape)
            xi = torch.randn(size, generator=generator, device=v.device, dtype=v.dtype)
            mask = self.target.masks.get(name)
            blocks[name] = xi if mask is None else xi * mask
        return [{name: xi[i] for name, xi in blocks.items()} for i in range(n)]

    def inside(self, values: Values) -> Tensor | None:
        """Rows within all boxes, None when there are none."""
        found: Tensor | None = None
        for name in self.boxed:
            within = self.target.energy.spaces[name].contains(values[name])
            found = within if found is None else found & within
        return found

    def settle(
        self, state: State, new: Values, e: Tensor, slope: Values, log_a: Tensor, log_u: Tensor
    ) -> State:
        """Accept the new state where ``log_u < log_a``; NaN never is."""
        old_e, old_slope = self.ready(state)
        accept = log_u < log_a
        values, slopes = {}, {}
        for name in self.names:
            yes = accept.reshape(-1, *(1,) * (new[name].ndim - 1))
            values[name] = torch.where(yes, new[name], state.values[name])
            slopes[name] = torch.where(yes, slope[name], old_slope[name])
        rate = torch.nan_to_num(log_a.clamp_max(0.0).exp(), nan=0.0)
        memory = {**state.memory, "slope": slopes}
        return State(values, torch.where(accept, e, old_e), rate, memory)


def flat_sum(v: Tensor) -> Tensor:
    """Sum over the event axes, ``(C,)``."""
    return v.flatten(1).sum(1) if v.ndim > 1 else v


class LangevinMove(GradientMove):
    """One step of the unadjusted dynamics; noise is ready, the box is a wall."""

    def __init__(
        self,
        target: Target,
        step_size: float,
        noise_scale: float = 1.0,
        clamp: tuple[float | None, float | None] | None = None,
    ) -> None:
        super().__init__(target)
        self.step_size, self.noise_scale = step_size, noise_scale
        spaces = target.energy.spaces
        self.walls = {n: clamp or bounds(spaces[n]) for n in self.names}
        if clamp is None:
            self.walls = {n: self.walls[n] for n in self.boxed}

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        return self.normal(n, state, generator)

    def step(self, state: State, noise: Any) -> State:
        e, slope = self.target.slope(state.values, self.names)
        drift = -self.step_size * self.target.cold
        width = math.sqrt(2 * self.step_size) * self.noise_scale
        values = {}
        for name in self.names:
            v = torch.add(state.values[name], slope[name], alpha=drift)
            v.add_(noise[name], alpha=width)
            if name in self.walls:
                low, high = self.walls[name]
                kept = v.clamp(low, high)
                mask = self.target.masks.get(name)
                v = kept if mask is None else torch.where(mask, kept, v)
            values[name] = v
        # the energy that came with the gradient belongs to the state before the step
        return State(values, None, None, {"suspect": e})


class AdjustedMove(GradientMove):
    """A Langevin step as a proposal, accepted or not: exact for every step size."""

    def __init__(self, target: Target, step_size: float) -> None:
        super().__init__(target)
        self.step_size = step_size

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        like = state.values[self.names[0]]
        size = (n, state.chains)
        u = torch.rand(size, generator=generator, device=like.device, dtype=like.dtype)
        return list(zip(torch.log1p(-u), self.normal(n, state, generator), strict=True))

    def step(self, state: State, noise: Any) -> State:
        log_u, xi = noise
        e, slope = self.ready(state)
        eta, cold = self.step_size, self.target.cold
        new = {}
        for name in self.names:
            v = torch.add(state.values[name], slope[name], alpha=-eta * cold)
            new[name] = v.add_(xi[name], alpha=math.sqrt(2 * eta))
        inside = self.inside(new)
        if inside is not None:  # the energy need not be defined outside its space
            for n in self.names:
                row = inside.reshape(-1, *(1,) * (new[n].ndim - 1))
                new[n] = torch.where(row, new[n], state.values[n])
        e_new, slope_new = self.target.slope(new, self.names)
        log_a = self.target.log_ratio(e, e_new)
        for n in self.names:
            # log q(v|v') - log q(v'|v) of N(v - eta g, 2 eta): squares of backward, forward noise
            back = state.values[n] - new[n] + (eta * cold) * slope_new[n]
            log_a = log_a + flat_sum(0.5 * xi[n].square() - back.square() / (4 * eta))
        if inside is not None:
            log_a = torch.where(inside, log_a, -math.inf)
        settled = self.settle(state, new, e_new, slope_new, log_a, log_u)
        settled.memory["suspect"] = e_new
        return settled


@methods.register(
    formula=r"x' = x - \eta\nabla e/T + \sqrt{2\eta}\,\xi",
    make=lambda energy: Langevin(step_size=0.05, n_steps=50),
)
@dataclass(frozen=True)
class Langevin(Sampler):
    r"""Downhill with noise: :math:`x' = x - \eta\nabla e/T + \sqrt{2\eta}\,s\,\xi`.

    Adjusted (MALA), each step is a proposal that is accepted or not, which makes the target exact
    for any step size. Unadjusted, the step size biases it: for :math:`N(0,1)` the variance is
    :math:`1/(1-\eta/2)`.

    Parameters
    ----------
    step_size : float, default=1e-3
        :math:`\eta`.
    n_steps : int, default=100
        Steps of every chain; the last state is the draw.
    adjusted : bool, default=True
    noise_scale : float, default=1.0
        :math:`s`; must be 1 when adjusted.
    clamp : (low, high), optional
        Values are cut to this range after every unadjusted step; known coordinates are not.
    schedule : sequence of (level, step_size, n_steps), optional
        Annealed Langevin: the stages in turn. The level is the temperature, or, for an energy with
        a context argument ``sigma``, that argument.

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Bowl(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Real(1))
    ...     def forward(self, x):
    ...         return 0.5 * x.square().sum(-1)
    >>> from groundstate.infer import sample
    >>> x = sample(Bowl(), "x", n=4000, method=Langevin(step_size=0.5, n_steps=50),
    ...            generator=torch.Generator().manual_seed(0))["x"]
    >>> abs(x.var().item() - 1) < 0.06
    True
    """

    step_size: float = 1e-3
    n_steps: int = 100
    adjusted: bool = True
    noise_scale: float = 1.0
    clamp: tuple[float | None, float | None] | None = None
    schedule: Sequence[tuple[float, float, int]] | None = None

    def __post_init__(self) -> None:
        if not self.step_size > 0:
            raise ValueError(f"step_size must be positive, got {self.step_size}")
        if self.adjusted and (self.noise_scale != 1.0 or self.clamp is not None):
            raise ValueError(
                "adjusted Langevin needs noise_scale=1 and no clamp, got "
                f"noise_scale={self.noise_scale}, clamp={self.clamp}; pass adjusted=False"
            )

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        return real_reason(energy, free)

    def _kernel(self, target: Target) -> Kernel:
        if self.adjusted:
            return Kernel(target, [AdjustedMove(target, self.step_size)])
        return Kernel(target, [LangevinMove(target, self.step_size, self.noise_scale, self.clamp)])

    def sample(self, query: Query, n: int) -> Draws:
        if self.schedule is None:
            return draw_chains(query, n, self._kernel, self.n_steps)
        *stages, last = self._stages()

        def earlier(kernel: Kernel, state: State, generator: torch.Generator) -> State:
            for method, level in stages:
                own = method._kernel(_at(kernel.target, level, query.T, n * query.rows))
                values = state.values
                state = run_chains(
                    own, values, method.n_steps, generator=generator, keep=False
                ).state
            return kernel.start(state.values)

        method, level = last

        def build(target: Target) -> Kernel:
            return method._kernel(_at(target, level, query.T, n * query.rows))

        return draw_chains(query, n, build, method.n_steps, earlier)

    def _stages(self) -> list[tuple[Langevin, float]]:
        if not self.schedule:
            raise ValueError("schedule needs at least one (level, step_size, n_steps)")
        return [
            (replace(self, step_size=eta, n_steps=steps, schedule=None), level)
            for level, eta, steps in self.schedule
        ]


def _at(target: Target, level: float, T: float, chains: int) -> Target:
    masks = {name: target.masks[name] for name in target.partly}
    if "sigma" not in target.energy.context:
        return Target(target.energy, target.fixed, level, masks)
    device, dtype = target.energy.placement(target.fixed)
    sigma = torch.full((chains,), level, device=device, dtype=dtype)
    return Target(target.energy, {**target.fixed, "sigma": sigma}, T, masks)
