"""Where kernels written in Triton can run."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@cache
def installed() -> bool:
    return find_spec("triton") is not None


def fused(values: Tensor) -> bool:
    """Whether a Triton kernel takes these values: on an NVIDIA or AMD GPU, outside of a traced graph.

    >>> fused(torch.ones(3))
    False
    """
    ready = values.is_cuda and values.dtype in TYPES and installed()
    return ready and not torch.compiler.is_compiling()


__all__ = ["fused", "installed"]
