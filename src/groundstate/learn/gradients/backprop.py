r"""Backpropagation written out, with no autograd: the oracle for it, and what it does.

Forward, :math:`z_j = a_{j-1}W_j^\top + b_j`, :math:`a_j = \sigma_j(z_j)`, all kept: memory grows
linearly with depth. Backward,

.. math::
    \delta_K = \sigma_K'(z_K)\odot\partial L/\partial a_K,\quad
    \delta_j = \sigma_j'(z_j)\odot(\delta_{j+1}W_{j+1}),\quad
    \partial W_j = \delta_j^\top a_{j-1},\quad \partial b_j = \textstyle\sum_{rows}\delta_j,\quad
    \partial x = \delta_1W_1 .
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.display import Displayed
from groundstate.errors import ShapeError, Unsupported

Slope = Callable[[Tensor, Tensor, Any], Tensor]  # z, a, module -> σ'(z)


def _gelu(z: Tensor, a: Tensor, module: nn.Module) -> Tensor:
    if getattr(module, "approximate", "none") != "none":
        raise Unsupported("the reference knows GELU by the error function; use approximate='none'")
    bell = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    return 0.5 * (1 + torch.erf(z / math.sqrt(2))) + z * bell


def _silu(z: Tensor, a: Tensor, module: nn.Module) -> Tensor:
    s = torch.sigmoid(z)
    return s + a * (1 - s)


SLOPES: dict[type[nn.Module], Slope] = {
    nn.Identity: lambda z, a, m: torch.ones_like(z),
    nn.Sigmoid: lambda z, a, m: a * (1 - a),
    nn.Tanh: lambda z, a, m: 1 - a.square(),
    nn.ReLU: lambda z, a, m: (z > 0).to(z.dtype),  # 0 at the kink
    nn.LeakyReLU: lambda z, a, m: torch.where(z > 0, 1.0, z.new_tensor(m.negative_slope)),
    nn.ELU: lambda z, a, m: torch.where(z > 0, 1.0, a + m.alpha),
    nn.Softplus: lambda z, a, m: torch.sigmoid(m.beta * z),
    nn.SiLU: _silu,
    nn.GELU: _gelu,
}

# name -> (sum over rows, ∂/∂ of what the last layer gives)
TOPS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "half_squared": (lambda a, y: 0.5 * (a - y).square().sum(), lambda a, y: a - y),
    "squared": (lambda a, y: (a - y).square().sum(), lambda a, y: 2 * (a - y)),
    "cross_entropy": (
        lambda s, y: (torch.logsumexp(s, 1) - (y * s).sum(1)).sum(),
        lambda s, y: (
            torch.softmax(s, 1) * y.sum(1, keepdim=True) - y
        ),  # softmax and log fused: p − y
    ),
    "bce": (
        lambda s, y: (s.clamp_min(0) - s * y + torch.log1p(torch.exp(-s.abs()))).sum(),
        lambda s, y: torch.sigmoid(s) - y,
    ),
}


@dataclass(frozen=True)
class Backprop(Displayed):
    """Everything a pass computes; lists go from the first layer to the last.

    Attributes
    ----------
    loss : sum over rows
    z, a : pre-activations and activations, each ``(B, D_j)``; ``a[0]`` is x
    delta : :math:`\\partial L/\\partial z_j`, ``(B, D_j)``
    dW, db : gradients ``(D_j, D_{j-1})`` and ``(D_j,)``, in the order of the layers
    dx : gradient in the input, ``(B, D_0)``
    """

    loss: Tensor
    z: list[Tensor]
    a: list[Tensor]
    delta: list[Tensor]
    dW: list[Tensor]
    db: list[Tensor]
    dx: Tensor


@torch.no_grad()
def backprop(
    net: nn.Module | Iterable[nn.Module], x: Tensor, y: Tensor, loss: str = "half_squared"
) -> Backprop:
    r"""One forward and one backward pass through dense layers, by hand.

    Parameters
    ----------
    net : ``nn.Sequential`` (or a module whose ``layers`` is one) of ``nn.Linear`` and elementwise
        activations
    x : ``(B, D_0)``
    y : targets ``(B, D_K)``; labels ``(B,)`` for "cross_entropy"
    loss : summed over rows: "half_squared" :math:`\tfrac12\|a - y\|^2`, "squared"
        :math:`\|a - y\|^2`, "cross_entropy" and "bce" of the last layer's scores

    Returns
    -------
    Backprop

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> passed = backprop(net, torch.ones(4, 2), torch.zeros(4, 1))
    >>> [tuple(g.shape) for g in passed.dW], tuple(passed.dx.shape)
    ([(3, 2), (1, 3)], (4, 2))
    """
    if loss not in TOPS:
        raise Unsupported(f"the reference knows the losses {', '.join(TOPS)}, got {loss!r}")
    layers = dense_layers(net)
    z, a = [], [x]
    for linear, activation in layers:
        bias = 0.0 if linear.bias is None else linear.bias
        z.append(a[-1] @ linear.weight.T + bias)
        a.append(activation(z[-1]))
    target = _target(y, a[-1], loss)
    value, slope = TOPS[loss]
    down = slope(a[-1], target)  # ∂L/∂a of the last layer
    delta, dW, db = [], [], []
    for j in reversed(range(len(layers))):
        linear, activation = layers[j]
        d = SLOPES[type(activation)](z[j], a[j + 1], activation) * down
        delta.append(d)
        dW.append(d.T @ a[j])
        db.append(d.sum(0))
        down = d @ linear.weight
    return Backprop(value(a[-1], target), z, a, delta[::-1], dW[::-1], db[::-1], down)


def dense_layers(net: nn.Module | Iterable[nn.Module]) -> list[tuple[nn.Linear, nn.Module]]:
    """The linear layers of a network, each with its activation.

    >>> dense_layers(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))[1][1]
    Identity()
    """
    blocks: Any = getattr(net, "layers", net)
    found: list[tuple[nn.Linear, nn.Module]] = []
    for block in blocks:
        if isinstance(block, nn.Linear):
            found.append((block, nn.Identity()))
        elif type(block) in SLOPES and found and isinstance(found[-1][1], nn.Identity):
            found[-1] = (found[-1][0], block)
        else:
            raise Unsupported(
                f"the reference goes through nn.Linear and {', '.join(k.__name__ for k in SLOPES)} in "
                f"turn, but met {type(block).__name__}; use torch.autograd"
            )
    if not found:
        raise Unsupported("the network holds no nn.Linear layer")
    return found


def _target(y: Tensor, a: Tensor, loss: str) -> Tensor:
    if loss == "cross_entropy" and y.ndim == 1:
        return nn.functional.one_hot(y.long(), a.shape[1]).to(a.dtype)
    if y.shape != a.shape:
        raise ShapeError(f"y has shape {tuple(y.shape)}, but the network gives {tuple(a.shape)}")
    return y.to(a.dtype)
