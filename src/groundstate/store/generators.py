"""Random generators of NumPy and torch as states that can be stored and set again."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from groundstate.errors import StoreError

# Position fields index a buffer in C without a check: a hostile file must not choose them freely.
_POSITIONS = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


def encode_generator(value: Any) -> tuple[str, Any] | None:
    """A name and a state for a random generator, None for anything else."""
    if isinstance(value, np.random.Generator):
        return "numpy", value.bit_generator.state
    if isinstance(value, np.random.RandomState):
        return "numpy legacy", value.get_state(legacy=False)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Generator):
        return "torch", {"device": str(value.device), "state": value.get_state()}
    return None


def decode_generator(name: Any, state: Any) -> Any:
    """The generator that continues where the stored one stood."""
    if not isinstance(state, dict):
        raise StoreError("a generator without a state")
    if name == "numpy":
        generator = np.random.Generator(_bit_generator(state))
        return generator
    if name == "numpy legacy":
        legacy = np.random.RandomState(np.random.MT19937(0))
        if state.get("bit_generator") != "MT19937":
            raise StoreError("a legacy generator that is not an MT19937")
        _check_positions(state)
        legacy.set_state(state)
        return legacy
    if name == "torch":
        import torch

        device = str(state["device"])
        if device != "cpu" and not torch.cuda.is_available():
            raise StoreError(f"a generator of device {device!r:.20} needs that device to be loaded")
        stream = torch.Generator(device)
        stream.set_state(state["state"].cpu())
        return stream
    raise StoreError(f"unknown kind of generator {name!r:.40}")


def _bit_generator(state: dict[str, Any]) -> np.random.BitGenerator:
    name = state.get("bit_generator")
    if name not in _BIT_GENERATORS:
        raise StoreError(f"unknown bit generator {name!r:.40}")
    _check_positions(state)
    bits: np.random.BitGenerator = getattr(np.random, name)(0)
    bits.state = state
    return bits


def _check_positions(state: dict[str, Any]) -> None:
    name = str(state.get("bit_generator"))
    if name in _POSITIONS:
        key, last = _POSITIONS[name]
        holder = state if key in state else state.get("state", {})
        position = holder.get(key)
        if type(position) is not int or not 0 <= position <= last:
            raise StoreError(f"a {name} generator with position {position!r:.40}")
