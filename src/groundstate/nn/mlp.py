r"""A plain multilayer network, :math:`h_{l+1} = \sigma(W_l h_l + b_l)`, last layer linear."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "softplus": nn.Softplus,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "sigmoid": nn.Sigmoid,
}


class MLP(nn.Module):
    r"""A network of dense layers, :math:`h_{l+1} = \sigma(W_l h_l + b_l)`, with a linear last one.

    Parameters
    ----------
    sizes : widths from input to output, at least two
    activation : one of ``ACTIVATIONS``
    generator : source of the initial weights, variance 1/fan-in; None is a fixed seed

    Examples
    --------
    >>> MLP((2, 8, 3))(torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str = "tanh",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if len(sizes) < 2:
            raise ValueError(f"MLP needs at least an input and an output size, got {sizes}")
        if activation not in ACTIVATIONS:
            raise Unsupported(
                f"activation {activation!r} is not known; use one of {', '.join(ACTIVATIONS)}"
            )
        self.sizes, self.activation = tuple(sizes), activation
        generator = generator or torch.Generator().manual_seed(0)
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(sizes):
            layer = nn.utils.skip_init(nn.Linear, fan_in, fan_out)
            with torch.no_grad():
                weight = torch.randn(fan_out, fan_in, generator=generator) / fan_in**0.5
                layer.weight.copy_(weight)
                layer.bias.zero_()
            layers += [layer, ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers[:-1])

    def config(self) -> dict[str, Any]:
        return {"sizes": list(self.sizes), "activation": self.activation}

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x)
        return result


def network(
    net: Sequence[int] | nn.Module,
    d_in: int,
    d_out: int,
    generator: torch.Generator | None = None,
    activation: str = "tanh",
) -> nn.Module:
    """``net`` itself when it is a module, else an ``MLP`` with these hidden sizes."""
    if isinstance(net, nn.Module):
        return net
    return MLP((d_in, *net, d_out), activation, generator)


__all__ = ["ACTIVATIONS", "MLP", "network"]
