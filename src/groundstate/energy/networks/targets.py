r"""Backpropagation as stacked energies: every layer is asked to reach a target.

A layer :math:`h = \sigma(U^\top x + c)` with a target :math:`\hat h` has the energy
:math:`e' = \tfrac12\|h - \hat h\|^2`. The top energy sets :math:`\hat h = h - \nabla_h L`; with
these unit steps the gradients of the layers' own energies are exactly those of backpropagation,

.. math:: \nabla_c = (h - \hat h)\odot h', \quad \nabla_U = x\,\nabla_c^\top, \quad
          \nabla_x = U\,(\nabla_h\odot h').
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.errors import Unsupported

# name -> (σ, σ' written in terms of h = σ(a))
SQUASH: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "tanh": (torch.tanh, lambda h: 1 - h.square()),
    "sigmoid": (torch.sigmoid, lambda h: h * (1 - h)),
    "relu": (torch.relu, lambda h: (h > 0).to(h.dtype)),
    "identity": (lambda a: a, torch.ones_like),
}


@dataclass(frozen=True)
class LayerGradient:
    """Sums over rows of the gradients of one layer, and the gradient handed to its input."""

    U: Tensor  # (d, m)
    c: Tensor  # (m,)
    x: Tensor  # (B, d)


@registered(r"e(x, y) = \tfrac12\|\sigma(U^\top x + c) - y\|^2", lambda: TargetEnergy(3, 2))
class TargetEnergy(Energy):
    r"""A layer that should reach a target,
    :math:`e'(x, y) = \tfrac12\|\sigma(U^\top x + c) - y\|^2`.

    The target y = ĥ is held fixed. Learning is anti-Hebbian in h and Hebbian in ĥ.

    Parameters
    ----------
    d, m : sizes of the input and of the layer
    activation : a name of ``SQUASH``
    generator : source of the initial U

    Attributes
    ----------
    U : Parameter, ``(d, m)``
    c : Parameter, ``(m,)``

    Examples
    --------
    >>> layer = TargetEnergy(2, 3)
    >>> x = torch.ones(1, 2)
    >>> float(layer(x=x, y=layer.activate(x)).detach())
    0.0
    """

    held = frozenset({"y"})  # a target is data: no gradient flows into it
    unpenalised = ("c",)

    def __init__(
        self,
        d: int,
        m: int,
        activation: str = "tanh",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        if activation not in SQUASH:
            raise Unsupported(f"activation {activation!r} is not one of {', '.join(SQUASH)}")
        super().__init__(x=Real(d), y=Real(m))
        generator = generator or torch.Generator().manual_seed(0)
        self.activation = activation
        self.U = nn.Parameter(torch.randn(d, m, generator=generator) / d**0.5)
        self.c = nn.Parameter(torch.zeros(m))

    def config(self) -> dict[str, Any]:
        return {"d": self.U.shape[0], "m": self.U.shape[1], "activation": self.activation}

    def activate(self, x: Tensor) -> Tensor:
        """h = σ(Uᵀx + c), ``(B, m)``."""
        return SQUASH[self.activation][0](torch.addmm(self.c, x, self.U))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (self.activate(x) - y.detach()).square().sum(-1)

    @offers.argmin("y")
    def reached(self, x: Tensor) -> Tensor:
        return self.activate(x)

    def gradients(self, x: Tensor, target: Tensor, h: Tensor | None = None) -> LayerGradient:
        """The gradients of Σ e' by hand; ``h`` saves the forward pass when it is known."""
        with torch.no_grad():
            h = self.activate(x) if h is None else h
            delta = (h - target) * SQUASH[self.activation][1](h)  # (B, m)
            return LayerGradient(x.T @ delta, delta.sum(0), delta @ self.U.T)


class StackedEnergies(nn.Module):
    r"""Layers of target energies under a top energy; a readable reference for backpropagation.

    The forward pass keeps the activations, whose memory is linear in depth. The top energy gives
    :math:`\hat h = h - \nabla_h L`; each layer below takes the gradient of its own target energy
    and hands :math:`\hat x = x - \nabla_x` down. Training uses torch's autograd instead.

    Parameters
    ----------
    layers : from input to top
    top : an energy of ``x`` (the last activation) and the rest of the batch, e.g.
        ``DistributionHead``; its sum over rows is the loss

    Examples
    --------
    >>> from groundstate.energy import SquaredEnergy
    >>> net = StackedEnergies([TargetEnergy(2, 3)], SquaredEnergy(3))
    >>> sorted(net.gradients({"x": torch.ones(4, 2), "y": torch.ones(4, 1)}))
    ['layers.0.U', 'layers.0.c', 'top.W', 'top.b']
    """

    def __init__(self, layers: Sequence[TargetEnergy], top: Energy) -> None:
        super().__init__()
        self.layers, self.top = nn.ModuleList(layers), top

    def config(self) -> dict[str, Any]:
        return {"layers": list(self.layers), "top": self.top}

    @property
    def stack(self) -> list[TargetEnergy]:
        return list(self.layers)  # type: ignore[arg-type]

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The loss per row, ``(B,)``, for autograd."""
        h = batch["x"]
        for layer in self.stack:
            h = layer.activate(h)
        return self.top(**{**batch, "x": h})

    def gradients(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Gradients of the summed loss by parameter name, layer by layer."""
        with torch.no_grad():
            activations = [batch["x"]]
            for layer in self.stack:
                activations.append(layer.activate(activations[-1]))
        h = activations[-1].detach().requires_grad_()
        with torch.enable_grad():
            loss = self.top(**{**batch, "x": h}).sum()
            named = [(n, p) for n, p in self.top.named_parameters() if p.requires_grad]
            down, *tops = torch.autograd.grad(loss, [h, *(p for _, p in named)])
        result = {f"top.{name}": g for (name, _), g in zip(named, tops)}
        for i in reversed(range(len(self.layers))):
            target = activations[i + 1] - down  # the unit step
            own = self.stack[i].gradients(activations[i], target, activations[i + 1])
            result[f"layers.{i}.U"], result[f"layers.{i}.c"] = own.U, own.c
            down = own.x
        return result
