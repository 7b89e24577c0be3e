r"""Missing cells of a generator without a density: the rows it makes that agree with what is known."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.models.generative.filling import nearness

POOL = 4096  # rows drawn for each different condition, all together
LEAST = 64  # and for one of them at least


def nearest_of_draws(
    model: Any, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
) -> Tensor:
    r"""Complete coded rows from drawn ones, chosen by :math:`\exp(-\|x_k - x'_k\|^2/2h^2)`.

    Parameters
    ----------
    model : fitted generator
    x, unknown : coded rows and which of their cells are free, ``(B, D)``
    y : contexts ``(B, q)`` or None
    how : "sample" draws one by that weight, "minimise" takes the nearest
    generator : source of randomness
    """
    out = x.clone()
    if y is None:
        contexts, place = [None], torch.zeros(len(x), dtype=torch.int64, device=x.device)
    else:
        found, place = torch.unique(y, dim=0, return_inverse=True)
        contexts = list(found)
    size = max(LEAST, POOL // len(contexts))
    for i, context in enumerate(contexts):
        own = (place == i).nonzero().squeeze(1)
        given = None if context is None else context.expand(max(size, len(own)), -1)
        with torch.no_grad():
            pool, _ = model._draw(max(size, len(own)), given, 1.0, generator)
        for rows in own.split(256):
            out[rows] = _chosen(x[rows], unknown[rows], pool, how, generator)
    return torch.where(unknown, out, x)


def _chosen(
    x: Tensor, unknown: Tensor, pool: Tensor, how: str, generator: torch.Generator
) -> Tensor:
    log_w = nearness(x, unknown, pool)
    if how == "minimise":
        return pool[log_w.argmax(1)]
    return pool[torch.multinomial(log_w.softmax(1), 1, generator=generator)[:, 0]]
