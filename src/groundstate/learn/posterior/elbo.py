r"""The evidence lower bound, its groupings, and what is missing to the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, kl_divergence

from groundstate.compute.display import Displayed
from groundstate.energy.base import Energy
from groundstate.energy.exact import exact_free_energy
from groundstate.energy.spaces import Finite
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer.exact.finite_distributions import ListedDistribution
from groundstate.learn.posterior.hidden import LISTED, spread_points
from groundstate.learn.rules.variational import seeded
from groundstate.math.distributions.operations import draw, is_gaussian

Form = Literal["auto", "entropy", "kl", "sampled"]


@dataclass(frozen=True)
class Elbo(Displayed):
    r"""The bound of every row and its parts, ``(B,)`` each; a part that is not known is None.

    Attributes
    ----------
    value : :math:`E_q[\log p(x,z)] + H(q)`
    reconstruction : :math:`E_q[\log p(x\mid z)]`
    kl : :math:`\mathrm{KL}(q\|p(z))`; ``value = reconstruction - kl``
    entropy : :math:`H(q)`
    gap : :math:`\mathrm{KL}(q\|p(z\mid x)) = \log p(x) -` ``value``
    exact : whether the averages over q are sums or closed forms, not draws
    stderr : standard error of ``value`` where it comes from draws
    """

    value: Tensor
    reconstruction: Tensor | None
    kl: Tensor | None
    entropy: Tensor
    gap: Tensor | None
    exact: bool
    stderr: Tensor | None = None


def elbo(
    energy: Energy,
    q: Distribution | Tensor,
    given: Mapping[str, Tensor],
    *,
    form: Form = "auto",
    over: tuple[str, ...] | None = None,
    prior: Distribution | None = None,
    n: int = 64,
    generator: torch.Generator | None = None,
) -> Elbo:
    r"""A lower bound on :math:`\log p(x)` for any distribution q of the one hidden variable z,

    .. math:: \mathrm{ELBO} = E_q[\log p(x,z)] + H(q) = E_q[\log p(x\mid z)] - \mathrm{KL}(q\|p(z))
              = \log p(x) - \mathrm{KL}(q\|p(z\mid x)) \le \log p(x),

    where :math:`\log p(x,z) = -e(x,z) - \log Z`, so that :math:`-\mathrm{ELBO} = E_q[e] - H(q)`
    when
    :math:`Z = 1`. The groupings have the same mean and different Monte Carlo variance. The value
    is differentiable in θ and in the parameters of q where q can be reparameterised or listed.

    Parameters
    ----------
    energy : its variables are those in ``given`` and one more, z
    q : distribution of z with batch shape ``(B,)``, or probabilities ``(B, K)`` of a finite z
    given : all other variables
    form : "entropy" and "kl" use the closed entropy or divergence, "sampled" draws all of
        :math:`\log p(x,z) - \log q(z)`. "auto" is exact where it can be, else "kl", "entropy",
        "sampled", the first that applies
    over : the given variables that are modelled; the others are conditions. None is all
    prior : distribution of z, for the closed divergence of "kl"; known for a ``DirectedEnergy``
    n : draws where the average is not exact
    generator : source of randomness

    Examples
    --------
    >>> from groundstate.energy import LinearGaussianEnergy
    >>> from torch.distributions import Independent, Normal
    >>> energy = LinearGaussianEnergy(1, 1).double()
    >>> _ = energy.W.data.fill_(1.0)
    >>> q = Independent(Normal(torch.zeros(1, 1).double(), torch.ones(1, 1).double()), 1)
    >>> found = elbo(energy, q, {"x": torch.ones(1, 1).double()})
    >>> round(found.value.item(), 6), round(found.gap.item(), 6)
    (-1.918939, 0.403426)
    """
    latent = _latent(energy, given)
    rows = next(iter(given.values())).shape[0] if given else 1
    distribution = _as_distribution(energy, latent, q, rows)
    modelled = over if over is not None else tuple(k for k in given if k in energy.spaces)
    held = {k: v for k, v in given.items() if k not in modelled}
    z, weights, exact = _nodes(energy, latent, distribution, n, generator)  # (m, B, *event), (m, B)
    m = z.shape[0]
    flat = {latent: z.reshape(m * rows, *z.shape[2:])}
    e = energy(**_repeat(given, m), **flat).view(m, rows)
    log_z = _log_partition(energy, (*modelled, latent), held)  # (B,), (1,) or None
    joint = -e if log_z is None else -e - log_z  # log p(x, z), (m, B)
    inner = exact_free_energy(energy, modelled, {**_repeat(held, m), **flat}) if modelled else None
    likelihood = None if inner is None else -e + inner.view(m, rows)  # log p(x | z)
    log_q = distribution.log_prob(z)  # (m, B)
    entropy = _entropy(distribution, log_q, weights, exact)
    if prior is None:
        prior = getattr(getattr(energy, "prior", None), "distribution", None)
    form = _form(form, exact, likelihood, prior, distribution)
    reconstruction = None if likelihood is None else _mean(likelihood, weights)
    kl = None if likelihood is None else -entropy - _mean(joint - likelihood, weights)
    if form == "kl":
        assert likelihood is not None and prior is not None
        kl = kl_divergence(distribution, _batched(prior, rows))
        each = likelihood - kl
    elif form == "entropy":
        each = joint + entropy
    else:
        each = joint - _finite(log_q, weights)
    value = _mean(each, weights)
    F = exact_free_energy(energy, (latent,), given)
    gap = None
    if F is not None:
        gap = (-F if log_z is None else -F - log_z) - value
    stderr = None if exact else each.detach().std(0) / m**0.5
    return Elbo(value, reconstruction, kl, entropy, gap, exact, stderr)


def _latent(energy: Energy, given: Mapping[str, Tensor]) -> str:
    hidden = [name for name in energy.spaces if name not in given]
    if len(hidden) != 1:
        raise Unsupported(
            f"elbo needs exactly one variable of {type(energy).__name__} that is not given, got "
            f"{', '.join(hidden) or 'none'}; give the others or sum them out with marginal(...)"
        )
    return hidden[0]


def _as_distribution(
    energy: Energy, latent: str, q: Distribution | Tensor, rows: int
) -> Distribution:
    space = energy.spaces[latent]
    if isinstance(q, Tensor):
        if not space.is_finite or q.ndim != 2 or q.shape[1] != space.size:
            raise ShapeError(
                f"q as a tensor holds probabilities ({rows}, {space.size:g}) of {latent!r}, got "
                f"{tuple(q.shape)}; for {space!r} pass a torch Distribution"
            )
        if isinstance(space, Finite):
            q = Categorical(probs=q, validate_args=False)
        else:
            q = ListedDistribution({latent: space}, q.log())
    if tuple(q.batch_shape) != (rows,):
        raise ShapeError(f"q must have batch shape ({rows},), got {tuple(q.batch_shape)}")
    return q


def _nodes(
    energy: Energy,
    latent: str,
    distribution: Distribution,
    n: int,
    generator: torch.Generator | None,
) -> tuple[Tensor, Tensor, bool]:
    """Values of z with weights that average over q, and whether they do so exactly."""
    rows, space = int(distribution.batch_shape[0]), energy.spaces[latent]
    if space.size <= LISTED:
        device, dtype = energy.placement()
        values = space.enumerate(device, dtype)
        z = values[:, None].expand(-1, rows, *values.shape[1:])
        return z, distribution.log_prob(z).exp(), True
    if latent in energy.gaussian and is_gaussian(distribution):
        z = spread_points(distribution).transpose(0, 1)
        return z, z.new_full(z.shape[:2], 1 / z.shape[0]), True
    if distribution.has_rsample:
        with seeded(generator):
            z = distribution.rsample(torch.Size([n]))
    else:
        z = draw(distribution, n, generator)
    return z, torch.full(z.shape[:2], 1 / n, dtype=energy.placement()[1], device=z.device), False


def _log_partition(
    energy: Energy, names: tuple[str, ...], held: Mapping[str, Tensor]
) -> Tensor | None:
    F = exact_free_energy(energy, names, held)
    return None if F is None else -F


def _entropy(distribution: Distribution, log_q: Tensor, weights: Tensor, exact: bool) -> Tensor:
    if exact:
        return -_mean(_finite(log_q, weights), weights)
    try:
        return distribution.entropy()
    except NotImplementedError:
        return -_mean(log_q, weights)


def _form(
    form: Form,
    exact: bool,
    likelihood: Tensor | None,
    prior: Distribution | None,
    distribution: Distribution,
) -> Form:
    closed = likelihood is not None and prior is not None and _known_kl(distribution, prior)
    if form == "kl" and not closed and not exact:
        raise Unsupported(
            "form='kl' needs p(x|z) and a prior with a closed divergence from q; pass prior=, or "
            "use form='entropy'"
        )
    if form == "auto":
        return "entropy" if exact or not closed else "kl"
    return "entropy" if exact and form == "kl" else form


def _known_kl(distribution: Distribution, prior: Distribution) -> bool:
    try:
        kl_divergence(distribution, _batched(prior, int(distribution.batch_shape[0])))
    except NotImplementedError:
        return False
    return True


def _batched(prior: Distribution, rows: int) -> Distribution:
    if tuple(prior.batch_shape) == (rows,):
        return prior
    return prior.expand(torch.Size([rows]))


def _finite(log_q: Tensor, weights: Tensor) -> Tensor:
    """log q, and 0 where q = 0, so that 0 log 0 = 0."""
    return torch.where(weights > 0, log_q, 0.0)


def _mean(each: Tensor, weights: Tensor) -> Tensor:
    return torch.where(weights > 0, weights * each, 0.0).sum(0)


def _repeat(values: Mapping[str, Tensor], m: int) -> dict[str, Tensor]:
    return {k: v.repeat(m, *(1,) * (v.ndim - 1)) for k, v in values.items()}
