r"""Normal noise of rows that is a function of their content, so that equal rows get equal noise.

A row twice then learns what a row of weight 2 learns, in any order and in any batch. With h the hash of
the row, s one word of a generator and g the golden ratio, entry i is Box and Muller's normal of the two
halves of :math:`\mathrm{mix}(h \oplus s + (i+1)\,g)`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from groundstate.compute.random import GOLDEN, Key
from groundstate.compute.weight_line.hashing_torch import _shift, _signed, mix64_torch

_HALF = 2.0**-32


@lru_cache(maxsize=64)
def _keys(columns: int, device: torch.device) -> Tensor:
    """One odd word per column."""
    words = Key.of(0).fold("columns").words(columns).astype("int64")
    return (torch.from_numpy(words) | 1).to(device)


@lru_cache(maxsize=64)
def _places(count: int, device: torch.device) -> Tensor:
    return (torch.arange(1, count + 1, device=device) * _signed(GOLDEN))[None]


def row_noise(x: Tensor, n: int, k: int, generator: torch.Generator | None = None) -> Tensor:
    """Standard normal noise ``(n, B, k)`` for rows ``(B, d)``, in their dtype and on their device.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    >>> noise = row_noise(x, 1, 2, torch.Generator().manual_seed(0))
    >>> torch.equal(noise[0, 0], noise[0, 2]), torch.equal(noise[0, 0], noise[0, 1])
    (True, False)
    """
    flat = x.detach().reshape(len(x), -1)
    kind = torch.int32 if flat.dtype == torch.float32 else torch.int64
    device = x.device if generator is None else generator.device
    seed = torch.randint(1 << 62, (1, 1), generator=generator, device=device)
    if x.device.type == "cpu" and type(x) is Tensor and not torch.compiler.is_compiling():
        from groundstate.compute.row_noise_numba import fill

        out = torch.empty(len(x), n * k, dtype=x.dtype)
        keys = _keys(flat.shape[1], x.device)
        fill(flat.contiguous().view(kind).numpy(), keys.numpy(), int(seed), out.numpy())
        return out.view(len(x), n, k).transpose(0, 1)
    return _written_out(flat.contiguous().view(kind), n, k, seed.to(x.device), x)


def _written_out(words: Tensor, n: int, k: int, seed: Tensor, like: Tensor) -> Tensor:
    """The same on tensors, for accelerators."""
    h = (words.to(torch.int64) * _keys(words.shape[1], words.device)).sum(1, keepdim=True)
    bits = mix64_torch(mix64_torch(h ^ seed) + _places(n * k, words.device))  # (B, n k)
    high, low = _shift(bits, 32), bits & 0xFFFFFFFF
    radius = ((high + 1).double() * _HALF).log().mul(-2).clamp_min(0).sqrt()
    noise = radius * (low.double() * (2 * math.pi * _HALF)).cos()
    return noise.to(like.dtype).view(len(words), n, k).transpose(0, 1)
