r"""Families of approximate distributions :math:`q_\varphi`, one parameter vector per row.

A family makes start parameters for a space, ``init(space, rows)`` of shape ``(B, P)``, and turns
parameters into a torch distribution with batch shape ``(B,)``, ``distribution(space, params)``.
Real families are maps of standard noise, ``place(space, params, noise)``, so gradients pass through
their draws.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.energy.spaces import Finite, Sequence, Space
from groundstate.infer.exact.finite_distributions import ListedDistribution
from groundstate.infer.exact.grid import alphabet
from groundstate.infer.pack import bounds, is_simplex, squash


class Family(ABC):
    """A set of distributions on a space, reached by a parameter vector."""

    @abstractmethod
    def reason_against(self, space: Space) -> str | None:
        """Why there is no such distribution on a space, or None."""

    @abstractmethod
    def size(self, space: Space) -> int:
        """Number P of parameters."""

    def init(
        self,
        space: Space,
        rows: int,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        """Start parameters ``(B, P)``."""
        return torch.zeros(rows, self.size(space), device=device, dtype=dtype)

    @abstractmethod
    def distribution(self, space: Space, params: Tensor) -> Distribution:
        """The distribution of parameters ``(B, P)``, batch shape ``(B,)``, event shape of the space."""


def _real(space: Space) -> bool:
    return space.is_real and not is_simplex(space)


@dataclass(frozen=True)
class Gaussian(Family):
    r"""Normal distributions :math:`\mathcal N(\mu, SS^\top)` on real spaces.

    On boxes and half-lines the normal distribution is one of an unbounded variable that a sigmoid
    or an exponential maps into the space.

    Parameters
    ----------
    covariance : "diag" (independent coordinates), "full" (a triangular factor) or "iso" (one scale)

    Examples
    --------
    >>> from groundstate.energy import Real
    >>> q = Gaussian("full")
    >>> q.distribution(Real(2), q.init(Real(2), 3)).batch_shape
    torch.Size([3])
    """

    covariance: Literal["diag", "full", "iso"] = "diag"

    def reason_against(self, space: Space) -> str | None:
        return None if _real(space) else f"{space!r} is not a real space"

    def size(self, space: Space) -> int:
        d = math.prod(space.shape)
        return d + {"diag": d, "iso": 1, "full": d * (d + 1) // 2}[self.covariance]

    def split(self, space: Space, params: Tensor) -> tuple[Tensor, Tensor]:
        """Mean ``(B, d)`` and triangular factor ``(B, d, d)`` or scales ``(B, d)``."""
        d = math.prod(space.shape)
        mean, rest = params[:, :d], params[:, d:]
        if self.covariance != "full":
            return mean, rest.exp().expand(-1, d)
        rows, cols = torch.tril_indices(d, d, device=params.device)
        tril = params.new_zeros(len(params), d, d)
        tril[:, rows, cols] = torch.where(rows == cols, rest.exp(), rest)
        return mean, tril

    def place(self, space: Space, params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Draws ``(n, B, *event)`` from noise ``(n, B, d)``, and ``log q`` of them ``(n, B)``."""
        mean, scale = self.split(space, params)
        if self.covariance == "full":
            u = mean + torch.einsum("bde,nbe->nbd", scale, noise)
            log_det = scale.diagonal(dim1=1, dim2=2).log().sum(1)
        else:
            u, log_det = mean + scale * noise, scale.log().sum(1)
        base = -0.5 * (noise.square() + math.log(2 * math.pi)).sum(-1) - log_det
        low, high = (u.new_tensor(edge) for edge in bounds(space))
        v, log_j = squash(u, low, high)
        return v.reshape(*u.shape[:2], *space.shape), base - log_j.sum(-1)

    def params(self, mean: Tensor, covariance: Tensor) -> Tensor:
        """Parameters ``(B, P)`` of a mean ``(B, d)`` and covariance ``(B, d, d)``."""
        if self.covariance == "full":
            tril = torch.linalg.cholesky(covariance)
            rows, cols = torch.tril_indices(*tril.shape[1:], device=tril.device)
            entries = tril[:, rows, cols]
            return torch.cat([mean, torch.where(rows == cols, entries.log(), entries)], 1)
        variance = covariance.diagonal(dim1=1, dim2=2)
        if self.covariance == "iso":
            variance = variance.mean(1, keepdim=True)
        return torch.cat([mean, 0.5 * variance.log()], 1)

    def entropy(self, space: Space, params: Tensor) -> Tensor | None:
        """Entropy ``(B,)``, None when the distribution is a transformed one."""
        if bounds(space) != (-math.inf, math.inf):
            return None
        mean, scale = self.split(space, params)
        diagonal = scale.diagonal(dim1=1, dim2=2) if scale.ndim == 3 else scale
        return diagonal.log().sum(1) + 0.5 * mean.shape[1] * (1 + math.log(2 * math.pi))

    def distribution(self, space: Space, params: Tensor) -> Distribution:
        mean, scale = self.split(space, params)
        q: Distribution
        if scale.ndim == 3:
            q = D.MultivariateNormal(mean, scale_tril=scale, validate_args=False)
        else:
            q = D.Independent(D.Normal(mean, scale, validate_args=False), 1)
        transforms: list[Any] = _transforms(space)
        if tuple(space.shape) != (mean.shape[1],):
            transforms.append(D.ReshapeTransform(mean.shape[1:], torch.Size(space.shape)))
        return D.TransformedDistribution(q, transforms) if transforms else q


@dataclass(frozen=True)
class Categorical(Family):
    r"""All distributions on a finite space, :math:`q_k = \mathrm{softmax}(\varphi)_k`."""

    limit: int = 2**16

    def reason_against(self, space: Space) -> str | None:
        if not space.is_finite:
            return f"{space!r} is not finite"
        if space.size > self.limit:
            return f"{space!r} has {space.size:.4g} values, more than limit={self.limit}"
        return None

    def size(self, space: Space) -> int:
        return int(space.size)

    def distribution(self, space: Space, params: Tensor) -> Distribution:
        if isinstance(space, Finite):
            return D.Categorical(logits=params, validate_args=False)
        return ListedDistribution({"v": space}, params)


@dataclass(frozen=True)
class MeanField(Family):
    r"""Independent coordinates, :math:`q(v) = \prod_i q_i(v_i)`: normal or categorical each."""

    def reason_against(self, space: Space) -> str | None:
        if _real(space) or alphabet(space) is not None:
            return None
        if space.is_finite:
            return f"the coordinates of {space!r} have different numbers of values"
        return f"{space!r} has no independent coordinates"

    def size(self, space: Space) -> int:
        if not space.is_finite:
            return Gaussian("diag").size(space)
        a = alphabet(space)
        assert a is not None
        return math.prod(space.shape) * a

    def init(
        self,
        space: Space,
        rows: int,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        zero = super().init(space, rows, device=device, dtype=dtype)
        if not space.is_finite or math.prod(space.shape) == 1:
            return zero
        # equal coordinates are a saddle of the bound: a small fixed tilt leaves it
        return zero + torch.linspace(-0.1, 0.1, zero.shape[1], device=device, dtype=dtype)

    def distribution(self, space: Space, params: Tensor) -> Distribution:
        if not space.is_finite:
            return Gaussian("diag").distribution(space, params)
        if isinstance(space, Finite):
            return D.Categorical(logits=params, validate_args=False)
        a = alphabet(space)
        assert a is not None
        logits = params.reshape(len(params), *space.shape, a)
        item = space
        while isinstance(item, Sequence):
            item = item.item
        if isinstance(item, Finite):
            labels = D.Categorical(logits=logits, validate_args=False)
            return D.Independent(labels, len(space.shape))
        difference = logits[..., 1] - logits[..., 0]
        coins = D.Bernoulli(logits=difference, validate_args=False)
        return D.Independent(coins, len(space.shape))


def _transforms(space: Space) -> list[Any]:
    low, high = bounds(space)
    if math.isfinite(low) and math.isfinite(high):
        return [D.SigmoidTransform(), D.AffineTransform(low, high - low)]
    if math.isfinite(low):
        return [D.ExpTransform(), D.AffineTransform(low, 1.0)]
    if math.isfinite(high):
        return [D.ExpTransform(), D.AffineTransform(high, -1.0)]
    return []


def default_family(space: Space) -> Family:
    """The family that a space gets when none is named: mean field."""
    return MeanField()
