r"""Columns by one masked network, :math:`o_j = f_j(x_{\pi(<j)})` in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.flows.masked import MaskedMLP, MaskedSteps


class MaskedColumns(nn.Module):
    r"""A dense network with masked weights whose outputs of column j depend on the columns before it.

    Parameters
    ----------
    widths, sizes : inputs and outputs of each column
    hidden_layer_sizes : widths of hidden layers; none makes it linear
    activation : of hidden layers
    context : numbers that every output may depend on
    order : π, the order of the columns
    generator : source of the initial weights

    Examples
    --------
    >>> net = MaskedColumns((1, 3), (6, 3), (8,))
    >>> net(torch.zeros(2, 4)).shape
    torch.Size([2, 9])
    >>> steps = net.stepper(2)
    >>> steps.next(None).shape, steps.next(torch.zeros(2, 1)).shape
    (torch.Size([2, 6]), torch.Size([2, 3]))
    """

    def __init__(
        self,
        widths: Sequence[int],
        sizes: Sequence[int],
        hidden_layer_sizes: Sequence[int] = (64, 64),
        activation: str = "relu",
        context: int = 0,
        order: Sequence[int] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.widths, self.sizes = tuple(widths), tuple(sizes)
        self.hidden_layer_sizes, self.activation = tuple(hidden_layer_sizes), activation
        self.context = context
        self.order = tuple(range(len(self.widths))) if order is None else tuple(order)
        starts = [sum(self.widths[:j]) for j in range(len(self.widths))]
        # the outputs of a column belong to the first of its inputs, which sees none of the others
        outputs = [0] * sum(self.widths)
        for start, size in zip(starts, self.sizes, strict=True):
            outputs[start] = size
        places = [starts[j] + i for j in self.order for i in range(self.widths[j])]
        self.net = MaskedMLP(
            sum(self.widths), outputs, self.hidden_layer_sizes, activation, context, places,
            generator=generator,
        )  # fmt: skip

    def config(self) -> dict[str, Any]:
        return {
            "widths": list(self.widths), "sizes": list(self.sizes),
            "hidden_layer_sizes": list(self.hidden_layer_sizes), "activation": self.activation,
            "context": self.context, "order": list(self.order),
        }  # fmt: skip

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Outputs ``(B, sum(sizes))`` of inputs ``(B, sum(widths))``."""
        out: Tensor = self.net(features, context)
        return out

    @torch.no_grad()
    def start_at(self, outputs: Tensor) -> None:
        """Give these outputs ``(sum(sizes),)`` for every row at first."""
        self.net.layers[-1].bias.copy_(outputs)  # type: ignore[operator]

    def stepper(self, rows: int, context: Tensor | None = None) -> _Steps:
        """The outputs column by column in the order, for the work of one pass."""
        return _Steps(self.net.stepper(rows, context))


class _Steps:
    def __init__(self, steps: MaskedSteps) -> None:
        self.steps = steps

    def next(self, features: Tensor | None) -> Tensor:
        """Outputs ``(B, size)`` of the next column from the inputs ``(B, width)`` of the one before."""
        if features is None:
            return self.steps.next(None)
        for one in features.T:
            out = self.steps.next(one)
        return out
