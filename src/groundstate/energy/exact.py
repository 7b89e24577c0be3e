r"""Exact operations from abilities alone: :math:`\min_v e` and :math:`F = -T\log\int e^{-e/T}dv`.

A declared conditional :math:`q(v) = e^{-e(v)/T}/Z` gives the free energy at any single value,

.. math:: F = e(v) + T\log q(v),

because the right-hand side does not depend on :math:`v`. With :math:`v` held fixed its θ-gradient
is :math:`\nabla e(v) + T\nabla\log q(v) = E_q[\nabla e]`, so value and gradient are both exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from groundstate.energy.base import Energy, batch_size
from groundstate.errors import Unsupported
from groundstate.math.chains.chain import ChainDistribution
from groundstate.math.distributions.operations import mode, somewhere
from groundstate.math.info.free_energy import free_energy

LIMIT = 2**20  # values of a space that is still enumerated

Given = Mapping[str, Tensor]
Free = str | tuple[str, ...]


class Inference(Protocol):
    """What a composed energy asks of the inference method it was given (``groundstate.infer``)."""

    def answer(
        self, operation: str, energy: Energy, free: Free, given: Given, **options: Any
    ) -> Any:
        """``operation`` is "minimise", "marginalise" or "sample"; the answer is that function's."""


def _listable(energy: Energy, name: str) -> bool:
    return energy.spaces[name].size <= LIMIT


def marginal_way(energy: Energy, names: Iterable[str], T: float = 1.0) -> str | None:
    """How the free energy over ``names`` is exact, or None. Computes nothing."""
    names = energy.ordered(names)
    if T == 0:
        return minimum_way(energy, names)
    if math.isinf(T):
        return "table" if all(_listable(energy, n) for n in names) else None
    if T == 1 and names and frozenset(names) == energy.normalised:
        return "normalised"
    if energy.ability("log_partition", *names) is not None:
        return "log_partition"
    if len(names) == 1:
        for kind in ("conditional", "chain"):
            if energy.ability(kind, *names) is not None:
                return kind
        return "table" if _listable(energy, names[0]) else None
    return None if elimination_order(energy, names, T) is None else "eliminate"


def minimum_way(energy: Energy, names: Iterable[str]) -> str | None:
    """How the minimum over ``names`` is exact, or None. Computes nothing."""
    names = energy.ordered(names)
    if len(names) == 1:
        for kind in ("argmin", "conditional", "chain"):
            offer = energy.offer(kind, *names)
            if offer is not None and offer.mode:
                return kind
        return "table" if _listable(energy, names[0]) else None
    return None if elimination_order(energy, names, 0.0) is None else "eliminate"


def elimination_order(
    energy: Energy, names: Iterable[str], T: float = 1.0
) -> tuple[str, ...] | None:
    """An order in which each variable can be removed exactly, closed forms first, or None."""
    names = energy.ordered(names)
    if not names:
        return ()

    def cost(name: str) -> float:
        way = marginal_way(energy, (name,), T)
        return math.inf if way is None else energy.spaces[name].size if way == "table" else 0.0

    for name in sorted(names, key=cost):
        if marginal_way(energy, (name,), T) is None:
            return None
        rest = tuple(n for n in names if n != name)
        order = elimination_order(_without(energy, name, T), rest, T)
        if order is not None:
            return (name, *order)
    return None


def _without(energy: Energy, name: str, T: float) -> Energy:
    return energy.minimal(name) if T == 0 else energy.marginal(name, T=T)


def exact_free_energy(
    energy: Energy, names: Iterable[str], given: Given | None = None, T: float = 1.0
) -> Tensor | None:
    r"""F over ``names``, ``(B,)``, differentiable in θ and the given; None when no way is exact.

    At ``T=0`` this is the minimum with the minimiser held fixed (envelope gradient); at ``T=inf``
    the mean over a finite space, the limit of :math:`F + T\log K`.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> F = exact_free_energy(LinearEnergy(2, 3), ("y",), {"x": torch.zeros(1, 2)})
    >>> round(F.item(), 4)  # -log 3
    -1.0986
    """
    names = energy.ordered(names)
    given = dict(given or {})
    if marginal_way(energy, names, T) is None:
        return None
    if T == 0:
        best = exact_minimum(energy, names, given)
        return None if best is None else energy(**given, **best)
    if T == 1 and names and frozenset(names) == energy.normalised:
        device, dtype = energy.placement(given)
        rows = batch_size(given) if given else energy.rows or 1
        return torch.zeros(rows, device=device, dtype=dtype)
    if math.isinf(T):
        return _eliminated(energy, names, given, T)
    if len(names) > 1 and energy.ability("log_partition", *names) is None:
        return _eliminated(energy, names, given, T)
    refused: Unsupported | None = None
    for kind in ("log_partition", "conditional", "chain"):
        ability = energy.ability(kind, *names)
        if ability is None:
            continue
        try:
            return _by_ability(energy, kind, ability, names[0], given, T)
        except Unsupported as error:  # known at some temperatures only
            refused = error
    if len(names) == 1 and _listable(energy, names[0]):
        return _by_table(energy, names[0], given, T)
    if refused is not None:
        raise refused
    return None


def _by_ability(
    energy: Energy, kind: str, ability: Callable[..., Any], name: str, given: Given, T: float
) -> Tensor:
    if kind == "log_partition":
        log_z: Tensor = ability(**given, T=T)
        return -T * log_z
    if kind == "chain":
        return -T * ChainDistribution(ability(**given), T).log_partition
    distribution = ability(**given, T=T)
    value = somewhere(distribution).detach()
    result: Tensor = energy(**given, **{name: value}) + T * distribution.log_prob(value)
    return result


def _by_table(energy: Energy, name: str, given: Given, T: float) -> Tensor:
    return free_energy(energy.table(name, **given), T)


def _eliminated(energy: Energy, names: tuple[str, ...], given: Given, T: float) -> Tensor | None:
    if len(names) == 1:
        return _by_table(energy, names[0], given, T)
    order = elimination_order(energy, names, T)
    if order is None:
        return None
    return exact_free_energy(_without(energy, order[0], T), order[1:], given, T)


def exact_minimum(
    energy: Energy, names: Iterable[str], given: Given | None = None
) -> dict[str, Tensor] | None:
    """The exact minimiser over ``names``, detached values ``(B, *event)``, or None."""
    names = energy.ordered(names)
    given = dict(given or {})
    way = minimum_way(energy, names)
    if way is None:
        return None
    if way == "eliminate":
        order = elimination_order(energy, names, 0.0)
        assert order is not None
        rest = exact_minimum(_without(energy, order[0], 0.0), order[1:], given)
        assert rest is not None
        first = exact_minimum(energy, order[:1], {**given, **rest})
        return None if first is None else {**first, **rest}
    (name,) = names
    if way == "table":
        table = energy.table(name, **given)
        values = energy.spaces[name].enumerate(table.device, energy.placement(given)[1])
        return {name: values[table.detach().argmin(-1)]}
    ability = energy.ability(way, name)
    assert ability is not None
    if way == "argmin":
        return {name: ability(**given).detach()}
    if way == "conditional":
        return {name: mode(ability(**given, T=_own_temperature(energy))).detach()}
    return {name: ChainDistribution(ability(**given)).mode}


def _own_temperature(energy: Energy) -> float:
    """The mode is the same at every temperature; a marginal knows its distribution at its own."""
    return float(getattr(energy, "T", 1.0))
