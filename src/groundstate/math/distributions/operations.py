r"""What torch's distributions lack: modes with ties to the lowest value, distributions at a temperature,
draws from an explicit generator, and mixtures of distributions that come as one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution, constraints

from groundstate.errors import Unsupported
from groundstate.math.chains.chain import ChainDistribution

_MANY = 1 << 16  # bits; fewer are drawn by torch


def mode(distribution: Distribution) -> Tensor:
    """The most probable value; ties go to the lowest (torch gives NaN for Bernoulli at ½).

    >>> mode(D.Bernoulli(probs=torch.tensor([0.5, 0.7]))).tolist()
    [0.0, 1.0]
    """
    if isinstance(distribution, D.Independent):
        return mode(distribution.base_dist)
    if isinstance(distribution, D.Bernoulli):
        return (distribution.logits > 0).to(distribution.logits.dtype)
    if isinstance(distribution, D.Categorical):
        return distribution.logits.argmax(-1)
    if isinstance(distribution, D.Uniform):
        return distribution.low
    result: Tensor = distribution.mode
    return result


def somewhere(distribution: Distribution) -> Tensor:
    """A value of positive, finite density: the mean of a continuous distribution, else the mode or a draw.

    >>> somewhere(D.Gamma(torch.tensor(0.5), torch.tensor(1.0))).item()  # infinite at its mode 0
    0.5
    """
    base = distribution
    while isinstance(base, D.Independent):
        base = base.base_dist
    try:
        if isinstance(base, D.Bernoulli | D.Categorical):
            return mode(distribution)
        value: Tensor = (
            mode(distribution)
            if is_gaussian(distribution) or _discrete(base)
            else distribution.mean
        )
        if bool(torch.isfinite(value).all()):
            return value
    except NotImplementedError:
        pass
    return draw(distribution, 1, torch.Generator().manual_seed(0))[0]


_BOUNDED = (
    D.Gamma, D.Beta, D.Exponential, D.LogNormal, D.Uniform, D.Poisson, D.Geometric,
    D.NegativeBinomial,
)  # fmt: skip


def minus_log(distribution: Distribution, value: Tensor) -> Tensor:
    """−log p(value), +inf with zero gradient outside the support.

    >>> distribution = D.Gamma(torch.tensor(2.0), torch.tensor(1.0), validate_args=False)
    >>> minus_log(distribution, torch.tensor([1.0, -1.0])).tolist()
    [1.0, inf]
    """
    base = distribution
    while isinstance(base, D.Independent):
        base = base.base_dist
    if not isinstance(base, _BOUNDED):
        return -distribution.log_prob(value)
    support: Any = distribution.support
    inside: Tensor = support.check(value)
    if bool(inside.all()):
        return -distribution.log_prob(value)
    event = (*inside.shape, *(1,) * len(distribution.event_shape))
    safe = torch.where(inside.reshape(event), value, somewhere(distribution).detach())
    return torch.where(inside, -distribution.log_prob(safe), math.inf)


def _discrete(distribution: Distribution) -> bool:
    return bool(getattr(distribution.support, "is_discrete", False))


def isotropic(mean: Tensor, scale: float, event: int = 1) -> Distribution:
    """The distribution N(mean, scale² I) of vectors, or of arrays with so many event axes."""
    normal = D.Normal(mean, torch.full_like(mean, scale), validate_args=False)
    return D.Independent(normal, event, validate_args=False)


def is_gaussian(distribution: Distribution) -> bool:
    base = distribution.base_dist if isinstance(distribution, D.Independent) else distribution
    return isinstance(base, D.Normal | D.MultivariateNormal)


def gaussian_moments(distribution: Distribution) -> tuple[Tensor, Tensor]:
    """Mean ``(..., d)`` and covariance ``(..., d, d)`` of a Gaussian distribution with a vector event."""
    if isinstance(distribution, D.MultivariateNormal):
        return distribution.loc, distribution.covariance_matrix
    return distribution.mean, torch.diag_embed(distribution.variance)


def tempered(distribution: Distribution, T: float) -> Distribution:
    r"""The distribution :math:`\propto p^{1/T}`, in the same family.

    >>> float(tempered(D.Normal(torch.tensor(1.0), torch.tensor(2.0)), 4.0).scale)
    4.0
    """
    if T == 1:
        return distribution
    if isinstance(distribution, D.Independent):
        return D.Independent(
            tempered(distribution.base_dist, T), distribution.reinterpreted_batch_ndims
        )
    build = _TEMPERED.get(type(distribution))
    if build is None:
        raise Unsupported(
            f"{type(distribution).__name__} to the power 1/T is not in its family for T={T}; use T=1 or "
            f"one of {', '.join(sorted(k.__name__ for k in _TEMPERED))}"
        )
    return build(distribution, T)


def _down(concentration: Tensor, T: float) -> Tensor:
    result = (concentration - 1) / T + 1
    if not bool((result > 0).all()):
        raise Unsupported(f"the density to the power 1/T has no finite integral for T={T}")
    return result


_TEMPERED: dict[type[Distribution], Callable[[Any, float], Distribution]] = {
    D.Normal: lambda p, T: D.Normal(p.loc, p.scale * T**0.5, validate_args=False),
    D.MultivariateNormal: lambda p, T: D.MultivariateNormal(
        p.loc, scale_tril=p.scale_tril * T**0.5, validate_args=False
    ),
    D.Laplace: lambda p, T: D.Laplace(p.loc, p.scale * T),
    D.Exponential: lambda p, T: D.Exponential(p.rate / T),
    D.Categorical: lambda p, T: D.Categorical(logits=p.logits / T),
    D.Bernoulli: lambda p, T: D.Bernoulli(logits=p.logits / T),
    D.Gamma: lambda p, T: D.Gamma(_down(p.concentration, T), p.rate / T),
    D.Beta: lambda p, T: D.Beta(_down(p.concentration1, T), _down(p.concentration0, T)),
    D.Dirichlet: lambda p, T: D.Dirichlet(_down(p.concentration, T)),
    D.Uniform: lambda p, T: p,
}


def fresh(generator: torch.Generator | None) -> torch.Generator:
    """The generator itself, or one seeded from the operating system."""
    if generator is None:
        generator = torch.Generator()
        generator.seed()
    return generator


def draw(distribution: Distribution, n: int, generator: torch.Generator | None = None) -> Tensor:
    """``n`` independent draws, ``(n, *batch, *event)``, from an explicit generator.

    Normal, Bernoulli and categorical distributions draw directly; any other distribution draws with
    torch's own sampler under a seed taken from ``generator``, and the global state is put back
    afterwards. Without a generator the seed is fresh entropy.

    >>> distribution = D.Gamma(torch.tensor([2.0]), torch.tensor([1.0]))
    >>> a, b = (draw(distribution, 3, torch.Generator().manual_seed(0)) for _ in range(2))
    >>> bool((a == b).all()), tuple(a.shape)
    (True, (3, 1))
    """
    generator = fresh(generator)
    with torch.no_grad():
        own = getattr(distribution, "draw", None)  # mixtures bring their own
        if own is not None:
            result: Tensor = own(n, generator)
            return result
        if isinstance(distribution, ChainDistribution):
            return distribution.sample((n,), generator)
        base, event = distribution, distribution.event_shape
        while isinstance(base, D.Independent):
            base = base.base_dist
        size = (n, *distribution.batch_shape, *event)
        if isinstance(base, D.Normal):
            noise = _noise(torch.randn, size, base.loc, generator)
            return base.loc + base.scale * noise
        if isinstance(base, D.MultivariateNormal):
            noise = _noise(torch.randn, size, base.loc, generator)
            return base.loc + (base._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)
        if isinstance(base, D.Bernoulli):
            if "logits" in base.__dict__ and _many_on_cpu(base.logits, n):
                from groundstate.math.distributions.bernoulli_numba import draw_bits

                return draw_bits(base.logits.expand(distribution.batch_shape + event), n, generator)
            probs = base.probs
            return (_noise(torch.rand, size, probs, generator) < probs).to(probs.dtype)
        if isinstance(base, D.Categorical):
            cumulative = base.probs.cumsum(-1)  # (*batch, K)
            u = _noise(torch.rand, size, cumulative, generator) * cumulative[..., -1]
            above = u.unsqueeze(-1) >= cumulative  # (n, *batch, K)
            return above.sum(-1).clamp_max(cumulative.shape[-1] - 1)
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            return distribution.sample(torch.Size([n]))


def _many_on_cpu(logits: Tensor, n: int) -> bool:
    """Whether one compiled pass is worth its call."""
    plain = logits.device.type == "cpu" and logits.dtype == torch.float32
    return plain and logits.numel() * n >= _MANY


def _noise(
    source: Callable[..., Tensor], size: tuple[int, ...], like: Tensor, generator: torch.Generator
) -> Tensor:
    noise = source(size, generator=generator, device=generator.device, dtype=like.dtype)
    return noise.to(like.device)


class MixtureDistribution(Distribution):
    r"""The distribution :math:`p = \sum_k w_k p_k` with components in one batch.

    Parameters
    ----------
    log_weights : ``(B, K)``, unnormalised
    components : a distribution with batch shape ``(B*K,)``, component index fastest
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(self, log_weights: Tensor, components: Distribution) -> None:
        self.log_weights = torch.log_softmax(log_weights, -1)
        self.components = components
        super().__init__(log_weights.shape[:1], components.event_shape, validate_args=False)

    @property
    def support(self) -> Any:
        return self.components.support

    @property
    def _k(self) -> int:
        return self.log_weights.shape[-1]

    def log_prob(self, value: Tensor) -> Tensor:
        rows = value.ndim - 1 - len(self.event_shape)  # the axis of B
        if self.batch_shape[0] == 1 and value.shape[rows] != 1:  # one distribution for many values
            return self.log_prob(value.unsqueeze(rows + 1)).squeeze(-1)
        repeated = value.repeat_interleave(self._k, dim=rows)  # (..., B*K, *event)
        each = self.components.log_prob(repeated)
        each = each.reshape(*each.shape[:-1], -1, self._k)  # (..., B, K)
        return torch.logsumexp(each + self.log_weights, -1)

    def _per_component(self, value: Tensor) -> tuple[Tensor, Tensor]:
        value = value.reshape(-1, self._k, *self.event_shape)  # (B, K, *event)
        w = self.log_weights.exp().reshape(*self.log_weights.shape, *(1,) * len(self.event_shape))
        return value, w

    @property
    def mean(self) -> Tensor:
        means, w = self._per_component(self.components.mean)
        return (w * means).sum(1)

    @property
    def variance(self) -> Tensor:
        means, w = self._per_component(self.components.mean)
        variances, _ = self._per_component(self.components.variance)
        centre = (w * means).sum(1, keepdim=True)
        return (w * (variances + (means - centre).square())).sum(1)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, B, *event)`` from an explicit generator."""
        which = draw(D.Categorical(logits=self.log_weights), n, generator)  # (n, B)
        all_of = draw(self.components, n, generator)  # (n, B*K, *event)
        all_of = all_of.reshape(n, -1, self._k, *self.event_shape)
        index = which.reshape(*which.shape, 1, *(1,) * len(self.event_shape))
        return all_of.take_along_dim(index, 2).squeeze(2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        return self.draw(shape.numel(), generator).reshape(
            *shape, *self.batch_shape, *self.event_shape
        )
