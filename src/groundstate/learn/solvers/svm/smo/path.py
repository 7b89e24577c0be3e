r"""Support vector machines of the same rows with many strengths, each from the one before it.

The kernel matrix is computed once. When the box grows from C to C′, both α and :math:`\alpha C'/C` are
within it; the one of larger dual is where the next machine begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from groundstate.energy.kernels.machine import KernelMachineEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.penalties.function_norm import FunctionNorm
from groundstate.learn.rules.margins.one_vs_one import OneVsOne
from groundstate.learn.solvers.svm.smo.engine import Solution
from groundstate.learn.solvers.svm.smo.rows import F64, I64
from groundstate.learn.solvers.svm.smo.solver import SMO, _Pairs


@torch.no_grad()
def smo_path(
    solver: SMO,
    energies: Sequence[KernelMachineEnergy],
    Cs: Sequence[float],
    x: Tensor,
    y: Tensor,
    weight: Tensor | None = None,
    table: Callable[[I64], F64] | None = None,
) -> list[History]:
    """Learn one energy for each C; all have the same kernel.

    Parameters
    ----------
    solver : tolerance and limits
    energies : filled in
    Cs : finite, in any order
    x, y : rows ``(n, d)`` and class numbers
    weight : ``(n,)``
    table : the kernel matrix of some rows by their places, where it is at hand

    Examples
    --------
    >>> from groundstate.math.kernels import Linear
    >>> x, y = torch.tensor([[-1.0], [0.0], [2.0]]).double(), torch.tensor([0, 0, 1])
    >>> machines = [KernelMachineEnergy(1, 2, Linear()).double() for _ in range(2)]
    >>> histories = smo_path(SMO(), machines, [0.1, 1.0], x, y)
    >>> [round(h.extra["norm"][0], 3) for h in histories]
    [0.04, 1.0]
    """
    order = np.argsort(np.asarray(Cs), kind="stable")
    histories = [History(solver="SMO") for _ in Cs]
    first = energies[int(order[0])]
    problem = Problem(first, OneVsOne(), {"x": x, "y": y}, weight, FunctionNorm(1.0))
    pairs = _Pairs(problem, 1.0, solver.megabytes, table)
    last: list[tuple[Solution, float] | None] = [None] * len(pairs.names)
    for k in order.tolist():
        strength = 1.0 / float(Cs[k])
        pairs.again(energies[k], strength)
        found = [
            solver._pair(pairs, a, b, start)
            for (a, b), start in zip(pairs.names, last, strict=True)
        ]
        pairs.store(energies[k], found)
        pairs.log(histories[k], found)
        last = [(s, strength) for s in found]
    return histories
