"""NumPy in, NumPy out; torch in, torch out: one torch implementation serves both."""

from __future__ import annotations

import cmath
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def takes_arrays(*names: str, finite: bool = True) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function of tensors take arrays, lists and numbers too, and answer in kind.

    The arguments ``names`` arrive as floating-point tensors (or complex ones): integers and
    booleans become float64, float32 stays. If one of them is a tensor, the others follow its
    device and the answer is a tensor with its gradient; otherwise tensors in the answer, also
    inside tuples, named tuples and dataclasses, are given back as NumPy arrays, those without axes
    as Python numbers. ``None`` passes through.

    Parameters
    ----------
    names : the arguments that are arrays
    finite : whether NaN and infinity in them are refused

    Examples
    --------
    >>> @takes_arrays("x")
    ... def double(x):
    ...     return 2 * x
    >>> double([1, 2]), double(torch.ones(2)), double(3)
    (array([2., 4.]), tensor([2., 2.]), 6.0)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        order = list(inspect.signature(function).parameters)
        places = [(name, order.index(name)) for name in names]

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            every: Any = list(args)  # binding to the signature would cost more than small calls do
            named: Any = kwargs
            given = [
                (every, at, name) if at < len(every) else (named, name, name)
                for name, at in places
                if at < len(every) or name in named
            ]
            like = next((kept[at] for kept, at, _ in given if isinstance(kept[at], Tensor)), None)
            for kept, at, name in given:
                if kept[at] is not None:
                    kept[at] = as_tensor(kept[at], name, like, finite=finite)
            out = function(*every, **named)
            return out if like is not None else to_numpy(out)

        return call

    return decorate


def as_tensor(value: Any, name: str, like: Tensor | None = None, *, finite: bool = True) -> Tensor:
    """A floating-point or complex tensor of ``value``, sharing memory where that is safe.

    >>> as_tensor([1, 2], "x").dtype
    torch.float64
    """
    if isinstance(value, Tensor):
        out = value
    else:
        try:
            array = np.asarray(value)
            if not array.flags.writeable or any(step < 0 for step in array.strides):
                array = array.copy()
            out = torch.from_numpy(array) if array.dtype.isnative else torch.tensor(array.tolist())
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be an array of numbers, got {value!r:.80}") from error
    if not (out.is_floating_point() or out.is_complex()):
        out = out.to(torch.float64)
    if like is not None and out.device != like.device:
        out = out.to(like.device)
    if finite and not _all_finite(out.detach()):
        raise ValueError(f"{name} holds NaN or infinity; drop or fill these entries before calling")
    return out


def _all_finite(x: Tensor) -> bool:
    """Whether no entry is NaN or infinite; a sum says so in one pass, unless it overflows."""
    return cmath.isfinite(x.sum().item()) or bool(torch.isfinite(x).all())


def to_numpy(value: Any) -> Any:
    """Tensors of an answer as arrays and numbers, through tuples, lists, dicts and dataclasses."""
    if isinstance(value, Tensor):
        array = value.detach().cpu().resolve_conj().resolve_neg().numpy()
        return array.item() if array.ndim == 0 else array
    if isinstance(value, tuple):
        parts = [to_numpy(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [to_numpy(part) for part in value]
    if isinstance(value, dict):
        return {key: to_numpy(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            part.name: to_numpy(getattr(value, part.name))
            for part in fields(value)
            if part.init and isinstance(getattr(value, part.name), Tensor | tuple | list | dict)
        }
        return replace(value, **changed) if changed else value
    return value
