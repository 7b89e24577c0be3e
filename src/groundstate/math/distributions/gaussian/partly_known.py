r"""A Gaussian some of whose coordinates are known, row by row.

For a precision P and free coordinates f the others k are fixed at their values and
:math:`x_f \sim N(m_f - P_{ff}^{-1}P_{fk}(x_k - m_k),\ TP_{ff}^{-1})`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints


class PartlyKnownNormal(Distribution):
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
    >>> p = PartlyKnownNormal(
    ...     torch.zeros(2), cov.inverse(), torch.tensor([[1.0, 9.0]]), torch.tensor([[False, True]])
    ... )
    >>> [round(v, 4) for v in p.mean[0].tolist()], [round(v, 4) for v in p.variance[0].tolist()]
    ([1.0, 0.5], [0.0, 1.5])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    support = constraints.real_vector

    def __init__(self, mean: Tensor, precision: Tensor, value: Tensor, mask: Tensor) -> None:
        b, d = value.shape
        # coordinates that are known in every row need no place in the systems to be solved
        self._some = mask.any(0).nonzero()[:, 0]  # (u,)
        self._mask = mask[:, self._some]
        self.mask = mask
        rows = precision[..., self._some, :].expand(b, -1, d)  # (B, u, d)
        off = torch.where(mask, 0.0, value - mean)
        both = self._mask[:, :, None] & self._mask[:, None, :]
        eye = torch.eye(len(self._some), dtype=value.dtype, device=value.device)
        self._factor = torch.linalg.cholesky(torch.where(both, rows[..., self._some], eye))
        pull = torch.where(self._mask, -(rows @ off.unsqueeze(-1)).squeeze(-1), 0.0)
        shift = torch.cholesky_solve(pull.unsqueeze(-1), self._factor).squeeze(-1)
        self._mean = torch.where(mask, mean + self._spread(shift, d), value)
        super().__init__(torch.Size([b]), torch.Size([d]), validate_args=False)

    def _spread(self, part: Tensor, d: int) -> Tensor:
        """Values of the coordinates that may be free, ``(..., u)``, at their places of ``(..., d)``."""
        out = part.new_zeros((*part.shape[:-1], d))
        return out.index_copy(-1, self._some, part)

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def mode(self) -> Tensor:
        return self._mean

    @property
    def variance(self) -> Tensor:
        inverse = torch.cholesky_inverse(self._factor)
        own = torch.where(self._mask, inverse.diagonal(dim1=-2, dim2=-1), 0.0)
        return self._spread(own, self._mean.shape[-1])

    def log_prob(self, value: Tensor) -> Tensor:
        gap = (value - self._mean)[..., self._some]
        diff = torch.where(self._mask, gap, 0.0)
        white = (self._factor.mT @ diff.unsqueeze(-1)).squeeze(-1)
        log_det = self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        free = self._mask.sum(-1)
        return log_det - 0.5 * white.square().sum(-1) - 0.5 * free * math.log(2 * math.pi)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, B, d)`` from an explicit generator."""
        size = (n, *self._mask.shape)
        noise = torch.randn(
            size, generator=generator, device=generator.device, dtype=self._mean.dtype
        )
        noise = torch.where(self._mask, noise.to(self._mean.device), 0.0).unsqueeze(-1)
        step = torch.linalg.solve_triangular(self._factor.mT, noise, upper=True).squeeze(-1)
        moved = torch.where(self._mask, step, 0.0)
        return self._mean + self._spread(moved, self._mean.shape[-1])

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        return self.draw(shape.numel(), generator).reshape(*shape, *self._mean.shape)
