r"""A network whose output i sees the inputs before i alone, :math:`o_i = f_i(x_{<i})`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import init_, linear


@blocks.register(
    make=lambda: MaskedMLP(4, 2, (6, 5), "tanh", zero=False),
    batch=rows_of(4),
    formula=r"o_i = f_i(x_{<i})",
)
class MaskedMLP(nn.Module):
    r"""MADE: a dense network with masked weights, so that the outputs of feature i depend on the
    features before it alone.

    Every hidden unit has a degree m and sees what has degree at most m; degrees cycle through
    1, …, d − 1 (with a context through 0, …, d − 1, as all outputs may use it) and units stand in the
    order of their degrees. Output i sees units of degree below its own. Hence one pass gives all
    outputs, and ``stepper`` gives them one feature at a time for the work of that one pass.

    Parameters
    ----------
    features : d
    size : outputs of each feature, one number for all or one each
    hidden_layer_sizes : widths
    activation : of hidden layers
    context : numbers that every output may depend on
    order : π, the order of the features; ``order[0]`` depends on nothing but the context
    zero : whether the last layer starts at zero
    generator : source of the initial weights

    Attributes
    ----------
    order : tuple of int

    Examples
    --------
    >>> net = MaskedMLP(3, 2, (8,), zero=False)
    >>> net(torch.zeros(5, 3)).shape
    torch.Size([5, 6])
    >>> J = torch.func.jacrev(net)(torch.ones(3)).reshape(3, 2, 3).abs().sum(1)
    >>> bool((J.triu() == 0).all())
    True
    """

    def __init__(
        self,
        features: int,
        size: int | Sequence[int] = 1,
        hidden_layer_sizes: Sequence[int] = (64, 64),
        activation: str = "relu",
        context: int = 0,
        order: Sequence[int] | None = None,
        zero: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.features, self.context = features, context
        self.sizes = (size,) * features if isinstance(size, int) else tuple(size)
        if len(self.sizes) != features:
            raise ValueError(f"size needs one entry per feature, {features}, got {len(self.sizes)}")
        self.hidden_layer_sizes, self.activation = tuple(hidden_layer_sizes), activation
        self.order = tuple(range(features)) if order is None else tuple(int(i) for i in order)
        if sorted(self.order) != list(range(features)):
            raise ValueError(
                f"order must be a permutation of 0..{features - 1}, got {list(self.order)}"
            )
        self.zero = zero
        self.act = make_activation(activation)
        self._layers()
        init_(self.layers, "torch", generator)
        if zero:
            nn.init.zeros_(self.layers[-1].weight)  # type: ignore[arg-type]
            nn.init.zeros_(self.layers[-1].bias)  # type: ignore[arg-type]

    def _layers(self) -> None:
        degrees = np.empty(self.features, np.int64)
        degrees[list(self.order)] = np.arange(1, self.features + 1)
        low = 0 if self.context else 1
        span = self.features - low
        before = np.concatenate((degrees, np.zeros(self.context, np.int64)))
        layers: list[nn.Module] = []
        self.starts: list[list[int]] = []
        # without a context a single feature depends on nothing: no hidden layers
        for width in self.hidden_layer_sizes if span > 0 else ():
            units = np.sort(low + np.arange(width) % span)
            self._mask(len(layers), units[:, None] >= before)
            layers.append(linear(len(before), width))
            # units of degree at most m are the first starts[i][m]
            found = np.searchsorted(units, np.arange(self.features + 1), side="right")
            self.starts.append([int(m) for m in found])
            before = units
        outputs = np.repeat(degrees, self.sizes)
        self._mask(len(layers), outputs[:, None] > before)
        layers.append(linear(len(before), len(outputs)))
        ends = [0, *np.cumsum(self.sizes).tolist()]
        self.rows = [slice(a, b) for a, b in pairwise(ends)]
        self.layers = nn.ModuleList(layers)

    def _mask(self, i: int, allowed: NDArray[np.bool_]) -> None:
        mask = torch.tensor(allowed.tolist(), dtype=torch.get_default_dtype())
        self.register_buffer(f"mask{i}", mask, persistent=False)

    def config(self) -> dict[str, Any]:
        return {
            "features": self.features, "size": list(self.sizes),
            "hidden_layer_sizes": list(self.hidden_layer_sizes), "activation": self.activation,
            "context": self.context, "order": list(self.order), "zero": self.zero,
        }  # fmt: skip

    def weight(self, i: int) -> Tensor:
        """The masked weight of layer i."""
        W: Tensor = self.layers[i].weight * getattr(self, f"mask{i}")
        return W

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        h = x if context is None else torch.cat((x, context), -1)
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            h = functional.linear(h, self.weight(i), layer.bias)  # type: ignore[arg-type]
            if i < last:
                h = self.act(h)
        return h

    def stepper(self, rows: int, context: Tensor | None = None) -> MaskedSteps:
        """The outputs feature by feature, in the order; see ``MaskedSteps``."""
        return MaskedSteps(self, rows, context)

    def extra_repr(self) -> str:
        return f"features={self.features}, outputs={sum(self.sizes)}, context={self.context}"


class MaskedSteps:
    """The outputs of a masked network one feature at a time.

    ``next(value)`` takes the value of the feature before, ``(B,)`` (None at the start), and returns the
    outputs of the next one, ``(B, size)``. A hidden unit is computed once, as soon as all it sees is
    known, so that all steps together cost one pass.

    Examples
    --------
    >>> net = MaskedMLP(2, 1, (4,), zero=False)
    >>> x = torch.tensor([[0.5, -1.0]])
    >>> steps = net.stepper(1)
    >>> first, second = steps.next(None), steps.next(x[:, 0])
    >>> torch.allclose(torch.cat((first, second), 1), net(x))
    True
    """

    def __init__(self, net: MaskedMLP, rows: int, context: Tensor | None = None) -> None:
        self.net, self.at = net, 0
        weights = [net.weight(i) for i in range(len(net.layers))]
        order = list(net.order) + list(range(net.features, net.features + net.context))
        # context first, then features in their order: what is known is always a prefix
        order = order[net.features :] + order[: net.features]
        if order != list(range(len(order))):
            index = torch.tensor(order, device=weights[0].device)
            weights[0] = weights[0].index_select(1, index)
        self.weights = weights
        self.biases: list[Tensor] = [layer.bias for layer in net.layers]  # type: ignore[misc]
        widths = [net.features + net.context, *net.hidden_layer_sizes][: len(weights)]
        like = self.biases[-1]
        self.keep = torch.is_grad_enabled()
        # under autograd what is known grows by new tensors, else inside one buffer
        self.room = [] if self.keep else [like.new_empty(rows, w) for w in widths]
        self.known = [like.new_empty(rows, 0) for _ in widths]
        if context is not None:
            self._grow(0, context)

    def _grow(self, layer: int, new: Tensor) -> None:
        known = self.known[layer]
        if self.keep:
            self.known[layer] = torch.cat((known, new), 1)
            return
        room, start = self.room[layer], known.shape[1]
        end = start + new.shape[1]
        room[:, start:end] = new
        self.known[layer] = room[:, :end]

    def next(self, value: Tensor | None) -> Tensor:
        net, m = self.net, self.at
        if value is not None:
            self._grow(0, value[:, None])
        for i in range(len(self.weights) - 1):
            start, end = self.known[i + 1].shape[1], net.starts[i][m]
            if end > start:
                seen = self.known[i]
                W = self.weights[i][start:end, : seen.shape[1]]
                self._grow(i + 1, net.act(functional.linear(seen, W, self.biases[i][start:end])))
        rows, seen = net.rows[net.order[m]], self.known[-1]
        self.at += 1
        if len(self.weights) == 1 and not net.context and m == 0:
            return self.biases[-1][rows].expand(len(seen), -1)  # nothing is known yet
        return functional.linear(
            seen, self.weights[-1][rows, : seen.shape[1]], self.biases[-1][rows]
        )
