r"""The graph of one forward and backward pass, with the values that are kept on the way."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from groundstate.nn.inspect.draw import GAP, HIGH, INK, LOW, MARGIN, Canvas, Drawing
from groundstate.nn.piecewise.collapse import flat_layers


def draw_backprop(
    net: nn.Module, x: Tensor, loss: Callable[[Tensor], Tensor], *, digits: int = 3
) -> Drawing:
    r"""Values forward above, gradients :math:`\partial L/\partial\cdot` backward below.

    One node per intermediate value and one for the loss; each step has an edge to the right with
    the layer's name and one back to the left.

    Parameters
    ----------
    net : MLP or Sequential
    x : one row ``(D,)`` or ``(1, D)``
    loss : of the output ``(1, D_out)``, a scalar
    digits : significant digits

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(1, 1), nn.Tanh())
    >>> picture = draw_backprop(net, torch.tensor([0.5]), lambda a: a.square().sum())
    >>> picture.nodes, picture.edges
    (4, 6)
    """
    value = x.detach().reshape(1, -1).clone().requires_grad_(True)
    states, names = [value], []
    for layer in flat_layers(net):
        value = layer(value)
        states.append(value)
        names.append(type(layer).__name__)
    total = loss(value)
    slopes = torch.autograd.grad(total, states)
    canvas, y = Canvas(), MARGIN + 60
    width = 1.5 * GAP
    for k, (state, slope) in enumerate(zip(states, slopes)):
        at = MARGIN + 40 + k * width
        canvas.node(at, y, "x" if k == 0 else f"{k}", name=f"value {k}")
        canvas.text(at, y - 24, _numbers(state, digits), 9, HIGH)
        canvas.text(at, y + 34, _numbers(slope, digits), 9, LOW)
    end = MARGIN + 40 + len(states) * width
    canvas.node(end, y, "L", name="loss")
    canvas.text(end, y - 24, f"{total.item():.{digits}g}", 9, HIGH)
    canvas.text(end, y + 34, "1", 9, LOW)
    for k, name in enumerate([*names, "loss"]):
        a, b = MARGIN + 40 + k * width, MARGIN + 40 + (k + 1) * width
        canvas.edge((a, y), (b, y), 1.0, 0.4, f"{name} forward", bend=16)
        canvas.edge((b, y), (a, y), -1.0, 0.4, f"{name} backward", bend=-16)
        canvas.text((a + b) / 2, y - 12, name, 9, INK)
    return canvas.drawing()


def _numbers(values: Tensor, digits: int) -> str:
    shown = [f"{v:.{digits}g}" for v in values.detach().flatten()[:4].tolist()]
    return ", ".join(shown) + (", …" if values.numel() > 4 else "")
