r"""The best cut of many nodes at once, from their histograms: a CUDA kernel, else torch.

The same rules as the compiled loops of `cuts_numba`: NaN is tried on both sides, equal gains
go to the first column, the first bin, and NaN on the right.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from groundstate.learn.solvers.boosting.histogram.cuts_numba import MISSING, NONE, TIE

# columns of the answer
COLUMN, GAIN, CODE, SIDE, LEFT_G, LEFT_H, LEFT_W, SEEN = range(8)


# A block owns one column of one node, a thread one bin. Products are rounded one by one, as torch does,
# so that both ways find the same cuts.
_SOURCE = r"""
__device__ double gain_of(double g, double h, double w, const double* whole, const double* rules,
                          bool open) {
  const double gr = whole[0] - g, hr = whole[1] - h, wr = whole[2] - w;
  if (!open || !(w >= rules[1]) || !(wr >= rules[1]) || !(h >= rules[2]) || !(hr >= rules[2]))
    return -1e300;
  const double dl = h + rules[0], dr = hr + rules[0];
  const double top = __dadd_rn(__dmul_rn(__dmul_rn(g, g), dr), __dmul_rn(__dmul_rn(gr, gr), dl));
  return __ddiv_rn(__dmul_rn(0.5, top), __dmul_rn(dl, dr));
}

__device__ double best_of(double own, double* shared, int b) {
  shared[b] = own;
  __syncthreads();
  for (int half = 128; half > 0; half >>= 1) {
    if (b < half) shared[b] = fmax(shared[b], shared[b + half]);
    __syncthreads();
  }
  const double out = shared[0];
  __syncthreads();
  return out;
}

extern "C" __global__ void cuts(const long long* hist, const double* numbers,
                                const long long* n_bins, double* out, int d, int bits) {
  __shared__ long long sums[2][256];
  __shared__ double gains[256];
  __shared__ int first[2];
  const int j = blockIdx.x, node = blockIdx.y, b = threadIdx.x;
  const double *units = numbers, *rules = numbers + 3, *whole = numbers + 6 + 3 * node;
  const long long* own = hist + ((long long)node * d + j) * 512;
  const long long gap_g = own[510], gap_p = own[511];
  const bool filled = b < 255 && own[2 * b + 1] != 0, missing = gap_p != 0;
  sums[0][b] = b < 255 ? own[2 * b] : 0;
  sums[1][b] = b < 255 ? own[2 * b + 1] : 0;
  if (b < 2) first[b] = 255;
  __syncthreads();
  for (int step = 1; step < 256; step <<= 1) {
    const long long g = b >= step ? sums[0][b - step] : 0, p = b >= step ? sums[1][b - step] : 0;
    __syncthreads();
    sums[0][b] += g;
    sums[1][b] += p;
    __syncthreads();
  }
  const long long room = n_bins[j] - 1, mask = (1LL << bits) - 1;
  double g[2], h[2], w[2], gain[2], top[2];
  for (int side = 0; side < 2; ++side) {
    const long long p = sums[1][b] + (side ? gap_p : 0);
    g[side] = __dmul_rn((double)(sums[0][b] + (side ? gap_g : 0)), units[0]);
    h[side] = __dmul_rn((double)(p >> bits), units[1]);
    w[side] = __dmul_rn((double)(p & mask), units[2]);
    const bool open = filled && (side ? missing && b < room : b < room + (missing ? 1 : 0));
    gain[side] = gain_of(g[side], h[side], w[side], whole, rules, open);
    top[side] = best_of(b < 255 ? gain[side] : -1e300, gains, b);
    if (b < 255 && gain[side] >= __dadd_rn(top[side], -__dmul_rn(1e-11, fabs(top[side]))))
      atomicMin(&first[side], b);
    __syncthreads();
  }
  gains[b] = gain[0];
  __syncthreads();
  const double found = gains[first[0]];
  const int side = top[1] > __dadd_rn(found, __dmul_rn(1e-11, fabs(found))) ? 1 : 0;
  if (b != first[side]) return;
  double* to = out + ((long long)node * d + j) * 8;
  to[0] = j;
  to[1] = gain[side];
  to[2] = b;
  to[3] = side;
  to[4] = g[side];
  to[5] = h[side];
  to[6] = w[side];
  to[7] = missing;
}
"""


@functools.cache
def _kernel() -> Any:
    """The compiled kernel, or None where this torch cannot compile one."""
    make: Any = getattr(torch.cuda, "_compile_kernel", None)
    try:
        return None if make is None else make(_SOURCE, "cuts")
    except (RuntimeError, OSError):
        return None


def _by_kernel(
    kernel: Any,
    hist: Tensor,
    total: list[tuple[float, float, float]],
    n_bins: Tensor,
    units: tuple[float, float, float, int],
    rules: tuple[float, float, float],
    allowed: Tensor | None,
) -> Tensor:
    m, d = hist.shape[:2]
    numbers = torch.tensor([units[:3], rules, *total], dtype=torch.float64, device=hist.device)
    out = torch.empty((m, d, 8), dtype=torch.float64, device=hist.device)
    kernel(grid=(d, m, 1), block=(256, 1, 1), args=[hist, numbers, n_bins, out, d, units[3]])
    best = out[:, :, GAIN]
    if allowed is not None:
        best = torch.where(allowed, best, NONE)
        out[:, :, GAIN] = best
    j = (best + TIE * best.abs() >= best.amax(1, keepdim=True)).int().argmax(1)  # first of equals
    return out.gather(1, j[:, None, None].expand(m, 1, 8))[:, 0]


def _value_drop(g: Tensor, d: Tensor, box: Tensor) -> tuple[Tensor, Tensor]:
    """Leaf value within its bounds, and how much the second-order loss falls there."""
    v = torch.minimum(
        torch.maximum(-g / d, box[:, 0, None, None, None]), box[:, 1, None, None, None]
    )
    return v, -(g * v + 0.5 * d * v * v)


def best_cuts(
    hist: Tensor,
    total: list[tuple[float, float, float]],
    n_bins: Tensor,
    units: tuple[float, float, float, int],
    rules: tuple[float, float, float],
    allowed: Tensor | None = None,
    signs: Tensor | None = None,
    box: list[tuple[float, float]] | None = None,
) -> Tensor:
    """One row per node: column, gain, code, side of NaN, sums of the left side, NaN seen.

    Parameters
    ----------
    hist : (m, d, BINS, 2) int64
    total : G, H and weight of each of m nodes
    n_bins : (d,) int64
    units : value of one step of gradient, hessian and weight, and the number of weight bits
    rules : l2, least weight and least hessian of a leaf
    allowed : (m, d) bool, columns that a node may cut
    signs : (d,) +1 rising, −1 falling, 0 free; with it ``box`` bounds the values of each node
    """
    kernel = _kernel() if signs is None and hist.device.type == "cuda" else None
    if kernel is not None:
        return _by_kernel(kernel, hist.contiguous(), total, n_bins, units, rules, allowed)
    step_g, step_h, unit, bits = units
    l2, least, least_h = rules
    gap = hist[:, :, MISSING:, :]  # (m, d, 1, 2)
    inside = hist[:, :, :MISSING, :].cumsum(2)  # (m, d, 255, 2)
    left = torch.stack([inside, inside + gap], 2)  # (m, d, 2, 255, 2)
    p = left[..., 1]
    gl = left[..., 0].double() * step_g
    hl = (p >> bits).double() * step_h
    wl = (p & ((1 << bits) - 1)).double() * unit
    whole = torch.tensor(total, dtype=torch.float64, device=hist.device)[:, :, None, None, None]
    gr, hr, wr = whole[:, 0] - gl, whole[:, 1] - hl, whole[:, 2] - wl
    missing = gap[:, :, :, 1] != 0  # (m, d, 1)
    b = torch.arange(MISSING, device=hist.device)
    room = n_bins[None, :, None] - 1  # (1, d, 1)
    # with NaN on the right, all values may stand together on the left
    filled = hist[:, :, :MISSING, 1] != 0  # behind an empty bin there is no new cut
    valid = torch.stack([b < room + missing.long(), missing & (b < room)], 2)  # (m, d, 2, 255)
    valid = valid & filled[:, :, None]
    ok = valid & (wl >= least) & (wr >= least) & (hl >= least_h) & (hr >= least_h)
    dl, dr = hl + l2, hr + l2
    if signs is None or box is None:
        gain = 0.5 * (gl * gl * dr + gr * gr * dl) / (dl * dr)
    else:
        bounds = torch.tensor(box, dtype=torch.float64, device=hist.device)
        vl, drop_l = _value_drop(gl, dl, bounds)
        vr, drop_r = _value_drop(gr, dr, bounds)
        gain = drop_l + drop_r
        ok &= signs[None, :, None, None] * (vl - vr) <= 0
    gain = torch.where(ok, gain, NONE)
    top = gain.amax(-1)  # (m, d, 2)
    place = (gain >= (top - TIE * top.abs())[..., None]).int().argmax(-1)  # the first of equals
    found = gain.gather(-1, place[..., None])[..., 0]
    side = (top[..., 1] > found[..., 0] + TIE * found[..., 0].abs()).long()  # (m, d)
    best = found.gather(-1, side[..., None])[..., 0]
    if allowed is not None:
        best = torch.where(allowed, best, NONE)
    most = best.amax(1, keepdim=True)
    j = (best + TIE * best.abs() >= most).int().argmax(1)  # (m,)
    row = torch.arange(len(hist), device=hist.device)
    s = side[row, j]
    c = place[row, j, s]
    at = (row, j, s, c)
    return torch.stack(
        [
            j.double(),
            best[row, j],
            c.double(),
            s.double(),
            gl[at],
            hl[at],
            wl[at],
            missing[row, j, 0].double(),
        ],
        1,
    )
