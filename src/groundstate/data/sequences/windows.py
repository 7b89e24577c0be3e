r"""Windows of series: what was seen, and what came next."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from groundstate.compute.rows import Ragged
from groundstate.errors import DataError


class Windows(NamedTuple):
    """Pairs of past and future, of one series after the other and in the order of time.

    Attributes
    ----------
    past : ``(n, context, F)``
    future : ``(n, horizon, F)``
    row : the series of each window, ``(n,)``
    start : the item at which each window begins in its series, ``(n,)``
    """

    past: Tensor
    future: Tensor
    row: Tensor
    start: Tensor


def windows(rows: Ragged, context: int, horizon: int = 1, stride: int = 1) -> Windows:
    """All windows of ``context`` items followed by ``horizon`` items, ``stride`` apart.

    A window lies within one series; the last one of a series ends where it ends.

    Examples
    --------
    >>> made = windows(Ragged.of([torch.arange(5.0)[:, None]]), 3)
    >>> made.past[..., 0].tolist(), made.future[..., 0].tolist()
    ([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]], [[3.0], [4.0]])
    """
    for name, value in (("context", context), ("horizon", horizon), ("stride", stride)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    whole, lengths = context + horizon, rows.lengths
    short = (lengths < whole).nonzero()
    if len(short):
        at = int(short[0])
        raise DataError(
            f"series {at} has {int(lengths[at])} items, but {context} to look back and {horizon} to "
            f"look ahead need at least {whole}; shorten them or leave the series out"
        )
    counts = (lengths - whole) // stride + 1
    row = torch.arange(len(rows), device=rows.device).repeat_interleave(counts)
    first = torch.cat([counts.new_zeros(1), counts.cumsum(0)])[:-1]
    number = torch.arange(len(row), device=rows.device) - first[row]
    start = (
        lengths[row] - whole - (counts[row] - 1 - number) * stride
    )  # the last one touches the end
    first_item = rows.offsets[row] + start
    seen = rows.values.unfold(0, whole, 1)[first_item].transpose(1, 2)  # (n, whole, F)
    return Windows(seen[:, :context], seen[:, context:], row, start)


def ends(rows: Ragged, context: int) -> Tensor:
    """The last ``context`` items of every series, ``(n, context, F)``.

    >>> ends(Ragged.of([torch.arange(5.0)[:, None]]), 2)[..., 0].tolist()
    [[3.0, 4.0]]
    """
    short = (rows.lengths < context).nonzero()
    if len(short):
        at = int(short[0])
        raise DataError(
            f"series {at} has {int(rows.lengths[at])} items, a forecast looks back at {context}"
        )
    back = torch.arange(context, device=rows.device) - context
    return rows.values[rows.offsets[1:, None] + back]
