r"""Proposals fitted to the distribution they should propose for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.random import Key, split
from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.infer.base import Free, Query, ask
from groundstate.infer.exact.closed import energies_of
from groundstate.infer.laplace import laplace
from groundstate.infer.pack import Pack, is_simplex, squash
from groundstate.infer.variational.families import Gaussian
from groundstate.infer.variational.variational import Variational
from groundstate.math.distributions.operations import MixtureDistribution, draw

GUARD, WIDER = 0.2, 3.0  # share and width of the wide part of a guarded proposal
How = Literal["moments", "laplace", "reverse_kl"]


def fit_proposal(
    energy: Energy,
    free: Free,
    given: Mapping[str, Tensor] | None = None,
    *,
    T: float = 1.0,
    how: How = "moments",
    n: int = 1000,
    rounds: int = 4,
    generator: torch.Generator | None = None,
) -> Distribution | dict[str, Distribution]:
    r"""A Gaussian distribution near :math:`e^{-e/T}/Z` to draw importance samples from.

    Parameters
    ----------
    energy, free, given, T : the question, with real free variables
    how : "laplace" matches mode and curvature; "moments" goes on from there and matches mean and
        covariance of weighted draws; "reverse_kl" minimises :math:`\mathrm{KL}(q\|p)`
    n, rounds : draws per round and rounds of moment matching
    generator : source of randomness

    Returns
    -------
    one distribution, or a mapping by name when several variables are free

    Examples
    --------
    >>> from groundstate.energy import LinearGaussianEnergy, Real
    >>> e = LinearGaussianEnergy(2, 1)
    >>> q = fit_proposal(e, "z", {"x": torch.zeros(3, 2)}, how="laplace")
    >>> q.mean.shape
    torch.Size([3, 1])
    """
    query = ask(energy, free, given, T=T, generator=generator)
    bad = [n for n in query.free if not query.space(n).is_real or is_simplex(query.space(n))]
    if bad or query.masks:
        raise Unsupported(
            f"fit_proposal fits Gaussian distributions to whole real variables, not to "
            f"{', '.join(bad or query.masks)}; use posterior(...) or Variational instead"
        )
    distributions = fit_distribution(query, how=how, n=n, rounds=rounds)
    return next(iter(distributions.values())) if len(distributions) == 1 else distributions


def fit_distribution(
    query: Query, how: How = "moments", n: int = 1000, rounds: int = 4, guard: bool = False
) -> dict[str, Distribution]:
    """``fit_proposal`` for a checked question.

    ``guard`` mixes in a share of draws from a distribution three times as wide, which keeps the
    weights of a target with heavier tails bounded.
    """
    if how == "reverse_kl":
        return Variational(Gaussian("full")).distributions(query)
    if how not in ("moments", "laplace"):
        raise ValueError(f"how must be moments, laplace or reverse_kl, got {how!r}")
    pack = Pack(query)
    mean, curvature = laplace(query, pack)
    flat = torch.eye(pack.dim, device=mean.device, dtype=mean.dtype).expand_as(curvature)
    covariance = query.T * torch.linalg.inv_ex(curvature).inverse
    mean, covariance = _sound(mean, (covariance + covariance.mT) / 2, mean, query.T * flat)
    if how == "moments":
        generators = split(query.generator or Key.of(0).torch(query.device), rounds)
        for stream in generators:
            mean, covariance = _sound(
                *_matched(query, pack, mean, covariance, n, stream), mean, covariance
            )
    distributions: dict[str, Distribution] = {}
    at = 0
    for name, d in pack.sizes.items():
        block = slice(at, at + d)
        own_mean, own = mean[:, block], covariance[:, block, block]
        if guard:
            wide = torch.stack([own, WIDER**2 * own], 1).flatten(0, 1)  # (2B, d, d)
            params = Gaussian("full").params(own_mean.repeat_interleave(2, 0), wide)
            shares = own.new_tensor([1 - GUARD, GUARD]).log().expand(query.rows, 2)
            distributions[name] = MixtureDistribution(
                shares, Gaussian("full").distribution(query.space(name), params)
            )
        else:
            params = Gaussian("full").params(own_mean, own)
            distributions[name] = Gaussian("full").distribution(query.space(name), params)
        at += d
    return distributions


def _sound(
    mean: Tensor, covariance: Tensor, old_mean: Tensor, old: Tensor
) -> tuple[Tensor, Tensor]:
    """The new moments in rows where they are those of a distribution, the old ones elsewhere.

    An energy that is flat in a direction has no second moment; its estimate may be singular.
    """
    good = torch.linalg.cholesky_ex(torch.nan_to_num(covariance)).info == 0
    good &= covariance.isfinite().flatten(1).all(1) & mean.isfinite().all(1)
    return torch.where(good[:, None], mean, old_mean), torch.where(
        good[:, None, None], covariance, old
    )


@torch.no_grad()
def _matched(
    query: Query,
    pack: Pack,
    mean: Tensor,
    covariance: Tensor,
    n: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Mean and covariance of draws from a wider Gaussian, weighted towards the target."""
    d = pack.dim
    wide = torch.distributions.MultivariateNormal(mean, 2.0 * covariance, validate_args=False)
    u = draw(wide, n, generator)  # (n, B, D)
    v, log_j = squash(u, pack.low, pack.high)
    values = {
        name: part.reshape(n, query.rows, *query.space(name).shape)
        for name, part in zip(pack.sizes, torch.split(v, list(pack.sizes.values()), 2), strict=True)
    }
    log_w = -energies_of(query, values) / query.T + log_j.sum(2) - wide.log_prob(u)
    w = log_w.softmax(0)  # (n, B)
    new_mean = torch.einsum("nb,nbd->bd", w, u)
    centred = u - new_mean
    new = torch.einsum("nb,nbd,nbe->bde", w, centred, centred)
    # few effective draws say little about a covariance: keep part of the old one
    ess = 1 / w.square().sum(0)
    trust = (ess / (ess + 2 * d + 2))[:, None, None]
    return new_mean, trust * new + (1 - trust) * covariance
