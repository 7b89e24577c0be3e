r"""Parameters as a variable: :math:`e(\theta) = \sum_i L_i(\theta)/T_{data} + \Omega(\theta)`."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real
from groundstate.errors import ShapeError, Unsupported
from groundstate.learn.base import Batch, Penalty, Rule


class ParameterEnergy(Energy):
    r"""The energy of θ itself, :math:`e(\theta) = \sum_i w_iL_i(\theta)/T_{data} + \Omega(\theta)`.

    An ordinary energy over one real variable ``theta`` (all parameters in one vector), so every
    minimiser and sampler applies: minimising is penalised learning (MAP), sampling at T = 1 draws
    from the Gibbs posterior :math:`\propto e^{-\sum L/T_{data}}e^{-\Omega}`, which is Bayes' when L
    is a negative log-likelihood. Many θ are evaluated as one tensor program. Each evaluation is one
    pass over the data; ``passes`` counts them.

    Parameters
    ----------
    energy : the energy whose parameters are the variable; it is left as it is
    rule : gives the loss of a row, without sampling
    data : tensors by name, ``(N, *event)`` each
    penalty : :math:`\Omega = -\log` prior; None is flat
    data_T : temperature of the data term alone
    sample_weight : ``(N,)``

    Attributes
    ----------
    theta : the parameters of ``energy`` as one row, ``(1, P)``; a start for minimisers and chains
    passes : evaluations so far, each one pass over the data for all rows at once

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.infer import minimise
    >>> from groundstate.learn import L2, SoftMin
    >>> data = {"x": torch.tensor([[-1.0], [1.0]]), "y": torch.tensor([0, 1])}
    >>> e = ParameterEnergy(LinearEnergy(1, 2), SoftMin(), data, L2(1.0))
    >>> best = minimise(e, "theta", init={"theta": e.theta})
    >>> [round(w, 2) for w in e.named(best["theta"][0])["W"].flatten().tolist()]
    [-0.52, 0.52]
    """

    def __init__(
        self,
        energy: Energy,
        rule: Rule,
        data: Mapping[str, Tensor],
        penalty: Penalty | None = None,
        data_T: float = 1.0,
        *,
        sample_weight: Tensor | None = None,
    ) -> None:
        if not data_T > 0:
            raise ValueError(f"data_T is a temperature and must be positive, got {data_T}")
        if not rule.is_objective:
            raise Unsupported(
                f"{type(rule).__name__} gives a gradient but no loss, so θ has no energy"
            )
        rule.require(energy, data)
        named = {n: p for n, p in energy.named_parameters() if p.requires_grad}
        size = sum(p.numel() for p in named.values())
        if not size:
            raise Unsupported(f"{type(energy).__name__} has no parameters to be a variable")
        super().__init__(theta=Real(size))
        # rules and penalties remember which parameters they met: copies meet these, once, now
        self.model = _Loss(energy, deepcopy(rule), deepcopy(penalty))
        with torch.enable_grad():
            self.model({name: v[:1] for name, v in data.items()}, None, 1.0)
        self.shapes = {name: p.shape for name, p in named.items()}
        self.names = tuple(data)
        for name, value in data.items():
            self.register_buffer(f"data_{name}", value)
        self.register_buffer("weight", sample_weight)
        self.data_T = float(data_T)
        self.passes = 0
        self._vmapped: bool | None = None  # None: not tried yet

    @property
    def data(self) -> Batch:
        return {name: getattr(self, f"data_{name}") for name in self.names}

    @property
    def theta(self) -> Tensor:
        parameters = dict(self.model.energy.named_parameters())
        return torch.cat([parameters[n].detach().reshape(-1) for n in self.shapes])[None]

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """One vector ``(P,)`` as parameters by name."""
        if theta.shape != self.spaces["theta"].shape:
            raise ShapeError(
                f"one θ has shape {tuple(self.spaces['theta'].shape)}, got {tuple(theta.shape)}"
            )
        sizes = [shape.numel() for shape in self.shapes.values()]
        pieces = theta.split(sizes)
        return {
            name: piece.view(shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }

    @torch.no_grad()
    def assign(self, theta: Tensor) -> Energy:
        """Put one vector ``(P,)`` into the energy, and give it back."""
        energy = self.model.energy
        parameters = dict(energy.named_parameters())
        for name, value in self.named(theta).items():
            parameters[name].copy_(value)
        return energy

    def draws(self, theta: Tensor) -> ThetaDraws:
        """Vectors ``(..., P)``, such as ``sample(...)["theta"]``, as draws of the parameters."""
        return ThetaDraws(self.model.energy, theta.reshape(-1, theta.shape[-1]), tuple(self.shapes))

    def _one(self, theta: Tensor) -> Tensor:
        parameters = {f"energy.{name}": v for name, v in self.named(theta).items()}
        value: Tensor = functional_call(
            self.model, parameters, (self.data, self.weight, self.data_T), strict=False
        )
        return value

    def forward(self, theta: Tensor) -> Tensor:
        self.passes += 1
        if len(theta) > 1 and self._vmapped is not False:
            try:
                values: Tensor = vmap(self._one, randomness="error")(theta)
                self._vmapped = True
                return values
            except RuntimeError:  # the rule looks at values or searches: one θ after the other
                if self._vmapped:
                    raise
                self._vmapped = False
        return torch.stack([self._one(row) for row in theta])


class _Loss(nn.Module):
    """Loss of the whole data, for ``functional_call``."""

    def __init__(self, energy: Energy, rule: Rule, penalty: Penalty | None) -> None:
        super().__init__()
        self.energy, self.rule, self.penalty = energy, rule, penalty

    def forward(self, data: Batch, weight: Tensor | None, data_T: float) -> Tensor:
        loss: Tensor = self.rule(self.energy, data).loss
        total = (loss.sum() if weight is None else torch.dot(loss, weight)) / data_T
        return total if self.penalty is None else total + self.penalty(self.energy)


@dataclass(frozen=True)
class ThetaDraws:
    """Parameter vectors ``(M, P)`` of one energy, from a sampler or from snapshots of training.

    Attributes
    ----------
    energy : the energy the parameters belong to
    theta : ``(M, P)``
    names : which parameters, in the order in which they are joined
    """

    energy: Energy
    theta: Tensor
    names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.theta.shape[0])

    def call(self, m: int, what: Any) -> Any:
        """``what(energy)`` with the parameters of draw ``m`` in place."""
        parameters = {f"energy.{k}": v for k, v in self.named(m).items()}
        holder = _Call(self.energy)
        return functional_call(holder, parameters, (what,), strict=False)

    def named(self, m: int) -> dict[str, Tensor]:
        """The parameters of draw ``m`` by name."""
        shapes = {n: p.shape for n, p in self.energy.named_parameters() if n in self.names}
        pieces = self.theta[m].split([shapes[n].numel() for n in self.names])
        return {n: piece.view(shapes[n]) for n, piece in zip(self.names, pieces, strict=True)}


class _Call(nn.Module):
    def __init__(self, energy: Energy) -> None:
        super().__init__()
        self.energy = energy

    def forward(self, what: Any) -> Any:
        return what(self.energy)
