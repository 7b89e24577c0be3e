r"""Principal axes: the plane of least squared distance to the rows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from groundstate.compute.reduce import current
from groundstate.energy.latent.codes import LinearCodeEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.minka import minka_dimension
from groundstate.learn.solvers.latent.factors.spectrum import (
    SQUARED,
    WIDE,
    Spectrum,
    by_few,
    by_little,
    by_moments,
    by_power,
    by_rows,
    completed,
    sparse_scatter,
)
from groundstate.registry import solvers

SMALL = 2**12  # numbers of a table that needs no tiles
TALL = 1000  # columns up to which a tall table is decomposed by its covariance
FEW = ("randomized", "arpack")


@solvers.register(
    formula=r"W = Q_l,\quad \Sigma = Q\Lambda Q^\top",
    make=lambda energy: PrincipalAxes(energy.W.shape[1] if hasattr(energy, "W") else None),
)
@dataclass(frozen=True)
class PrincipalAxes:
    r"""Top eigenvectors of the covariance of the rows (or of their second moments, not centred).

    Parameters
    ----------
    n_components : number of axes; a fraction of the variance; ``"mle"``; None: all
    svd_solver : "auto", "full", "covariance_eigh", "randomized", "arpack" (Lanczos) or "power"
    tol : of "arpack"
    iterated_power : steps of "randomized"; "auto" is 7 for few axes, else 4
    n_oversamples : random vectors of "randomized" beyond the axes
    """

    n_components: Any = None
    svd_solver: str = "auto"
    tol: float = 0.0
    iterated_power: Any = "auto"
    n_oversamples: int = 10

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, LinearCodeEnergy) or not isinstance(rule, Naive):
            return "it is for the distance to a plane, LinearCodeEnergy with Naive"
        if problem.is_resident and set(problem.names) != {"x"}:
            return "it needs x, and z unknown"
        return None if problem.penalty is None else "it has no penalty"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, LinearCodeEnergy)
        history = History(converged=True, solver="PrincipalAxes", stop="closed form")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            found, l = self._found(problem, energy)
            ddof = 0 if energy.b is None else 1
            if not found.weight > ddof * (1 + 1e-9):
                raise ValueError(
                    f"the weights sum to {found.weight:g}; variances need more than one row, and "
                    "a weight of 2 is the row twice: scale the weights to sum to the number of rows"
                )
            up = found.weight / (found.weight - ddof)
            most, values = min(found.weight, len(found.vectors)), found.values.cpu().numpy()
            noise = 0.0
            if most > l:  # the difference may cancel where not all are known
                exact = len(values) >= most
                rest = values[l:].sum() if exact else found.total - values[:l].sum()
                noise = max(0.0, float(rest)) / (most - l)
            energy.set(
                completed(found.vectors, found.values, l), found.mean,
                torch.from_numpy(_padded(values, l) * up),
                noise=noise * up, total=found.total * up, count=found.weight,
            )  # fmt: skip
            history.about["svd_solver"] = found.solver
            history.seconds.append(time.perf_counter() - start)
            if problem.callbacks:
                history.objective.append(float(problem.objective()))
            monitor.epoch(history.objective[0] if history.objective else math.nan)
        return history

    def _found(self, problem: Problem, energy: LinearCodeEnergy) -> tuple[Spectrum, int]:
        whole = problem.is_resident and current().world == 1
        centred = energy.b is not None
        if not whole:
            found = by_power(problem, self._power_axes(energy)) if self.svd_solver == "power" else (
                by_moments(_narrow(problem, energy))
            )  # fmt: skip
            return found, self._length(found, min(int(found.weight), len(energy.W)))
        x = problem.resident["x"]
        n, d = x.shape
        w = problem.sample_weight
        most = min(n, d) if w is None else min(int(float(w.sum())), d)
        sparse = x.layout != torch.strided
        solver = self._solver(n, d, sparse, centred)
        self._check(solver, most, n, d)
        if solver == "full":
            found = by_rows(problem, centred)
        elif solver == "power":
            found = by_power(problem, most if self.n_components is None else self.n_components)
        elif solver == SQUARED:
            found = sparse_scatter(problem) if sparse else self._squared(problem, n)
        else:
            l = (
                most - (solver == "arpack" and sparse)
                if self.n_components is None
                else self.n_components
            )
            k = min(n, l)
            power = self.iterated_power
            power = (7 if k < 0.1 * most else 4) if power == "auto" else power
            found = by_few(
                problem, k, solver, centred=centred, power=power,
                oversamples=self.n_oversamples, tol=self.tol,
            )  # fmt: skip
            return found, l
        return found, self._length(found, most)

    def _squared(self, problem: Problem, n: int) -> Spectrum:
        """By the covariance; small variances that its squares have lost, from the rows again."""
        x = problem.resident["x"]
        small = x.numel() <= SMALL and x.device.type == "cpu" and problem.sample_weight is None
        found = by_little(x) if small else by_moments(problem)
        l = self._length(found, min(n, len(found.values)))
        kept: list[float] = found.values[:l].tolist()
        if l and kept[-1] < n * 2.3e-16 * kept[0]:
            return by_rows(problem)
        return found

    def _solver(self, n: int, d: int, sparse: bool, centred: bool) -> str:
        if self.svd_solver != "auto":
            if self.svd_solver == "full" and sparse:
                raise TypeError(
                    'PCA only support sparse inputs with the "arpack", "randomized" and '
                    '"covariance_eigh" solvers, while "full" was passed. See TruncatedSVD for a '
                    "possible alternative."
                )
            return self.svd_solver
        k = self.n_components
        if sparse:
            return "arpack" if k is None or (isinstance(k, int | np.integer)) else SQUARED
        if d <= TALL and n >= 10 * d and centred:
            return SQUARED
        if max(n, d) > 500 and k not in (None, "mle") and 1 <= k < 0.8 * min(n, d):
            return "randomized"
        return "full"

    def _check(self, solver: str, most: int, n: int, d: int) -> None:
        k = self.n_components
        if k is None:
            return
        if isinstance(k, str):
            if solver in FEW or solver == "power":
                raise ValueError(
                    f"n_components={k!r} cannot be a string with svd_solver={solver!r}"
                )
            if n < d:
                raise ValueError("n_components='mle' is only supported if n_samples >= n_features")
        elif solver in FEW or solver == "power":
            if not isinstance(k, int | np.integer) or not 1 <= k <= min(n, most):
                raise ValueError(
                    f"n_components={k!r} must be between 1 and min(n_samples, n_features)={most} "
                    f"with svd_solver={solver!r}"
                )
        elif not 0 <= k <= most:
            raise ValueError(
                f"n_components={k!r} must be between 0 and min(n_samples, n_features)={most} "
                f"with svd_solver={solver!r}"
            )

    def _length(self, found: Spectrum, most: int) -> int:
        k = self.n_components
        if k is None:
            return most
        if k == "mle":
            return minka_dimension(found.values[:most].cpu().numpy(), found.weight)
        if isinstance(k, int | np.integer):
            if k > most:
                raise ValueError(
                    f"n_components={k} must be between 0 and min(n_samples, n_features)={most}"
                )
            return int(k)
        share = found.values.cumsum(0) / max(found.total, 1e-300)
        # the least number of axes whose share is above the fraction
        return min(int(torch.searchsorted(share, float(k), right=True)) + 1, most)

    def _power_axes(self, energy: LinearCodeEnergy) -> int:
        k = self.n_components
        return len(energy.W) if k is None else int(k)


def _padded(values: Any, l: int) -> Any:
    """The first l variances; rows of weight two count twice, so there may be more axes than rows."""
    return values[:l] if len(values) >= l else np.pad(values, (0, l - len(values)))


def _narrow(problem: Problem, energy: LinearCodeEnergy) -> Problem:
    d = len(energy.W)
    if d > WIDE:
        raise ValueError(
            f"rows in pieces or over several processes are decomposed by their covariance, which "
            f"takes at most {WIDE} columns, got {d}; pass the rows as one array or sparse matrix"
        )
    return problem
