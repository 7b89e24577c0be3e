r"""What a network holds and costs: parameters, buffers and multiply-adds per layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.inspect.meta import on_meta, run
from groundstate.nn.inspect.receptive import Field, Follow
from groundstate.nn.recurrent.cells import ResetFirstGRU

_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_STATES = (nn.RNNBase, ResetFirstGRU, nn.MultiheadAttention)  # answer more than one tensor


@dataclass
class LayerRow:
    """One layer: trainable and frozen parameters, float buffers, multiply-adds of one example."""

    name: str
    kind: str
    output_shape: tuple[int, ...] = ()
    trainable: int = 0
    frozen: int = 0
    buffers: int = 0
    multiply_adds: int = 0
    receptive_field: int | tuple[int, ...] | None = None  # pixels per axis; None: everything


@dataclass(frozen=True)
class Summary:
    """Rows per layer and their totals; printing it shows a table."""

    rows: list[LayerRow]
    trainable: int
    frozen: int
    buffers: int
    multiply_adds: int
    input_size: tuple[int, ...] = field(default=())

    @property
    def parameters(self) -> int:
        """Trainable and frozen parameters; tensors that layers share count once."""
        return self.trainable + self.frozen

    def __str__(self) -> str:
        head = ["layer", "kind", "output", "parameters", "buffers", "multiply-adds"]
        body = [
            [r.name, r.kind, "×".join(map(str, r.output_shape)), f"{r.trainable + r.frozen:,}",
             f"{r.buffers:,}", f"{r.multiply_adds:,}"]
            for r in self.rows
        ]  # fmt: skip
        total = ["total", "", "", f"{self.parameters:,}", f"{self.buffers:,}",
                 f"{self.multiply_adds:,}"]  # fmt: skip
        if any(r.receptive_field is not None for r in self.rows):
            for line, r in zip(body, self.rows):
                field = r.receptive_field
                line.append("all" if field is None else _times(field))
            head.append("sees")
            total.append("")
        table = [head, *body, total]
        wide = [max(len(row[i]) for row in table) for i in range(len(head))]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if i < 3 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, wide))
            ).rstrip()
            for row in table
        )


def summary(module: nn.Module, input_size: Sequence[int] | Tensor | tuple[Any, ...]) -> Summary:
    r"""Count parameters, buffers and multiply-adds of a network, layer by layer.

    Linear :math:`(D_{in}+1)D_{out}`, convolution :math:`(C_{in}\prod k/\text{groups}+1)C_{out}`, norm
    2C trainable and 2C buffers; pooling, dropout and activations nothing. A recurrent layer uses every
    weight once for each item. Multiply-adds are of one example: of an MLP
    :math:`\sum_j D_{j-1}D_j`, linear in depth and quadratic in width. Products of embedding, attention
    scores and elementwise operations are not counted. For inputs with positions
    every layer has its receptive field too.

    Parameters
    ----------
    module : run once in evaluation mode on the meta device: nothing is computed
    input_size : shape of one example, or a batch or tuple of arguments to run for real

    Examples
    --------
    >>> print(summary(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), (784,)))
    layer  kind    output  parameters  buffers  multiply-adds
    0      Linear  128        100,480        0        100,352
    1      ReLU    128              0        0              0
    2      Linear  10           1,290        0          1,280
    total                     101,770        0        101,632
    """
    rows: dict[nn.Module, LayerRow] = {}
    follow: list[Follow] = []
    handles = []
    for name, part in module.named_modules():
        own = list(part.parameters(recurse=False))
        if own or not any(True for _ in part.children()):
            rows[part] = LayerRow(
                name or type(part).__name__, type(part).__name__,
                trainable=sum(p.numel() for p in own if p.requires_grad),
                frozen=sum(p.numel() for p in own if not p.requires_grad),
                buffers=_floats(part.buffers(recurse=False)),
            )  # fmt: skip
            handles.append(part.register_forward_hook(_counter(rows[part], follow)))
    trainable = sum(p.numel() for p in module.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in module.parameters() if not p.requires_grad)
    buffers = _floats(module.buffers())
    try:
        size = _run(module, input_size, follow)
    finally:
        for handle in handles:
            handle.remove()
    return Summary(
        rows=list(rows.values()),
        trainable=trainable,
        frozen=frozen,
        buffers=buffers,
        multiply_adds=sum(row.multiply_adds for row in rows.values()),
        input_size=size,
    )


def _run(
    module: nn.Module, given: Sequence[int] | Tensor | tuple[Any, ...], follow: list[Follow]
) -> tuple[int, ...]:
    """One pass; returns the shape of one example."""
    if isinstance(given, Tensor) or any(not isinstance(v, int) for v in given):
        inputs = (given,) if isinstance(given, Tensor) else tuple(given)
        run(module, *inputs)
        first = inputs[0]
        return tuple(first.shape[1:]) if isinstance(first, Tensor) else ()
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    x = torch.empty(1, *given, dtype=like.dtype, device="meta")
    follow.append(Follow(x))
    with on_meta(module), follow[0]:
        run(module, x)
    return tuple(x.shape[1:])


def _times(size: int | tuple[int, ...]) -> str:
    return str(size) if isinstance(size, int) else "×".join(map(str, size))


def _floats(tensors: Any) -> int:
    """Numbers in floating-point tensors: a counter of batches is no statistic."""
    return sum(t.numel() for t in tensors if t.is_floating_point())


def _counter(row: LayerRow, follow: list[Follow]) -> Any:
    def count(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if isinstance(output, tuple) and output and isinstance(module, _STATES):
            output = output[0]  # what follows it are states or weights
        if isinstance(output, Tensor) and output.ndim:
            axis = 0 if getattr(module, "batch_first", True) else 1
            row.output_shape = tuple(n for i, n in enumerate(output.shape) if i != axis)
            given = args[0] if args and isinstance(args[0], Tensor) else output
            row.multiply_adds += multiply_adds(module, given, output) // max(1, output.shape[axis])
            seen = follow[0].of(output) if follow else None
            row.receptive_field = seen.public().size if isinstance(seen, Field) else None

    return count


def multiply_adds(module: nn.Module, x: Tensor, output: Tensor) -> int:
    """Multiply-adds of one layer for a whole batch; 0 for layers that are not products."""
    if isinstance(module, nn.Linear):
        return output.numel() * module.in_features
    if isinstance(module, nn.Bilinear):
        return output.numel() * module.in1_features * module.in2_features
    if isinstance(module, _CONV):
        return (
            output.numel() * (module.in_channels // module.groups) * math.prod(module.kernel_size)
        )
    if isinstance(module, nn.RNNBase | nn.RNNCellBase | ResetFirstGRU):  # every weight once an item
        items = x.shape[:-1].numel()
        return items * sum(
            p.numel() for n, p in module.named_parameters() if n.startswith("weight")
        )
    if isinstance(module, nn.MultiheadAttention):  # of self-attention, with the map behind it
        width = module.embed_dim
        return x.shape[:-1].numel() * width * (2 * width + (module.kdim + module.vdim))
    if isinstance(module, _TRANSPOSED):
        return x.numel() * (module.out_channels // module.groups) * math.prod(module.kernel_size)
    return 0
