"""Torch modules whose settings are set as on any object, which small fits feel."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

_PLAIN = frozenset({bool, int, float, str, tuple, list, dict, frozenset, type(None)})


class LightModule(nn.Module):
    """``nn.Module``, whose search for parameters, buffers and modules plain values and new values of
    buffers pass by."""

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if type(value) is Tensor and name in own.get("_buffers", ()):
            own["_buffers"][name] = value
            return
        plain = (
            type(value) in _PLAIN
            and name not in own.get("_parameters", ())
            and name not in own.get("_buffers", ())
            and name not in own.get("_modules", ())
        )
        if plain:
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)
