r"""Distributions of a code: :math:`\log p(z)` or :math:`\log p(z \mid y)`, and draws from them.

=============== =========================================================================
prior           density
=============== =========================================================================
NormalPrior     :math:`N(0, s^2 I)`
ContextPrior    :math:`N(\mu(y), \mathrm{diag}\,\sigma^2(y))`, a network of the condition
MixturePrior    :math:`\sum_k \pi_k N(m_k, S_k)`, learned
VampPrior       :math:`\tfrac1K\sum_k q(z \mid u_k)`: the encoder at learned rows :math:`u_k`
FlowPrior       :math:`N(f(z); 0, I)\,|\det \partial f/\partial z|`, an invertible network f
SpherePrior     uniform on the unit sphere
ChoicePrior     uniform on K one-hot vectors
=============== =========================================================================
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.math.divergences.kl import LOGVAR

LOG_2PI = math.log(2 * math.pi)


class Prior(nn.Module):
    """The contract; z is ``(..., k)``, a condition y ``(..., q)`` is taken where ``conditional``.

    Attributes
    ----------
    k : length of the code
    conditional : whether the density depends on y
    """

    conditional: bool = False
    k: int

    @abstractmethod
    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        """``(...)`` of codes ``(..., k)``."""

    @abstractmethod
    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        """``(n, k)``; a normal code is √T times as wide."""

    def moments(self, y: Tensor | None = None) -> tuple[Tensor | None, Tensor | None] | None:
        """Mean and log variance of a normal prior (None, None: standard), None for any other."""
        return None

    def _like(self) -> Tensor:
        found = next(iter((*self.parameters(), *self.buffers())), None)
        return torch.zeros(()) if found is None else found


def _normal(n: int, k: int, like: Tensor, generator: torch.Generator) -> Tensor:
    noise = torch.randn(n, k, generator=generator, device=generator.device, dtype=like.dtype)
    return noise.to(like.device)


class NormalPrior(Prior):
    r""":math:`p(z) = N(0, s^2I)`.

    >>> round(float(NormalPrior(2).log_prob(torch.zeros(2))), 4)
    -1.8379
    """

    zero: Tensor

    def __init__(self, k: int, scale: float = 1.0) -> None:
        super().__init__()
        if not scale > 0:
            raise ValueError(f"prior_scale is a standard deviation and must be positive: {scale}")
        self.k, self.scale = k, float(scale)
        self.register_buffer("zero", torch.zeros(k))  # knows dtype and device

    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        s2 = self.scale**2
        return z.square().sum(-1) * (-0.5 / s2) - 0.5 * self.k * (LOG_2PI + math.log(s2))

    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        return _normal(n, self.k, self._like(), generator) * (self.scale * T**0.5)

    def moments(self, y: Tensor | None = None) -> tuple[Tensor | None, Tensor | None]:
        if self.scale == 1:
            return None, None
        return self.zero, self.zero + 2 * math.log(self.scale)


class ContextPrior(Prior):
    r""":math:`p(z \mid y) = N(\mu(y), \mathrm{diag}\,\sigma^2(y))` by a network of y.

    Parameters
    ----------
    net : from ``(B, q)`` to ``(B, 2k)``, means and log variances
    k : length of the code
    """

    conditional = True

    def __init__(self, net: nn.Module, k: int) -> None:
        super().__init__()
        self.net, self.k = net, k

    def moments(self, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if y is None:
            raise Unsupported("a prior p(z | y) needs the condition y")
        mean, logvar = self.net(y).chunk(2, -1)
        return mean, logvar.clamp(-LOGVAR, LOGVAR)

    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        return diagonal_log_prob(z, *self.moments(y))

    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        mean, logvar = self.moments(y)
        return mean + _normal(n, self.k, mean, generator) * (0.5 * logvar).exp() * T**0.5


def diagonal_log_prob(z: Tensor, mean: Tensor, logvar: Tensor) -> Tensor:
    """``log N(z; mean, diag exp(logvar))``, ``(...)``."""
    inside = (z - mean).square() * (-logvar).exp() + logvar
    return -0.5 * (inside.sum(-1) + z.shape[-1] * LOG_2PI)


class _Mixture(Prior):
    """Priors that are mixtures of normals: log weights, means and diagonal log variances."""

    @abstractmethod
    def components(self) -> tuple[Tensor, Tensor, Tensor]:
        """Log weights ``(K,)``, means and log variances ``(K, k)``."""

    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        log_w, mean, logvar = self.components()
        each = diagonal_log_prob(z.unsqueeze(-2), mean, logvar)  # (..., K)
        return (each + log_w).logsumexp(-1)

    @torch.no_grad()
    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        log_w, mean, logvar = self.components()
        p = log_w.exp().to(generator.device)
        at = torch.multinomial(p, n, replacement=True, generator=generator).to(mean.device)
        return mean[at] + _normal(n, self.k, mean, generator) * (0.5 * logvar[at]).exp() * T**0.5


class MixturePrior(_Mixture):
    r""":math:`p(z) = \sum_k \pi_k N(m_k, \mathrm{diag}\,\sigma_k^2)` with learned parameters.

    One component stays :math:`N(0, I)`, which a decoder turns into any other normal code.

    Parameters
    ----------
    k : length of the code
    n : number K of components
    generator : source of the first means, spread as draws of N(0, I)
    """

    def __init__(self, k: int, n: int = 10, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if n < 1:
            raise ValueError(f"a mixture has at least one component, got n={n}")
        self.k, self.n = k, n
        generator = generator or torch.Generator().manual_seed(0)
        start = torch.randn(n, k, generator=generator) if n > 1 else torch.zeros(1, k)
        learned = n > 1
        self.logits = nn.Parameter(torch.zeros(n), requires_grad=learned)
        self.mean = nn.Parameter(start, requires_grad=learned)
        self.logvar = nn.Parameter(torch.zeros(n, k), requires_grad=learned)

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "n": self.n}

    def components(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.logits.log_softmax(0), self.mean, self.logvar.clamp(-LOGVAR, LOGVAR)


class FullMixturePrior(Prior):
    r""":math:`p(z) = \sum_k\pi_kN(m_k, S_k)` with fixed parameters, as fitted to codes afterwards.

    Parameters
    ----------
    weights : ``(K,)``
    means : ``(K, k)``
    factors : Cholesky factors of the covariances ``(K, k, k)``
    """

    def __init__(self, weights: Tensor, means: Tensor, factors: Tensor) -> None:
        super().__init__()
        self.k = means.shape[1]
        for name, value in (("weights", weights), ("means", means), ("factors", factors)):
            self.register_buffer(name, torch.as_tensor(value))

    weights: Tensor
    means: Tensor
    factors: Tensor

    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        away = (z.unsqueeze(-2) - self.means).unsqueeze(-1)  # (..., K, k, 1)
        white = torch.linalg.solve_triangular(self.factors, away, upper=False).squeeze(-1)
        log_det = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        each = -0.5 * (white.square().sum(-1) + self.k * LOG_2PI) - log_det
        return (each + self.weights.log()).logsumexp(-1)

    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        p = self.weights.to(generator.device)
        at = torch.multinomial(p, n, replacement=True, generator=generator).to(p.device)
        noise = _normal(n, self.k, self.means, generator) * T**0.5
        at = at.to(self.means.device)
        return self.means[at] + (self.factors[at] @ noise.unsqueeze(-1)).squeeze(-1)


class VampPrior(_Mixture):
    r""":math:`p(z) = \tfrac1K\sum_k q(z \mid u_k)`: the posterior of K learned rows
    (Tomczak & Welling 2018).

    The encoder is a part of this prior, so the energy owns it and the learning rule borrows it.

    Parameters
    ----------
    encoder : from rows ``(B, d)`` to means and log variances ``(B, 2k)``
    rows : the first :math:`u_k`, ``(K, d)`` rows as the encoder gets them
    k : length of the code
    """

    def __init__(self, encoder: nn.Module, rows: Tensor, k: int) -> None:
        super().__init__()
        self.encoder, self.k = encoder, k
        self.rows = nn.Parameter(torch.as_tensor(rows).detach().clone())

    def components(self) -> tuple[Tensor, Tensor, Tensor]:
        mean, logvar = self.encoder(self.rows).chunk(2, -1)
        n = len(self.rows)
        return mean.new_full((n,), -math.log(n)), mean, logvar.clamp(-LOGVAR, LOGVAR)


class FlowPrior(Prior):
    r""":math:`p(z) = N(f(z); 0, I)\,|\det\partial f/\partial z|` by an invertible network.

    Parameters
    ----------
    flow : ``Transform`` of ``groundstate.nn.flows``, from codes to standard normal vectors
    k : length of the code
    """

    def __init__(self, flow: nn.Module, k: int) -> None:
        super().__init__()
        self.flow, self.k = flow, k

    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        flat = z.reshape(-1, self.k)
        u, log_det = self.flow(flat)
        base = -0.5 * (u.square().sum(-1) + self.k * LOG_2PI)
        total: Tensor = base + log_det
        return total.reshape(z.shape[:-1])

    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        u = _normal(n, self.k, self._like(), generator) * T**0.5
        z: Tensor = self.flow.inverse(u)[0]  # type: ignore[operator]
        return z


class SpherePrior(Prior):
    r"""Uniform on the unit sphere of k dimensions, :math:`p(z) = \Gamma(k/2)/(2\pi^{k/2})`."""

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 2:
            raise ValueError(f"codes on a sphere need at least 2 dimensions, got {k}")
        self.k = k
        self.register_buffer("zero", torch.zeros(()))  # knows dtype and device

    @property
    def log_area(self) -> float:
        return math.log(2) + 0.5 * self.k * math.log(math.pi) - math.lgamma(0.5 * self.k)

    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        return z[..., 0] * 0 - self.log_area

    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        return torch.nn.functional.normalize(_normal(n, self.k, self._like(), generator), dim=-1)


class ChoicePrior(Prior):
    """Uniform on k one-hot vectors."""

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 2:
            raise ValueError(f"a categorical code needs at least 2 values, got {k}")
        self.k = k
        self.register_buffer("zero", torch.zeros(()))  # knows dtype and device

    def log_prob(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        return z[..., 0] * 0 - math.log(self.k)

    def draw(
        self, n: int, y: Tensor | None = None, *, T: float = 1.0, generator: torch.Generator
    ) -> Tensor:
        at = torch.randint(self.k, (n,), generator=generator, device=generator.device)
        like = self._like()
        return torch.nn.functional.one_hot(at, self.k).to(like.device, like.dtype)
