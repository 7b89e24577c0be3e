r"""A network whose output i sees the inputs before i alone, :math:`o_i = f_i(x_{<i})`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
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
    inputs : columns in which each feature enters, one number for all or one each
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
        inputs: int | Sequence[int] = 1,
        zero: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.features, self.context = features, context
        self.sizes = _each(size, features, "size")
        self.inputs = _each(inputs, features, "inputs")
        self.hidden_layer_sizes, self.activation = tuple(hidden_layer_sizes), activation
        self.order = self.checked(range(features) if order is None else order)
        self.zero = zero
        self.act = make_activation(activation)
        self.columns, self.rows = _slices(self.inputs), _slices(self.sizes)
        low = 0 if context else 1
        # without a context a single feature depends on nothing: no hidden layers
        widths = self.hidden_layer_sizes if features > low else ()
        #: degrees of hidden units, layer by layer, ascending
        self.units = [np.sort(low + np.arange(w) % (features - low)) for w in widths]
        sizes = (sum(self.inputs) + context, *widths, sum(self.sizes))
        self.layers = nn.ModuleList(linear(a, b) for a, b in pairwise(sizes))
        for i, mask in enumerate(self.masks(self.order)):
            self.register_buffer(f"mask{i}", mask, persistent=False)
        init_(self.layers, "torch", generator)
        if zero:
            nn.init.zeros_(self.layers[-1].weight)  # type: ignore[arg-type]
            nn.init.zeros_(self.layers[-1].bias)  # type: ignore[arg-type]

    def checked(self, order: Iterable[int]) -> tuple[int, ...]:
        """An order of the features, or an error."""
        found = tuple(int(i) for i in order)
        if sorted(found) != list(range(self.features)):
            raise ValueError(
                f"order must be a permutation of 0..{self.features - 1}, got {list(found)}"
            )
        return found

    def masks(self, order: Sequence[int], like: Tensor | None = None) -> list[Tensor]:
        """Masks of all layers for an order of the features; those between hidden layers do not change."""
        degrees = np.empty(self.features, np.int64)
        degrees[list(order)] = np.arange(1, self.features + 1)
        context = np.zeros(self.context, np.int64)
        before = np.concatenate((np.repeat(degrees, self.inputs), context))
        found = []
        for units in self.units:
            found.append(units[:, None] >= before)
            before = units
        found.append(np.repeat(degrees, self.sizes)[:, None] > before)
        dtype = torch.get_default_dtype() if like is None else like.dtype
        device = None if like is None else like.device
        return [torch.tensor(m.astype(np.float32), dtype=dtype, device=device) for m in found]

    def config(self) -> dict[str, Any]:
        return {
            "features": self.features, "size": list(self.sizes),
            "hidden_layer_sizes": list(self.hidden_layer_sizes), "activation": self.activation,
            "context": self.context, "order": list(self.order), "inputs": list(self.inputs),
            "zero": self.zero,
        }  # fmt: skip

    def weights(self, order: Sequence[int] | None = None) -> list[Tensor]:
        """The masked weights of all layers, in the network's order or another one."""
        if order is None or tuple(order) == self.order:
            masks: list[Any] = list(self._buffers.values())
        else:
            masks = self.masks(self.checked(order), self.layers[0].weight)  # type: ignore[arg-type]
        return [layer.weight * mask for layer, mask in zip(self.layers, masks, strict=True)]

    def forward(
        self, x: Tensor, context: Tensor | None = None, order: Sequence[int] | None = None
    ) -> Tensor:
        h = x if context is None else torch.cat((x, context), -1)
        weights = self.weights(order)
        last = len(weights) - 1
        for i, (layer, W) in enumerate(zip(self.layers, weights, strict=True)):
            h = functional.linear(h, W, layer.bias)  # type: ignore[arg-type]
            if i < last:
                h = self.act(h)
        return h

    def stepper(
        self, rows: int, context: Tensor | None = None, order: Sequence[int] | None = None
    ) -> MaskedSteps:
        """The outputs feature by feature, in the order; see ``MaskedSteps``."""
        return MaskedSteps(self, rows, context, order)

    def extra_repr(self) -> str:
        return f"features={self.features}, outputs={sum(self.sizes)}, context={self.context}"


def _each(value: int | Sequence[int], features: int, name: str) -> tuple[int, ...]:
    found = (value,) * features if isinstance(value, int) else tuple(value)
    if len(found) != features:
        raise ValueError(f"{name} needs one entry per feature, {features}, got {len(found)}")
    return found


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = [0, *np.cumsum(sizes).tolist()]
    return [slice(a, b) for a, b in pairwise(ends)]


class MaskedSteps:
    """The outputs of a masked network one feature at a time.

    ``next(value)`` takes the value of the feature before, ``(B,)`` or ``(B, inputs)``, None at the start,
    and returns the outputs of the next one, ``(B, size)``. A hidden unit is computed once, as soon as all
    it sees is known, so that all steps together cost one pass.

    Examples
    --------
    >>> net = MaskedMLP(2, 1, (4,), zero=False)
    >>> x = torch.tensor([[0.5, -1.0]])
    >>> steps = net.stepper(1)
    >>> first, second = steps.next(None), steps.next(x[:, 0])
    >>> torch.allclose(torch.cat((first, second), 1), net(x))
    True
    """

    def __init__(
        self,
        net: MaskedMLP,
        rows: int,
        context: Tensor | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.net, self.at = net, 0
        self.order = net.order if order is None else net.checked(order)
        weights = net.weights(self.order)
        total = sum(net.inputs)
        # context first, then features in their order: what is known is always a prefix
        index = list(range(total, total + net.context))
        for i in self.order:
            index += range(net.columns[i].start, net.columns[i].stop)
        if index != list(range(len(index))):
            weights[0] = weights[0][:, torch.tensor(index, device=weights[0].device)]
        self.weights = weights
        self.biases: list[Tensor] = [layer.bias for layer in net.layers]  # type: ignore[misc]
        # units of degree at most m are the first ends[i][m]
        steps = np.arange(net.features + 1)
        self.ends = [np.searchsorted(u, steps, side="right").tolist() for u in net.units]
        widths = [W.shape[1] for W in weights]
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
            self._grow(0, value[:, None] if value.ndim == 1 else value)
        for i in range(len(self.weights) - 1):
            start, end = self.known[i + 1].shape[1], self.ends[i][m]
            if end > start:
                seen = self.known[i]
                W = self.weights[i][start:end, : seen.shape[1]]
                self._grow(i + 1, net.act(functional.linear(seen, W, self.biases[i][start:end])))
        rows, seen = net.rows[self.order[m]], self.known[-1]
        self.at += 1
        if len(self.weights) == 1 and not net.context and m == 0:
            return self.biases[-1][rows].expand(len(seen), -1)  # nothing is known yet
        return functional.linear(
            seen, self.weights[-1][rows, : seen.shape[1]], self.biases[-1][rows]
        )
