r"""Codes of a codebook, :math:`q(z) = c_{k}, \; k = \arg\min_j\|z - c_j\|`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Quantiser(nn.Module):
    r"""Every part of a code becomes the nearest of K vectors, with the gradient of the code straight
    through, :math:`z + \mathrm{sg}(q(z) - z)` (van den Oord et al. 2017).

    Parameters
    ----------
    n_codes : K
    size : length of a vector; codes are ``(B, m * size)``

    Attributes
    ----------
    book : Parameter, ``(K, size)``

    Examples
    --------
    >>> q = Quantiser(2, 1)
    >>> q.book.data = torch.tensor([[0.0], [1.0]])
    >>> q(torch.tensor([[0.2, 0.9, 0.6]])).tolist(), q.index(torch.tensor([[0.2, 0.9]])).tolist()
    ([[0.0, 1.0, 1.0]], [[0, 1]])
    """

    def __init__(
        self, n_codes: int = 512, size: int = 1, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        if n_codes < 2 or size < 1:
            raise ValueError(
                f"a codebook has at least 2 vectors of at least 1 number, got {n_codes} of {size}"
            )
        self.n_codes, self.size = n_codes, size
        self.book = nn.Parameter(torch.randn(n_codes, size, generator=generator))

    def config(self) -> dict[str, Any]:
        return {"n_codes": self.n_codes, "size": self.size}

    def index(self, z: Tensor) -> Tensor:
        """Numbers of the nearest vectors, ``(B, m)``."""
        parts = z.detach().reshape(-1, self.size)
        found: Tensor = torch.cdist(parts, self.book.detach()).argmin(1)
        return found.reshape(len(z), -1)

    def nearest(self, z: Tensor) -> Tensor:
        """The nearest vectors ``(B, m * size)``, with a gradient in the codebook alone."""
        return self.book[self.index(z)].reshape(z.shape)

    def forward(self, z: Tensor) -> Tensor:
        # adding and taking off z would round, and codes are to be exactly those of the book
        return _Straight.apply(z, self.nearest(z).detach())


class _Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, q: Tensor) -> Tensor:
        return q.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0], None
