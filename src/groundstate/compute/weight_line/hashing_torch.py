"""Row hashes and keyed orders on the accelerator, equal to the ones on the CPU bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import _MIX_1, _MIX_2
from groundstate.errors import DataError

_BLOCK = 32  # columns hashed at once: bounds the memory to 32 words per row
_SIGN = -(1 << 63)
_ENTRIES = 1 << 25  # sorted at once


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def _shift(words: Tensor, n: int) -> Tensor:
    return (words >> n) & ((1 << (64 - n)) - 1)


def mix64_torch(words: Tensor) -> Tensor:
    """`mix64` on int64 tensors that carry the bits of unsigned words."""
    w = (words ^ _shift(words, 30)) * _signed(_MIX_1)
    w = (w ^ _shift(w, 27)) * _signed(_MIX_2)
    return w ^ _shift(w, 31)


def _words(block: Tensor) -> Tensor:
    if block.is_complex() or block.dtype == torch.uint64:
        raise DataError(f"row_hash cannot read a {block.dtype} tensor; pass real numbers.")
    values = block.to(torch.float64)
    words = torch.where(values == 0, 0.0, values).view(torch.int64)
    words = torch.where(values.isnan(), 0x7FF8000000000000, words)
    if block.dtype == torch.int64:
        words = torch.where((block > 1 << 53) | (block < -(1 << 53)), block, words)
    return words


def tensor_sum(tensor: Tensor, origin: int) -> Tensor:
    """The sum over the columns in the row hash of a dense tensor.  # (N,) int64"""
    from groundstate.compute.weight_line.hashing import position_keys

    if tensor.layout != torch.strided:
        raise DataError("row_hash reads dense tensors on an accelerator; call .to_dense() first.")
    if tensor.ndim == 0:
        raise DataError("row_hash got a single value; pass a tensor with N rows.")
    rows = tensor.detach().reshape(len(tensor), -1) if len(tensor) else tensor.detach()[:, None]
    keys = torch.from_numpy(position_keys(origin, rows.shape[1]).view(np.int64).copy()).to(
        rows.device
    )
    out = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    for a in range(0, rows.shape[1], _BLOCK):
        k = keys[a : a + _BLOCK]
        out += (mix64_torch(_words(rows[:, a : a + _BLOCK]) ^ k) - mix64_torch(k)).sum(1)
    return out


def keyed_orders(hashes: Tensor, words: Sequence[int], bits: int) -> Tensor:
    """`reference.keyed_order` of many keys on a device.  # (S, G) int64"""
    low = (1 << bits) - 1
    position = torch.arange(len(hashes), device=hashes.device)
    own = torch.tensor([_signed(word) for word in words]).to(hashes.device)
    parts = []
    for some in own.split(max(1, _ENTRIES // max(1, len(hashes)))):
        keys = (mix64_torch(hashes ^ some[:, None]) & ~low | position) ^ _SIGN
        parts.append(torch.sort(keys, 1).values & low)
    return parts[0] if len(parts) == 1 else torch.cat(parts)
