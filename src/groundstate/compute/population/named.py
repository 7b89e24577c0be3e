r"""The one table of optimisers: by name, torch's own for a single θ and the stacked one for P of them.

A name stands for the same steps in both, so that a member of a population is a single fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.population.optimizers import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    RMSprop,
    StackedOptimizer,
)
from groundstate.errors import Unsupported

_KERNELS = ("fused", "foreach")  # which of torch's implementations; the steps are the same


@dataclass(frozen=True)
class Named:
    """An optimiser under its name.

    Parameters
    ----------
    alone : torch's class
    stacked : the class for a population
    kernel : torch's quickest implementation of it
    settings : what the name stands for, in torch's words
    coupled : whether ``weight_decay`` is L2 inside the gradient
    """

    alone: Any
    stacked: type[StackedOptimizer]
    kernel: str = "fused"
    settings: Mapping[str, Any] = field(default_factory=dict)
    coupled: bool = True

    def one(self, parameters: Sequence[Any], lr: float, **settings: Any) -> torch.optim.Optimizer:
        """For the parameters of a single fit."""
        own: dict[str, Any] = {self.kernel: True, **self.settings, **settings}
        made: torch.optim.Optimizer = self.alone(parameters, lr=lr, **own)
        return made

    def for_population(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Settings in torch's words as those of the stacked class, which has one β a number."""
        known, theirs = signature(self.stacked).parameters, signature(self.alone).parameters
        found: dict[str, Any] = {}
        for word, value in given.items():
            if word == "betas":
                found["beta1"], found["beta2"] = map(float, value)
            elif word in known:
                found[word] = value if isinstance(value, bool) else float(value)
            elif word not in _KERNELS and (word not in theirs or theirs[word].default != value):
                raise Unsupported(
                    f"optimizer {name!r} has no {word}={value!r} in a population; leave it out, or "
                    "fit the members one after the other"
                )
        return found


OPTIMIZERS: dict[str, Named] = {
    "adam": Named(torch.optim.Adam, Adam),
    "adamw": Named(torch.optim.AdamW, AdamW, coupled=False),
    "sgd": Named(torch.optim.SGD, SGD),
    "momentum": Named(torch.optim.SGD, SGD, settings={"momentum": 0.9}),
    "nesterov": Named(torch.optim.SGD, SGD, settings={"momentum": 0.9, "nesterov": True}),
    "rmsprop": Named(torch.optim.RMSprop, RMSprop, "foreach"),
    "adagrad": Named(torch.optim.Adagrad, Adagrad, "foreach"),
    "adadelta": Named(torch.optim.Adadelta, Adadelta, "foreach"),
}


def optimizer_named(name: str, flat: Tensor, **settings: Any) -> StackedOptimizer:
    """The optimiser of that name for parameters (P, D); settings are numbers or one per member.

    Examples
    --------
    >>> import torch
    >>> type(optimizer_named("nesterov", torch.ones(2, 3), lr=[0.1, 0.2])).__name__
    'SGD'
    """
    if name not in OPTIMIZERS:
        raise Unsupported(
            f"optimizer {name!r} is not there for populations; use {', '.join(OPTIMIZERS)}."
        )
    own = OPTIMIZERS[name]
    try:
        return own.stacked(flat, **{**own.settings, **settings})
    except TypeError as error:
        raise Unsupported(
            f"optimizer {name!r} does not know {' or '.join(settings)}: {error}."
        ) from None
