r"""The smallest block: a linear map with its activation."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import init_, linear


@blocks.register(make=lambda: LinearBlock(3, 2, "tanh"), batch=rows_of(3), formula=r"\sigma(Wh+b)")
class LinearBlock(nn.Sequential):
    r"""A linear map and its activation, :math:`h \mapsto \sigma(Wh + b)`.

    Parameters
    ----------
    in_features, out_features : sizes
    activation : a name of ``ACTIVATIONS`` or a module
    bias : whether there is a b
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> LinearBlock(3, 2)(torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        activation: str | nn.Module = "relu",
        bias: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(linear(in_features, out_features, bias), make_activation(activation))
        self._settings = {"in_features": in_features, "out_features": out_features,
                          "activation": activation, "bias": bias}  # fmt: skip
        init_(self, "auto", generator)

    def config(self) -> dict[str, Any]:
        return dict(self._settings)
