r"""The three questions: which method answers, and what to say when none does.

``method=None`` takes the first of a fixed list that can run. For ``marginalise`` the list holds
exact methods only, so nothing approximate is ever chosen silently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.compose.operators import Given as Fixed
from groundstate.errors import Unsupported
from groundstate.infer.base import (
    OPERATIONS,
    Draws,
    Free,
    FreeEnergy,
    Method,
    Minimum,
    Operation,
    Query,
    ask,
    split_free,
)
from groundstate.infer.exact import limits
from groundstate.registry import resolve

Given = Mapping[str, Tensor]
Answer = TypeVar("Answer")

# "module:class" of groundstate.infer, in the order in which they are tried
CHOSEN: dict[str, tuple[str, ...]] = {
    "minimise": (
        "exact.closed:ClosedForm",
        "exact.chain:Chain",
        "exact.enumerate:Enumerate",
        "exact.by_value:ByValue",
        "optimise.coordinate:Coordinate",
        "optimise.gradient:Gradient",
        "search.beam:Beam",
    ),
    "marginalise": (
        "exact.closed:ClosedForm",
        "exact.chain:Chain",
        "exact.eliminate:Eliminate",
        "exact.enumerate:Enumerate",
        "exact.by_value:ByValue",
    ),
    "sample": (
        "exact.closed:ClosedForm",
        "sampling.ancestral:Ancestral",
        "exact.chain:Chain",
        "exact.enumerate:Enumerate",
        "exact.by_value:ByValue",
        "sampling.gibbs:Gibbs",
        "sampling.hmc:HMC",
        "sampling.metropolis:Metropolis",
    ),
}
# methods that run only when they are named
NAMED: dict[str, tuple[str, ...]] = {
    "minimise": (),
    "marginalise": (
        "exact.quadrature:Quadrature",
        "variational.variational:Variational",
        "sampling.importance:Importance",
        "sampling.annealed:Annealed",
    ),
    "sample": (
        "sampling.langevin:Langevin",
        "sampling.importance:Importance",
        "sampling.annealed:Annealed",
        "variational.variational:Variational",
    ),
}


def _made(paths: tuple[str, ...]) -> Iterator[Method]:
    for path in paths:
        method: Method = resolve(f"groundstate.infer.{path}")()
        yield method


def methods_for(operation: str) -> Iterator[Method]:
    """Every method of an operation with its default settings, in dispatch order."""
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, got {operation!r}")
    yield from _made(CHOSEN[operation])
    yield from _made(NAMED[operation])


def explain(
    energy: Energy, op: str, free: Free, given: Given | None = None
) -> list[tuple[str, str]]:
    """What every method says to a question, without computing anything.

    Parameters
    ----------
    energy : Energy
    op : "minimise", "marginalise" or "sample"
    free : the free variables, as in ``minimise``
    given : values of the others; only needed for masks

    Returns
    -------
    list of ``(method, verdict)`` in dispatch order; a verdict is "runs, exact",
    "runs, approximate" or "cannot: " and the reason

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import Energy, Finite
    >>> class Table(Energy):
    ...     def __init__(self):
    ...         super().__init__(y=Finite(3))
    ...     def forward(self, y):
    ...         return torch.tensor([1.0, 2.0, 3.0])[y]
    >>> for row in explain(Table(), "marginalise", "y")[:2]:
    ...     print(*row, sep=" | ")
    ClosedForm | cannot: no log_partition or conditional is declared for 'y'
    Chain | cannot: no chain is declared for 'y'
    >>> dict(explain(Table(), "marginalise", "y"))["Enumerate"]
    'runs, exact'
    """
    energy, given = unwrap(energy, given)
    verdicts = []
    for method in methods_for(op):
        reason = method.reason_against(energy, op, free, given)
        runs = "runs, exact" if method.exact else "runs, approximate"
        verdicts.append((type(method).__name__, runs if reason is None else f"cannot: {reason}"))
    return verdicts


def unwrap(energy: Energy, given: Given | None) -> tuple[Energy, dict[str, Tensor]]:
    """Move values that ``energy.given(...)`` fixed into the question's own given."""
    given = dict(given or {})
    while isinstance(energy, Fixed):
        values = {n: v for n, v in energy.fixed.items() if n not in given}
        rows = max((v.shape[0] for v in (*given.values(), *values.values())), default=1)
        for name, v in values.items():  # one fixed row stands for every row of the question
            given[name] = v.expand(rows, *v.shape[1:]) if len(v) == 1 else v
        energy = energy.energy
    return energy, given


def choose(energy: Energy, operation: Operation, free: Free, given: Given | None = None) -> Method:
    """The method that ``method=None`` stands for; ``Unsupported`` when there is none."""
    return next(_runnable(energy, operation, free, given))


def _runnable(
    energy: Energy, operation: Operation, free: Free, given: Given | None
) -> Iterator[Method]:
    """Methods of the fixed list that can run; ``Unsupported`` when there is not one."""
    reasons, runs = [], False
    for method in _made(CHOSEN[operation]):
        reason = method.reason_against(energy, operation, free, given)
        if reason is None:
            runs = True
            yield method
        else:
            reasons.append(f"{type(method).__name__}: {reason}")
    if runs:
        return
    names = ", ".join(split_free(free)[0])
    would = [
        type(method).__name__
        for method in _made(NAMED[operation])
        if method.reason_against(energy, operation, free, given) is None
    ]
    advice = (
        f"methods that would run if named with method=: {', '.join(would)}"
        if would
        else "declare an ability with groundstate.energy.abilities, or free fewer variables"
    )
    exactly = " exactly" if operation == "marginalise" else ""
    raise Unsupported(
        f"no method can {operation} {names} of {type(energy).__name__}{exactly} "
        f"({'; '.join(reasons)}); {advice}"
    )


def pick(query: Query, operation: Operation, free: Free, method: Method | None) -> Method:
    """The named method if it can run, the first that can if none is named."""
    if method is None:
        return choose(query.energy, operation, free, query.given)
    reason = method.reason_against(query.energy, operation, free, query.given)
    if reason is None:
        return method
    runs = [
        name
        for name, verdict in explain(query.energy, operation, free, query.given)
        if verdict.startswith("runs")
    ]
    would = f"methods that would run: {', '.join(runs)}" if runs else "no other method would run"
    raise Unsupported(
        f"{type(method).__name__} cannot {operation} {', '.join(query.free)} of "
        f"{type(query.energy).__name__}: {reason}; {would}"
    )


def _answer(
    query: Query,
    operation: Operation,
    free: Free,
    method: Method | None,
    run: Callable[[Method], Answer],
) -> Answer:
    """Run the named method, or the first of the list that does not refuse after all.

    A declared ability may refuse a temperature, which is known only when it is asked.
    """
    if method is not None:
        return run(pick(query, operation, free, method))
    refused: Unsupported | None = None
    for option in _runnable(query.energy, operation, free, query.given):
        try:
            return run(option)
        except Unsupported as reason:
            refused = refused or reason
    assert refused is not None
    raise refused


def minimise(
    energy: Energy,
    free: Free,
    given: Given | None = None,
    *,
    method: Method | None = None,
    init: Given | None = None,
    generator: torch.Generator | None = None,
) -> Minimum:
    r"""Fill in the missing part: :math:`v^* = \arg\min_v e(\text{given}, v)`.

    Parameters
    ----------
    energy : Energy
    free : a name, names, or a mapping from a name to the bool mask of its unknown coordinates
    given : values ``(B, *event)`` of the other variables
    method : which method; None takes the first that can run of ClosedForm, Chain, Enumerate,
        ByValue, Coordinate (all blocks exact), Gradient, Beam
    init : start values of local methods
    generator : randomness of restarts

    Returns
    -------
    Minimum : detached values and energies, and whether they are exact and converged

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Bowl(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Real(2))
    ...     def forward(self, x):
    ...         return (x - 1).square().sum(-1)
    >>> minimise(Bowl(), "x")["x"].round(decimals=4)
    tensor([[1., 1.]])
    """
    energy, given = unwrap(energy, given)
    query = ask(energy, free, given, init=init, generator=generator)
    found = _answer(query, "minimise", free, method, lambda m: m.minimise(query))
    values = {n: v.detach() if isinstance(v, Tensor) else v for n, v in found.values.items()}
    return replace(found, values=values, energy=found.energy.detach())


def marginalise(
    energy: Energy,
    free: Free,
    given: Given | None = None,
    *,
    T: float = 1.0,
    method: Method | None = None,
    generator: torch.Generator | None = None,
) -> FreeEnergy:
    r"""Sum out the rest: :math:`F = -T\log\int e^{-e(\text{given}, v)/T}\,dv`.

    Differentiable in θ and the given. At ``T=0`` it is the minimum, with the envelope gradient;
    at ``T=inf`` the mean over the values, that is :math:`\lim F + T\log K`.

    Parameters
    ----------
    energy, free, given : as in ``minimise``
    T : temperature in ``[0, inf]``
    method : which method; None takes the first that can run of ClosedForm, Chain, Eliminate,
        Enumerate, ByValue, all exact. Name Quadrature, Importance, Annealed or Variational to approximate
    generator : randomness of the estimators

    Returns
    -------
    FreeEnergy : ``value`` ``(B,)``, its ``kind`` and, for estimates, ``stderr``
    """
    energy, given = unwrap(energy, given)
    query = ask(energy, free, given, T=T, generator=generator)
    if T == 0:
        named = method is not None and "minimise" in method.operations
        return limits.coldest(query, pick(query, "minimise", free, method if named else None))
    if math.isinf(T):
        return limits.hottest(query, free, method)
    return _answer(query, "marginalise", free, method, lambda m: m.marginalise(query))


def sample(
    energy: Energy,
    free: Free,
    given: Given | None = None,
    n: int = 1,
    *,
    T: float = 1.0,
    method: Method | None = None,
    init: Given | None = None,
    generator: torch.Generator | None = None,
) -> Draws:
    r"""Draw from the Boltzmann distribution :math:`v \sim e^{-e(\text{given}, v)/T}/Z`.

    Parameters
    ----------
    energy, free, given : as in ``minimise``
    n : number of draws for every row
    T : temperature; ``T=0`` gives the minimiser, ``T=inf`` the uniform distribution of a bounded space
    method : which method; None takes the first that can run of ClosedForm, Ancestral, Chain,
        Enumerate, ByValue (exact), Gibbs, HMC, Metropolis (asymptotic)
    init : start values, or the ``state`` of earlier draws, for chains
    generator : source of randomness; None stands for fresh entropy

    Returns
    -------
    Draws : detached values ``(n, B, *event)`` with their energies and how exact they are
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got n={n}")
    energy, given = unwrap(energy, given)
    query = ask(energy, free, given, T=T, init=init, generator=generator)
    if T == 0 and (method is None or "minimise" in method.operations):
        return limits.frozen(query, pick(query, "minimise", free, method), n)
    if math.isinf(T) and method is None:
        return limits.uniform(query, n)
    found = _answer(query, "sample", free, method, lambda m: m.sample(query, n))
    values = {n: v.detach() if isinstance(v, Tensor) else v for n, v in found.values.items()}
    return replace(found, values=values, energy=found.energy.detach())


Mode = Literal["min", "marginal", "sample"]


def infer(
    energy: Energy,
    observed: Given | None,
    free: Free,
    mode: Mode = "min",
    **options: Any,
) -> Minimum | FreeEnergy | Draws:
    """Hold what is observed and minimise, marginalise or sample the rest: one door to all three.

    ``options`` are those of ``minimise``, ``marginalise`` or ``sample``.
    """
    if mode == "min":
        return minimise(energy, free, observed, **options)
    if mode == "marginal":
        return marginalise(energy, free, observed, **options)
    if mode == "sample":
        return sample(energy, free, observed, **options)
    raise ValueError(f"mode must be one of {', '.join(get_args(Mode))}, got {mode!r}")


QUESTIONS: dict[str, Callable[..., Any]] = {
    "minimise": minimise,
    "marginalise": marginalise,
    "sample": sample,
}
