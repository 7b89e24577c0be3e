r"""Scaled dot-product attention, :math:`\operatorname{softmax}(QK^\top/\sqrt{d})\,V`."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from groundstate.errors import ShapeError
from groundstate.nn.attention import masks


def dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    r"""Values averaged with weights from inner products of queries and keys.

    .. math:: a_{ij} = \frac{\exp(s\,q_i^\top k_j + b_{ij})}{\sum_{j'}\exp(s\,q_i^\top k_{j'} + b_{ij'})},
              \qquad o_i = \sum_j a_{ij} v_j

    by torch's fused kernels. A query that may see no key gets 0.

    Parameters
    ----------
    q : ``(..., queries, d)``
    k, v : ``(..., keys, d)`` and ``(..., keys, d_v)``; with fewer heads than q, each serves
        several heads of q
    mask : bool, True where a query may see a key (see ``nn.masks``)
    bias : added to the scaled scores
    causal : the mask in which queries are the last positions of the keys
    scale : s, by default :math:`1/\sqrt d`
    dropout : probability of dropping a weight

    Returns
    -------
    o : ``(..., queries, d_v)``

    Examples
    --------
    >>> eye = torch.eye(2)
    >>> dot_product_attention(eye, eye, eye)
    tensor([[0.6698, 0.3302],
            [0.3302, 0.6698]])
    """
    _check(q, k, v)
    grouped = q.ndim > 3 and k.shape[-3] != q.shape[-3]
    plain = causal and mask is None and bias is None
    if plain and (q.shape[-2] == k.shape[-2] or q.shape[-2] == 1):
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=q.shape[-2] > 1, scale=scale, dropout_p=dropout, enable_gqa=grouped
        )
    seen = _seen(q, k, mask, causal)
    out = F.scaled_dot_product_attention(
        q, k, v, _joined(seen, bias, q.dtype), scale=scale, dropout_p=dropout, enable_gqa=grouped
    )
    # kernels differ in what a row without keys gives: NaN, the mean, or 0
    return out if mask is None or seen is None else out.where(seen.any(-1, keepdim=True), 0.0)


def attention_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    r"""The weights :math:`a_{ij}` themselves, ``(..., queries, keys)``, to look at.

    >>> attention_weights(torch.eye(2), torch.eye(2), scale=1.0)
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    """
    _check(q, k, k)
    if q.ndim > 3 and k.shape[-3] != q.shape[-3]:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    scores = scores if bias is None else scores + bias
    seen = _seen(q, k, mask, causal)
    if seen is None:
        return scores.softmax(-1)
    weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
    return weights.where(seen.any(-1, keepdim=True), 0.0)


def _seen(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool) -> Tensor | None:
    """The keys that a query may see, all conditions together."""
    if not causal:
        return mask
    triangle = masks.causal(q.shape[-2], k.shape[-2], device=q.device)
    return triangle if mask is None else mask & triangle


def _joined(seen: Tensor | None, bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """One mask: boolean, or a float bias with −inf where a key is hidden."""
    if bias is None:
        return seen
    bias = bias.to(dtype)
    return bias if seen is None else bias.masked_fill(~seen, -math.inf)


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            "attention takes q (..., queries, d), k (..., keys, d) and v (..., keys, d_v), got "
            f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        )
    if q.ndim > 3 and q.shape[-3] % k.shape[-3]:
        raise ShapeError(
            f"{q.shape[-3]} heads of queries do not share {k.shape[-3]} heads of keys evenly"
        )
