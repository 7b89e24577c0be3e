"""Triton, which comes with torch for GPUs; modules of kernels can be imported without it.

A kernel is a function under ``jit`` that computes with ``tl``. Where Triton is missing, it stays a plain
function that nobody calls: :func:`groundstate.compute.foreign.fused.fused` answers no.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groundstate.compute.foreign.fused import installed

jit: Callable[[Callable[..., Any]], Any]
tl: Any

if installed():
    import triton
    import triton.language

    jit, tl = triton.jit, triton.language
else:

    def jit(kernel: Callable[..., Any]) -> Any:
        return kernel

    tl = None


__all__ = ["jit"]  # tl is None where Triton is missing
