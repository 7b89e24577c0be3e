"""Columns as codes, gradients as whole numbers, and rows sorted into nodes, on a device."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from groundstate.learn.solvers.boosting.histogram.cuts_numba import GROUP, MISSING
from groundstate.learn.solvers.trees.bins_numba import Bins, midpoint


def device_bins(x: Tensor, weight: Tensor | None, max_bins: int) -> Bins:
    """`Bins.of` for numeric columns that stand on a device: the same edges."""
    edges = []
    for j in range(x.shape[1]):
        column, w = x[:, j], weight
        keep = ~torch.isnan(column)
        if w is not None:
            keep &= w > 0
        column = column[keep]
        w = None if w is None else w[keep]
        if len(column) < 2:
            edges.append(np.empty(0))
            continue
        ordered, order = torch.sort(column, stable=True)
        last = torch.nonzero(ordered[1:] != ordered[:-1])[:, 0]
        if w is None:
            below, total = last.double() + 1.0, float(len(ordered))
        else:
            cumulative = w[order].double().cumsum(0)
            below, total = cumulative[last], float(cumulative[-1])
        if len(last) >= max_bins:
            marks = total * torch.arange(1, max_bins, device=x.device).double() / max_bins
            place = torch.unique(torch.searchsorted(below, marks))
            last = last[place[place < len(last)]]
        low, high = ordered[last].cpu().numpy(), ordered[last + 1].cpu().numpy()
        edges.append(midpoint(low.astype(np.float64), high.astype(np.float64), low.dtype))
    return Bins(edges, np.zeros(x.shape[1], np.int64), MISSING)


def device_codes(x: Tensor, bins: Bins) -> Tensor:
    """Codes of ``x`` (n, d), four columns together, ``(groups, n, GROUP)`` uint8."""
    n, d = x.shape
    codes = torch.zeros((-(-d // GROUP), n, GROUP), dtype=torch.uint8, device=x.device)
    for j in range(d):
        column = x[:, j].double().contiguous()
        edges = torch.from_numpy(np.ascontiguousarray(bins.edges[j])).to(x.device)
        code = torch.bucketize(column, edges)
        codes[j // GROUP, :, j % GROUP] = torch.where(torch.isnan(column), MISSING, code).byte()
    return codes


def step_of(total: float, bits: int) -> float:
    """A power of two so that sums of up to ``total`` have ``bits`` bits."""
    return 2.0 ** (math.ceil(math.log2(total)) + 1 - bits) if total > 0 else 1.0


def quantised(value: Tensor, weight: Tensor | None, step: float) -> Tensor:
    """Weighted values in whole steps; rounded before a whole weight multiplies them."""
    a = value / step
    if weight is None:
        return a.round().long()
    return torch.where(weight == weight.round(), a.round() * weight, (a * weight).round()).long()


def partition(
    codes: Tensor, rows: Tensor, spans: list[tuple[int, int]], cuts: list[tuple[int, int, bool]]
) -> list[int]:
    """Reorder the rows of every span in place, left ones first; returns where the right begin.

    ``cuts`` are (column, last code on the left, whether NaN goes left), one per span.
    """
    device = rows.device
    n = codes.shape[1]
    merged = [(*span, *cut) for span, cut in zip(spans, cuts, strict=True)]
    lo, hi, j, last, nan_left = torch.tensor(merged, device=device).T
    size = hi - lo
    owner = torch.repeat_interleave(torch.arange(len(spans), device=device), size)
    ends = size.cumsum(0)
    first = ends - size  # where a span begins in the concatenation
    inside = torch.arange(len(owner), device=device) - first[owner]
    own = rows[lo[owner] + inside]
    at = (j // GROUP * n * GROUP + j % GROUP)[owner] + own.long() * GROUP
    code = codes.view(-1)[at].long()
    go = torch.where(code == MISSING, nan_left[owner], (code <= last[owner]).long())
    before = torch.cat([go.new_zeros(1), go.cumsum(0)])
    left = before[1:] - before[first][owner]  # how many of the span went left so far
    middle = lo + before[ends] - before[first]
    to = torch.where(go > 0, lo[owner] + left - 1, middle[owner] + inside - left)
    rows[to] = own
    return [int(m) for m in middle.tolist()]
