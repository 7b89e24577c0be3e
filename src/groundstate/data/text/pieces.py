"""Tokens of texts as the rows of an encoder: begin, tokens, end, and not too long."""

from __future__ import annotations

import re
from itertools import pairwise

import torch
from torch import Tensor

from groundstate.compute.rows import Ragged, Texts, Tokens
from groundstate.compute.rows.ragged import offsets_of
from groundstate.data.text.tokenizer import Tokenizer
from groundstate.errors import DataError

_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def shortened(rows: Ragged, length: int) -> Ragged:
    """The first items of each row.

    >>> shortened(Ragged.of([[1, 2, 3], [4]]), 2).values.tolist()
    [1, 2, 4]
    """
    at = torch.arange(len(rows.values), device=rows.device) - rows.offsets[rows.row]
    return Ragged(rows.values[at < length], offsets_of(rows.lengths.clamp(max=length)))


def framed(rows: Ragged, first: int, last: int) -> Ragged:
    """Rows with one token before and one behind.

    >>> framed(Ragged.of([[1, 2], []], torch.int64), 8, 9).values.tolist()
    [8, 1, 2, 9, 8, 9]
    """
    offsets = offsets_of(rows.lengths + 2)
    values = rows.values.new_full((int(offsets[-1]),), last)
    values[offsets[:-1]] = first
    place = torch.arange(len(rows.values), device=rows.device) - rows.offsets[rows.row]
    values[offsets[rows.row] + 1 + place] = rows.values
    return Ragged(values, offsets)


def cut(rows: Ragged, length: int) -> tuple[Ragged, Tensor]:
    """Rows cut into pieces of at most so many items, and the row of each piece.

    >>> found, row = cut(Ragged.of([[1, 2, 3], [4]]), 2)
    >>> found.lengths.tolist(), row.tolist()
    ([2, 1, 1], [0, 0, 1])
    """
    count = ((rows.lengths + length - 1) // length).clamp(min=1)
    row = torch.arange(len(rows), device=rows.device).repeat_interleave(count)
    start = (torch.arange(len(row), device=rows.device) - offsets_of(count)[:-1][row]) * length
    sizes = (rows.lengths[row] - start).clamp(max=length)
    return Ragged(rows.values, offsets_of(sizes)), row


def sentence_pairs(
    texts: Texts, tokenizer: Tokenizer, length: int, first: int, last: int
) -> tuple[Tokens, Tensor]:
    """Two consecutive sentences of a text in each row, and the text of each row.

    A sentence ends at a mark followed by a space; both are cut to make rows of at most ``length``.
    """
    half = (length - 3) // 2
    rows, owner = [], []
    for i, text in enumerate(texts.strings()):
        sentences = [tokenizer.encode(s)[:half] for s in _SENTENCE.split(text)]
        for a, b in pairwise([s for s in sentences if s]):
            rows.append(torch.tensor([first, *a, last, *b, last]))
            owner.append(i)
    if not rows:
        raise DataError("no text has two sentences, which nsp=True needs; end them with . ! or ?")
    return Tokens.of(Ragged.of(rows, torch.int64)), torch.tensor(owner)
