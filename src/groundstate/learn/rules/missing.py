r"""Unknown targets: −1 in a class, NaN in a real value.

A row without a target still says something about :math:`p(x)`: when the rule models x, its positive
term is the free energy over the unknown target. When the rule models only :math:`p(y\mid x)`, such
a row says nothing and is dropped.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule
from groundstate.learn.rules.inner import choose, free_energy_of

if TYPE_CHECKING:
    from groundstate.learn.rules.common import ContrastRule, Plan


def is_missing(value: Tensor) -> Tensor:
    """Rows with an unknown value, ``(B,)`` bool: NaN in a float, negative in an integer.

    >>> is_missing(torch.tensor([0, -1])).tolist()
    [False, True]
    """
    unknown = torch.isnan(value) if value.is_floating_point() else value < 0
    return unknown.flatten(1).any(1) if unknown.ndim > 1 else unknown


def models_input(rule: Rule, energy: Energy) -> bool:
    """Whether rows without a target can be used: the rule contrasts another variable as well."""
    return any(name != "y" for name in rule.contrasted(energy))


def drop_missing(
    rule: Rule, energy: Energy, data: Mapping[str, Tensor], weight: Tensor | None = None
) -> tuple[Mapping[str, Tensor], Tensor | None]:
    """Leave out the rows whose ``y`` is unknown, with one warning, unless the rule can use them.

    Parameters
    ----------
    rule, energy : decide whether unknown targets can be used (the rule contrasts ``x`` too)
    data : tensors by name, ``(N, *event)`` each
    weight : ``(N,)``, optional

    Returns
    -------
    data, weight : the same objects when nothing is missing
    """
    if "y" not in data or "y" not in energy.spaces or models_input(rule, energy):
        return data, weight
    if "y" in energy.missing or not isinstance(data["y"], Tensor):  # e handles what is missing
        return data, weight
    missing = is_missing(data["y"])
    count = int(missing.sum())
    if count == 0:
        return data, weight
    warnings.warn(
        f"{count} of {len(missing)} rows have no target (−1 or NaN) and are left out, because "
        f"{type(rule).__name__} models y given x alone; to use them, contrast x too: "
        "over=('x', 'y')",
        UserWarning,
        stacklevel=3,
    )
    keep = ~missing
    kept = {name: v[keep] for name, v in data.items()}
    return kept, None if weight is None else weight[keep]


def split_positive(
    rule: ContrastRule,
    plan: Plan,
    energy: Energy,
    batch: Batch,
    generator: torch.Generator | None,
) -> Tensor:
    """The positive term ``(B,)``; rows with an unknown ``y`` get the free energy over it."""
    if len(plan.over) < 2 or "y" not in plan.over or "y" in energy.missing:
        return plan.positive(batch, generator)
    missing = is_missing(batch["y"])
    if not bool(missing.any()):
        return plan.positive(batch, generator)
    known = {name: v[~missing] for name, v in batch.items()}
    rest = {name: v[missing] for name, v in batch.items() if name != "y"}
    free = energy.ordered(("y", *plan.latents))
    method, reason = choose(energy, "marginalise", free, rule.approximate)
    if reason is not None:
        rule.refuse(energy, f"rows without y need the free energy over it: {reason}")
    value = free_energy_of(energy, free, rest, rule.temperature, method, generator)
    result = value.new_empty(missing.shape[0])
    result = result.masked_scatter(missing, value)
    if len(missing) > int(missing.sum()):
        result = result.masked_scatter(~missing, plan.positive(known, generator))
    return result
