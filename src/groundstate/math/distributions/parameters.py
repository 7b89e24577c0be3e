"""The parameters of a torch distribution: their names, values, and the same distribution with others."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.distributions import Distribution

# of several ways to give the same thing, the first is the one that is learned
_SAME = (("probs", "logits"), ("covariance_matrix", "precision_matrix", "scale_tril"))


def parameter_names(kind: type[Distribution]) -> list[str]:
    """What the constructor takes and the class constrains, one name for each thing.

    >>> from torch import distributions as D
    >>> parameter_names(D.StudentT), parameter_names(D.Bernoulli)
    (['df', 'loc', 'scale'], ['probs'])
    """
    constrained = getattr(kind, "arg_constraints", None)
    if not isinstance(constrained, Mapping):
        constrained = {}
    taken = list(inspect.signature(kind.__init__).parameters)[1:]
    names = [name for name in taken if name in constrained]
    for first, *others in _SAME:
        if first in names:
            names = [name for name in names if name not in others]
    return names


def parameters_of(distribution: Distribution) -> dict[str, Tensor]:
    """Names and values of the parameters of a distribution.

    >>> import torch
    >>> parameters_of(torch.distributions.Normal(0.0, 2.0))
    {'loc': tensor(0.), 'scale': tensor(2.)}
    """
    return {name: getattr(distribution, name) for name in parameter_names(type(distribution))}


def rebuilt(kind: type[Distribution], values: Mapping[str, Any]) -> Distribution:
    """A distribution of that kind, without checks of its arguments."""
    make: Any = kind
    made: Distribution = make(**values, validate_args=False)
    return made
