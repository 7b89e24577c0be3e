"""Candidates for the next setting, and the climb to the tops of their expected improvement."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from groundstate.compute.random import Key
from groundstate.tune.samplers.cube import Cube
from groundstate.tune.samplers.improvement import improvement_slopes, log_h
from groundstate.tune.samplers.process import Process

Floats = NDArray[np.float64]
_BITS = 30
_NEAR = 0.1  # standard deviation of the candidates around the best
_SWITCH = 0.2  # chance that such a candidate has another category


@lru_cache(maxsize=8)
def _net(n: int, d: int) -> NDArray[np.int64]:
    """The first points of Sobol's net as integers.  # (n, d)"""
    from scipy.stats.qmc import Sobol

    power = max(0, (n - 1).bit_length())
    points = Sobol(d, scramble=False, bits=_BITS).random_base2(power)[:n]
    return (points * 2**_BITS).astype(np.int64)


def spread(n: int, d: int, key: Key) -> Floats:
    """n points of Sobol's net, scrambled by a random digital shift.  # (n, d)"""
    shift = (key.words(d) >> np.uint64(64 - _BITS)).astype(np.int64)
    return np.asarray(((_net(n, d) ^ shift) + 0.5) * 2.0**-_BITS, np.float64)


def candidates(cube: Cube, best: Floats, n: int, key: Key) -> Floats:
    """Two thirds spread over the cube, one third around the best.  # (n, d)"""
    d = len(cube)
    n_far = n - n // 3
    far = spread(n_far, d, key.fold("far"))
    rng = key.fold("near").numpy()
    near = best + _NEAR * rng.standard_normal((n - n_far, d))
    for j, axis in enumerate(cube.axes):
        if axis.nominal:
            switch = rng.random(len(near)) < _SWITCH
            near[:, j] = np.where(switch, rng.random(len(near)), best[j])
        elif axis.levels:  # a step to the next value at least now and then
            near[:, j] += rng.choice([-1.0, 0.0, 1.0], len(near)) / axis.levels
        else:
            near[:, j] = _reflect(near[:, j])
    return cube.snap(np.concatenate([far, near]))


def _reflect(u: Floats) -> Floats:
    return np.asarray(np.clip(1.0 - np.abs(1.0 - np.abs(u)), 0.0, 1.0))


def climb(process: Process, cube: Cube, starts: Floats, best: float, max_iter: int = 40) -> Floats:
    """Move points uphill in log EI along the settings that have a slope.  # (k, d)

    The sum over the points separates, so that one L-BFGS run climbs all hills together.
    """
    smooth = cube.smooth
    if not len(smooth) or not len(starts):
        return starts
    columns = cube.starts[smooth]
    U = starts.copy()

    def objective(flat: Floats) -> tuple[float, Floats]:
        U[:, smooth] = flat.reshape(len(U), -1)
        m, s, dm, ds = process.slopes(cube.embed(U))
        z = (best - m) / s
        logs = log_h(z)
        down, up = improvement_slopes(z, logs)
        slope = (-down[:, None] * dm[:, columns] + up[:, None] * ds[:, columns]) / s[:, None]
        return -float((np.log(s) + logs).sum()), -slope.reshape(-1)

    flat = starts[:, smooth].reshape(-1)
    found = minimize(
        objective, flat, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(flat),
        options={"maxiter": max_iter, "maxcor": 10, "ftol": 1e-9, "gtol": 1e-5},
    )  # fmt: skip
    U[:, smooth] = found.x.reshape(len(U), -1)
    return cube.snap(U)


def tops(U: Floats, log_ei: Floats, k: int) -> Floats:
    """The k best candidates that are not next to a better one.  # (k, d)"""
    kept: list[int] = []
    for i in np.argsort(-log_ei, kind="stable")[: 40 * k]:
        if not np.isfinite(log_ei[i]):
            break
        if all(np.abs(U[i] - U[j]).max() > 0.05 for j in kept):
            kept.append(int(i))
            if len(kept) == k:
                break
    return U[kept]
