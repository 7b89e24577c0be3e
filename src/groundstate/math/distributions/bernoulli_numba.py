r"""Many independent bits at once: :math:`P(b = 1) = \sigma(a)` for a block of logits.

Drawing and comparing costs more than the matrix products before it when the generator is serial. Here
the uniforms are words of a counter, mixed in registers, and :math:`u < \sigma(a)` is asked as
:math:`u\,(1 + e^{-a}) < 1`, so that one pass reads logits and writes bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray
from torch import Tensor

F32 = NDArray[np.float32]

_U = np.uint64
_GOLDEN = _U(0x9E3779B97F4A7C15)
_M1, _M2 = _U(0xBF58476D1CE4E5B9), _U(0x94D049BB133111EB)
_S8, _S27, _S30, _S31, _S40 = _U(8), _U(27), _U(30), _U(31), _U(40)
_LOW24 = _U(0xFFFFFF)
_ROUND = np.float32(12582912.0)  # 1.5·2^23: adding and taking it away rounds to an integer
_UNIT = np.float32(2.0**-24)
_HALF = np.float32(2.0**-25)
_LOG2E, _LN2_HIGH, _LN2_LOW = (
    np.float32(1.44269504),
    np.float32(0.693359375),
    np.float32(-2.12194440e-4),
)
_MOST = np.float32(80.0)
_C = tuple(np.float32(c) for c in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0))
_BLOCK = 4096
_FEW = 2**15  # bits that one thread draws sooner than it shares them


@njit(cache=True, inline="always")
def exp_float(a: Any) -> Any:
    """exp(a) in float32, for |a| at most 80; sums may not be taken in another order around it."""
    x = min(max(a, -_MOST), _MOST)
    k = (x * _LOG2E + _ROUND) - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _C[0]
    p = p * r + _C[1]
    p = p * r + _C[2]
    p = p * r + _C[3]
    p = p * r + _C[4]
    p = p * r + _C[5]
    p = p * r + _C[6]
    return p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(cache=True, inline="always")
def _bit(a: Any, u: Any) -> Any:
    one = np.float32(1.0)
    return one if u * (one + exp_float(-a)) < one else np.float32(0.0)


@njit(cache=True, inline="always")
def _uniforms(seed: Any, b: Any, u: Any) -> None:
    """The numbers of block b; every word gives two, each the middle of one of 2^24 cells."""
    half = _BLOCK // 2
    for i in range(half):
        w = seed + _U(b * half + i) * _GOLDEN
        w = (w ^ (w >> _S30)) * _M1
        w = (w ^ (w >> _S27)) * _M2
        w = w ^ (w >> _S31)
        u[i] = np.float32(np.int32(w >> _S40)) * _UNIT + _HALF
        u[half + i] = np.float32(np.int32((w >> _S8) & _LOW24)) * _UNIT + _HALF


_OPTIONS: Any = {"cache": True, "nogil": True, "fastmath": {"contract", "nnan", "nsz"}}


@njit(inline="always", **_OPTIONS)
def _fill_block(logits: F32, seed: Any, b: Any, out: Any) -> None:
    """Views of a block have plain indices, so loops vectorise."""
    first = b * _BLOCK
    a, bits = logits[first : first + _BLOCK], out[first : first + _BLOCK]
    u = np.empty(_BLOCK, np.float32)
    _uniforms(seed, b, u)
    for i in range(len(bits)):
        bits[i] = _bit(a[i], u[i])


# two functions, not one compiled twice: those would share an entry of numba's cache
@njit(**_OPTIONS)
def fill_alone(logits: F32, seed: Any, out: Any) -> None:
    """`fill_bits` on the thread that asks."""
    for b in range((len(out) + _BLOCK - 1) // _BLOCK):
        _fill_block(logits, seed, b, out)


@njit(parallel=True, **_OPTIONS)
def _fill_together(logits: F32, seed: Any, out: Any) -> None:
    for b in prange((len(out) + _BLOCK - 1) // _BLOCK):
        _fill_block(logits, seed, b, out)


def fill_bits(logits: F32, seed: int, out: Any) -> None:
    """out ← u < σ(logits), flat arrays; the numbers u follow from the seed, a 64-bit word, alone."""
    run = fill_alone if out.size <= _FEW else _fill_together
    run(logits, _U(seed), out)


@njit(**_OPTIONS)
def fill_uniforms(seeds: Any, out: Any) -> None:
    """out ← numbers between 0 and 1, ``(r, m)``; each row follows from its own 64-bit word alone."""
    for r in range(len(seeds)):
        seed, row = _U(seeds[r]), out[r]
        for i in range(len(row)):
            w = seed + _U(i) * _GOLDEN
            w = (w ^ (w >> _S30)) * _M1
            w = (w ^ (w >> _S27)) * _M2
            w = w ^ (w >> _S31)
            row[i] = np.float32(np.int32(w >> _S40)) * _UNIT + _HALF


def draw_bits(logits: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """``(n, *logits.shape)`` zeros and ones from float32 logits on the CPU.

    >>> a = torch.zeros(400, 500)
    >>> bits = draw_bits(a, 1, torch.Generator().manual_seed(0))
    >>> bits.shape, bool((bits.mean() - 0.5).abs() < 0.005)
    (torch.Size([1, 400, 500]), True)
    """
    seed = torch.randint(2**63 - 1, (), generator=generator, device=generator.device)
    out = torch.empty(n, *logits.shape)
    given = logits.expand(n, *logits.shape).contiguous().view(-1)
    fill_bits(given.numpy(), int(seed), out.view(-1).numpy())
    return out
