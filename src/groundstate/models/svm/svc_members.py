"""The kernel support vector machine on many folds and with many strengths, from shared kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from groundstate.energy.kernels.machine import KernelMachineEnergy
from groundstate.errors import NotApplicable, NotConverged
from groundstate.learn.solvers.svm.smo.engine import WHOLE
from groundstate.learn.solvers.svm.smo.path import smo_path
from groundstate.learn.solvers.svm.smo.rows import F64, I64, gram
from groundstate.learn.solvers.svm.smo.solver import SMO
from groundstate.math.kernels import Kernel
from groundstate.models.kernels.choice import chosen_kernel
from groundstate.models.population.members import Members, Together

ROWS = 5_000  # of one kernel matrix
MANY = 8  # strengths that pay for the whole matrix of so many rows


def _svc_members(found: Members) -> dict[int, Any]:
    """Fitted clones of an ``SVC``.

    Folds of one kernel take their parts of its matrix; with ``gamma="scale"`` every fold has a kernel,
    and a matrix, of its own. The strengths of a fold follow one another from small C to large. Large
    folds with few strengths see few rows of the matrix, and do without it.
    """
    if any(
        np.isinf(m.C) or m.class_weight is not None or m.kernel == "precomputed"
        for m in found.models
    ):
        raise NotApplicable("hard margins, weights of classes, or a kernel given")
    out: dict[int, Any] = {}
    groups = found.groups("C", "decision_function_shape", "break_ties")
    most = int((found.weights > 0).sum(1).max())
    if most > WHOLE and len(found.models) < 2 * len(groups) * len(found.weights):
        raise NotApplicable("large folds with few strengths see few rows of their kernels")
    for group in groups:
        first = found.models[group[0]]
        own = isinstance(first.kernel, str) and first.kernel != "linear" and first.gamma == "scale"
        whole = None
        if not own and _pays(len(found.x), len(group) / len(found.weights)):
            whole = gram(_kernel(first, found, np.arange(len(found.x)), None), found.x)
        for fold in sorted({int(found.of[at]) for at in group}):
            members = [at for at in group if found.of[at] == fold]
            for at, model in zip(members, _fold(found, members, fold, whole), strict=True):
                out[at] = model
    late = sum(not model.history_.converged for model in out.values())
    if late:
        warnings.warn(
            f"{late} of {len(out)} machines did not reach their tol; raise max_iter, lower C or "
            "scale the inputs",
            NotConverged,
            stacklevel=6,
        )
    return out


def _pays(rows: int, strengths: float) -> bool:
    """Whether to compute a whole matrix."""
    return rows <= (ROWS if strengths >= MANY else WHOLE)


def _kernel(model: Any, found: Members, live: I64, weight: F64 | None) -> Kernel:
    at = torch.from_numpy(live)
    return chosen_kernel(
        model.kernel, found.x[at], found.y[at], weight, model.gamma, model.degree, model.coef0
    )


def _fold(found: Members, members: list[int], fold: int, whole: F64 | None) -> list[Any]:
    """The members of one kernel and one fold."""
    row, first = found.weights[fold], found.models[members[0]]
    live = np.flatnonzero(row)
    plain = bool((row[live] == 1).all())
    x, y = found.x[torch.from_numpy(live)], found.y[torch.from_numpy(live)]
    kernel = _kernel(first, found, live, None if plain else row[live])
    table: Callable[[I64], F64] | None = None
    if whole is not None:
        known = whole

        def table(index: I64) -> F64:
            part: F64 = known[np.ix_(live[index], live[index])]
            return part

    elif _pays(len(live), len(members)):

        def table(index: I64) -> F64:
            return gram(kernel, x[torch.from_numpy(index)])

    classes = int(found.y.max()) + 1
    energies = [KernelMachineEnergy(x.shape[1], classes, kernel).to(x.dtype) for _ in members]
    histories = smo_path(
        SMO(first.tol, first.max_iter, first.cache_size, first.shrinking),
        energies,
        [float(found.models[at].C) for at in members],
        x,
        y,
        None if plain else torch.from_numpy(row[live]),
        table,
    )
    models = []
    for at, energy, history in zip(members, energies, histories, strict=True):
        found.models[at].shape_fit_ = tuple(x.shape)
        found.models[at].class_weight_ = np.ones(classes)
        models.append(found.fitted(at, energy, "SMO", history))
    return models


svc_members = Together(
    _svc_members,
    frozenset({"C", "kernel", "gamma", "degree", "coef0", "tol", "max_iter", "shrinking"}),
)
