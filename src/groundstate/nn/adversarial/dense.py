r"""Dense players, for rows: :math:`x = G(z, y)` and the logit :math:`s = D(x, y)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.adversarial.columns import Columns
from groundstate.nn.blocks.mlp import MLP

SLOPE = 0.2
Kind = str | nn.Module


def kind_of(activation: Kind) -> Kind:
    """The activation of a player; "leaky_relu" has the slope 0.2 of the field's networks."""
    return nn.LeakyReLU(SLOPE) if activation == "leaky_relu" else activation


class DenseGenerator(nn.Module):
    r"""Noise and condition to rows, :math:`x = \mathrm{columns}(\mathrm{MLP}([z, y]))`.

    Parameters
    ----------
    n_components : length of z
    hidden_layer_sizes : widths
    blocks : of the columns, see ``Columns``
    n_given : length of y, 0 without
    activation : between the layers; "leaky_relu" has the slope 0.2
    out_activation : of real columns, "identity" or "tanh"
    norm : None or "batch", of the hidden layers
    bits : see ``Columns``
    generator : of the initial weights

    Examples
    --------
    >>> g = DenseGenerator(2, (8,), [1, 1, 1])
    >>> g(torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        n_components: int,
        hidden_layer_sizes: Sequence[int],
        blocks: Sequence[int],
        n_given: int = 0,
        activation: Kind = "leaky_relu",
        out_activation: str = "identity",
        norm: str | None = None,
        bits: tuple[float, float] = (0.0, 1.0),
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_components, self.n_given = n_components, n_given
        self._kept = (tuple(hidden_layer_sizes), activation, out_activation, norm)
        width = sum(blocks)
        self.net = MLP(
            n_components + n_given, tuple(hidden_layer_sizes), width, kind_of(activation),
            norm=norm, init="torch", generator=generator,
        )  # fmt: skip
        self.columns = Columns(blocks, out_activation, bits=bits)

    def config(self) -> dict[str, Any]:
        hidden, activation, out, norm = self._kept
        return {
            "n_components": self.n_components, "hidden_layer_sizes": list(hidden),
            "blocks": list(self.columns.blocks), "n_given": self.n_given,
            "activation": activation, "out_activation": out, "norm": norm,
            "bits": list(self.columns.bits),
        }  # fmt: skip

    def forward(
        self, z: Tensor, y: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        x: Tensor = self.columns(self.net(z if y is None else torch.cat([z, y], 1)), generator)
        return x


class DenseDiscriminator(nn.Module):
    r"""Rows and condition to a logit, :math:`s = \mathrm{MLP}([x, y])`, high where a row looks real.

    Parameters
    ----------
    n_features : length of x
    hidden_layer_sizes : widths
    n_given : length of y, 0 without
    activation : between the layers; "leaky_relu" has the slope 0.2
    dropout : share of hidden units dropped in training
    spectral_norm : divide every weight by its largest singular value, which bounds the slope of s by 1
        (for activations of slope at most 1)
    generator : of the initial weights

    Examples
    --------
    >>> d = DenseDiscriminator(3, (8,))
    >>> d(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """

    def __init__(
        self,
        n_features: int,
        hidden_layer_sizes: Sequence[int],
        n_given: int = 0,
        activation: Kind = "leaky_relu",
        dropout: float = 0.0,
        spectral_norm: bool = False,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_features, self.n_given, self.spectral_norm = n_features, n_given, spectral_norm
        self._kept = (tuple(hidden_layer_sizes), activation, dropout)
        self.net = MLP(
            n_features + n_given, tuple(hidden_layer_sizes), 1, kind_of(activation),
            dropout=dropout, init="torch", generator=generator,
        )  # fmt: skip
        if spectral_norm:
            for layer in self.net.modules():
                if isinstance(layer, nn.Linear):
                    nn.utils.parametrizations.spectral_norm(layer)

    def config(self) -> dict[str, Any]:
        hidden, activation, dropout = self._kept
        return {
            "n_features": self.n_features, "hidden_layer_sizes": list(hidden),
            "n_given": self.n_given, "activation": activation, "dropout": dropout,
            "spectral_norm": self.spectral_norm,
        }  # fmt: skip

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        s: Tensor = self.net(x if y is None else torch.cat([x, y], 1))
        return s
