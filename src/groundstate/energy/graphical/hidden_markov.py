r"""A hidden Markov chain, :math:`e(x) = -\log\sum_z \pi_{z_1}\prod_t A_{z_{t-1}z_t}\prod_t p(x_t\mid z_t)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Ragged
from groundstate.compute.rows.ragged import offsets_of
from groundstate.energy.base import Energy
from groundstate.energy.graphical.emissions import CategoricalEmission, GaussianEmission
from groundstate.energy.registering import registered
from groundstate.energy.spaces import RaggedOf, Sequence
from groundstate.math.chains.chain import ChainDistribution, ChainFactors
from groundstate.math.graphs.elimination import NEVER, invert


def _example() -> HiddenMarkovEnergy:
    energy = HiddenMarkovEnergy(GaussianEmission(3, 2), 4)
    generator = torch.Generator().manual_seed(0)
    for parameter in (energy.start, energy.transition):
        parameter.data.normal_(generator=generator)
    return energy


@registered(
    r"e(x) = -\log \sum_z \pi_{z_1} \prod_t A_{z_{t-1} z_t} \prod_t p(x_t \mid z_t)", _example
)
class HiddenMarkovEnergy(Energy):
    r"""Sequences that a hidden Markov chain emits,
    :math:`e(x) = -\log\sum_z\pi_{z_1}\prod_t A_{z_{t-1}z_t}\prod_t p(x_t\mid z_t)`.

    Given x the states z are a chain with unary energies :math:`-\log p(x_t\mid z_t)`: forward sums,
    smoothing and the best path are those of ``ChainDistribution``. A step that is NaN is missing and
    says nothing about its state.

    Parameters
    ----------
    emission : ``CategoricalEmission`` or ``GaussianEmission``
    length : of all sequences, which are then arrays ``(B, length, d)``; None takes ragged rows
    start_prior, transition_prior : pseudo-counts of every entry of π and A

    Attributes
    ----------
    start : Parameter, ``(k,)``; π is its softmax
    transition : Parameter, ``(k, k)``; rows of A are its softmax

    Examples
    --------
    >>> e = HiddenMarkovEnergy(CategoricalEmission(2, 2))
    >>> x = Ragged.of([[[1.0], [1.0], [0.0]]])
    >>> round(e(x=x).item(), 4)  # nothing is known: 3 log 2
    2.0794
    """

    start: Tensor
    transition: Tensor

    def __init__(
        self,
        emission: CategoricalEmission | GaussianEmission,
        length: int | None = None,
        start_prior: float = 0.0,
        transition_prior: float = 0.0,
    ) -> None:
        space = RaggedOf(emission.space) if length is None else Sequence(emission.space, length)
        super().__init__(x=space)
        self.length = length
        self.emission, self.k = emission, emission.k
        self.start_prior, self.transition_prior = float(start_prior), float(transition_prior)
        self.start = nn.Parameter(torch.zeros(self.k))
        self.transition = nn.Parameter(torch.zeros(self.k, self.k))

    def config(self) -> dict[str, Any]:
        return {
            "emission": self.emission,
            "length": self.length,
            "start_prior": self.start_prior,
            "transition_prior": self.transition_prior,
        }

    def log_start(self) -> Tensor:
        """log π, ``(k,)``."""
        return torch.log_softmax(self.start.clamp_min(NEVER), 0)

    def log_transition(self) -> Tensor:
        """log A, ``(k, k)``: row i is where state i goes."""
        return torch.log_softmax(self.transition.clamp_min(NEVER), 1)

    # --- the chain of states -------------------------------------------------------------

    def step_energies(self, x: Ragged) -> Tensor:
        """:math:`-\\log p(x_t \\mid k)` of every step, ``(M, K)``; 0 for a step that is missing."""
        values = x.values.to(self.start.dtype)
        if bool(torch.isfinite(values.sum())):  # as no sum with NaN in it
            return self.emission.energies(values)
        missing = torch.isnan(values).flatten(1).any(1)
        e = self.emission.energies(torch.where(missing[:, None], 0.0, values))
        return torch.where(missing[:, None], 0.0, e)

    def chain(self, x: Ragged) -> ChainDistribution:
        """The distribution of the states; an empty sequence has one step that says nothing."""
        longest = self._longest(x)
        alike = len(x.values) == len(x) * longest
        lengths = None if alike else x.lengths.clamp_min(1)
        e = self.step_energies(x).clamp_max(-NEVER)  # what no state emits is dear, not forbidden
        u = x.like(e).padded(length=longest)  # (B, L, K)
        u[:, 0] = u[:, 0] + _finite(-self.log_start())
        return ChainDistribution(ChainFactors(u, _finite(-self.log_transition()), lengths))

    @staticmethod
    def _longest(x: Ragged) -> int:
        return max(1, int(x.lengths.max()) if len(x) else 1)

    def forward(self, x: Ragged | Tensor) -> Tensor:
        x = as_ragged(x) if isinstance(x, Tensor) else x
        if not len(x):
            return self.start.new_zeros(0)
        e = -self.chain(x).log_partition
        return torch.where(e > -NEVER / 10, torch.inf, e)

    @torch.no_grad()
    def filtered(self, x: Ragged) -> Ragged:
        r""":math:`p(z_t \mid x_1, \dots, x_t)` of every step, items ``(K,)``."""
        u = _finite(x.like(self.step_energies(x)).padded(length=self._longest(x)))
        out = torch.zeros_like(u)
        w = self.log_transition()
        belief = self.log_start().expand(len(u), -1)
        for t in range(u.shape[1]):
            if t:
                belief = (out[:, t - 1].log().clamp_min(NEVER)[:, :, None] + w).logsumexp(1)
            out[:, t] = torch.softmax(belief - u[:, t], 1)
        inside = torch.arange(u.shape[1], device=u.device) < x.lengths[:, None]
        return x.like(out[inside])

    def draw_sequences(
        self, n: int, length: int, *, T: float = 1.0, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Sequences ``(n, length, d)`` and their states ``(n, length)``; T divides log π and log A."""
        device = self.start.device
        with torch.no_grad():
            u = torch.rand(n, length, generator=generator, device=generator.device).to(device)
            z = torch.zeros(n, length, dtype=torch.int64, device=device)
            now = (self.log_start() / T).expand(n, -1)
            for t in range(length):
                z[:, t] = invert(now, u[:, t])
                now = (self.log_transition() / T)[z[:, t]]
            x = self.emission.draw(z.flatten(), generator)
        return x.reshape(n, length, -1), z

    # --- learning ------------------------------------------------------------------------

    @torch.no_grad()
    def expected(self, weights: Tensor | None, x: Ragged) -> tuple[dict[str, Tensor], Tensor]:
        """Expected visits, moves and emissions, and log p of each sequence, ``(B,)``."""
        w = self.start.new_ones(len(x)) if weights is None else weights.to(self.start)
        log_p = torch.zeros_like(w)
        some = (x.lengths > 0).nonzero()[:, 0]
        if len(some) < len(x):
            x, w = x.take(some), w[some]
        log_z, mu, pairs = self.chain(x).statistics(w)
        inside = torch.arange(mu.shape[1], device=mu.device) < x.lengths[:, None]
        r = mu[inside] * w[x.row][:, None]  # (M, K)
        values = x.values.to(self.start.dtype)
        seen = ~torch.isnan(values).flatten(1).any(1)
        emitted = (r, values) if bool(seen.all()) else (r[seen], values[seen])
        sums = {"start": (w[:, None] * mu[:, 0]).sum(0).double(), "transition": pairs.double()}
        sums |= {f"emission.{k}": v for k, v in self.emission.stats(*emitted).items()}
        log_p[some] = log_z
        return sums, log_p

    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """π, A and emissions of highest likelihood; what is never visited stays as it is."""
        for name, parameter, prior in (
            ("start", self.start, self.start_prior),
            ("transition", self.transition, self.transition_prior),
        ):
            counts = stats[name] + prior
            empty = counts.sum(-1, keepdim=True) == 0
            new = torch.where(empty, parameter.double(), counts.log().clamp_min(NEVER))
            parameter.copy_(new)
        own = {
            k.removeprefix("emission."): v for k, v in stats.items() if k.startswith("emission.")
        }
        self.emission.from_stats(own)


def _finite(e: Tensor) -> Tensor:
    """Energies in which +inf forbids, as the chain recursions know it."""
    return torch.where(e > -NEVER / 10, torch.inf, e)


def as_ragged(x: Tensor) -> Ragged:
    """Sequences of one length, ``(n, T, d)``, as rows."""
    n, length = x.shape[:2]
    lengths = torch.full((n,), length, dtype=torch.int64, device=x.device)
    return Ragged(x.reshape(n * length, *x.shape[2:]), offsets_of(lengths))
