r"""Dropout whose mask can last an epoch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(make=lambda: Dropout(0.5), batch=rows_of(3), formula=r"am/(1-p)")
class Dropout(nn.Dropout):
    r"""Training: :math:`a\,m/(1-p)` with :math:`m\sim\text{Bernoulli}(1-p)`; evaluation: a.

    The mask is fresh at every forward pass, as in ``torch.nn.Dropout``. With
    ``mask_per_epoch=True`` one mask per unit, shared by all rows, lasts until ``resample()``: the
    thinned network of an epoch is then one fixed network.

    Parameters
    ----------
    p : probability of dropping (the retain probability is 1 − p)
    mask_per_epoch : keep the mask until ``resample``

    Attributes
    ----------
    mask : the present scaled mask ``(units,)``, None before the first pass and after ``resample``

    Examples
    --------
    >>> layer = Dropout(0.5, mask_per_epoch=True)
    >>> x = torch.ones(2, 4)
    >>> torch.equal(layer(x), layer(x)), torch.equal(layer.eval()(x), x)
    (True, True)
    """

    def __init__(self, p: float = 0.5, mask_per_epoch: bool = False) -> None:
        super().__init__(p)
        self.mask_per_epoch = mask_per_epoch
        self.mask: Tensor | None = None

    def resample(self) -> None:
        """Draw a new mask at the next pass."""
        self.mask = None

    def forward(self, input: Tensor) -> Tensor:
        if not self.mask_per_epoch or not self.training:
            return super().forward(input)
        mask = self.mask
        if mask is None or mask.shape != input.shape[1:]:
            mask = nn.functional.dropout(torch.ones_like(input[0]), self.p, training=True)
            self.mask = mask.detach()
        return input * mask.to(input)

    def extra_repr(self) -> str:
        return f"p={self.p}, mask_per_epoch={self.mask_per_epoch}"


def resample_masks(net: nn.Module) -> None:
    """Let every ``Dropout(mask_per_epoch=True)`` of a network draw a new mask; once an epoch."""
    for module in net.modules():
        if isinstance(module, Dropout):
            module.resample()
