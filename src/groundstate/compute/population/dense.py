r"""Stacked multilayer networks with the forward and the backward pass written out.

Activations of all members lie as (P, H, B). A layer is one batched product,

.. math:: Z = W A + b, \qquad \nabla W = \Delta A^\top, \qquad \Delta' = (W^\top \Delta) \odot \sigma',

with the weights (P, out, in) as torch keeps them: no graph, no transposed copies, and gradients go
straight to where the optimiser reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn

from groundstate.compute.dropout import KeyedDropout, keep
from groundstate.compute.population.stack import Tensors

aten: Any = torch.ops.aten
Head = Literal["softmax", "squared", "logistic"]
_SMALL = 2**17  # entries below which one thread is quicker than several

ACTIVATIONS: dict[type[nn.Module], str] = {
    nn.Tanh: "tanh",
    nn.ReLU: "relu",
    nn.Sigmoid: "sigmoid",
    nn.SiLU: "silu",
    nn.GELU: "gelu",
    nn.Softplus: "softplus",
}
FORWARD: dict[str, Any] = {
    "tanh": torch.tanh_,
    "relu": torch.relu_,
    "sigmoid": torch.sigmoid_,
    "silu": nn.functional.silu,
    "gelu": nn.functional.gelu,
    "softplus": nn.functional.softplus,
}
BACKWARD: dict[str, Any] = {  # in place, with what the pass kept: its output or its input
    "tanh": lambda g, a: aten.tanh_backward(g, a, grad_input=g),
    "relu": lambda g, a: aten.threshold_backward(g, a, 0, grad_input=g),
    "sigmoid": lambda g, a: aten.sigmoid_backward(g, a, grad_input=g),
    "silu": lambda g, z: aten.silu_backward(g, z, grad_input=g),
    "gelu": lambda g, z: aten.gelu_backward(g, z, grad_input=g),
    "softplus": lambda g, z: aten.softplus_backward(g, z, 1, 20, grad_input=g),
}
KEEPS_INPUT = frozenset({"silu", "gelu", "softplus"})


@dataclass(frozen=True)
class Layer:
    """A linear map, what follows it, and the dropout after that."""

    weight: str
    bias: str | None
    activation: str | None
    dropout: str | None = None  # prefix of the names of its buffers


def read_layers(net: nn.Module, prefix: str = "") -> tuple[Layer, ...] | None:
    """The layers of a plain multilayer network in the order of its modules, None if it is not one.

    Only the kinds of the modules are looked at; whether they are called one after the other is for
    the caller to check with numbers.
    """
    leaves = [(n, m) for n, m in net.named_modules() if not any(m.children())]
    layers: list[dict[str, Any]] = []
    for name, module in leaves:
        path = f"{prefix}{name}" + ("." if name else "")
        last = layers[-1] if layers else {}
        if type(module) is nn.Linear:
            bias = f"{path}bias" if module.bias is not None else None
            layers.append({"weight": f"{path}weight", "bias": bias, "activation": None})
        elif not last:
            return None
        elif type(module) in ACTIVATIONS and not last["activation"] and "dropout" not in last:
            plain = getattr(module, "beta", 1) == 1 and getattr(module, "threshold", 20) == 20
            if not plain or getattr(module, "approximate", "none") != "none":
                return None
            last["activation"] = ACTIVATIONS[type(module)]
        elif isinstance(module, KeyedDropout) and "dropout" not in last:
            last["dropout"] = path
        elif type(module) is not nn.Identity:
            return None
    named = {n for layer in layers for n in (layer["weight"], layer["bias"])}
    known = all(prefix + name in named for name, _ in net.named_parameters())
    alive = all(p.requires_grad for p in net.parameters())
    return tuple(Layer(**layer) for layer in layers) if layers and known and alive else None


class Dense:
    r"""Losses and gradients of stacked multilayer networks.

    Parameters
    ----------
    params : dict of Tensor, (P, ...); parameters, read and never copied
    buffers : dict of Tensor, (P, ...); those of dropout
    layers : from `read_layers`; the last has no dropout
    head : "softmax", "squared" or "logistic"
        :math:`-\log\mathrm{softmax}(s)_y`, :math:`\tfrac12|s-y|^2`,
        :math:`\sum_m \log(1+e^{s_m}) - y_m s_m`.
    """

    def __init__(
        self, params: Tensors, buffers: Tensors, layers: Sequence[Layer], head: Head
    ) -> None:
        self.buffers, self.layers, self.head = buffers, tuple(layers), head
        self.weights = [params[layer.weight].detach() for layer in self.layers]  # (P, out, in)
        self.biases = [None if la.bias is None else params[la.bias].detach() for la in self.layers]
        self.size, self.compiled = len(self.weights[0]), self.weights[0].device.type == "cpu"
        self.turned = [w.transpose(1, 2) for w in self.weights]  # (P, in, out)
        self._work: dict[int, list[Tensor]] = {}
        self._arrays = [None if b is None or not self.compiled else b.numpy() for b in self.biases]
        self._even: dict[int, Tensor] = {}  # shares of rows that all count the same

    @cached_property
    def kernels(self) -> Any:
        """The compiled passes of a CPU."""
        from groundstate.compute.population import dense_numba

        return dense_numba

    @torch.no_grad()
    def __call__(self, x: Tensor, y: Tensor, weight: Tensor | None, grads: Tensors) -> Tensor:
        """Write the gradients and return the losses.  # (P,)

        Parameters
        ----------
        x : Tensor, (B, d) for all members or (P, B, d)
        y : Tensor, (B, ...) or (P, B, ...)
        weight : Tensor, (B,), (P, B) or None
        grads : where the gradients go, by name of the parameter, (P, ...) each
        """
        batch = x.shape[-2]
        first = x.expand(self.size, *x.shape) if x.ndim == 2 else x  # (P, B, d)
        kept, masks = self._forward(first, batch, training=True)
        delta, work = kept[-1], self._buffers(batch)
        losses = self._head(delta, y, weight)
        for i in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[i]
            name = layer.bias
            sums = None if name is None else grads[name]
            if i < len(self.layers) - 1:
                mask = masks[i]
                if mask is not None:
                    delta.mul_(mask)
                self._backward(delta, kept[i], layer.activation, sums)
            elif sums is not None:
                self._row_sums(delta, sums)
            into = grads[layer.weight]
            if i == 0:
                torch.bmm(delta, first, out=into)
            else:
                fed = kept[i - 1] if layer_output(self.layers[i - 1]) else self._outputs[i - 1]
                torch.bmm(delta, fed.transpose(1, 2), out=into)
                delta = torch.bmm(self.turned[i], delta, out=work[len(self.layers) + i - 1])
        return losses

    @torch.no_grad()
    def losses(self, x: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Losses alone, without dropout.  # (P,)"""
        first = x.expand(self.size, *x.shape) if x.ndim == 2 else x
        kept, _ = self._forward(first, x.shape[-2], training=False)
        return self._head(kept[-1], y, weight)

    @torch.no_grad()
    def scores(self, x: Tensor) -> Tensor:
        """The outputs without dropout, (P, K, B); good until the next call."""
        first = x.expand(self.size, *x.shape) if x.ndim == 2 else x
        return self._forward(first, x.shape[-2], training=False)[0][-1]

    def _forward(
        self, first: Tensor, batch: int, training: bool
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """What the backward pass needs of each layer (P, H, B), and the masks of dropout."""
        kept: list[Tensor] = []
        masks: list[Tensor | None] = []
        self._outputs: dict[int, Tensor] = {}
        a, work = first.transpose(1, 2), self._buffers(batch)  # (P, d, B)
        for i, layer in enumerate(self.layers):
            z = torch.bmm(self.weights[i], a, out=work[i])
            a = self._activate(z, i, layer.activation)
            kept.append(z if layer.activation in KEEPS_INPUT else a)
            masks.append(None)
            if layer.dropout is not None and training:
                masks[i] = mask = self._mask(layer.dropout, a)
                a = a * mask
            if a is not kept[i]:
                self._outputs[i] = a
        return kept, masks

    def _buffers(self, batch: int) -> list[Tensor]:
        """Memory of the layers' numbers and of their gradients; made once for each size of batch."""
        held = self._work.get(batch)
        if held is None:
            like = self.weights
            shapes = [(len(w), w.shape[1], batch) for w in like]
            held = [w.new_empty(s) for _ in range(2) for w, s in zip(like, shapes, strict=True)]
            if len(self._work) > 8 and self.compiled:  # a recorded graph holds on to its memory
                self._work.clear()
            self._work[batch] = held
        return held

    def _mask(self, prefix: str, a: Tensor) -> Tensor:
        buffers = self.buffers
        stream, count, cut = (buffers[prefix + name] for name in ("stream", "count", "cut"))
        _, width, batch = a.shape
        if self.compiled:
            mask = torch.empty_like(a)
            own = (t.numpy() for t in (stream, count, cut))
            self.kernels.MASKS[self._many(a)](mask.numpy(), *own)
        else:
            rows = torch.arange(batch, device=a.device)
            place = rows * width + torch.arange(width, device=a.device)[:, None]  # (H, B)
            each = (-1, 1, 1)
            mask = keep(stream.view(each), count.view(each), cut.view(each), place, a.dtype)
        buffers[prefix + "count"].add_(1)
        return mask

    def _many(self, t: Tensor) -> bool:
        return t.numel() > _SMALL and torch.get_num_threads() > 1

    def _activate(self, z: Tensor, i: int, kind: str | None) -> Tensor:
        """The output of layer i; z gets the bias and is overwritten where that may be."""
        bias = self.biases[i]
        if self.compiled and bias is not None:
            slow = kind == "tanh" and z.dtype == torch.float64  # torch's is quicker there
            passes = None if slow else self.kernels.FORWARD.get(kind or "linear")
            if passes is not None:
                passes[self._many(z)](z.numpy(), self._arrays[i])
                return z
        if bias is not None:
            z.add_(bias.unsqueeze(2))
        out: Tensor = z if kind is None else FORWARD[kind](z)
        return out

    def _backward(self, g: Tensor, kept: Tensor, kind: str | None, sums: Tensor | None) -> None:
        """g becomes the gradient before the activation; its sums over rows are the bias's."""
        if self.compiled and sums is not None:
            passes = self.kernels.BACKWARD.get(kind)
            if passes is not None:
                passes[self._many(g)](g.numpy(), kept.numpy(), sums.numpy())
                return
        if kind is not None:
            BACKWARD[kind](g, kept)
        if sums is not None:
            self._row_sums(g, sums)

    def _row_sums(self, g: Tensor, sums: Tensor) -> None:
        torch.sum(g, 2, out=sums)

    def _head(self, s: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """The losses of outputs (P, K, B), which become their gradient."""
        rows = s.shape[2]
        if weight is None:
            even = self._even.get(rows)
            if even is None:
                even = self._even[rows] = s.new_full((1, rows), 1.0 / rows)
            share = even
        else:
            share = weight.reshape(-1, rows)
            share = share / share.sum(1, keepdim=True).clamp_min(torch.finfo(s.dtype).tiny)
        labels = self.head == "softmax"
        y = y.reshape(-1, rows) if labels else y.to(s.dtype).reshape(-1, rows, s.shape[1])
        if not self.compiled:
            return _HEADS[self.head](s, y, share)
        losses = s.new_empty(self.size)
        run = self.kernels.HEADS[self.head][self._many(s)]
        run(s.numpy(), y.numpy(), share.numpy(), losses.numpy())
        return losses


def layer_output(layer: Layer) -> bool:
    """Whether what the backward pass keeps of a layer is also what the next one was fed."""
    return layer.activation not in KEEPS_INPUT and layer.dropout is None


def _softmax(s: Tensor, y: Tensor, share: Tensor) -> Tensor:
    log = torch.log_softmax(s, 1)  # (P, K, B)
    at = y.unsqueeze(1).expand(len(s), 1, -1)
    losses = -(log.gather(1, at).squeeze(1) * share).sum(1)
    torch.mul(log.exp_(), share.unsqueeze(1), out=s)
    s.scatter_add_(1, at, -share.unsqueeze(1).expand(len(s), 1, -1))
    return losses


def _squared(s: Tensor, y: Tensor, share: Tensor) -> Tensor:
    s.sub_(y.transpose(1, 2))
    losses = 0.5 * (s.square().sum(1) * share).sum(1)
    s.mul_(share.unsqueeze(1))
    return losses


def _logistic(s: Tensor, y: Tensor, share: Tensor) -> Tensor:
    y = y.transpose(1, 2)
    losses = ((nn.functional.softplus(s) - y * s).sum(1) * share).sum(1)
    s.copy_((torch.sigmoid(s) - y) * share.unsqueeze(1))
    return losses


_HEADS = {"softmax": _softmax, "squared": _squared, "logistic": _logistic}
