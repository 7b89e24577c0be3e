"""The one door to learning: check the pieces, pick a solver, run it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.rows import Rows, bad_row, in_memory
from groundstate.energy.base import Energy, batch_size
from groundstate.errors import DataError, NotConverged, Unsupported
from groundstate.infer.base import check_values
from groundstate.learn.base import Batch, History, Penalty, Problem, Rule, Solver
from groundstate.learn.callbacks import Callback
from groundstate.learn.rules.missing import drop_missing
from groundstate.learn.solvers.table import GENERAL, SOLVERS, Serves, serving
from groundstate.learn.train.feed import fits
from groundstate.registry import resolve

S = TypeVar("S", bound=Callable[[], Any])
_ADDED: list[Serves] = []


def solver_for(energy: type[Energy], rule: type[Rule]) -> Callable[[S], S]:
    """Add a solver (a class that needs no arguments) for a pair of energy and rule types.

    The most specific pair wins; among solvers of one pair the last added is asked first, and those of
    the library (``groundstate.learn.solvers.table``) after it.
    """

    def decorate(solver: S) -> S:
        _ADDED.insert(0, Serves(solver, energy, rule))
        return solver

    return decorate


def candidates(energy: Energy, rule: Rule) -> Iterator[Solver]:
    """All solvers in the order in which they are tried, each loaded when it is its turn."""
    for make in chain(serving((*_ADDED, *SOLVERS), energy, rule), map(resolve, GENERAL)):
        yield make()


def choose(problem: Problem) -> Solver:
    """The first solver with no reason against; ``Stochastic`` always exists."""
    for solver in candidates(problem.energy, problem.rule):
        too_large = getattr(solver, "fits", None)
        if solver.reason_against(problem) is None and (too_large is None or too_large(problem)):
            return solver
    raise Unsupported(
        f"no solver runs {type(problem.rule).__name__} on {type(problem.energy).__name__}"
    )


def fit(
    energy: Energy,
    data: Mapping[str, Tensor] | Iterable[Batch],
    rule: Rule,
    solver: Solver | None = None,
    *,
    sample_weight: Tensor | None = None,
    penalty: Penalty | None = None,
    callbacks: Sequence[Callback] = (),
    random_state: Any = None,
    device: str | torch.device | None = None,
) -> History:
    r"""Choose θ: lower :math:`J(\theta) = (\sum_i w_i L_i + \Omega(\theta))/\sum_i w_i`.

    Parameters
    ----------
    energy : the energy whose parameters are learned, in place
    data : tensors ``(N, *event)`` or containers of rows (``groundstate.compute.rows``) by variable
        name, or a sized iterable of such batches (which may hold a ``"weight"``)
    rule : the learning rule, :math:`L = e - R`
    solver : None picks the first that fits: one registered for the pair, closed form, EM, L-BFGS,
        proximal steps for penalties with a kink, stochastic; a choice of ours that stops before it
        has converged warns (``NotConverged``)
    sample_weight : ``(N,)``; a weight of 2 is the row twice
    penalty : prior on θ
    callbacks : see ``groundstate.learn.callbacks``
    random_state : int, key or None
    device : where to train; None leaves everything where it is

    Returns
    -------
    History

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import L2, SoftMin, fit
    >>> x = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
    >>> energy = LinearEnergy(1, 2)
    >>> history = fit(energy, {"x": x, "y": torch.tensor([0, 0, 1, 1])}, SoftMin(), penalty=L2(1.0))
    >>> energy.table("y", x=x).argmin(1).tolist()
    [0, 0, 1, 1]
    """
    if device is not None:
        energy.to(device)
        rule.to(device)
    placed = energy.placement(data if isinstance(data, Mapping) else None)[0]
    if isinstance(data, Mapping):
        if device is not None and not (getattr(solver, "feeds", False) and not fits(data, placed)):
            data = {k: v.to(placed) if in_memory(v) else v for k, v in data.items()}
        _check_resident(energy, data, sample_weight, rule.events(data))
        rule.require(energy, data)
        data, sample_weight = drop_missing(rule, energy, data, sample_weight)
    elif sample_weight is not None:
        raise ValueError("with a stream of batches, put the weights into each batch as 'weight'")
    if sample_weight is not None:
        sample_weight = sample_weight.to(placed)
    key = Key.of(random_state)
    problem = Problem(energy, rule, data, sample_weight, penalty, tuple(callbacks), key)
    if solver is None:
        history = choose(problem).run(problem)
        default = history.solver == "Stochastic"  # others say themselves when they have not settled
        if default and history.stop == "max_epochs" and rule.is_objective:
            warnings.warn(
                f"the default trainer stopped after {history.n_iter} epochs while the objective "
                "still fell; pass a solver, e.g. learn.Stochastic(lr=1e-2, max_epochs=1000)",
                NotConverged,
                stacklevel=2,
            )
        return history
    reason = solver.reason_against(problem)
    if reason is not None:
        raise Unsupported(
            f"{type(solver).__name__} cannot run {type(rule).__name__} on "
            f"{type(energy).__name__}: {reason}; {_alternatives(problem)}"
        )
    return solver.run(problem)


def _alternatives(problem: Problem) -> str:
    names = [
        type(s).__name__
        for s in candidates(problem.energy, problem.rule)
        if s.reason_against(problem) is None
    ]
    return f"what would run: {', '.join(names)}"


def _check_resident(
    energy: Energy, data: Mapping[str, Rows], weight: Tensor | None, events: Batch
) -> None:
    unknown = [k for k in data if k not in energy.spaces and k not in energy.context]
    if unknown:
        raise ValueError(
            f"data holds {', '.join(map(repr, unknown))}, which {type(energy).__name__} does not "
            f"know; its variables are {', '.join(energy.spaces)}"
        )
    if not data or batch_size(data) == 0:
        raise DataError("there are no rows to learn from")
    check_values(energy, events)
    for name, v in data.items():
        if name in energy.missing:
            continue
        stored: Rows = v
        if isinstance(v, Tensor) and v.layout == torch.sparse_csr:
            stored = v.values()
        row = None if name == "y" else bad_row(stored)
        if row is not None:
            row = row if stored is v else bad_row(v.to_dense())  # type: ignore[union-attr]
            raise FloatingPointError(
                f"{name!r} holds NaN or infinity, first in row {row}; impute or drop such rows"
            )
    if weight is not None:
        if weight.shape != (batch_size(data),):
            raise ValueError(
                f"sample_weight must have shape ({batch_size(data)},), got {tuple(weight.shape)}"
            )
        if not bool((weight >= 0).all()) or not bool(weight.sum() > 0):
            raise ValueError("sample_weight must be non-negative with a positive sum")
