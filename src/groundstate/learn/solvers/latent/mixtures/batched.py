"""One E-step of several mixtures over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.learn.base import Batch
from groundstate.learn.solvers.latent.mixtures.pass_numba import em_pass

if TYPE_CHECKING:
    from groundstate.learn.solvers.latent.mixtures.steps import GaussianM

F64 = NDArray[np.float64]


def add_together(steps: Sequence[GaussianM], batch: Batch, weight: Tensor | None) -> None:
    """One chunk of the E-step of several mixtures of one kind over the same rows."""
    quick = [step for step in steps if step.fast]
    for step in steps:
        if not step.fast:
            step.add(batch, weight)
    if not quick:
        return
    first = quick[0]
    x, w = first._taken(batch, weight)
    theta = _joined([step.theta for step in quick])
    k = len(theta) // len(quick)
    parts = [step._narrow_parts() for step in quick]
    ends = list(accumulate((len(part[0]) for part in parts), initial=0))
    narrow = _joined([part[0] + g * k for g, part in enumerate(parts)])
    means, factors, constants = (_joined([part[j] for part in parts]) for j in (1, 2, 3))
    S, J, total = np.zeros(theta.T.shape), np.zeros(len(quick)), 0.0
    one, two = np.zeros(means.shape), np.zeros(factors.shape)
    settings: tuple[Any, ...] = (w, first.origin, first.turn, theta, first.kind, narrow)
    settings = (*settings, means, factors, constants, len(quick))
    for sums, lines, squares, value, mass in first._sliced(em_pass, x, *settings):
        S += sums
        one, two = one + lines, two + squares
        J, total = J - value, total + mass
    for g, step in enumerate(quick):
        step._sum("S", torch.from_numpy(S[:, g * k : (g + 1) * k].copy()))
        if len(step.narrow):
            at = slice(ends[g], ends[g + 1])
            step._sum("x", torch.from_numpy(one[at]))
            step._sum("xx", torch.from_numpy(two[at]))
        step._sum("J", torch.from_numpy(np.array([J[g], total])))


def _joined(arrays: list[F64]) -> F64:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
