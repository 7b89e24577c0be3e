"""Constructors run for the shapes of their tensors alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

# functions of one tensor and numbers that leave its shape, in place, with operators or not
_SAME = """
add radd sub rsub mul rmul div truediv rtruediv true_divide neg pow exp log sqrt square abs
gt lt ge le fill zero zeros ones constant normal uniform trunc_normal erfinv clamp
kaiming_uniform kaiming_normal xavier_uniform xavier_normal
"""
_KEEPS_SHAPE = frozenset(_SAME.split())


class _Uncomputed(TorchFunctionMode):
    """Skip the arithmetic of initial values.

    On the meta device torch computes with compiler machinery whose import takes seconds, which is
    most of the time to open a small file.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = {k: v for k, v in (kwargs or {}).items() if k != "generator"}  # nothing is drawn
        if func is torch.eye:
            rows = args[0] if args else kwargs["n"]
            return torch.empty(rows, args[1] if len(args) > 1 else kwargs.get("m", rows))
        tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, Tensor)]
        if len(tensors) == 1 and tensors[0].is_meta:
            name = getattr(func, "__name__", "").strip("_")
            if name in _KEEPS_SHAPE:
                return tensors[0]
            if name in ("all", "any"):
                raise RuntimeError(f"{name}() asks for values where there are only shapes")
        return func(*args, **kwargs)


@contextmanager
def shapes_only() -> Iterator[None]:
    """Tensors made inside have a shape but neither memory nor values.

    Examples
    --------
    >>> with shapes_only():
    ...     square = 2.0 * torch.eye(1_000_000)
    >>> tuple(square.shape), square.device.type
    ((1000000, 1000000), 'meta')
    """
    with torch.device("meta"), _Uncomputed():
        yield
