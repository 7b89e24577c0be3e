r"""Mixtures of energies: :math:`e = -\log\sum_k w_k\,e^{-e_k}/Z_k`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Normal

from groundstate.energy.base import Energy, batch_size
from groundstate.energy.exact import exact_free_energy, marginal_way
from groundstate.energy.registering import registered
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.distributions.operations import draw


def _example() -> Mixture:
    from groundstate.energy.basic.density import DensityEnergy

    means = torch.tensor([-1.0]), torch.tensor([2.0])
    return Mixture([DensityEnergy(Normal(m, torch.ones(1))) for m in means], [0.3, 0.7])


@registered(r"e = -\log\sum_k w_k\,e^{-e_k}/Z_k", _example)
class Mixture(Energy):
    r"""One of several energies holds, :math:`e = -\log\sum_k w_k\,p_k`,
    :math:`p_k = e^{-e_k}/Z_k`.

    Each part is normalised first, so parts may have any additive constant.

    Parameters
    ----------
    parts : energies of the same variables whose :math:`\log Z_k` over all of them is exact
    weights : positive numbers, normalised to sum one; equal by default

    Attributes
    ----------
    log_weights : Parameter, ``(K,)``

    Examples
    --------
    >>> from groundstate.energy import TableEnergy
    >>> flat, point = torch.zeros(4), torch.tensor([0.0, *[float("inf")] * 3])
    >>> e = Mixture([TableEnergy(flat), TableEnergy(point)])
    >>> (-e.table("x")).exp().tolist()
    [[0.625, 0.125, 0.125, 0.125]]
    """

    mixes = True

    def __init__(
        self, parts: Sequence[Energy], weights: Sequence[float] | Tensor | None = None
    ) -> None:
        if not parts:
            raise ValueError("a mixture needs at least one part")
        first = parts[0]
        for part in parts:
            if dict(part.spaces) != dict(first.spaces):
                raise Unsupported(
                    f"the parts of a mixture need the same variables, got {dict(first.spaces)} "
                    f"and {dict(part.spaces)}"
                )
            if marginal_way(part, part.spaces) is None:
                raise Unsupported(
                    f"{type(part).__name__} cannot enter a mixture: its log Z over "
                    f"{', '.join(part.spaces)} has no exact form, and parts are normalised first"
                )
        super().__init__(**first.spaces)
        self.parts = nn.ModuleList(parts)
        self.context, self.normalised = first.context, frozenset(first.spaces)
        w = torch.ones(len(parts)) if weights is None else torch.as_tensor(weights)
        w = w.to(first.placement()[1])
        if w.shape != (len(parts),) or not bool((w > 0).all()):
            raise ShapeError(
                f"a mixture of {len(parts)} parts needs as many positive weights, got {w}"
            )
        self.log_weights = nn.Parameter((w / w.sum()).log())

    def config(self) -> dict[str, Any]:
        return {"parts": list(self.parts)}

    @property
    def terms(self) -> list[Energy]:
        return list(self.parts)  # type: ignore[arg-type]

    def _log_scale(self) -> Tensor:
        """log w_k − log Z_k, ``(K,)``."""
        free = []
        for part in self.terms:
            F = exact_free_energy(part, part.spaces)
            assert F is not None
            free.append(F.reshape(()))
        return torch.log_softmax(self.log_weights, 0) + torch.stack(free)

    def _mix(self, energies: list[Tensor]) -> Tensor:
        scale = self._log_scale()
        return -torch.logsumexp(torch.stack([s - e for s, e in zip(scale, energies)]), 0)

    def forward(self, **values: Tensor) -> Tensor:
        return self._mix([part(**values) for part in self.terms])

    def responsibilities(self, **values: Tensor) -> Tensor:
        """Which part a row comes from, ``(B, K)``."""
        e = torch.stack([part(**values) for part in self.terms], -1)
        return torch.softmax(self._log_scale() - e, -1)

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        if kind == "table" and len(variables) == 1 and variables <= set(self.spaces):
            (name,) = variables
            if all(p.ability("table", name) is not None for p in self.terms):
                return lambda **given: self._mix([p.table(name, **given) for p in self.terms])
        if kind == "log_partition" and variables == self.normalised:
            return self._unit
        if kind == "conditional" and variables == self.normalised and len(variables) == 1:
            (name,) = variables
            if all(p.ability(kind, name) is not None for p in self.terms):
                return self._distribution(name)
        return None

    def _derived_keys(self) -> Iterable[tuple[str, frozenset[str]]]:
        yield from (("table", frozenset({n})) for n in self.spaces)
        yield "conditional", self.normalised
        yield "log_partition", self.normalised

    def _unit(self, T: float = 1.0, **given: Tensor) -> Tensor:
        if T != 1:
            raise Unsupported(f"the normaliser of a mixture is known at T=1 only, got T={T}")
        batch_size(given)
        device, dtype = self.placement()
        return torch.zeros(1, device=device, dtype=dtype)

    def _distribution(self, name: str) -> Callable[..., Distribution]:
        def conditional(*, T: float = 1.0) -> Distribution:
            if T != 1:
                raise Unsupported(f"a mixture is a mixture of distributions at T=1 only, got T={T}")
            distributions = []
            for part in self.terms:
                ability = part.ability("conditional", name)
                assert ability is not None
                distributions.append(ability())
            return SeveralDistributions(torch.log_softmax(self.log_weights, 0), distributions)

        return conditional


class SeveralDistributions(Distribution):
    """The mixture of K distributions of any families with batch shape ``(1,)`` and equal event shape."""

    arg_constraints: dict[str, Any] = {}

    def __init__(self, log_weights: Tensor, distributions: Sequence[Distribution]) -> None:
        self.log_weights, self.distributions = log_weights, list(distributions)
        super().__init__(torch.Size([1]), distributions[0].event_shape, validate_args=False)

    @property
    def support(self) -> Any:
        return self.distributions[0].support

    def log_prob(self, value: Tensor) -> Tensor:
        each = torch.stack(
            [distribution.log_prob(value) for distribution in self.distributions], -1
        )
        return torch.logsumexp(each + self.log_weights, -1)

    @property
    def mean(self) -> Tensor:
        w = self.log_weights.exp()
        return torch.stack(
            [wk * distribution.mean for wk, distribution in zip(w, self.distributions)]
        ).sum(0)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, 1, *event)`` from an explicit generator."""
        which = draw(Categorical(logits=self.log_weights), n, generator)  # (n,)
        each = torch.stack(
            [draw(distribution, n, generator) for distribution in self.distributions]
        )  # (K, n, 1, *event)
        return each[which, torch.arange(n, device=which.device)]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        flat = self.draw(shape.numel(), generator)
        return flat.reshape(*shape, *self.batch_shape, *self.event_shape)


def mixture(parts: Sequence[Energy], weights: Sequence[float] | Tensor | None = None) -> Mixture:
    """``Mixture(parts, weights)``: each part is normalised first, then probabilities are mixed."""
    return Mixture(parts, weights)
