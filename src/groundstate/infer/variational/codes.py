r"""Distributions of a code that an encoder's numbers :math:`\varphi(x)` stand for.

=============== ============================================ ==========================
family          :math:`q_\varphi(z)`                         numbers
=============== ============================================ ==========================
FixedNormal     :math:`N(\mu, s^2 I)`                        μ: k
DiagonalNormal  :math:`N(\mu, \mathrm{diag}\,\sigma^2)`      μ, log σ²: 2k
FullNormal      :math:`N(\mu, LL^\top)`                      μ, L: k + k(k+1)/2
FlowedNormal    a normal through autoregressive maps         μ, log σ², context: 2k + c
Directions      von Mises and Fisher's on the unit sphere    direction, κ: k + 1
Choices         one-hot vectors, by Gumbel's noise           logits: k
=============== ============================================ ==========================

They are families of :mod:`groundstate.infer.variational.families` with what a training step needs,
written on tensors: draws that carry gradients, ``log q`` when it is asked for, and divergences from
a prior in closed form where they are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn import functional

from groundstate.compute.random import Key, seeded
from groundstate.energy.latent.deep.priors import (
    LOG_2PI,
    ChoicePrior,
    Prior,
    SpherePrior,
    diagonal_log_prob,
)
from groundstate.energy.spaces import Real, Space
from groundstate.errors import Unsupported
from groundstate.infer.variational.families import Family, Gaussian
from groundstate.math.distributions.von_mises_fisher import VonMisesFisher
from groundstate.math.divergences.kl import LOGVAR, gaussian_kl_terms


class CodeDraws(NamedTuple):
    """Codes ``(n, B, k)`` and their ``log q`` ``(n, B)``, computed when called."""

    z: Tensor
    log_q: Callable[[], Tensor]


class CodeFamily(Family):
    """What an amortised posterior of a code offers beyond a ``Family``.

    ``parts`` reads an encoder's numbers once; all else takes what it returned, called q.
    """

    has_density: ClassVar[bool] = True  # log q of any z in one pass, not only of its own draws
    takes_noise: ClassVar[bool] = True  # draws are a map of standard normal noise

    def parts(self, params: Tensor) -> Any:
        """The numbers ``(B, P)`` as means, scales, logits, whatever the family is made of."""
        return params

    def draws(self, q: Any, n: int = 1, generator: torch.Generator | None = None) -> CodeDraws:
        """``n`` codes for every row, from an explicit generator, with gradients."""
        raise TypeError(f"{type(self).__name__} must define draws(q, n, generator)")

    def place_noise(self, q: Any, noise: Tensor) -> CodeDraws:
        """Codes of given standard normal noise ``(n, 1 or B, k)``."""
        raise Unsupported(f"draws of {type(self).__name__} are no map of normal noise")

    def log_prob(self, q: Any, z: Tensor) -> Tensor:
        """``log q`` ``(..., B)`` of codes ``(..., B, k)``."""
        raise TypeError(f"{type(self).__name__} must define log_prob(q, z)")

    def kl(self, q: Any, prior: Prior, y: Tensor | None = None) -> Tensor | None:
        """The divergence from a prior, ``(B, k)`` by coordinate or ``(B, 1)``; None: not known."""
        return None

    def centre(self, q: Any) -> Tensor:
        """The mean code ``(B, k)``, or the mean direction, or the probabilities."""
        raise TypeError(f"{type(self).__name__} must define centre(q)")


def _randn(n: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
    device = like.device if generator is None else generator.device
    noise = torch.randn(n, *like.shape, generator=generator, dtype=like.dtype, device=device)
    return noise if device == like.device else noise.to(like.device)


class Moments(NamedTuple):
    """Means and log variances ``(B, k)``."""

    mean: Tensor
    logvar: Tensor


@dataclass(frozen=True)
class DiagonalNormal(Gaussian, CodeFamily):
    r""":math:`N(\mu, \mathrm{diag}\,\sigma^2)` with numbers :math:`(\mu, \log\sigma^2)`, the
    logarithms cut off at ±30.

    Examples
    --------
    >>> from groundstate.energy.latent.deep.priors import NormalPrior
    >>> family, params = DiagonalNormal(), torch.tensor([[1.0, -1.0, -0.693147, 0.693147]])
    >>> family.kl(family.parts(params), NormalPrior(2)).sum(1)
    tensor([1.2500])
    """

    def size(self, space: Space) -> int:
        return 2 * math.prod(space.shape)

    def parts(self, params: Tensor) -> Moments:
        mean, logvar = params.chunk(2, -1)
        return Moments(mean, logvar.clamp(-LOGVAR, LOGVAR))

    def split(self, space: Space, params: Tensor) -> tuple[Tensor, Tensor]:
        q = self.parts(params)
        return q.mean, (0.5 * q.logvar).exp()

    def params(self, mean: Tensor, covariance: Tensor) -> Tensor:
        return torch.cat([mean, covariance.diagonal(dim1=1, dim2=2).log()], 1)

    def draws(self, q: Any, n: int = 1, generator: torch.Generator | None = None) -> CodeDraws:
        return self.place_noise(q, _randn(n, q.mean, generator))

    def place_noise(self, q: Any, noise: Tensor) -> CodeDraws:
        z = torch.addcmul(q.mean, (0.5 * q.logvar).exp(), noise)
        return CodeDraws(z, lambda: self.log_prob(q, z))

    def log_prob(self, q: Any, z: Tensor) -> Tensor:
        return diagonal_log_prob(z, q.mean, q.logvar)

    def centre(self, q: Any) -> Tensor:
        mean: Tensor = q.mean
        return mean

    def kl(self, q: Any, prior: Prior, y: Tensor | None = None) -> Tensor | None:
        given = prior.moments(y)
        return None if given is None else gaussian_kl_terms(q.mean, q.logvar, *given)


@dataclass(frozen=True)
class FixedNormal(DiagonalNormal):
    r""":math:`N(\mu, s^2I)` with numbers μ alone: the mean-only form.

    Parameters
    ----------
    scale : s
    """

    scale: float = 1.0

    def size(self, space: Space) -> int:
        return math.prod(space.shape)

    def parts(self, params: Tensor) -> Moments:
        return Moments(params, torch.full_like(params, 2 * math.log(self.scale)))

    def params(self, mean: Tensor, covariance: Tensor) -> Tensor:
        return mean


class Triangle(NamedTuple):
    """Means ``(B, k)`` and triangular factors ``(B, k, k)``."""

    mean: Tensor
    L: Tensor


@dataclass(frozen=True)
class FullNormal(Gaussian, CodeFamily):
    r""":math:`N(\mu, LL^\top)` with numbers μ and the triangle L, its diagonal as a logarithm."""

    covariance: Any = "full"

    def parts(self, params: Tensor) -> Triangle:
        k = (math.isqrt(9 + 8 * params.shape[-1]) - 3) // 2
        return Triangle(*self.split(Real(k), params))

    def draws(self, q: Any, n: int = 1, generator: torch.Generator | None = None) -> CodeDraws:
        return self.place_noise(q, _randn(n, q.mean, generator))

    def place_noise(self, q: Any, noise: Tensor) -> CodeDraws:
        z = q.mean + torch.einsum("bij,nbj->nbi", q.L, noise.expand(-1, len(q.mean), -1))
        return CodeDraws(z, lambda: self.log_prob(q, z))

    def log_prob(self, q: Any, z: Tensor) -> Tensor:
        white = torch.linalg.solve_triangular(q.L, (z - q.mean).unsqueeze(-1), upper=False)
        log_det = q.L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * (white.square().sum((-2, -1)) + z.shape[-1] * LOG_2PI) - log_det

    def centre(self, q: Any) -> Tensor:
        mean: Tensor = q.mean
        return mean

    def kl(self, q: Any, prior: Prior, y: Tensor | None = None) -> Tensor | None:
        given = prior.moments(y)
        if given is None:
            return None
        mean, logvar = given
        away = q.mean if mean is None else q.mean - mean
        log_diagonal = q.L.diagonal(dim1=-2, dim2=-1).log()
        spread = q.L.square().sum(-1) + away.square()  # of one coordinate each
        if logvar is not None:
            spread = spread * (-logvar).exp() + logvar
        return 0.5 * (spread - 1) - log_diagonal


class FlowedNormal(CodeFamily, nn.Module):
    r"""A normal code through invertible maps, :math:`z = f(\mu + \sigma\varepsilon; h(x))`,
    :math:`\log q(z) = \log N(z_0) - \log|\det\partial f|`: inverse autoregressive flow
    (Kingma et al. 2016) where f is autoregressive.

    Parameters
    ----------
    transform : ``Transform`` of ``groundstate.nn.flows`` with k features and a context
    """

    has_density = False  # it takes one pass per coordinate

    def __init__(self, transform: nn.Module) -> None:
        nn.Module.__init__(self)
        self.transform = transform
        self.k, self.context = int(transform.features), int(transform.context)  # type: ignore[arg-type]

    def config(self) -> dict[str, Any]:
        return {"transform": self.transform}

    def reason_against(self, space: Space) -> str | None:
        return Gaussian().reason_against(space)

    def size(self, space: Space) -> int:
        return 2 * self.k + self.context

    def parts(self, params: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, logvar, context = params.split([self.k, self.k, self.context], -1)
        return mean, logvar.clamp(-LOGVAR, LOGVAR), context

    def draws(self, q: Any, n: int = 1, generator: torch.Generator | None = None) -> CodeDraws:
        return self.place_noise(q, _randn(n, q[0], generator))

    def place_noise(self, q: Any, noise: Tensor) -> CodeDraws:
        mean, logvar, context = q
        start = mean + (0.5 * logvar).exp() * noise  # (n, B, k)
        n, rows, k = start.shape
        h = context.expand(n, rows, -1).reshape(n * rows, -1)
        z, ladj = self.transform(start.reshape(n * rows, k), h)
        return CodeDraws(
            z.view(n, rows, k),
            lambda: diagonal_log_prob(start, mean, logvar) - ladj.view(n, rows),
        )

    def log_prob(self, q: Any, z: Tensor) -> Tensor:
        mean, logvar, context = q
        h = context.expand(*z.shape[:-1], -1).reshape(-1, self.context)
        start, ladj = self.transform.inverse(z.reshape(-1, self.k), h)  # type: ignore[operator]
        base = diagonal_log_prob(start.view_as(z), mean, logvar)
        total: Tensor = base + ladj.view(z.shape[:-1])
        return total

    def centre(self, q: Any) -> Tensor:
        z: Tensor = self.transform(q[0], q[2])[0]
        return z

    def distribution(self, space: Space, params: Tensor) -> Distribution:
        raise Unsupported("a flowed normal is drawn and weighed by its family, see `draws`")


@dataclass(frozen=True)
class Directions(CodeFamily):
    r"""Von Mises and Fisher's distribution :math:`q(z) \propto e^{\kappa\mu^\top z}` on the unit
    sphere; the direction and :math:`\kappa = \mathrm{softplus}` of the last number.

    Examples
    --------
    >>> from groundstate.energy.latent.deep.priors import SpherePrior
    >>> raw = math.log(math.expm1(1.0))  # softplus gives 1
    >>> family, params = Directions(), torch.tensor([[0.0, 0.0, 1.0, raw]]).double()
    >>> round(family.kl(family.parts(params), SpherePrior(3)).item(), 6)
    0.151596
    """

    takes_noise: ClassVar[bool] = False

    def reason_against(self, space: Space) -> str | None:
        return None if len(space.shape) == 1 and space.shape[0] > 1 else f"{space!r} has no sphere"

    def size(self, space: Space) -> int:
        return math.prod(space.shape) + 1

    def distribution(self, space: Space, params: Tensor) -> VonMisesFisher:
        direction, raw = params[..., :-1], params[..., -1]
        kappa = functional.softplus(raw)
        return VonMisesFisher(functional.normalize(direction, dim=-1), kappa, validate_args=False)

    def parts(self, params: Tensor) -> VonMisesFisher:
        return self.distribution(Real(params.shape[-1] - 1), params)

    def draws(self, q: Any, n: int = 1, generator: torch.Generator | None = None) -> CodeDraws:
        source = Key.of(None).torch(q.loc.device) if generator is None else generator
        z: Tensor = q.placed(n, source)
        return CodeDraws(z, lambda: self.log_prob(q, z))

    def log_prob(self, q: Any, z: Tensor) -> Tensor:
        found: Tensor = q.log_prob(z)
        return found

    def kl(self, q: Any, prior: Prior, y: Tensor | None = None) -> Tensor | None:
        if not isinstance(prior, SpherePrior):
            return None
        kl: Tensor = prior.log_area - q.entropy().unsqueeze(-1)
        return kl

    def centre(self, q: Any) -> Tensor:
        loc: Tensor = q.loc
        return loc


@dataclass(frozen=True)
class Choices(CodeFamily):
    r"""One-hot codes with probabilities softmax(φ). Gradients pass straight through a relaxed draw,
    :math:`\mathrm{softmax}((\varphi + g)/\tau)` with Gumbel noise g (Jang et al. 2017).

    Parameters
    ----------
    temperature : τ
    """

    temperature: float = 0.5
    takes_noise: ClassVar[bool] = False

    def reason_against(self, space: Space) -> str | None:
        return None if len(space.shape) == 1 else f"{space!r} holds no one-hot vectors"

    def size(self, space: Space) -> int:
        return math.prod(space.shape)

    def distribution(self, space: Space, params: Tensor) -> Distribution:
        return D.OneHotCategorical(logits=params, validate_args=False)

    def draws(self, q: Any, n: int = 1, generator: torch.Generator | None = None) -> CodeDraws:
        logits = q.expand(n, *q.shape)
        with seeded(Key.of(generator)):  # torch's function knows no other generator
            z = functional.gumbel_softmax(logits, self.temperature, hard=True)
        return CodeDraws(z, lambda: self.log_prob(q, z))

    def log_prob(self, q: Any, z: Tensor) -> Tensor:
        found: Tensor = (q.log_softmax(-1) * z).sum(-1)
        return found

    def kl(self, q: Any, prior: Prior, y: Tensor | None = None) -> Tensor | None:
        if not isinstance(prior, ChoicePrior):
            return None
        log_q: Tensor = q.log_softmax(-1)
        return (log_q.exp() * (log_q + math.log(prior.k))).sum(-1, keepdim=True)

    def centre(self, q: Any) -> Tensor:
        p: Tensor = q.softmax(-1)
        return p
