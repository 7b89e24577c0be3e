r"""Histograms of gradients on a device: a CUDA kernel where there is one, else torch.

Both add the same whole numbers, so they agree with each other and with the compiled loops of the
CPU to the last bit.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from groundstate.learn.solvers.boosting.histogram.cuts_numba import BINS, GROUP

_CHUNK = 1 << 22  # entries of a group that torch handles at once
_THREADS, _EACH = 256, 32  # rows per thread of a block

# A block owns one group of columns of one node and some of its rows. Sums stand in shared memory as
# four planes of 32-bit words (low and high halves of both words), because 32-bit atomics are native
# there; a low half that wraps carries one into the high half.
_SOURCE = r"""
extern "C" __global__ void fill(const unsigned int* words, const int* rows,
                                const unsigned long long* pairs, const long long* spans,
                                unsigned long long* out, int n, int groups) {
  __shared__ unsigned int plane[4][1024];
  const int node = blockIdx.z, group = blockIdx.y;
  const long long lo = spans[2 * node], hi = spans[2 * node + 1];
  const long long step = (long long)gridDim.x * blockDim.x;
  if (lo + (long long)blockIdx.x * blockDim.x >= hi) return;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x)
    plane[0][i] = plane[1][i] = plane[2][i] = plane[3][i] = 0u;
  __syncthreads();
  const unsigned int* column = words + (long long)group * n;
  for (long long k = lo + (long long)blockIdx.x * blockDim.x + threadIdx.x; k < hi; k += step) {
    const int r = rows[k];
    const unsigned int word = column[r];
    const unsigned long long g = pairs[2LL * r], p = pairs[2LL * r + 1];
    const unsigned int g0 = (unsigned int)g, g1 = (unsigned int)(g >> 32);
    const unsigned int p0 = (unsigned int)p, p1 = (unsigned int)(p >> 32);
    #pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int at = (c << 8) + ((word >> (8 * c)) & 255u);
      unsigned int old = atomicAdd(&plane[0][at], g0);
      atomicAdd(&plane[1][at], g1 + (old > 0xffffffffu - g0 ? 1u : 0u));
      old = atomicAdd(&plane[2][at], p0);
      atomicAdd(&plane[3][at], p1 + (old > 0xffffffffu - p0 ? 1u : 0u));
    }
  }
  __syncthreads();
  unsigned long long* mine = out + ((long long)node * groups + group) * 2048;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    const unsigned long long g = ((unsigned long long)plane[1][i] << 32) | plane[0][i];
    const unsigned long long p = ((unsigned long long)plane[3][i] << 32) | plane[2][i];
    if (g) atomicAdd(mine + 2 * i, g);
    if (p) atomicAdd(mine + 2 * i + 1, p);
  }
}
"""


@functools.cache
def _kernel() -> Any:
    """The compiled kernel, or None where this torch cannot compile one."""
    make: Any = getattr(torch.cuda, "_compile_kernel", None)
    try:
        return None if make is None else make(_SOURCE, "fill")
    except (RuntimeError, OSError):
        return None


def fill(codes: Tensor, rows: Tensor, pairs: Tensor, spans: list[tuple[int, int]]) -> Tensor:
    """Sums of ``pairs`` (n, 2) by code, for the rows[lo:hi] of every span.

    Parameters
    ----------
    codes : (groups, n, GROUP) uint8
    rows : (n,) int32

    Returns
    -------
    (spans, groups * GROUP, BINS, 2) int64
    """
    groups, n, _ = codes.shape
    out = torch.zeros((len(spans), groups * GROUP, BINS, 2), dtype=torch.int64, device=codes.device)
    longest = max((hi - lo for lo, hi in spans), default=0)
    if longest == 0:
        return out
    kernel = _kernel() if codes.device.type == "cuda" else None
    if kernel is None:
        _fill_torch(codes, rows, pairs, spans, out)
        return out
    at = torch.tensor(spans, dtype=torch.int64, device=codes.device)
    blocks = max(1, min(4096, -(-longest // (_THREADS * _EACH))))
    kernel(
        grid=(blocks, groups, len(spans)),
        block=(_THREADS, 1, 1),
        args=[codes.view(torch.int32), rows, pairs, at, out, n, groups],
    )
    return out


def _fill_torch(
    codes: Tensor, rows: Tensor, pairs: Tensor, spans: list[tuple[int, int]], out: Tensor
) -> None:
    groups = len(codes)
    offset = torch.arange(GROUP, device=codes.device) * BINS
    for s, (lo, hi) in enumerate(spans):
        for a in range(lo, hi, _CHUNK // GROUP):
            part = rows[a : min(hi, a + _CHUNK // GROUP)].long()
            own = pairs[part].repeat_interleave(GROUP, 0)  # (rows * GROUP, 2)
            for q in range(groups):
                place = (codes[q, part].long() + offset).reshape(-1)
                out[s].view(groups, GROUP * BINS, 2)[q].index_add_(0, place, own)
