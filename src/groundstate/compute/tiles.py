r"""Sums over rows by compiled kernels: slice by slice, in threads, with one BLAS thread each.

A kernel handles rows ``lo..hi`` without the interpreter's lock and returns what it summed. Slices
are fixed and their results are added in order, :math:`S = \sum_s S_s`, so the bits of a sum do not
depend on how many threads there are.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

from groundstate.compute.mapped import give_back

SLICE = 2**13  # rows whose sums are taken together
HELD = 2**4  # slices after which pages of tables in files are given back
GEMM_LIMIT = 10**6  # multiply-adds of one product: below it BLAS skips packing and is fastest

R = TypeVar("R")


@cache
def _libraries(process: int) -> Any:
    import scipy.linalg.cython_blas  # noqa: F401  # the one compiled kernels call
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@cache
def pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work; a forked process, which has none of them, makes its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="groundstate")


_inside = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products inside the block run on the thread that asks for them; blocks may be nested."""
    if getattr(_inside, "block", False):
        yield
        return
    found = [(one, one.num_threads) for one in _libraries(os.getpid()).lib_controllers]
    changed = [(one, threads) for one, threads in found if threads not in (None, 1)]
    for one, _ in changed:
        one.set_num_threads(1)
    _inside.block = True
    try:
        yield
    finally:
        _inside.block = False
        for one, threads in changed:
            one.set_num_threads(threads)


def over_slices(kernel: Callable[[int, int], R], rows: int, size: int = SLICE) -> Iterator[R]:
    """Results of ``kernel(lo, hi)`` on consecutive slices, in order, computed in threads."""
    bounds = [(lo, min(lo + size, rows)) for lo in range(0, rows, size)]
    threads = min(torch.get_num_threads(), len(bounds))
    with one_blas_thread():
        if threads < 2:
            results: Iterator[R] = (kernel(lo, hi) for lo, hi in bounds)
        else:
            results = pool(os.getpid(), threads).map(lambda bound: kernel(*bound), bounds)
        for i, result in enumerate(results, 1):
            yield result
            if i % HELD == 0:
                give_back()


def tile_rows(per_row: int, most: int = 256) -> int:
    """Rows of a tile whose products, ``per_row`` multiply-adds each, stay below the limit."""
    return max(16, min(most, GEMM_LIMIT // max(1, per_row)) // 16 * 16)
