r"""Who may attend to whom: boolean masks, True where a query may see a key.

The convention of ``torch.nn.functional.scaled_dot_product_attention``; the ``key_padding_mask`` of
``torch.nn.MultiheadAttention`` is the negation. Masks combine by ``&`` and broadcast to
``(batch, heads, queries, keys)``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import ShapeError


def causal(queries: int, keys: int | None = None, *, device: torch.device | str = "cpu") -> Tensor:
    """Query i sees keys up to its own position; with more keys than queries the queries are the
    last ones, as in cached decoding.

    >>> causal(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> causal(1, 3).tolist()
    [[True, True, True]]
    """
    keys = queries if keys is None else keys
    if keys < queries:
        raise ShapeError(f"causal attention needs a key for each of {queries} queries, got {keys}")
    at = torch.arange(keys - queries, keys, device=device)
    return at[:, None] >= torch.arange(keys, device=device)


def sliding_window(
    queries: int, window: int, keys: int | None = None, *, device: torch.device | str = "cpu"
) -> Tensor:
    """Query i sees its own key and the ``window`` − 1 before it.

    >>> sliding_window(3, 2).int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    if window < 1:
        raise ValueError(f"a window holds at least the query's own key, got window={window}")
    keys = queries if keys is None else keys
    at = torch.arange(keys - queries, keys, device=device)
    near = at[:, None] - torch.arange(keys, device=device) < window
    return causal(queries, keys, device=device) & near


def prefix(queries: int, length: int | Tensor, *, device: torch.device | str = "cpu") -> Tensor:
    """All see the first ``length`` keys, later ones causally; a length per row gives
    ``(batch, 1, queries, keys)``.

    >>> prefix(3, 2).int().tolist()
    [[1, 1, 0], [1, 1, 0], [1, 1, 1]]
    """
    if isinstance(length, Tensor):
        device = length.device
        length = length[:, None, None, None]
    return causal(queries, device=device) | (torch.arange(queries, device=device) < length)


def padding(lengths: Tensor, keys: int | None = None) -> Tensor:
    """The real keys of rows of different length, ``(batch, 1, 1, keys)``.

    >>> padding(torch.tensor([1, 3])).squeeze().int().tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    keys = int(lengths.max()) if keys is None else keys
    return (torch.arange(keys, device=lengths.device) < lengths[:, None])[:, None, None]


def document(ids: Tensor) -> Tensor:
    """Several documents packed in a row see themselves alone: ``ids`` ``(batch, length)`` names the
    document of each position, ``(batch, 1, length, length)``.

    >>> document(torch.tensor([[0, 0, 1]])).squeeze().int().tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    return (ids[:, None, :, None] == ids[:, None, None, :]).contiguous()
