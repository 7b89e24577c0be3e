r"""The best cut of many nodes at once, from their histograms, in torch.

The same rules as the compiled loops of `histogram_kernels`: NaN is tried on both sides, equal gains
go to the first column, the first bin, and NaN on the right.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.learn.histogram_cuts import MISSING, NONE, TIE

# columns of the answer
COLUMN, GAIN, CODE, SIDE, LEFT_G, LEFT_H, LEFT_W, SEEN = range(8)


def _value_drop(g: Tensor, d: Tensor, box: Tensor) -> tuple[Tensor, Tensor]:
    """Leaf value within its bounds, and how much the second-order loss falls there."""
    v = torch.minimum(
        torch.maximum(-g / d, box[:, 0, None, None, None]), box[:, 1, None, None, None]
    )
    return v, -(g * v + 0.5 * d * v * v)


def best_cuts(
    hist: Tensor,
    total: Tensor,
    n_bins: Tensor,
    units: tuple[float, float, float, int],
    rules: tuple[float, float, float],
    allowed: Tensor | None = None,
    signs: Tensor | None = None,
    box: Tensor | None = None,
) -> Tensor:
    """One row per node: column, gain, code, side of NaN, sums of the left side, NaN seen.

    Parameters
    ----------
    hist : (m, d, BINS, 2) int64
    total : (m, 3) float64, G, H and weight
    n_bins : (d,) int64
    units : value of one step of gradient, hessian and weight, and the number of weight bits
    rules : l2, least weight and least hessian of a leaf
    allowed : (m, d) bool, columns that a node may cut
    signs : (d,) +1 rising, −1 falling, 0 free; with it ``box`` (m, 2) bounds the values
    """
    step_g, step_h, unit, bits = units
    l2, least, least_h = rules
    gap = hist[:, :, MISSING:, :]  # (m, d, 1, 2)
    inside = hist[:, :, :MISSING, :].cumsum(2)  # (m, d, 255, 2)
    left = torch.stack([inside, inside + gap], 2)  # (m, d, 2, 255, 2)
    p = left[..., 1]
    gl = left[..., 0].double() * step_g
    hl = (p >> bits).double() * step_h
    wl = (p & ((1 << bits) - 1)).double() * unit
    whole = total[:, :, None, None, None]
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
        vl, drop_l = _value_drop(gl, dl, box)
        vr, drop_r = _value_drop(gr, dr, box)
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


__all__ = ["CODE", "COLUMN", "GAIN", "LEFT_G", "LEFT_H", "LEFT_W", "SEEN", "SIDE", "best_cuts"]
