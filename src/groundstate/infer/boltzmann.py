r"""The Boltzmann distribution of the free variables as a distribution, and its log partition function."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Finite
from groundstate.errors import Unsupported
from groundstate.infer.base import Free, Method, Query, ask, check_possible
from groundstate.infer.dispatch import marginalise, pick, unwrap
from groundstate.infer.exact import limits
from groundstate.infer.exact.chain import Chain
from groundstate.infer.exact.closed import ClosedForm, distribution_of
from groundstate.infer.exact.enumerate import Enumerate
from groundstate.infer.exact.finite_distributions import ListedDistribution
from groundstate.infer.variational.variational import Variational

Given = Mapping[str, Tensor]


def posterior(
    energy: Energy,
    free: Free,
    given: Given | None = None,
    *,
    T: float = 1.0,
    method: Method | None = None,
) -> Distribution:
    r"""The Boltzmann distribution :math:`p(v\mid\text{given}) = e^{-e/T}/Z` as a torch distribution.

    A declared conditional is returned as it is; a chain gives a ``ChainDistribution``; a ``Finite``
    variable gives a ``Categorical``; other finite variables, alone or together, give a
    ``ListedDistribution``. Differentiable in θ and the given. ``method`` may name ClosedForm,
    Chain, Enumerate or Variational.

    Examples
    --------
    Bayes' rule, with prior (.5, .3, .2) and likelihood (.10, .40, .05) as energies:

    >>> from groundstate.energy import Energy, Finite
    >>> class Bayes(Energy):
    ...     def __init__(self):
    ...         super().__init__(z=Finite(3))
    ...     def forward(self, z):
    ...         joint = torch.tensor([0.5, 0.3, 0.2]) * torch.tensor([0.10, 0.40, 0.05])
    ...         return -joint.log()[z]
    >>> posterior(Bayes(), "z").probs
    tensor([[0.2778, 0.6667, 0.0556]])
    """
    energy, given = unwrap(energy, given)
    query = ask(energy, free, given, T=T)
    if isinstance(method, Variational):
        pick(query, "sample", free, method)
        return method.distribution(query)
    reasons = []
    for option in (ClosedForm(), Chain(), Enumerate()) if method is None else (method,):
        reason = option.reason_against(energy, "sample", free, given)
        if reason is None:
            reason = _no_distribution(option, query)
        if reason is None:
            return _distribution(option, query)
        reasons.append(f"{type(option).__name__}: {reason}")
    raise Unsupported(
        f"the distribution of {', '.join(query.free)} of {type(energy).__name__} is not known "
        f"({'; '.join(reasons)}); declare a conditional, sample it, or name method=Variational()"
    )


def _no_distribution(method: Method, query: Query) -> str | None:
    """Why a method that can sample does not know the distribution itself."""
    if isinstance(method, ClosedForm) and (query.T == 0 or math.isinf(query.T)):
        return f"a declared conditional has no limit T={query.T:g}"
    if isinstance(method, Enumerate) and query.masks:
        return "the distribution of a partly known variable is not listed; sample it"
    if not isinstance(method, (ClosedForm, Chain, Enumerate)):
        return "it draws samples but does not know the distribution"
    return None


def _distribution(method: Method, query: Query) -> Distribution:
    if isinstance(method, ClosedForm):
        return distribution_of(query)
    if isinstance(method, Chain):
        return method.distribution(query)
    assert isinstance(method, Enumerate)
    logits = limits.logits(check_possible(method.table(query), query.energy), query.T)
    if len(query.free) == 1 and isinstance(query.space(query.free[0]), Finite):
        return Categorical(logits=logits, validate_args=False)
    return ListedDistribution({name: query.space(name) for name in query.free}, logits)


def log_partition(
    energy: Energy,
    free: Free,
    given: Given | None = None,
    *,
    T: float = 1.0,
    method: Method | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r""":math:`\log Z = -F/T`, ``(B,)``; exact unless ``method`` names an estimator.

    The standard error of an estimate is that of ``marginalise``, divided by ``T``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Binary
    >>> class Coin(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Binary(3))
    ...     def forward(self, x):
    ...         return 0 * x.sum(-1)
    >>> log_partition(Coin(), "x").exp().round()
    tensor([8.])
    """
    if T == 0 or math.isinf(T):
        raise ValueError(f"log Z = -F/T needs a temperature in (0, inf), got T={T:g}")
    found = marginalise(energy, free, given, T=T, method=method, generator=generator)
    return -found.value / T
