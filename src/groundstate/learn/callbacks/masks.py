"""Dropout masks that last an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.learn.callbacks.base import Callback, Run
from groundstate.nn.blocks.dropout import Dropout, resample_masks


class EpochMasks(Callback):
    """Draw new masks for every ``Dropout(mask_per_epoch=True)`` after each epoch.

    Every run over a network with such layers has this callback of itself.
    """

    def on_begin(self, run: Run) -> None:
        self._net: nn.Module = run.energy
        self._device = run.energy.placement()[0]
        resample_masks(self._net)

    def on_epoch(self, run: Run) -> None:
        resample_masks(self._net)

    def state(self) -> dict[str, Any]:
        masks: dict[str, Tensor] = {}
        for name, layer in lasting(self._net):
            if layer.mask is not None:
                masks[name] = layer.mask.clone()
        return {"masks": masks}

    def load(self, state: dict[str, Any]) -> None:
        for name, layer in lasting(self._net):
            mask = state["masks"].get(name)
            layer.mask = None if mask is None else torch.as_tensor(mask).to(self._device)


def lasting(net: nn.Module) -> Iterator[tuple[str, Dropout]]:
    """The dropout layers of a network whose mask lasts an epoch."""
    for name, layer in net.named_modules():
        if isinstance(layer, Dropout) and layer.mask_per_epoch:
            yield name, layer
