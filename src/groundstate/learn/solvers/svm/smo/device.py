r"""Sequential minimal optimisation with kernel rows on a GPU, by torch; the CPU runs it too.

Working sets are chosen where the errors F are; only the square of a working set comes to the host,
whose compiled pair loop solves it. Rows are cheaper to compute again than to look up, so only those
of the half of a set that is kept stay.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.learn.solvers.svm.smo.loops_numba import solve_pairs
from groundstate.learn.solvers.svm.smo.rows import KernelRows

F64 = NDArray[np.float64]
PIECE = 2**26  # kernel values of one piece when errors are computed afresh
REFRESHES = 3
ROUND_STEPS = 20_000  # pair steps within one working set, at most


@torch.no_grad()
def device_rounds(
    rows: KernelRows,
    p: F64,
    lo: F64,
    hi: F64,
    tol: float,
    limit: int,
    block: int,
    watch: Callable[[float], bool] | None = None,
    epsilon: float | None = None,
) -> tuple[F64, F64, int, int, float]:
    """β, F, steps, rounds and violation; the arguments are those of ``smo``."""
    device = rows.x.device
    target, low, high = (torch.from_numpy(v).to(device) for v in (p, lo, hi))
    beta, F = torch.zeros_like(target), target.clone()
    block = min(block, len(p))
    kept = torch.zeros(0, dtype=torch.int64, device=device)
    held = torch.zeros(0, rows.n, dtype=rows.dtype, device=device)
    steps = rounds = refreshed = 0
    while True:
        up, down = _moves(F, beta, low, high, epsilon)
        violation = max(float(up.max() - down.min()), 0.0)
        stop = watch is not None and rounds > 0 and watch(violation)
        if violation <= tol or steps >= limit or stop:
            # float32 rows drift: the end is judged by errors computed afresh
            if stop or steps >= limit or refreshed >= REFRESHES or rounds == 0:
                break
            F, refreshed = _errors(rows, beta, target), refreshed + 1
            violation = _violation(F, beta, low, high, epsilon)
            if violation <= tol:
                break
            continue
        new = _extremes(up, down, kept, block - len(kept))
        chosen = torch.cat([kept, new])
        held = torch.cat([held, rows.of(new)])  # (m, n)
        K = np.ascontiguousarray(held[:, chosen].double().cpu().numpy())
        before = beta[chosen].cpu().numpy()
        after, local = before.copy(), F[chosen].cpu().numpy()
        bounds = low[chosen].cpu().numpy(), high[chosen].cpu().numpy()
        goal, budget = max(0.5 * tol, 0.1 * violation), min(ROUND_STEPS, limit - steps)
        every = min(len(after), 1000)
        done, _ = solve_pairs(K, after, *bounds, local, goal, budget, every, epsilon)
        change = torch.from_numpy(after - before).to(device, rows.dtype)
        beta[chosen] = torch.from_numpy(after).to(device)
        F -= (change @ held).double()
        steps, rounds = steps + int(done), rounds + 1
        if done == 0:
            break  # no pair can move in floating point
        half = block // 2
        kept, held = chosen[-half:], held[-half:]
    return beta.cpu().numpy(), F.cpu().numpy(), steps, rounds, violation


def _moves(
    F: Tensor, beta: Tensor, low: Tensor, high: Tensor, epsilon: float | None
) -> tuple[Tensor, Tensor]:
    """``engine.moves`` on the device."""
    rise = fall = F
    if epsilon is not None:
        rise = torch.where(beta < 0.0, F + epsilon, F - epsilon)
        fall = torch.where(beta > 0.0, F - epsilon, F + epsilon)
    return torch.where(beta < high, rise, -torch.inf), torch.where(beta > low, fall, torch.inf)


def _violation(F: Tensor, beta: Tensor, low: Tensor, high: Tensor, epsilon: float | None) -> float:
    up, down = _moves(F, beta, low, high, epsilon)
    return max(float(up.max() - down.min()), 0.0)


def _extremes(up: Tensor, down: Tensor, kept: Tensor, room: int) -> Tensor:
    """The rows that violate optimality most, half from either side, none of those kept."""
    up[kept], down[kept] = -torch.inf, torch.inf
    rising = torch.topk(up, room // 2)
    first = rising.indices[rising.values > -torch.inf]
    down[first] = torch.inf
    falling = torch.topk(-down, room - room // 2)
    return torch.cat([first, falling.indices[falling.values > -torch.inf]])


def _errors(rows: KernelRows, beta: Tensor, target: Tensor) -> Tensor:
    r""":math:`p - K\beta` from the support vectors, summed in float64."""
    support = beta.nonzero()[:, 0]
    F = target.clone()
    for piece in torch.split(support, max(1, PIECE // rows.n)):
        F -= beta[piece] @ rows.of(piece).double()
    return F
