r"""Probability from an energy: moments, likelihoods and missing values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.display import Displayed
from groundstate.energy.base import Energy
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer.base import Free, Method, Query, ask, check_possible
from groundstate.infer.boltzmann import log_partition
from groundstate.infer.dispatch import minimise, sample
from groundstate.infer.exact.closed import ClosedForm, distribution_of, energies_of
from groundstate.infer.exact.enumerate import Enumerate
from groundstate.infer.exact.limits import logits as boltzmann
from groundstate.infer.sampling.proposals import Proposal, ProposalLike
from groundstate.math.info.free_energy import free_energy

Given = Mapping[str, Tensor]


@dataclass(frozen=True)
class EnergyMoments(Displayed):
    """Mean U and variance V of the energy, entropy S of the weights, free energy F; each ``(B,)``.

    ``free_energy`` is None unless the weights are the Boltzmann distribution; then F = U − T·S.
    """

    mean: Tensor
    variance: Tensor
    entropy: Tensor | None
    free_energy: Tensor | None
    stderr: Tensor | None = None  # of the mean, when it was estimated from draws


def energy_moments(
    energy: Energy,
    free: Free,
    given: Given | None = None,
    weights: Tensor | Distribution | None = None,
    T: float = 1.0,
    *,
    n: int = 10_000,
    generator: torch.Generator | None = None,
) -> EnergyMoments:
    r""":math:`U = \sum_k w_k e_k` and :math:`V = \sum_k w_k (e_k - U)^2` over the free variables.

    V says how undetermined the preference is: it is 0 exactly when the energy does not depend on
    the free variables where the weights are positive.

    Parameters
    ----------
    energy, free, given : the question
    weights : probabilities ``(K,)`` or ``(B, K)`` of the joint values, or a distribution to draw from;
        None takes the Boltzmann distribution at ``T``, whose F and entropy are returned as well
    T : temperature
    n, generator : draws for variables that cannot be listed

    Examples
    --------
    >>> from groundstate.energy import TableEnergy
    >>> e = TableEnergy(torch.tensor([1.0, 3.0], dtype=torch.float64))
    >>> m = energy_moments(e, "x", weights=torch.tensor([0.75, 0.25], dtype=torch.float64))
    >>> m.mean.item(), m.variance.item()
    (1.5, 0.75)
    """
    query = ask(energy, free, given, T=T, generator=generator)
    listed = Enumerate().reason_against(energy, "marginalise", free, given) is None
    if listed and not (isinstance(weights, Distribution) and not hasattr(weights, "probs")):
        table = check_possible(Enumerate().table(query), energy)  # (B, K)
        F = None
        if weights is None:
            p = boltzmann(table, T).softmax(1)
            F = free_energy(table, T, 1)
        else:
            w: Tensor = weights.probs if isinstance(weights, Distribution) else weights
            if w.shape[-1] != table.shape[1]:
                raise ShapeError(
                    f"weights {tuple(w.shape)} must end in K={table.shape[1]}, the number of "
                    f"values of {', '.join(query.free)}"
                )
            p = w.expand_as(table)
        e = torch.where(p > 0, table, 0.0)
        U = (p * e).sum(1)
        V = (p * (e - U[:, None]).square()).sum(1)
        return EnergyMoments(U, V, -torch.special.xlogy(p, p).sum(1), F)
    if isinstance(weights, Tensor):
        raise Unsupported(
            f"a table of weights needs finite variables of at most {Enumerate().limit} joint "
            f"values, got {', '.join(query.free)}; pass a distribution"
        )
    if weights is None:
        e = sample(energy, free, given, n, T=T, generator=generator).energy
    else:
        values = Proposal(weights, query).draw(n, generator)
        e = energies_of(query, values)
    U, V = e.mean(0), e.var(0)
    return EnergyMoments(U, V, None, None, (V / n).sqrt())


def log_likelihood(
    energy: Energy,
    x: Tensor | Given,
    proposal: ProposalLike,
    n: int = 1000,
    *,
    latent: str | tuple[str, ...] = "z",
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Importance-weighted :math:`\log p(x) \approx \log\frac1n\sum_m p(x, z_m)/q(z_m)`, ``(B,)``.

    Unbiased for :math:`p(x)`, so biased down for :math:`\log p(x)`; ``n=1`` is the ELBO, and the
    expected value rises with ``n``.

    Parameters
    ----------
    energy : Energy
        Of the observed and the latent variables; a θ-dependent log Z is subtracted where it is
        known exactly.
    x : observed values, a tensor for ``"x"`` or a mapping
    proposal : distribution q of the latent variables, as for ``Importance``
    n : draws per row
    latent : the latent variables
    generator : source of randomness
    """
    given = {"x": x} if isinstance(x, Tensor) else dict(x)
    query = ask(energy, latent, given, generator=generator)
    q = Proposal(proposal, query)
    values = q.draw(n, generator)
    log_w = -energies_of(query, values) - q.log_prob(values)
    value = log_w.logsumexp(0) - math.log(n)
    if set(energy.spaces) <= energy.normalised:
        return value
    try:
        return value - log_partition(energy, tuple(energy.spaces))
    except Unsupported as reason:
        raise Unsupported(
            f"{type(energy).__name__} is not normalised and its log Z is not known exactly, so "
            f"log p(x) is not defined by its energy alone: {reason}"
        ) from None


def impute(
    energy: Energy,
    x: Tensor,
    how: Literal["minimise", "sample", "mean"] = "minimise",
    *,
    given: Given | None = None,
    variable: str = "x",
    mask: Tensor | None = None,
    n: int = 1000,
    method: Method | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Fill in what is missing: NaN coordinates are free, the others stay as they are.

    Other variables that are not given are summed out where that is exact.

    Parameters
    ----------
    energy : Energy
    x : values with NaN where they are unknown, ``(B, *event)``
    how : "minimise" the most probable completion, "sample" one random completion, "mean" the
        conditional mean
    given : values of other variables
    variable : which variable ``x`` is
    mask : True where unknown; None takes NaN
    n : draws for a mean that has no closed form
    method : inference method; None lets the dispatch choose
    generator : source of randomness
    """
    if how not in ("minimise", "sample", "mean"):
        raise ValueError(f"how must be minimise, sample or mean, got {how!r}")
    mask = torch.isnan(x) if mask is None else mask
    if not bool(mask.any()):
        return x
    known = torch.where(mask, torch.zeros_like(x), x)
    given = dict(given or {})
    others = [name for name in energy.spaces if name != variable and name not in given]
    if others:
        energy = energy.marginal(*others)
    free, values = {variable: mask}, {**given, variable: known}
    if how == "minimise":
        found = minimise(energy, free, values, method=method, generator=generator)[variable]
    elif how == "sample":
        drawn = sample(energy, free, values, 1, method=method, generator=generator)
        found = drawn[variable][0]
    else:
        query = ask(energy, free, values, generator=generator)
        found = _mean(query, free, n, method)
    return torch.where(mask, found.to(x.dtype), x)


def _mean(query: Query, free: Free, n: int, method: Method | None) -> Tensor:
    """The conditional mean of a partly known variable: closed form, listed, or from draws."""
    (name,) = query.free
    if method is None and ClosedForm().reason_against(query.energy, "sample", free) is None:
        return distribution_of(query).mean.detach()
    listed = Enumerate()
    if method is None and listed.reason_against(query.energy, "sample", free) is None:
        with torch.no_grad():
            mean: Tensor = listed.expectation(query, lambda v: v[name].flatten(1))
        return mean.reshape(query.rows, *query.space(name).shape)
    drawn = sample(query.energy, free, query.given, n, method=method, generator=query.generator)
    return drawn[name].mean(0)
