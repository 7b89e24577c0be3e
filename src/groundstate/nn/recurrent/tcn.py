r"""Causal convolutions with growing gaps: sequences without a loop over items."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.compute.rows import Ragged
from groundstate.errors import ShapeError
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import blank, init_
from groundstate.nn.recurrent.padding import pad_batch, unpad
from groundstate.nn.recurrent.recurrent import Items, cut


@blocks.register(
    make=lambda: TCN(3, 4, 2, activation="tanh"),
    batch=rows_of(6, 3),
    formula=r"h\leftarrow h+\sigma(K*_{2^\ell}h)",
)
class TCN(nn.Module):
    r"""Residual blocks of causal convolutions, dilated by 1, 2, 4, …

    .. math:: h^{\ell+1}_t = P h^\ell_t + \sigma\Bigl(b + \sum_{u=0}^{K-1} W_u\,
              h^{\ell}_{t - u2^\ell}\Bigr)

    An output sees the :math:`1 + (K-1)(2^L-1)` last items and nothing later.

    Parameters
    ----------
    in_features, hidden : sizes
    layers : L
    kernel_size : K
    activation : :math:`\sigma`
    dropout : of hidden channels in training
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = TCN(3, 8, 4)
    >>> net(torch.ones(2, 20, 3)).shape, net.receptive_field
    (torch.Size([2, 20, 8]), 31)
    """

    def __init__(
        self,
        in_features: int,
        hidden: int,
        layers: int = 4,
        kernel_size: int = 3,
        activation: str = "relu",
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.hidden, self.layers = in_features, hidden, layers
        self.kernel_size, self.activation, self.dropout = kernel_size, activation, dropout
        self.out_features = hidden
        sizes = [in_features, *[hidden] * layers]
        self.convs = nn.ModuleList(
            blank(nn.Conv1d, a, b, kernel_size, dilation=2**i)
            for i, (a, b) in enumerate(pairwise(sizes))
        )
        self.skip = (
            nn.Identity() if in_features == hidden else blank(nn.Conv1d, in_features, hidden, 1)
        )
        self.act = make_activation(activation)
        init_(self, "auto", generator)

    @property
    def receptive_field(self) -> int:
        """Items that an output sees."""
        return 1 + (self.kernel_size - 1) * (2**self.layers - 1)

    def forward(self, x: Items, lengths: Tensor | None = None) -> Items:
        """Outputs of all items: ``(B, T, in_features)`` to ``(B, T, hidden)``, zeros behind ``lengths``
        ``(B,)``; ragged rows to ragged rows."""
        if isinstance(x, Ragged):
            padded, _ = pad_batch(x)  # what is behind a row's end is later, and later is not seen
            return unpad(self(padded), x.lengths)
        if x.ndim != 3 or x.shape[-1] != self.in_features:
            raise ShapeError(f"TCN takes (batch, length, {self.in_features}), got {tuple(x.shape)}")
        h = x.transpose(1, 2)
        for i, conv in enumerate(self.convs):
            new = self.act(conv(F.pad(h, ((self.kernel_size - 1) * 2**i, 0))))
            h = (self.skip(h) if i == 0 else h) + F.dropout(new, self.dropout, self.training)
        out = h.transpose(1, 2)
        return out if lengths is None else cut(out, lengths)
