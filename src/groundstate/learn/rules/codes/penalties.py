r"""Penalties on a code: few large entries, rare entries, entries that move little with x."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.activations import activation
from groundstate.nn.blocks.mlp import MLP


class Encoded(NamedTuple):
    """Where codes come from: the encoder and its inputs, weights of the rows, and what draws."""

    inputs: Tensor
    encoder: nn.Module
    weight: Tensor | None
    generator: torch.Generator | None


class CodePenalty(nn.Module):
    """The contract: what codes cost, ``(B,)`` or one number that all rows share.

    Parameters
    ----------
    strength : what the cost is multiplied with

    Attributes
    ----------
    exact : whether nothing is drawn
    differentiates : whether the codes must carry gradients in the encoder's inputs
    """

    exact: bool = True
    differentiates: bool = False

    def __init__(self, strength: float) -> None:
        super().__init__()
        if not strength >= 0:
            raise ValueError(f"the strength of a penalty cannot be negative, got {strength}")
        self.strength = float(strength)

    def forward(
        self,
        z: Tensor,
        inputs: Tensor,
        encoder: nn.Module,
        weight: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Of codes ``(B, k)`` of the encoder's inputs."""
        return self.cost(z, Encoded(inputs, encoder, weight, generator))

    def cost(self, z: Tensor, at: Encoded) -> Tensor:
        """What the codes of these rows cost."""
        raise TypeError(f"{type(self).__name__} must define cost(z, at)")


class L1Code(CodePenalty):
    r""":math:`\lambda\sum_j|z_j|`.

    >>> L1Code(0.5)(torch.tensor([[1.0, -2.0]]), torch.zeros(1, 2), nn.Identity())
    tensor([1.5000])
    """

    def __init__(self, strength: float = 1e-3) -> None:
        super().__init__(strength)

    def cost(self, z: Tensor, at: Encoded) -> Tensor:
        return self.strength * z.abs().sum(-1)


class RareCode(CodePenalty):
    r""":math:`\beta\sum_j\mathrm{KL}(B(\rho)\,\|\,B(\rho_j))` of codes in (0, 1), where
    :math:`\rho_j` is the mean of entry j over the rows.

    The mean is a running one over batches, so that its value is that of all rows; its gradient is that
    of the batch.

    Parameters
    ----------
    k : length of the code
    strength : β
    target : ρ
    decay : share of the running mean that stays in each step

    Attributes
    ----------
    running : sums of the running mean, ``(k,)``; ``seen`` is their weight

    Examples
    --------
    >>> z = torch.full((4, 1), 0.2)
    >>> round(RareCode(1, 1.0, 0.05)(z, z, nn.Identity()).item(), 6)
    0.093943
    """

    running: Tensor
    seen: Tensor

    def __init__(
        self, k: int, strength: float = 1.0, target: float = 0.05, decay: float = 0.5
    ) -> None:
        super().__init__(strength)
        if not 0 < target < 1 or not 0 <= decay < 1:
            raise ValueError(
                f"target is a mean in (0, 1) and decay a share in [0, 1), got {target}, {decay}"
            )
        self.k, self.target, self.decay = k, target, decay
        self.register_buffer("running", torch.zeros(k))
        self.register_buffer("seen", torch.zeros(()))

    def config(self) -> dict[str, Any]:
        return {
            "k": self.k, "strength": self.strength, "target": self.target, "decay": self.decay,
        }  # fmt: skip

    def cost(self, z: Tensor, at: Encoded) -> Tensor:
        w = at.weight
        mean = z.mean(0) if w is None else w.to(z.dtype) @ z / w.sum()
        if self.training and torch.is_grad_enabled():
            with torch.no_grad():
                self.running.lerp_(mean.to(self.running), 1 - self.decay)
                self.seen.lerp_(torch.ones_like(self.seen), 1 - self.decay)
        value = torch.where(self.seen > 0, self.running / self.seen.clamp_min(1e-9), mean.detach())
        rho = (value + mean - mean.detach()).clamp(1e-6, 1 - 1e-6)  # value running, gradient batch
        t = self.target
        kl = t * (t / rho).log() + (1 - t) * ((1 - t) / (1 - rho)).log()
        return self.strength * kl.sum()


class ContractedCode(CodePenalty):
    r""":math:`\gamma\|\partial f/\partial x\|_F^2`: codes that move little where rows do.

    For one sigmoid layer in closed form,
    :math:`\gamma\sum_j(z_j(1-z_j))^2\sum_iW_{ji}^2`; for any other encoder an unbiased estimate
    :math:`\gamma\|J^\top v\|^2` with random signs v (Hutchinson).

    Parameters
    ----------
    strength : γ
    n_inputs : numbers of a row; a condition behind them is left out. None is all

    Examples
    --------
    >>> net = MLP(2, (), 1, out_activation="sigmoid")
    >>> _ = net.layers[0].weight.data.copy_(torch.tensor([[1.0, 2.0]])), net.layers[0].bias.data.zero_()
    >>> x = torch.zeros(1, 2)
    >>> round(ContractedCode(1.0)(net(x), x, net).item(), 4)
    0.3125
    """

    exact = False
    differentiates = True

    def __init__(self, strength: float = 0.1, n_inputs: int | None = None) -> None:
        super().__init__(strength)
        self.n_inputs = n_inputs

    def cost(self, z: Tensor, at: Encoded) -> Tensor:
        weights = _one_sigmoid_layer(at.encoder)
        if weights is not None:
            rows = weights[:, : self.n_inputs].square().sum(1)  # (k,)
            return self.strength * (z * (1 - z)).square() @ rows
        device = z.device if at.generator is None else at.generator.device
        u = torch.rand(z.shape, generator=at.generator, device=device).to(z)
        signs = torch.where(u < 0.5, -1.0, 1.0).to(z)
        (pulled,) = torch.autograd.grad(z, at.inputs, signs, create_graph=True)
        return self.strength * pulled[:, : self.n_inputs].square().sum(1)


def _one_sigmoid_layer(encoder: nn.Module) -> Tensor | None:
    """The weights of an encoder that is one sigmoid layer, else None."""
    if not isinstance(encoder, MLP) or encoder.depth or len(encoder.layers) != 2:
        return None
    first, last = encoder.layers
    if not isinstance(first, nn.Linear) or type(last) is not type(activation("sigmoid")):
        return None
    return first.weight if encoder.out_activation == "sigmoid" else None


class Commitment(CodePenalty):
    r""":math:`\|\mathrm{sg}(z) - q(z)\|^2 + \beta\|z - \mathrm{sg}(q(z))\|^2` for an encoder that ends in a
    ``Quantiser``: vectors of the codebook move to the codes, and codes stay near them.

    Parameters
    ----------
    beta : strength of the second term
    """

    def __init__(self, beta: float = 0.25) -> None:
        super().__init__(beta)
        self.beta = self.strength

    def cost(self, z: Tensor, at: Encoded) -> Tensor:
        net, quantiser = at.encoder[0], at.encoder[1]  # type: ignore[index]
        before = net(at.inputs)
        near = quantiser.nearest(before)
        book = (before.detach() - near).square().sum(-1)
        cost: Tensor = book + self.beta * (before - near.detach()).square().sum(-1)
        return cost
