r"""Hamiltonian Monte Carlo: fall along :math:`H = e/T + \tfrac12 p^\top M^{-1}p`, then accept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.infer.base import Draws, Query
from groundstate.infer.sampling.chains import draw_chains, walk
from groundstate.infer.sampling.langevin import GradientMove, flat_sum, real_reason
from groundstate.infer.sampling.transitions import Kernel, Sampler, State, Target, Values
from groundstate.registry import methods

Slope = Callable[[Values], tuple[Tensor, Values]]


def leapfrog(
    slope: Slope,
    x: Values,
    p: Values,
    g: Values,
    step: float | Tensor,
    n: int,
    scale: Mapping[str, Tensor | float] | None = None,
) -> tuple[Values, Values, Tensor, Values]:
    r"""``n`` steps of the reversible, volume-preserving integrator.

    .. math:: p \mathrel{-}= \tfrac\epsilon2\nabla U,\quad x \mathrel{+}= \epsilon\,\sigma^2 p,\quad
        p \mathrel{-}= \tfrac\epsilon2\nabla U

    Parameters
    ----------
    slope : gives the energy ``(C,)`` and the gradient of U at values
    x, p, g : positions, momenta and gradient at ``x``
    step : :math:`\epsilon`, a number or ``(C,)``
    scale : :math:`\sigma^2`, the inverse mass by variable

    Returns
    -------
    positions, momenta, energy and gradient at the end
    """
    scale = scale or {}
    e = torch.empty(0)

    def kick(p: Values, g: Values, part: float) -> Values:
        return {k: v - part * _wide(step, v) * g[k] for k, v in p.items()}

    p = kick(p, g, 0.5)
    for i in range(n):
        x = {k: v + _wide(step, v) * scale.get(k, 1.0) * p[k] for k, v in x.items()}
        e, g = slope(x)
        p = kick(p, g, 0.5 if i == n - 1 else 1.0)
    return x, p, e, g


def _wide(step: float | Tensor, v: Tensor) -> float | Tensor:
    return step.reshape(-1, *(1,) * (v.ndim - 1)) if isinstance(step, Tensor) else step


class HMCMove(GradientMove):
    """Fresh momenta, one trajectory, accept or stay."""

    def __init__(self, target: Target, step_size: float, n_leapfrog: int, jitter: float) -> None:
        super().__init__(target)
        self.step_size: float | Tensor = step_size  # (B,) once adapted
        self.n_leapfrog, self.jitter = n_leapfrog, jitter
        self.scale: dict[str, Tensor] = {}  # inverse mass (B, *event) once adapted

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        like = state.values[self.names[0]]
        size = (2, n, state.chains)
        u = torch.rand(size, generator=generator, device=like.device, dtype=like.dtype)
        stretch = 1 + self.jitter * (2 * u[1] - 1)
        xi = self.normal(n, state, generator)
        return list(zip(torch.log1p(-u[0]), stretch, xi, strict=True))

    def _slope(self, values: Values) -> tuple[Tensor, Values]:
        e, g = self.target.slope(values, self.names)
        return e, {k: v * self.target.cold for k, v in g.items()}

    def step(self, state: State, noise: Any) -> State:
        log_u, stretch, xi = noise
        e, g = self.ready(state)
        step = stretch * self._by_chain(self.step_size, state.chains)
        scale = {k: self._by_chain(v, state.chains) for k, v in self.scale.items()}
        p = {k: v / scale[k].sqrt() if k in scale else v for k, v in xi.items()}
        cold = {k: v * self.target.cold for k, v in g.items()}
        new, momentum, e_new, g_new = leapfrog(
            self._slope, state.values, p, cold, step, self.n_leapfrog, scale
        )
        log_a = self.target.log_ratio(e, e_new)
        for k in self.names:
            s = scale.get(k, 1.0)
            log_a = log_a + 0.5 * flat_sum(p[k].square() * s - momentum[k].square() * s)
        inside = self.inside(new)
        if inside is not None:
            log_a = torch.where(inside, log_a, -math.inf)
        slope = g if self.target.cold == 0 else {k: v / self.target.cold for k, v in g_new.items()}
        return self.settle(state, new, e_new, slope, log_a, log_u)

    def _by_chain(self, value: Any, chains: int) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.repeat(chains // len(value), *(1,) * (value.ndim - 1))


@methods.register(formula=r"H = e/T + \tfrac12 p^\top M^{-1}p", make=lambda energy: HMC(n_steps=20))
@dataclass(frozen=True)
class HMC(Sampler):
    r"""Trajectories of :math:`H = e(x)/T + \tfrac12 p^\top M^{-1}p`, accepted by :math:`\Delta H`.

    Parameters
    ----------
    step_size : float, default=0.1
        Leapfrog step; where it starts if it adapts. Every trajectory stretches it by up to 10 %
        either way, so that no orbit closes on itself.
    n_leapfrog : int, default=10
    n_steps : int, default=100
        Trajectories of every chain after burn-in; the last state is the draw.
    adapt : bool, default=True
        Burn in for ``n_steps`` trajectories: dual averaging moves the step size towards an
        acceptance of .8, and the diagonal mass becomes the inverse of the variances seen; for each
        row of the question by itself.

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Valley(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Real(2))
    ...     def forward(self, x):
    ...         return 0.5 * (x[:, 0].square() + 100 * x[:, 1].square())
    >>> from groundstate.infer import sample
    >>> x = sample(Valley(), "x", n=2000, method=HMC(n_steps=30),
    ...            generator=torch.Generator().manual_seed(0))["x"]
    >>> (x[:, 0].std(0) * torch.tensor([1.0, 10.0]) - 1).abs().max().item() < 0.08
    True
    """

    step_size: float = 0.1
    n_leapfrog: int = 10
    n_steps: int = 100
    adapt: bool = True

    def __post_init__(self) -> None:
        if not self.step_size > 0 or self.n_leapfrog < 1:
            raise ValueError(
                f"HMC needs step_size > 0 and n_leapfrog >= 1, got step_size={self.step_size}, "
                f"n_leapfrog={self.n_leapfrog}"
            )

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        return real_reason(energy, free)

    def _kernel(self, target: Target) -> Kernel:
        return Kernel(target, [HMCMove(target, self.step_size, self.n_leapfrog, 0.1)])

    def sample(self, query: Query, n: int) -> Draws:
        def burn(kernel: Kernel, state: State, generator: torch.Generator) -> State:
            return _burn(kernel, state, generator, self.n_steps, query.rows)

        return draw_chains(query, n, self._kernel, self.n_steps, burn if self.adapt else None)


class _DualAveraging:
    """Step size whose long-run acceptance is ``goal`` (Nesterov; Hoffman and Gelman 2014)."""

    def __init__(self, step: Tensor, goal: float = 0.8) -> None:
        self.centre, self.goal = (10 * step).log(), goal
        self.gap = torch.zeros_like(step)
        self.log_mean = step.log()
        self.t = 0

    def update(self, accept: Tensor) -> Tensor:
        self.t += 1
        self.gap += (self.goal - accept - self.gap) / (self.t + 10)
        log_step = self.centre - self.gap * self.t**0.5 / 0.05
        self.log_mean += self.t**-0.75 * (log_step - self.log_mean)
        return log_step.exp()


# Parts of burn-in. Masses are learned more than once, because the first window cannot see how wide a
# slow direction really is.
WINDOWS = ((0.15, False), (0.1, True), (0.15, True), (0.25, True), (0.35, False))


def _burn(
    kernel: Kernel, state: State, generator: torch.Generator, n_steps: int, rows: int
) -> State:
    """The step size is found anew in every window; three of them end with a new mass."""
    (move,) = kernel.moves
    assert isinstance(move, HMCMove)
    like = state.values[move.names[0]]
    move.step_size = like.new_full((rows,), float(move.step_size))
    n = state.chains // rows
    for share, learns_mass in WINDOWS:
        assert isinstance(move.step_size, Tensor)
        tuner = _DualAveraging(move.step_size)
        seen: dict[str, list[Tensor]] = {name: [] for name in move.names}
        for _, now in walk(kernel, state, round(share * n_steps), generator):
            state = now
            assert state.accept is not None
            move.step_size = tuner.update(state.accept.reshape(n, rows).mean(0))
            if learns_mass:
                for name in move.names:
                    seen[name].append(state.values[name])
        move.step_size = tuner.log_mean.exp()
        for name, states in seen.items():
            if states:
                v = torch.stack(states)  # (t, n*B, *event)
                v = v.reshape(-1, rows, *v.shape[2:])
                m = v.shape[0]  # few states know little: shrink towards a small number
                move.scale[name] = (m * v.var(0, unbiased=False) + 5e-3) / (m + 5)
    return state
