"""Run a network without computing: shapes alone, on the meta device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def on_meta(net: nn.Module) -> Iterator[None]:
    """For a while, the parameters and buffers of a network are meta tensors of the same shapes."""
    held: list[tuple[dict[str, Any], str, Any]] = []
    for module in net.modules():
        stores: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for store in stores:
            for name, tensor in store.items():
                if tensor is not None and tensor.device.type != "meta":
                    held.append((store, name, tensor))
    try:
        for store, name, tensor in held:
            empty = torch.empty_like(tensor, device="meta")
            store[name] = nn.Parameter(empty, False) if isinstance(tensor, nn.Parameter) else empty
        yield
    finally:
        for store, name, tensor in held:
            store[name] = tensor


def run(net: nn.Module, *inputs: Any) -> Any:
    """One pass in evaluation mode, without gradients unless they are asked for; modes as before."""
    modes = {part: part.training for part in net.modules()}
    wanted = any(isinstance(x, Tensor) and x.requires_grad for x in inputs)
    try:
        with torch.set_grad_enabled(wanted):
            return net.eval()(*inputs)
    finally:
        for part, training in modes.items():
            part.training = training
