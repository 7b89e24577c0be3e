r"""Adjacent affine layers are one: :math:`W_2(W_1x+b_1)+b_2 = (W_2W_1)x + (W_2b_1+b_2)`."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.mlp import MLP


def collapse_linear(net: nn.Module) -> nn.Sequential:
    r"""The same function with adjacent affine layers merged; other layers are copied.

    .. math:: W = W_2W_1,\qquad b = W_2b_1 + b_2

    Products are taken in float64. Without activations between them all layers become one affine
    map; two networks in a row share one layer where they meet.

    Parameters
    ----------
    net : a Sequential or MLP; Sequentials inside are opened, identities left out

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(2, 5), nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> collapse_linear(net)
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
      (2): Linear(in_features=3, out_features=1, bias=True)
    )
    """
    kept: list[nn.Module] = []
    for layer in flat_layers(net):
        if isinstance(layer, nn.Identity):
            continue
        last = kept[-1] if kept else None
        if type(layer) is nn.Linear and type(last) is nn.Linear:
            kept[-1] = _merged(last, layer)
        else:
            kept.append(deepcopy(layer))
    return nn.Sequential(*kept)


def flat_layers(net: nn.Module) -> Iterator[nn.Module]:
    """Layers in order, with Sequentials and MLPs opened."""
    if isinstance(net, MLP):
        yield from flat_layers(net.layers)
    elif isinstance(net, nn.Sequential):
        for layer in net:
            yield from flat_layers(layer)
    else:
        yield net


@torch.no_grad()
def _merged(first: nn.Linear, second: nn.Linear) -> nn.Linear:
    inner_b: Tensor | None = first.bias
    outer_b: Tensor | None = second.bias
    bias = not (inner_b is None and outer_b is None)
    made: nn.Linear = nn.utils.skip_init(
        nn.Linear, first.in_features, second.out_features, bias=bias,
        dtype=first.weight.dtype, device=first.weight.device,
    )  # fmt: skip
    outer = second.weight.double()
    made.weight.copy_(outer @ first.weight.double())
    if bias:
        b = outer.new_zeros(second.out_features)
        if inner_b is not None:
            b = b + outer @ inner_b.double()
        if outer_b is not None:
            b = b + outer_b.double()
        made.bias.copy_(b)
    return made
