r"""Annealed: importance sampling along a path of distributions from an easy one to the target.

.. math:: e_\beta = (1-\beta)\,e_0 + \beta\,e, \qquad
          \log w = \sum_k (\beta_k - \beta_{k-1})\bigl[-e(v_{k-1})/T - \log q_0(v_{k-1})\bigr],

where :math:`v_k` is moved by a kernel that leaves :math:`e^{-e_{\beta_k}/T}` invariant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Binary, Finite, Levels, Sequence, Space
from groundstate.energy.undirected.columns import ColumnsDistribution, slots
from groundstate.infer.base import Draws, FreeEnergy, Method, Query, check_energies
from groundstate.infer.exact.grid import alphabet
from groundstate.infer.pack import bounds, is_simplex
from groundstate.infer.sampling.importance import estimate
from groundstate.infer.sampling.metropolis import Metropolis
from groundstate.infer.sampling.proposals import Proposal, ProposalLike
from groundstate.registry import methods


@methods.register(
    formula=r"\log w = \sum_k (\beta_k - \beta_{k-1})(-e/T - \log q_0)",
    make=lambda energy: Annealed(),
)
@dataclass(frozen=True)
class Annealed(Method):
    r"""Annealed importance sampling from a base distribution to :math:`e^{-e/T}/Z`.

    :math:`\hat Z` is unbiased for any number of temperatures; more of them lower its variance.

    Parameters
    ----------
    base : distribution of the free variables (or a mapping by name, or a callable from the given values);
        None takes uniform distributions on finite spaces and boxes, standard normal ones on the
        line
    n : annealed chains per row for ``marginalise``
    n_temps : steps of the path from β = 0 to 1
    kernel : a Markov method such as ``Metropolis(scale=.5)`` or ``Langevin(step_size=.1)``; None
        is Metropolis with a scale that follows the acceptance of the step before
    moves : kernel steps at every temperature
    """

    base: ProposalLike | None = None
    n: int = 1000
    n_temps: int = 100
    kernel: Any = None
    moves: int = 2

    operations: ClassVar[frozenset[str]] = frozenset({"marginalise", "sample"})

    def __post_init__(self) -> None:
        if self.n_temps < 1 or self.n < 2:
            raise ValueError(
                f"Annealed needs n >= 2 and n_temps >= 1, got n={self.n}, n_temps={self.n_temps}"
            )

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        if masks:
            return f"{', '.join(map(repr, masks))} is known in part"
        if self.kernel is not None and not hasattr(self.kernel, "kernel"):
            return f"{type(self.kernel).__name__} has no Markov kernel; use Metropolis or Langevin"
        method = self.kernel or Metropolis()
        reason: str | None = method.reason_against(energy, "sample", free)
        return reason

    def anneal(self, query: Query, n: int) -> tuple[dict[str, Tensor], Tensor, Tensor]:
        """End points ``(n, B, *event)``, their energies and log weights ``(n, B)``.

        The moves are not differentiated; the last energies are, which gives the gradient
        :math:`\\sum_i \\tilde w_i \\nabla e(v_i)` up to the error of the chains.
        """
        base = Proposal(self.base if self.base is not None else _default(query), query)
        generator = query.generator or Key.of(None).torch(query.device)
        b, rows = query.rows, n * query.rows
        values = base.draw(n, generator)
        scale = _spread(values) if self.kernel is None else None
        fixed = {k: v.detach().repeat(n, *(1,) * (v.ndim - 1)) for k, v in query.fixed.items()}
        flat = {k: v.reshape(rows, *v.shape[2:]).contiguous() for k, v in values.items()}
        log_w = torch.zeros(n, b, device=query.device, dtype=query.dtype)
        with torch.no_grad():
            for step in range(1, self.n_temps + 1):
                values = {k: v.reshape(n, b, *v.shape[1:]) for k, v in flat.items()}
                e = check_energies(query.energy(**fixed, **flat), query.energy).reshape(n, b)
                log_w += (-e / query.T - base.log_prob(values)) / self.n_temps
                bridge = Bridge(query.energy, base, step / self.n_temps, query.T, n)
                method = self.kernel
                if method is None:
                    method = Metropolis(scale=float(scale) if scale is not None else 1.0)
                kernel = method.kernel(bridge, fixed, T=query.T)
                state = kernel.start(flat)
                for noise in kernel.noise(self.moves, state, generator):
                    state = kernel.step(state, noise)
                flat = state.values
                if scale is not None and state.accept is not None:
                    scale = scale * torch.exp(state.accept.mean() - 0.35)
        values = {k: v.reshape(n, b, *v.shape[1:]) for k, v in flat.items()}
        e = query.energy(**{k: _spreadable(v, n) for k, v in query.fixed.items()}, **flat)
        e = e.reshape(n, b)
        log_w = log_w - (e - e.detach()) / query.T
        return values, e, log_w

    def marginalise(self, query: Query) -> FreeEnergy:
        _, _, log_w = self.anneal(query, self.n)
        return estimate(log_w, query.T)

    @torch.no_grad()
    def sample(self, query: Query, n: int) -> Draws:
        values, e, log_w = self.anneal(query, n)
        return Draws(values, e, "weighted", log_weight=log_w)


class Bridge(Energy):
    r"""The energy :math:`e_\beta = -(1-\beta)\,T\log q_0 + \beta\,e` on the way to ``e``."""

    def __init__(self, energy: Energy, base: Proposal, beta: float, T: float, n: int) -> None:
        super().__init__(**energy.spaces)
        self.context = energy.context
        self.inner, self.base, self.beta, self.T, self.n = energy, base, beta, T, n

    def forward(self, **values: Tensor) -> Tensor:
        e = self.beta * self.inner(**values)
        own = {k: values[k] for k in self.base.distributions}
        drawn = {k: v.reshape(self.n, -1, *v.shape[1:]) for k, v in own.items()}
        if self.beta == 1:
            return e
        return e - (1 - self.beta) * self.T * self.base.log_prob(drawn).reshape(-1)


def _spreadable(v: Tensor, n: int) -> Tensor:
    return v.repeat(n, *(1,) * (v.ndim - 1))


def _spread(values: Mapping[str, Tensor]) -> Tensor | None:
    """A first step size: the spread of the base's draws over the root of the dimension."""
    reals = [v.flatten(2) for v in values.values() if v.is_floating_point() and v.ndim > 2]
    if not reals:
        return None
    flat = torch.cat(reals, 2)
    return 2.4 * flat.std() / math.sqrt(flat.shape[2])


def _default(query: Query) -> dict[str, Distribution]:
    return {n: base_distribution(query.space(n), query.device, query.dtype) for n in query.free}


def base_distribution(space: Space, device: torch.device, dtype: torch.dtype) -> Distribution:
    """A distribution to start from: uniform where that exists, standard normal elsewhere."""
    if isinstance(space, Binary):
        return D.Bernoulli(logits=torch.zeros(space.shape, device=device, dtype=dtype))
    a = alphabet(space)
    if isinstance(space, Finite) or (isinstance(space, Sequence) and a is not None):
        logits = torch.zeros(*space.shape, a or 1, device=device, dtype=dtype)
        binary = isinstance(space, Sequence) and isinstance(space.item, Binary)
        return D.Bernoulli(logits=logits[..., 0]) if binary else D.Categorical(logits=logits)
    if isinstance(space, Levels) and space.is_finite:
        sizes = torch.tensor(space.sizes, device=device)[:, None]
        beyond = torch.arange(max(space.sizes), device=device) >= sizes
        logits = torch.zeros(beyond.shape, device=device, dtype=dtype).masked_fill(
            beyond, -math.inf
        )
        return D.Categorical(logits=logits)
    if isinstance(space, Levels):  # uniform on categories, standard normal on numbers
        inputs = torch.zeros(sum(slots(space.sizes)[1]), device=device, dtype=dtype)
        return ColumnsDistribution(inputs, space.sizes)
    ones = torch.ones(space.shape, device=device, dtype=dtype)
    if is_simplex(space):
        return D.Dirichlet(ones)
    low, high = bounds(space)
    if math.isfinite(low) and math.isfinite(high):
        return D.Uniform(low * ones, high * ones, validate_args=False)
    if math.isfinite(low) or math.isfinite(high):
        at, sign = (low, 1.0) if math.isfinite(low) else (high, -1.0)
        return D.TransformedDistribution(D.HalfNormal(ones), [D.AffineTransform(at, sign)])
    return D.Normal(0 * ones, ones)
