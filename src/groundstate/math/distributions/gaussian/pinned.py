r"""A Gaussian some of whose coordinates are known, row by row.

For a precision P and free coordinates f the others k are pinned at their values and
:math:`x_f \sim N(m_f - P_{ff}^{-1}P_{fk}(x_k - m_k),\ TP_{ff}^{-1})`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints


class PinnedNormal(Distribution):
    """The distribution of whole vectors whose known coordinates do not move.

    ``log_prob`` is the density of the free coordinates alone.

    Parameters
    ----------
    mean : ``(d,)`` or ``(B, d)``
    precision : ``(d, d)`` or ``(B, d, d)``
    value : ``(B, d)`` with the known coordinates in place
    mask : ``(B, d)`` bool, True where free

    Examples
    --------
    >>> cov = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    >>> p = PinnedNormal(
    ...     torch.zeros(2), cov.inverse(), torch.tensor([[1.0, 9.0]]), torch.tensor([[False, True]])
    ... )
    >>> [round(v, 4) for v in p.mean[0].tolist()], [round(v, 4) for v in p.variance[0].tolist()]
    ([1.0, 0.5], [0.0, 1.5])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    support = constraints.real_vector

    def __init__(self, mean: Tensor, precision: Tensor, value: Tensor, mask: Tensor) -> None:
        b, d = value.shape
        self.mask = mask
        precision = precision.expand(b, d, d)
        off = torch.where(mask, 0.0, value - mean)
        both = mask[:, :, None] & mask[:, None, :]
        A = torch.where(both, precision, torch.eye(d, dtype=value.dtype, device=value.device))
        self._factor = torch.linalg.cholesky(A)  # (B, d, d)
        pull = torch.where(mask, -(precision @ off.unsqueeze(-1)).squeeze(-1), 0.0)
        shift = torch.cholesky_solve(pull.unsqueeze(-1), self._factor).squeeze(-1)
        self._mean = torch.where(mask, mean + shift, value)
        super().__init__(torch.Size([b]), torch.Size([d]), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def mode(self) -> Tensor:
        return self._mean

    @property
    def variance(self) -> Tensor:
        inverse = torch.cholesky_inverse(self._factor)
        return torch.where(self.mask, inverse.diagonal(dim1=-2, dim2=-1), 0.0)

    def log_prob(self, value: Tensor) -> Tensor:
        diff = torch.where(self.mask, value - self._mean, 0.0)
        white = (self._factor.mT @ diff.unsqueeze(-1)).squeeze(-1)
        log_det = self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        free = self.mask.sum(-1)
        return log_det - 0.5 * white.square().sum(-1) - 0.5 * free * math.log(2 * math.pi)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, B, d)`` from an explicit generator."""
        size = (n, *self._mean.shape)
        noise = torch.randn(
            size, generator=generator, device=generator.device, dtype=self._mean.dtype
        )
        noise = torch.where(self.mask, noise.to(self._mean.device), 0.0).unsqueeze(-1)
        step = torch.linalg.solve_triangular(self._factor.mT, noise, upper=True).squeeze(-1)
        return self._mean + torch.where(self.mask, step, 0.0)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        return self.draw(shape.numel(), generator).reshape(*shape, *self._mean.shape)


__all__ = ["PinnedNormal"]
