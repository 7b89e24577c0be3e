r"""How a penalty enters a step: as weight decay, as a gradient, or as a proximal map.

:math:`J = (\sum_i w_i L_i + \Omega)/\sum_i w_i` splits into smooth parts, whose gradient is taken,
and parts with a kink (L1), whose proximal map follows the optimiser's step and makes exact zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.foreign.torch import foreach_norm
from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.learn.base import Penalty
from groundstate.learn.penalties.norms import L2, SeparablePenalty, SumPenalty
from groundstate.learn.train.fsdp import full, local
from groundstate.learn.train.optimizers import metric


class Regulariser:
    """The penalty of one run, cut into the three ways it can act.

    Parameters
    ----------
    penalty : Ω, on the scale of the summed loss
    energy : whose θ it is
    total : weight of all rows
    decay : whether the optimiser's ``weight_decay`` may stand in for L2
    prox : whether parts with a kink act by their proximal map; else by a subgradient
    """

    def __init__(
        self, penalty: Penalty | None, energy: Energy, total: float, *, decay: bool, prox: bool
    ) -> None:
        self.energy, self.total = energy, total
        self.decayed: list[tuple[Tensor, float]] = []
        self.gradient: list[Penalty] = []
        self.proximal: list[tuple[SeparablePenalty, Tensor]] = []
        self._roots: list[Tensor] = []
        self._strength: Tensor | None = None
        for part in _parts(penalty):
            if decay and isinstance(part, L2) and isinstance(part.strength, float | int):
                for _, owner, leaf in part.penalised(energy):
                    self.decayed.append((getattr(owner, leaf), float(part.strength)))
            elif prox and isinstance(part, SeparablePenalty) and not part.smooth:
                for _, owner, leaf in part.penalised(energy):
                    self.proximal.append((part, getattr(owner, leaf)))
            else:
                self.gradient.append(part)
        if decay and _twice([p for p, _ in self.decayed]):  # one group holds one strength
            self.gradient = [*self.gradient, *(p for p in _parts(penalty) if isinstance(p, L2))]
            self.decayed = []
        if _twice([p for _, p in self.proximal]):  # no simple proximal map of the sum
            kinks = {id(part): part for part, _ in self.proximal}
            self.gradient, self.proximal = [*self.gradient, *kinks.values()], []
        if self.decayed:
            self._roots = [p.detach() for p, _ in self.decayed]
            strengths = torch.tensor([s for _, s in self.decayed], dtype=self._roots[0].dtype)
            self._strength = (0.5 * strengths / total).to(self._roots[0].device)

    def groups(self, parameters: list[Tensor]) -> list[Any]:
        """The parameters for an optimiser; those under L2 in groups with ``weight_decay``."""
        if not self.decayed:
            return parameters
        rates = {id(p): s / self.total for p, s in self.decayed}
        by_rate: dict[float, list[Tensor]] = {}
        for p in parameters:
            by_rate.setdefault(rates.get(id(p), 0.0), []).append(p)
        return [{"params": ps, "weight_decay": rate} for rate, ps in by_rate.items()]

    def differentiable(self) -> Tensor | None:
        """The part of Ω/Σw whose gradient is taken in the step."""
        value: Tensor | None = None
        for part in self.gradient:
            term = part(self.energy)
            value = term if value is None else value + term
        return None if value is None else value / self.total

    @torch.no_grad()
    def rest(self) -> Tensor | None:
        """The value of the other parts of Ω/Σw, for the record."""
        value: Tensor | None = None
        if self._strength is not None:
            squares = torch.stack([full(n) for n in foreach_norm(self._roots)]).square_()
            value = torch.dot(squares, self._strength)
        for part, p in self.proximal:
            term = full(part.value_of(p)) / self.total
            value = term if value is None else value + term
        return value

    @torch.no_grad()
    def prox(self, optimizer: torch.optim.Optimizer) -> None:
        """The proximal maps, in the metric of the optimiser's step just taken."""
        for part, p in self.proximal:
            own = local(p)
            own.copy_(part.prox_of(own, local(metric(optimizer, p)) / self.total))

    def check_spread(self) -> None:
        """Refuse what the own part of θ does not decide: a spread θ knows sums over entries alone."""
        for part in (*self.gradient, *(part for part, _ in self.proximal)):
            wide = [n for n, v in vars(part).items() if isinstance(v, Tensor) and v.ndim]
            if wide or not isinstance(part, SeparablePenalty):
                with_it = f" with a tensor as {wide[0]}" if wide else ""
                raise Unsupported(
                    "shard='fsdp' takes penalties that are sums over the entries of θ, with numbers "
                    f"as strengths, not {type(part).__name__}{with_it}; leave shard out"
                )

    def pull(self, scale: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Add the gradient of the smooth parts to that of the own part of θ; the own part of Ω/Σw.

        Parameters
        ----------
        scale : what the loss was scaled by before its gradient was taken
        """
        value: Tensor | None = None
        for part in self.gradient:
            assert isinstance(part, SeparablePenalty)
            for _, owner, leaf in part.penalised(self.energy):
                p = getattr(owner, leaf)
                own = local(p.detach()).requires_grad_()
                term = part.value_of(own) / self.total
                (g,) = torch.autograd.grad(term if scale is None else scale(term), own)
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                local(p.grad).add_(g)
                value = term.detach() if value is None else value + term.detach()
        assert value is not None
        return value


def _parts(penalty: Penalty | None) -> list[Penalty]:
    if penalty is None:
        return []
    if isinstance(penalty, SumPenalty):
        return [leaf for part in penalty.parts for leaf in _parts(part)]  # type: ignore[arg-type]
    return [penalty]


def _twice(parameters: list[Tensor]) -> bool:
    return len({id(p) for p in parameters}) < len(parameters)
