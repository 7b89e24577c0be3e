r"""Questions to a product of tables, planned once and answered by one compiled call.

.. math:: p(x_A, x_K) = \sum_{x_B}\prod_i p(x_i \mid x_{pa(i)})

A program fixes which variables are asked (A) and which are known (K); the values of the latter, any
number of rows of them, come with the call. Known variables do not cut tables: they move the place where
reading a table begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import Unsupported
from groundstate.math.graphs.dags import ancestors
from groundstate.math.graphs.elimination import LARGEST, Scopes, plan_of

MANY = 512  # variables, from which a matrix of tables and variables is larger than its use
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Program:
    """Steps of an elimination as arrays; see ``elimination_numba.run`` for what they hold."""

    shape: tuple[int, ...]
    starts: I64
    known: I64
    heads: I64
    members: I64
    strides: I64
    sizes: I64
    space: int

    def __call__(self, flat: F64, levels: I64) -> tuple[F64, F64]:
        """Tables ``(B, *shape)`` for rows of known levels ``(B, E)``, and logarithms of their scales.

        Parameters
        ----------
        flat : all tables one after the other
        levels : values of the known variables, in their order
        """
        from groundstate.math.graphs.elimination_numba import run

        out, log_scale = np.empty((len(levels), math.prod(self.shape))), np.empty(len(levels))
        run(
            flat, self.starts, self.known, levels, self.heads, self.members, self.strides,
            self.sizes, self.space, out, log_scale,
        )  # fmt: skip
        return out.reshape(len(levels), *self.shape), log_scale


@lru_cache(maxsize=1024)
def program_of(
    scopes: Scopes, sizes: tuple[int, ...], asked: tuple[int, ...], known: tuple[int, ...]
) -> Program:
    """How a Bayesian network answers; ``scopes[i]`` are the parents of i, then i itself.

    Variables that are no ancestors of what is asked or known are left out.

    >>> tables = np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.1, 0.9]])  # rain, wet given rain
    >>> program = program_of(((0,), (0, 1)), (2, 2), asked=(0,), known=(1,))
    >>> joint, _ = program(np.concatenate([t.ravel() for t in tables]), np.array([[1], [0]]))
    >>> joint.round(2).tolist()
    [[0.08, 0.18], [0.72, 0.02]]
    """
    begins, strides, above = _layout(scopes, sizes)
    bits = 0
    for v in (*asked, *known):
        bits |= above[v]
    used = [v for v in range(len(scopes)) if bits >> v & 1]
    if len(scopes) > MANY:
        return _planned(scopes, sizes, asked, known, used)
    from groundstate.math.graphs.planning_numba import steps

    free = [v for v in used if v not in known]
    keep = np.array([free.index(v) for v in asked], np.int64)
    tables = strides[used]
    free_sizes = np.array(sizes, np.int64)[free]
    heads, members, moves, widths, space, largest = steps(tables[:, free], free_sizes, keep)
    if largest > LARGEST:
        raise Unsupported(f"exact elimination needs a table of {largest:.3g} numbers")
    shape = tuple(sizes[v] for v in asked)
    by_known = np.ascontiguousarray(tables[:, list(known)])
    return Program(shape, begins[used], by_known, heads, members, moves, widths, space)


@lru_cache(maxsize=64)
def _layout(scopes: Scopes, sizes: tuple[int, ...]) -> tuple[I64, I64, list[int]]:
    """Where tables begin, their strides along every variable (0 where they lack it), and the bits of
    every variable's ancestors."""
    begins = np.cumsum([0, *(math.prod(sizes[v] for v in scope) for scope in scopes)])
    strides = np.zeros((len(scopes), len(scopes) if len(scopes) <= MANY else 0), np.int64)
    for i, scope in enumerate(scopes if len(scopes) <= MANY else ()):
        for v, stride in _strides(scope, sizes).items():
            strides[i, v] = stride
    parents = [scope[:-1] for scope in scopes]
    above = [sum(1 << u for u in ancestors(parents, [v])) for v in range(len(scopes))]
    return begins[:-1].astype(np.int64), strides, above


def _planned(
    scopes: Scopes, sizes: tuple[int, ...], asked: tuple[int, ...], known: tuple[int, ...],
    used: list[int],
) -> Program:  # fmt: skip
    """The same steps from ``plan_of``: for large networks, and the oracle of the compiled plan."""
    begins = _layout(scopes, sizes)[0]
    full = [scopes[i] for i in used]
    cut = tuple(tuple(v for v in scope if v not in known) for scope in full)
    plan = plan_of(cut, sizes, asked)
    if plan.largest > LARGEST:
        raise Unsupported(f"exact elimination needs a table of {plan.largest:.3g} numbers")
    across = [_strides(scope, sizes) for scope in full]  # of every table, by variable
    members: list[int] = []
    strides: list[int] = []
    widths: list[int] = []
    heads, space = [], 0
    last = (tuple(k for k, _ in plan.rest), asked, False)
    steps = [(step.members, (*step.others, step.variable), True) for step in plan.steps]
    for joined, scope, summed in [*steps, last]:
        heads.append((len(members), len(widths), space, int(summed)))
        members += joined
        widths += [sizes[v] for v in scope]
        for k in joined:
            strides += [across[k].get(v, 0) for v in scope]
        across.append(_strides(scope[:-1], sizes))
        space += math.prod(sizes[v] for v in scope[:-1])
    heads.append((len(members), len(widths), space, 0))
    moves = [[across[t].get(v, 0) for v in known] for t in range(len(full))]
    return Program(
        tuple(sizes[v] for v in asked),
        begins[used],
        np.array(moves, np.int64).reshape(len(full), len(known)),
        np.array(heads, np.int64),
        np.array(members, np.int64),
        np.array(strides, np.int64),
        np.array(widths, np.int64),
        space,
    )


def _strides(scope: tuple[int, ...], sizes: tuple[int, ...]) -> dict[int, int]:
    return {v: math.prod(sizes[u] for u in scope[k + 1 :]) for k, v in enumerate(scope)}
