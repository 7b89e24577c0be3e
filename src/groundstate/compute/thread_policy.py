"""How many threads a small computation should use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from threading import local
from typing import Any

import torch

from groundstate.compute.device import threads

_ROWS = 1_200  # of a matrix, from which several threads factor it sooner than one
_FEW = 2**23  # numbers of a table below which its products gain nothing from a second thread
TINY = 1.5e7  # multiply-adds below which handing work to another thread costs more than it saves


class _Outside(local):
    threads: int | None = None  # torch's number where the outermost fit to a short table began


_outside = _Outside()


def given_threads() -> int:
    """Torch's number of threads, within `for_fit` the one outside: for whoever counts work itself."""
    return _outside.threads or torch.get_num_threads()


def step_threads(macs: float, device: torch.device | str = "cpu") -> int:
    """Threads for steps of that many multiply-adds: one when they are tiny, else `given_threads`.

    Examples
    --------
    >>> step_threads(460_000)
    1
    """
    if torch.device(device).type == "cpu" and macs < TINY:
        return 1
    return given_threads()


@contextmanager
def for_steps(macs: float, device: torch.device | str = "cpu") -> Iterator[int]:
    """The block runs with `step_threads`; gives their number."""
    n = step_threads(macs, device)
    if n == torch.get_num_threads():
        yield n
        return
    with threads(n):
        yield n


class answering:
    """No gradients; and one thread where the numbers of a module, once per row, are few.

    Two threads wait for one another at every operation, which on a busy machine takes longer than
    all the work.
    """

    def __init__(self, module: torch.nn.Module, x: torch.Tensor) -> None:
        self.before, self.pool = torch.is_grad_enabled(), 1
        if x.device.type != "cpu" or (many := torch.get_num_threads()) == 1:
            return
        held = sum(
            tensor.numel()
            for part in module.modules()
            for group in (part._parameters, part._buffers)
            for tensor in group.values()
            if tensor is not None
        )
        if len(x) * held < TINY:
            self.pool = many

    def __enter__(self) -> None:
        torch.set_grad_enabled(False)
        if self.pool > 1:
            torch.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        torch.set_grad_enabled(self.before)
        if self.pool > 1:
            torch.set_num_threads(self.pool)


def _is_short(x: Any) -> bool:
    """Whether even the cube of the longer side of a table on the host is below `TINY`."""
    if isinstance(x, list) and x and isinstance(x[0], list):
        shape: tuple[int, ...] = len(x), len(x[0])
    elif isinstance(x, torch.Tensor) and x.device.type != "cpu":
        return False
    else:
        shape = getattr(x, "shape", ())
    return len(shape) == 2 and float(max(shape)) ** 3 < TINY


@contextmanager
def for_fit(x: Any) -> Iterator[None]:
    """A fit to x: torch's by one thread where x is a short table, whose products, factors, Gram
    matrix and covariance are small. What is larger inside, such as a network's steps, and loops of
    its own threads ask for `given_threads`.
    """
    before = torch.get_num_threads()
    if before == 1 or not _is_short(x):
        yield
        return
    kept, _outside.threads = _outside.threads, before
    try:
        with threads(1):
            yield
    finally:
        _outside.threads = kept


@cache
def _pools() -> Any:
    import scipy.linalg  # noqa: F401  the library whose products numba calls
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=1)
def _loaded(process: int, modules: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Every library of the process and torch compute with one thread in the block.

    Libraries are looked for again where modules were imported since: the search takes longer than a
    small fit.
    """
    with _loaded(os.getpid(), len(sys.modules)).limit(limits=1), threads(1):
        yield


@contextmanager
def lone_products() -> Iterator[None]:
    """Products of NumPy and of compiled code are of one thread in the block.

    Threads of its library that wait for one another between many small products take longer than
    the products.
    """
    with _pools().limit(limits=1, user_api="blas"):
        yield


@contextmanager
def for_factors(n: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Many factors of matrices of n rows: by one thread where they are not large."""
    if torch.device(device).type != "cpu" or n > _ROWS:
        yield
        return
    with threads(1), lone_products():
        yield


@contextmanager
def for_rows(x: torch.Tensor) -> Iterator[None]:
    """Many products with one table of rows: by one thread where it is not large."""
    if x.device.type != "cpu" or x.layout != torch.strided or x.numel() >= _FEW:
        yield
        return
    with lone_products():
        yield
