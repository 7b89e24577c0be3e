"""Where tensors live and in which precision: the user's choice, kept, with clear refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import DataError, ShapeError, Unsupported


def resolve_device(device: str | torch.device | None = None, like: Any = None) -> torch.device:
    """The device asked for; without a wish, that of ``like`` if it is a tensor, else the CPU.

    Examples
    --------
    >>> resolve_device(None)
    device(type='cpu')
    """
    if device is None:
        return like.device if isinstance(like, Tensor) else torch.device("cpu")
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise Unsupported(
            f"device={device!r} is no torch device; use 'cpu', 'cuda', 'cuda:1', 'mps' or 'auto'."
        ) from None
    if chosen.type == "cuda":
        if not torch.cuda.is_available():
            raise Unsupported(
                f"device={str(device)!r} was asked for but torch sees no GPU; use device='cpu', "
                "or install a torch build for your GPU and its driver."
            )
        if chosen.index is not None and chosen.index >= torch.cuda.device_count():
            raise Unsupported(
                f"device={str(device)!r} was asked for but torch sees {torch.cuda.device_count()} "
                "GPU(s), numbered from 0; use a smaller number."
            )
    if chosen.type == "mps" and not torch.backends.mps.is_available():
        raise Unsupported(
            f"device={str(device)!r} was asked for but this machine has no Metal GPU; "
            "use device='cpu'."
        )
    return chosen


def resolve_dtype(X: Any) -> torch.dtype:
    """float32 and float64 stay; everything else computes in float64.

    Examples
    --------
    >>> import numpy as np
    >>> resolve_dtype(np.zeros(2, dtype=np.float32)), resolve_dtype([1, 2])
    (torch.float32, torch.float64)
    """
    dtype = getattr(X, "dtype", None)
    if dtype in (torch.float32, torch.float64):
        return dtype
    if not isinstance(dtype, torch.dtype) and dtype is not None and dtype == np.float32:
        return torch.float32
    return torch.float64


def as_tensor(
    array: Any, device: str | torch.device | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """An array as a tensor, sharing its memory when device and dtype allow.

    Parameters
    ----------
    array : array or tensor
    device : str or torch.device, optional
        Where it goes; a tensor stays where it is by default.
    dtype : torch.dtype, optional
        By default as `resolve_dtype` says.
    """
    target = resolve_device(device, like=array)
    wanted = resolve_dtype(array) if dtype is None else dtype
    if isinstance(array, Tensor):
        return array.to(device=target, dtype=wanted)
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise DataError(
            f"an array of dtype {values.dtype} cannot become a tensor of numbers; "
            "encode text, dates and mixed columns first."
        )
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if not values.flags.writeable or any(s < 0 for s in values.strides):
        values = values.copy()  # torch shares memory it may write to, walked forwards
    return torch.from_numpy(values).to(device=target, dtype=wanted)


def one_device(*tensors: Tensor | None, **named: Tensor | None) -> torch.device:
    """The common device of the tensors, or an error that names two that differ.

    Examples
    --------
    >>> import torch
    >>> one_device(x=torch.zeros(2), theta=torch.zeros(3))
    device(type='cpu')
    """
    numbered = {f"tensor {i}": tensor for i, tensor in enumerate(tensors)}
    given = {n: tensor for n, tensor in {**numbered, **named}.items() if tensor is not None}
    if not given:
        raise ShapeError("one_device got no tensors; pass at least one.")
    (first, reference), *rest = given.items()
    for name, tensor in rest:
        if tensor.device != reference.device:
            raise Unsupported(
                f"{first} is on {reference.device} but {name} is on {tensor.device}; "
                f"move one of them, for example with .to({str(reference.device)!r})."
            )
    return reference.device


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Let torch use ``n`` threads inside the block: small problems are faster on one."""
    before = torch.get_num_threads()
    if before == max(1, n):
        yield
        return
    torch.set_num_threads(max(1, n))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def same_convolutions() -> Iterator[None]:
    """Inside the block cuDNN takes only algorithms that add in a fixed order, chosen without a race of
    them: convolutions, transposed and recurrent layers and their gradients have the same bits every time.
    """
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before
