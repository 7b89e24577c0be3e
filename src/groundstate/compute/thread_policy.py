"""How many threads a small computation should use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from groundstate.compute.device import threads

TINY = 1e6  # multiply-adds below which handing work to another thread costs more than it saves


def step_threads(macs: float, device: torch.device | str = "cpu") -> int:
    """Threads for steps of that many multiply-adds: one when they are tiny, else torch's number.

    Examples
    --------
    >>> step_threads(460_000)
    1
    """
    if torch.device(device).type == "cpu" and macs < TINY:
        return 1
    return torch.get_num_threads()


@contextmanager
def for_steps(macs: float, device: torch.device | str = "cpu") -> Iterator[int]:
    """The block runs with `step_threads`; gives their number."""
    n = step_threads(macs, device)
    if n == torch.get_num_threads():
        yield n
        return
    with threads(n):
        yield n


@cache
def _pools() -> Any:
    import scipy.linalg  # noqa: F401  the library whose products numba calls
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def lone_products() -> Iterator[None]:
    """Products of NumPy and of compiled code are of one thread in the block.

    Threads of its library that wait for one another between many small products take longer than
    the products.
    """
    with _pools().limit(limits=1, user_api="blas"):
        yield


__all__ = ["TINY", "for_steps", "lone_products", "step_threads"]
