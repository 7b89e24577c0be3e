r"""Abilities: what an energy can do beyond returning its value, declared by decorator.

Inside an ``Energy`` subclass, ``@offers.<ability>(variables)`` marks a method. Its keyword
arguments are the variables that are *not* listed (plus ``T`` where the table says so).

=================  ==========================================================================
ability            contract
=================  ==========================================================================
``table(v)``       ``(*, given) -> (B, K)``: the energies of all K values of ``v``
``scores(v)``      ``(*, given) -> (B, K)``: −table, where that saves a pass over it
``pairs(v)``       ``(*, given) -> (B, K(K-1)/2)``: scores of value a against b for a < b,
                   positive where a wins, for energies that compare values two by two
``argmin(v)``      ``(*, given) -> (B, *event)``: the exact minimiser over ``v``
``conditional(v)`` ``(*, given, T=1.0) -> Distribution`` with batch shape ``(B,)``: the exact
distribution
                   :math:`e^{-e/T}/Z` of ``v``. ``partial=True``: the method also takes
                   ``mask`` (free coordinates of ``v``) and the current value of ``v`` itself
``log_partition``  ``(*, given, T=1.0) -> (B,)`` or ``(1,)`` when nothing is given
``chain(v)``       ``(*, given) -> ChainFactors``: ``v`` is a chain with unary/pairwise energies
``step(v)``        ``(state, *, given) -> (increments (B, K), state)``: next-symbol energies;
                   ``state=None`` starts; see ``StepState`` in
                   :mod:`groundstate.energy.sequences.step`
``sites(v)``       ``(*, given, v, members) -> (B, m, K)``: energies of all values of the
                   coordinates ``members`` of ``v`` with all others as they are, up to a
                   constant of each coordinate; ``+inf`` where it has fewer values
``stats``          ``(weights, **values) -> dict`` of sums over rows; ``weights`` may be None;
                   a hidden value comes as its distribution, a ``Distribution`` of batch shape
                   ``(B,)``
``from_stats``     ``(stats) -> None``: set θ to the closed-form minimiser
=================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

ABILITIES = ("table", "argmin", "conditional", "log_partition", "chain", "step", "sites")
MARK = "__groundstate_offers__"


@dataclass(frozen=True)
class Offer:
    """One declared ability: its kind, the variables it is about, and when it holds."""

    kind: str
    variables: frozenset[str]
    partial: bool = False
    when: Callable[[Any], bool] | None = None  # None: always; else asked of the instance
    mode: bool = True  # False: a conditional whose most probable value is not known


class _Offers:
    def _mark(self, offer: Offer) -> Callable[[F], F]:
        def decorate(method: F) -> F:
            setattr(method, MARK, (*getattr(method, MARK, ()), offer))
            return method

        return decorate

    def table(
        self, variable: str, *, when: Callable[[Any], bool] | None = None
    ) -> Callable[[F], F]:
        return self._mark(Offer("table", frozenset({variable}), when=when))

    def scores(
        self, variable: str, *, when: Callable[[Any], bool] | None = None
    ) -> Callable[[F], F]:
        return self._mark(Offer("scores", frozenset({variable}), when=when))

    def pairs(
        self, variable: str, *, when: Callable[[Any], bool] | None = None
    ) -> Callable[[F], F]:
        return self._mark(Offer("pairs", frozenset({variable}), when=when))

    def argmin(
        self, variable: str, *, when: Callable[[Any], bool] | None = None
    ) -> Callable[[F], F]:
        return self._mark(Offer("argmin", frozenset({variable}), when=when))

    def conditional(
        self,
        variable: str,
        *,
        partial: bool = False,
        mode: bool = True,
        when: Callable[[Any], bool] | None = None,
    ) -> Callable[[F], F]:
        return self._mark(Offer("conditional", frozenset({variable}), partial, when, mode))

    def log_partition(
        self, *variables: str, when: Callable[[Any], bool] | None = None
    ) -> Callable[[F], F]:
        return self._mark(Offer("log_partition", frozenset(variables), when=when))

    def chain(
        self, variable: str, *, when: Callable[[Any], bool] | None = None
    ) -> Callable[[F], F]:
        return self._mark(Offer("chain", frozenset({variable}), when=when))

    def step(self, variable: str, *, when: Callable[[Any], bool] | None = None) -> Callable[[F], F]:
        return self._mark(Offer("step", frozenset({variable}), when=when))

    def sites(
        self, variable: str, *, when: Callable[[Any], bool] | None = None
    ) -> Callable[[F], F]:
        return self._mark(Offer("sites", frozenset({variable}), when=when))

    def stats(self, method: F, *, when: Callable[[Any], bool] | None = None) -> F:
        return self._mark(Offer("stats", frozenset(), when=when))(method)

    def from_stats(self, method: F, *, when: Callable[[Any], bool] | None = None) -> F:
        return self._mark(Offer("from_stats", frozenset(), when=when))(method)

    def closed_form(self, when: Callable[[Any], bool]) -> _When:
        """``stats`` and ``from_stats`` that hold only for some instances."""
        return _When(when)


class _When:
    def __init__(self, when: Callable[[Any], bool]) -> None:
        self._when = when

    def stats(self, method: F) -> F:
        return offers.stats(method, when=self._when)

    def from_stats(self, method: F) -> F:
        return offers.from_stats(method, when=self._when)


offers = _Offers()
