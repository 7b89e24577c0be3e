"""Long texts as rows of equal length: blocks of tokens, each text by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.rows import Rows, Spans, Tokens
from groundstate.compute.rows.ragged import offsets_of

NOTHING = -100  # stands behind the end of a text


@dataclass(frozen=True)
class Blocks:
    """Blocks of ``context`` tokens, the token before each, and the text of each.

    Attributes
    ----------
    first : int64 ``(n,)``, the token before a block; ``end`` where a text begins
    tokens : int64 ``(n, context)``, ``NOTHING`` behind the end of a text; as ``Spans`` where they
        are in a file
    text : int64 ``(n,)``, number of the text
    """

    first: Tensor
    tokens: Rows
    text: Tensor

    @property
    def lengths(self) -> Tensor:
        """Tokens of each block, ``(n,)``."""
        return lengths_of(self.tokens)


def lengths_of(tokens: Rows) -> Tensor:
    """Tokens of each block, ``(n,)``."""
    if isinstance(tokens, Spans):
        return tokens.lengths
    assert isinstance(tokens, Tensor)
    return (tokens != NOTHING).sum(1)


def blocks_of(rows: Tokens | Spans, context: int, end: int, stride: int | None = None) -> Blocks:
    """Cut texts, each with an end token behind it, into blocks.

    No block holds two texts, so that a text of weight 2 is the text twice. With a stride of
    ``context`` every token is in one block.

    Parameters
    ----------
    rows : tokens of texts; of a file with their end tokens, which are there already
    context : tokens of a block
    end : number of the end token
    stride : tokens from the start of a block to that of the next, by default ``context``

    Examples
    --------
    >>> from groundstate.compute.rows import Ragged
    >>> found = blocks_of(Tokens.of(Ragged.of([[1, 2, 3], [4]])), context=2, end=0)
    >>> found.first.tolist(), found.tokens.tolist(), found.text.tolist()
    ([0, 2, 0], [[1, 2], [3, 0], [4, 0]], [0, 0, 1])
    """
    step = context if stride is None else stride
    if not 1 <= step <= context:
        raise ValueError(f"stride must be 1 to context={context}, got {stride}")
    if isinstance(rows, Spans):
        return _mapped(rows, context, end, step)
    ids = rows.tokens
    device, lengths = ids.device, ids.lengths + 1  # with the end
    text, start = _starts(lengths, context, step)
    at = start[:, None] + torch.arange(context, device=device)  # (n, context)
    inside = at < ids.lengths[text][:, None]
    flat = torch.cat([ids.values, ids.values.new_full((1,), end)])
    place = (ids.offsets[:-1][text][:, None] + at).clamp(max=len(ids.values))
    tokens = torch.where(inside, flat[place], end)
    tokens = torch.where(at < lengths[text][:, None], tokens, NOTHING)
    before = (ids.offsets[:-1][text] + start - 1).clamp(min=0)
    return Blocks(torch.where(start > 0, flat[before], end), tokens, text)


def _starts(lengths: Tensor, context: int, step: int) -> tuple[Tensor, Tensor]:
    """The text of each block, and where in that it starts, ``(n,)`` each."""
    device = lengths.device
    count = 1 + (lengths - context).clamp(min=0).add(step - 1).div(step, rounding_mode="floor")
    text = torch.arange(len(lengths), device=device).repeat_interleave(count)
    begin = offsets_of(count)[:-1]
    return text, (torch.arange(len(text), device=device) - begin[text]) * step


def _mapped(rows: Spans, context: int, end: int, step: int) -> Blocks:
    """Blocks that stay where they are: the token before a text is the end of the one before it."""
    text, inside = _starts(rows.lengths, context, step)
    start = rows.start[text.numpy()] + inside.numpy()
    stop = np.minimum(start + context, rows.stop[text.numpy()])
    before = np.where(inside.numpy() > 0, rows.values[np.maximum(start - 1, 0)], end)
    made = Spans(rows.values, start, stop, context, NOTHING)
    return Blocks(torch.from_numpy(before.astype(np.int64)), made, text)
