r"""Everything a network computes on the way: contributions, pre-activations, patterns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn.blocks.activations import is_activation

BIASES = ("implicit", "node")


@torch.no_grad()
def trace(net: nn.Module, x: Tensor, bias: str = "implicit") -> dict[str, dict[str, Tensor]]:
    r"""Run ``net`` on rows and return what every linear layer saw and made.

    .. math:: z_k = \underbrace{\textstyle\sum_d W_{kd}a_d}_{\text{contributions}} + b_k,
        \qquad \text{pattern}_k = 1[z_k > 0]

    A ReLU network is linear where the pattern is constant; one bit flips at every joint.

    Parameters
    ----------
    net : any module with ``torch.nn.Linear`` layers
    x : rows ``(B, D)``
    bias : "implicit" keeps b apart as ``offset``; "node" shows it as the contribution of a
        constant-1 node, the last column

    Returns
    -------
    Layer name to a dict of tensors, in the order of execution: ``input`` (B, D_in), ``z`` and ``a``
    (B, D_out), ``pattern`` uint8 (B, D_out), ``contributions`` (B, D_out, D_in) or with the node
    (B, D_out, D_in + 1), and ``offset`` (D_out,). ``a`` and ``pattern`` are of the activation that
    follows; a layer without one has a = z.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).requires_grad_(False)
    >>> for p, v in zip(net.parameters(), ([[1.0], [-1.0]], [0.0, 1.0], [[2.0, 3.0]], [0.5])):
    ...     _ = p.copy_(torch.tensor(v))
    >>> seen = trace(net, torch.tensor([[2.0]]))
    >>> seen["0"]["pattern"].tolist(), seen["2"]["contributions"].tolist(), seen["2"]["z"].item()
    ([[1, 0]], [[[4.0, 0.0]]], 4.5)
    """
    if bias not in BIASES:
        raise ValueError(f"bias must be one of {', '.join(BIASES)}, got {bias!r}")
    seen: dict[str, dict[str, Tensor]] = {}
    handles = []
    for name, module in net.named_modules():
        if isinstance(module, nn.Linear):
            handles.append(module.register_forward_hook(_linear(seen, name or "0", bias)))
        elif is_activation(module):
            handles.append(module.register_forward_pre_hook(_before(seen)))
            handles.append(module.register_forward_hook(_after(seen)))
    if not any(isinstance(module, nn.Linear) for module in net.modules()):
        raise Unsupported(f"trace reads linear layers, {type(net).__name__} has none")
    try:
        net(x)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def _linear(seen: dict[str, dict[str, Tensor]], name: str, bias: str) -> Any:
    def keep(module: nn.Linear, args: tuple[Tensor], z: Tensor) -> None:
        a = args[0]
        parts = a[:, None, :] * module.weight  # (B, D_out, D_in)
        offset = z.new_zeros(z.shape[-1]) if module.bias is None else module.bias.detach().clone()
        if bias == "node":
            parts = torch.cat([parts, offset.expand(len(a), -1)[..., None]], -1)
            offset = torch.zeros_like(offset)
        seen[name] = {
            "input": a, "z": z.clone(), "a": z, "pattern": (z > 0).to(torch.uint8),
            "contributions": parts, "offset": offset,
        }  # fmt: skip

    return keep


def _before(seen: dict[str, dict[str, Tensor]]) -> Any:
    def keep(module: nn.Module, args: tuple[Tensor]) -> None:
        if seen:  # after a norm layer or a skip the activation decides by what it sees, not by z
            seen[next(reversed(seen))]["pattern"] = (args[0] > 0).to(torch.uint8)

    return keep


def _after(seen: dict[str, dict[str, Tensor]]) -> Any:
    def keep(module: nn.Module, args: tuple[Tensor], a: Tensor) -> None:
        if seen:
            seen[next(reversed(seen))]["a"] = a

    return keep
