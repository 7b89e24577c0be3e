r"""The same small network at every position: 1×1 convolutions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(
    make=lambda: ChannelMLP(3, 2, 4), batch=rows_of(3, 2, 4), formula=r"W_2\sigma(W_1x_p+b_1)+b_2"
)
class ChannelMLP(nn.Module):
    r"""An MLP on the channels of every position, :math:`y_p = W_2\,\sigma(W_1x_p+b_1)+b_2`.

    A 1×1 convolution is a linear map of the channels, shared by all positions. There is no
    activation after the last layer; one layer maps in → out.

    Parameters
    ----------
    in_channels, out_channels : channels; ``out_channels=None`` keeps them
    hidden_channels : of the layers between; by default ``in_channels``
    n_layers : linear maps
    n_dim : 1, 2 or 3 spatial axes
    activation : between layers
    dropout : after every layer

    Examples
    --------
    >>> import torch
    >>> net = ChannelMLP(4, 2, 8, n_layers=3)
    >>> net(torch.zeros(1, 4, 5, 5)).shape, sum(p.numel() for p in net.parameters())
    (torch.Size([1, 2, 5, 5]), 130)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int | None = None,
        hidden_channels: int | None = None,
        n_layers: int = 2,
        n_dim: int = 2,
        activation: str = "gelu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if n_layers < 1 or n_dim not in (1, 2, 3):
            raise ValueError(
                f"ChannelMLP needs n_layers of at least 1 and n_dim of 1, 2 or 3, got "
                f"n_layers={n_layers}, n_dim={n_dim}"
            )
        out = in_channels if out_channels is None else out_channels
        hidden = in_channels if hidden_channels is None else hidden_channels
        self.in_channels, self.n_dim = in_channels, n_dim
        self._settings = {"in_channels": in_channels, "out_channels": out,
                          "hidden_channels": hidden, "n_layers": n_layers, "n_dim": n_dim,
                          "activation": activation, "dropout": dropout}  # fmt: skip
        sizes = [in_channels, *[hidden] * (n_layers - 1), out]
        conv = getattr(nn, f"Conv{n_dim}d")
        layers: list[nn.Module] = []
        for i, (a, b) in enumerate(pairwise(sizes)):
            layers += [make_activation(activation)] if i else []
            layers.append(conv(a, b, 1))
            layers += [nn.Dropout(dropout)] if dropout else []
        self.layers = nn.Sequential(*layers)

    def config(self) -> dict[str, Any]:
        return dict(self._settings)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != self.n_dim + 2 or x.shape[1] != self.in_channels:
            raise ShapeError(
                f"ChannelMLP takes (N, {self.in_channels}, {self.n_dim} spatial axes), got an input "
                f"of shape {tuple(x.shape)}"
            )
        out: Tensor = self.layers(x)
        return out
