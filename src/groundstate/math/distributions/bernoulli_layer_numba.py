r"""A layer of bits above a layer of bits: :math:`P(z_j = 1) = \sigma((x^\top W + c)_j)`.

Zeros and ones are exact in bfloat16, whose products run at twice the speed of float32 where the
processor has them. What W loses by rounding moves a logit by no more than

.. math:: |x^\top(W - \tilde W) - m_j| \le h_j, \qquad
    m_j, h_j = \tfrac12\sum_k (\varepsilon_{kj}^+ \mp \varepsilon_{kj}^-),

for every x of bits, so :math:`u < \sigma(a)` is settled by the rounded logit unless u is as near as
that; for those few the logit is summed again from W itself. The bits are those of the exact product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from groundstate.compute.foreign.torch import multiplies_bfloat16
from groundstate.math.distributions.bernoulli_numba import (
    _BLOCK,
    _bit,
    _uniforms,
    exp_float,
    fill_alone,
    fill_bits,
)

FEW = 2**18  # multiply-adds of a product that no library shares among threads
MANY = 2**25  # multiply-adds from which rounded products pay
ROWS = 256  # and rows: what is computed of W alone is shared by them
_REACH = 0.25  # largest half-width: beyond it too many bits are summed again
_ONE = np.uint16(0x3F80)  # 1 in bfloat16
_S16 = np.uint32(16)
_FAST = {"contract", "reassoc", "nsz"}
_1 = np.float32(1.0)
_SLACK = np.float32(5e-7)  # of the comparison in float32
_ROUNDED = np.float32(1.02 * 2.0**-9)  # of the product's own rounding to bfloat16


@njit(cache=True, nogil=True, fastmath=_FAST)
def _again(x: Any, w: Any, shift: Any) -> Any:
    """The logit of one bit, from the row of W that belongs to it.  # x (d,), w (d,)"""
    s = np.float64(shift)
    for k in range(len(x)):
        s += np.float64(w[k]) if x[k] != 0 else 0.0
    return np.float32(s)


@njit(cache=True, parallel=True, nogil=True, fastmath={"contract", "nsz"})
def _settle(a: Any, shift: Any, reach: Any, x: Any, W: Any, c: Any, seed: Any, out: Any) -> Any:
    """out ← 1 where u < σ(a + shift); how many bits were summed again.

    a : the rounded product, ``(n m,)`` bfloat16 as words; shift, reach, c : ``(m,)``; x : ``(n, d)``
    words; W : ``(m, d)``; out : ``(n m,)`` words
    """
    m = len(shift)
    zero = np.uint16(0)
    blocks = (len(out) + _BLOCK - 1) // _BLOCK
    counts = np.zeros(blocks, np.int64)
    for b in prange(blocks):
        start, stop = b * _BLOCK, min((b + 1) * _BLOCK, len(out))
        u, open_ = np.empty(_BLOCK, np.float32), np.zeros(_BLOCK, np.uint8)
        _uniforms(seed, b, u)
        at = start
        while at < stop:  # the part of a row that lies in this block
            j = at % m
            end = min(stop, at - j + m)
            a_, o_ = a[at:end], out[at:end]
            c_, h_ = shift[j : j + end - at], reach[j : j + end - at]
            u_, q_ = u[at - start : end - start], open_[at - start : end - start]
            for i in range(end - at):
                v = np.uint32(np.uint32(a_[i]) << _S16).view(np.float32)
                d = h_[i] + _ROUNDED * abs(v)
                e = u_[i] * exp_float(-(v + c_[i]))
                above = u_[i] + e * (_1 + d + d * d) < _1 - _SLACK  # a one wherever a is
                below = u_[i] + e * (_1 - d) > _1 + _SLACK
                o_[i] = _ONE if above else zero
                q_[i] = np.uint8(0) if (above | below) & (d < _1) else np.uint8(1)
            at = end
        words = open_.view(np.uint64)
        for w in range(len(words)):
            if words[w] == 0:
                continue
            for i in range(8 * w, min(8 * w + 8, stop - start)):
                if open_[i]:
                    row, j = (start + i) // m, (start + i) % m
                    bit = _bit(_again(x[row], W[j], c[j]), u[i])
                    out[start + i] = _ONE if bit > 0 else zero
                    counts[b] += 1
    return counts.sum()


@njit(cache=True, parallel=True, nogil=True)
def _words(x: Any, out: Any) -> Any:
    """The rows as bfloat16 words, and whether they are bits."""
    bad: Any = 0
    for i in prange(len(x)):
        row, to = x[i], out[i]
        wrong: Any = 0
        for k in range(len(row)):
            wrong += np.int32((row[k] != 0) & (row[k] != 1))
            to[k] = _ONE if row[k] != 0 else np.uint16(0)
        bad += wrong
    return bad == 0


@njit(cache=True, nogil=True, fastmath=_FAST)
def _round(W: Any, c: Any, half: Any, shift: Any, reach: Any) -> None:
    """W in bfloat16 words, and middle and half-width of what a logit may differ by from the
    product with them, the bias c included.  # (m,) each"""
    d, m = W.shape
    zero = np.float32(0.0)
    up, down, size = np.zeros((3, m), np.float32)
    for k in range(d):
        w_, h_ = W[k], half[k]
        for j in range(m):
            word = np.float32(w_[j]).view(np.uint32)
            word = np.uint32(word + np.uint32(0x7FFF) + ((word >> _S16) & np.uint32(1)))
            h_[j] = np.uint16(word >> _S16)
            lost = w_[j] - np.uint32(word & np.uint32(0xFFFF0000)).view(np.float32)  # exact
            up[j] += max(lost, zero)
            down[j] += min(lost, zero)
            size[j] += abs(w_[j])
    many = d * 2.0**-23  # relative error of a sum in float32
    for j in range(m):
        more, less = np.float64(up[j]), np.float64(down[j])
        middle = c[j] + 0.5 * (more + less)
        width = (more - less) * (0.5 + many) + many * size[j] + 2.0**-22 * abs(middle)
        shift[j] = np.float32(middle)
        reach[j] = np.float32(width * (1 + 2.0**-20))


def _reach(W: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    half, (shift, reach) = torch.empty(W.shape, dtype=torch.bfloat16), torch.empty(2, len(c))
    words = half.view(torch.uint16).numpy()
    _round(W.numpy(), c.numpy(), words, shift.numpy(), reach.numpy())
    return half, shift, reach


def _rounded(x: Tensor, W: Tensor, turned: Tensor, c: Tensor, seed: int) -> Tensor | None:
    """One layer above bits ``(n, d)``, both in bfloat16; None when W's rounding is too coarse."""
    half, shift, reach = _reach(W, c)
    if not bool(reach.max() < _REACH):
        return None
    a = torch.mm(x, half)  # (n, m)
    out = torch.empty_like(a)
    _settle(
        a.view(torch.uint16).view(-1).numpy(), shift.numpy(), reach.numpy(),
        x.view(torch.uint16).numpy(), turned.numpy(), c.numpy(), np.uint64(seed),
        out.view(torch.uint16).view(-1).numpy(),
    )  # fmt: skip
    return out


def _plain(x: Tensor, W: Tensor, c: Tensor, seed: int) -> Tensor:
    logits = torch.addmm(c, x.float(), W)
    out = torch.empty_like(logits)
    fill_bits(logits.view(-1).numpy(), seed, out.view(-1).numpy())
    return out


@njit(cache=True, nogil=True)
def _sweep(x: Any, W: Any, b: Any, c: Any, high: Any, low: Any, out: Any) -> None:
    """A whole sweep on the thread that asks."""
    z = np.dot(x, W)
    z += c
    fill_alone(z.reshape(-1), high, z.reshape(-1))
    back = np.dot(z, W.T)
    back += b
    fill_alone(back.reshape(-1), low, out.reshape(-1))


@torch.no_grad()
def gibbs_sweep(x: Tensor, W: Tensor, b: Tensor, c: Tensor, seeds: tuple[int, int]) -> Tensor:
    r"""One sweep of Gibbs sampling, :math:`z \sim \sigma(x^\top W + c)`, then
    :math:`x' \sim \sigma(Wz + b)`; x' as ``(n, d)`` bool.

    Parameters
    ----------
    x : float32 on the CPU, ``(n, d)``
    W : ``(d, l)``
    b, c : ``(d,)`` and ``(l,)``
    seeds : two 64-bit words, one for each layer; the uniforms follow from them alone, so the bits do
        not depend on how the products are computed, up to their rounding

    Examples
    --------
    >>> W = torch.tensor([[30.0], [-30.0]])
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> gibbs_sweep(x, W, torch.tensor([-15.0, 15.0]), torch.zeros(1), (1, 2)).int().tolist()
    [[1, 0], [0, 1]]
    """
    W, b, c, x = W.detach(), b.detach(), c.detach(), x.contiguous()
    (n, d), l = x.shape, len(c)
    high, low = seeds
    if n * d * l <= FEW:
        out = np.empty((n, d), np.bool_)
        words = np.uint64(high), np.uint64(low)
        _sweep(x.numpy(), W.contiguous().numpy(), b.numpy(), c.numpy(), *words, out)
        return torch.from_numpy(out)
    if n * d * l < MANY or n < ROWS or not multiplies_bfloat16():
        return _plain(_plain(x, W, c, high), W.T, b, low) > 0
    W, turned = W.contiguous(), W.T.contiguous()
    bits = torch.empty(n, d, dtype=torch.bfloat16)
    binary = _words(x.numpy(), bits.view(torch.uint16).numpy())
    z = _rounded(bits, W, turned, c, high) if binary else None
    if z is None:
        z = _plain(x, W, c, high).to(torch.bfloat16)
    back = _rounded(z, turned, W, b, low)
    return _plain(z, turned, b, low) > 0 if back is None else back.view(torch.int16) != 0
