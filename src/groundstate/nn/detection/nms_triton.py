r"""Which boxes overlap, and which of them stay, on a GPU: a bit for each pair, a word for 64 boxes."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.foreign.triton import jit, tl

TRIES = 4  # passes before the host asks whether anything still changes


@jit
def _overlaps(
    columns, size, labels, before, n, words, threshold,
    Labelled: tl.constexpr, Single: tl.constexpr,
):  # fmt: skip
    block, word = tl.program_id(0), tl.program_id(1)
    if word > block:
        return
    lane = tl.arange(0, 64)
    i, j = block * 64 + lane, word * 64 + lane
    x1, y1 = tl.load(columns + i, i < n, 0.0), tl.load(columns + n + i, i < n, 0.0)
    x2, y2 = tl.load(columns + 2 * n + i, i < n, 0.0), tl.load(columns + 3 * n + i, i < n, 0.0)
    X1, Y1 = tl.load(columns + j, j < n, 0.0), tl.load(columns + n + j, j < n, 0.0)
    X2, Y2 = tl.load(columns + 2 * n + j, j < n, 0.0), tl.load(columns + 3 * n + j, j < n, 0.0)
    wide = tl.minimum(x2[:, None], X2[None, :]) - tl.maximum(x1[:, None], X1[None, :])
    high = tl.minimum(y2[:, None], Y2[None, :]) - tl.maximum(y1[:, None], Y1[None, :])
    common = tl.maximum(wide, 0.0) * tl.maximum(high, 0.0)
    both = tl.load(size + i, i < n, 0.0)[:, None] + tl.load(size + j, j < n, 0.0)[None, :]
    limit = tl.load(threshold)
    if Single:
        iou = tl.div_rn(common, both - common)  # a plain division of float32 is approximate
    else:
        iou = common / (both - common)
    hit = (iou > limit) & (j[None, :] < i[:, None]) & (i < n)[:, None]
    if Labelled:
        hit = hit & (
            tl.load(labels + i, i < n, 0)[:, None] == tl.load(labels + j, j < n, 0)[None, :]
        )
    bits = tl.sum(hit.to(tl.int64) << lane[None, :].to(tl.int64), 1)
    tl.store(before + i.to(tl.int64) * words + word, bits, i < n)


@jit
def _pass(before, kept, out, changed, n, words):
    block = tl.program_id(0)
    lane = tl.arange(0, 64)
    i = block * 64 + lane
    hit = tl.zeros([64], dtype=tl.int64)
    for word in range(block + 1):
        hit = hit | (
            tl.load(before + i.to(tl.int64) * words + word, i < n, 0) & tl.load(kept + word)
        )
    now = tl.sum(((hit == 0) & (i < n)).to(tl.int64) << lane.to(tl.int64), 0)
    tl.store(out + block, now)
    if now != tl.load(kept + block):
        tl.store(changed, 1)


def kept(columns: Tensor, size: Tensor, labels: Tensor | None, threshold: float) -> Tensor:
    """Which of the boxes stay, best first: the one solution of "kept = no kept box before it overlaps".

    Coordinates ``(4, n)``, areas ``(n,)``, labels ``(n,)`` or None; a truth for each box ``(n,)``.
    """
    n = columns.shape[1]
    words = -(-n // 64)
    before = torch.empty(n, words, dtype=torch.int64, device=columns.device)
    limit = columns.new_full((), threshold)
    # products and sums are rounded one by one, as on a CPU, so that both keep the same boxes
    _overlaps[(words, words)](
        columns, size, labels, before, n, words, limit, Labelled=labels is not None,
        Single=columns.dtype == torch.float32, enable_fp_fusion=False,
    )  # fmt: skip
    old = torch.full((words,), -1, dtype=torch.int64, device=columns.device)
    new, changed = torch.empty_like(old), torch.empty(1, dtype=torch.int32, device=columns.device)
    while True:
        for _ in range(TRIES):
            changed.zero_()
            _pass[(words,)](before, old, new, changed, n, words)
            old, new = new, old
        if not changed.item():
            break
    lane = torch.arange(64, device=columns.device)
    return (old[:, None] >> lane & 1).bool().flatten()[:n]
