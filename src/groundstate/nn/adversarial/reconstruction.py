r"""An autoencoder as a discriminator: what it cannot rebuild is not of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.mlp import MLP


class Reconstruction(nn.Module):
    r"""The logit :math:`s = -\|F(G(x)) - x\|^2`, so that the energy is the error of rebuilding x.

    Parameters
    ----------
    n_features : length of x
    hidden_layer_sizes : widths of the encoder; the decoder mirrors them
    n_code : length of the code
    n_given : length of a condition that encoder and decoder see, 0 without
    activation : between the layers
    generator : of the initial weights

    Examples
    --------
    >>> Reconstruction(2, (8,), 1)(torch.ones(3, 2)).shape
    torch.Size([3, 1])
    """

    def __init__(
        self,
        n_features: int,
        hidden_layer_sizes: Sequence[int],
        n_code: int,
        n_given: int = 0,
        activation: str | nn.Module = "relu",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        hidden = tuple(hidden_layer_sizes)
        self.n_features, self.n_code, self.n_given = n_features, n_code, n_given
        self._kept = (hidden, activation)
        make = {"activation": activation, "init": "torch", "generator": generator}
        self.encoder = MLP(n_features + n_given, hidden, n_code, **make)  # type: ignore[arg-type]
        self.decoder = MLP(n_code + n_given, hidden[::-1], n_features, **make)  # type: ignore[arg-type]

    def config(self) -> dict[str, Any]:
        hidden, activation = self._kept
        return {
            "n_features": self.n_features, "hidden_layer_sizes": list(hidden),
            "n_code": self.n_code, "n_given": self.n_given, "activation": activation,
        }  # fmt: skip

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        h = self.encoder(x if y is None else torch.cat([x, y], 1))
        back = self.decoder(h if y is None else torch.cat([h, y], 1))
        return -(back - x).square().sum(1, keepdim=True)
