r"""The quantile line, exactly: a linear program solved through its dual.

.. math::
    \min_{W, b} \sum_i w_i\,\rho_q(y_i - Wx_i - b) + \lambda\|W\|_1
    \;=\; \max_u\; y^\top u \;:\; |X^\top u| \le \lambda,\; 1^\top u = 0,\;
    w(q - 1) \le u \le wq .

The dual has one row for each unknown and only bounds for the data, so the simplex method ends after
few pivots at a vertex: a line through as many points as it has free unknowns.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import csc_matrix, diags_array, eye, hstack, issparse, vstack

from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L1
from groundstate.learn.solvers.svm.hinge.rows_numba import matrix_of
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.math.losses import AbsoluteError, Quantile
from groundstate.registry import solvers


@solvers.register(
    formula=r"\max_u y^\top u : |X^\top u| \le \lambda,\ w(q-1) \le u \le wq",
    make=lambda energy: QuantileProgram(),
)
@dataclass(frozen=True)
class QuantileProgram:
    """Solve the linear program of a quantile or absolute loss with HiGHS.

    Parameters
    ----------
    method : "highs", "highs-ds" or "highs-ipm" of ``scipy.optimize.linprog``
    options : of the same
    """

    method: str = "highs"
    options: dict[str, Any] = field(default_factory=dict)

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, LinearLossEnergy):
            return "it is for a line with a loss of the residual"
        if not isinstance(energy.loss, Quantile | AbsoluteError):
            return f"it is for the quantile and the absolute loss, not {energy.loss.name!r}"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        penalty = problem.penalty
        if penalty is None:
            return None
        if not isinstance(penalty, L1) or penalty.select is not None or penalty.intercept:
            return "its only penalty is L1 on the weights"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy, start = problem.energy, time.perf_counter()
        assert isinstance(energy, LinearLossEnergy)
        history = History(solver="QuantileProgram")
        with Monitor(problem.callbacks, Run(problem, history, 1)) as monitor:
            x, y = problem.resident["x"].detach().cpu(), problem.resident["y"].detach().cpu()
            w = problem.sample_weight
            # equal rows are one: a weighted and a repeated table are the same program
            index, weight = canonical_rows(matrix_of(x), y, None if w is None else w.cpu())
            rows = matrix_of(x)
            rows = rows[index] if issparse(rows) else rows.double().numpy()[index]
            strength = float(problem.penalty.strength) if isinstance(problem.penalty, L1) else 0.0
            q = energy.loss.q if isinstance(energy.loss, Quantile) else 0.5
            twice = 1.0 if isinstance(energy.loss, Quantile) else 2.0  # |r| is twice ρ of a half
            target = y.double().numpy()[index, 0]
            # HiGHS has absolute tolerances of 1e-7, so that it needs numbers of ordinary size
            unit, units = _power(target), _power(rows)
            rows = rows @ diags_array(1 / units) if issparse(rows) else rows / units
            found = self._solve(
                rows, target / unit, twice * weight, q, strength / units, energy.bias
            )
            history.converged = found.status == 0
            if found.x is not None:
                line = -unit * found.eqlin.marginals
                line[: energy.d] /= units
                energy.W[0] = torch.from_numpy(line[: energy.d].copy()).to(energy.W)
                if energy.b is not None:
                    energy.b[0] = float(line[energy.d])
            history.n_iter = max(1, int(found.nit))
            history.objective.append(-unit * float(found.fun or 0.0) / problem.total_weight)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(history.objective[0])
        history.n_iter = max(1, int(found.nit))
        history.stop = "optimal" if history.converged else str(found.message)
        if not history.converged:
            warnings.warn(
                f"the linear program was not solved: {found.message}; scale the columns, or try "
                "another solver or solver_options",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _solve(self, x: Any, y: Any, w: Any, q: float, strength: Any, bias: bool) -> Any:
        sparse = issparse(x)
        rows = x.T if sparse else np.ascontiguousarray(x.T)
        bounds = np.column_stack([w * (q - 1), w * q])
        cost = -y
        if (strength > 0).any():
            d = rows.shape[0]
            rows = hstack([rows, eye(d)]) if sparse else np.hstack([rows, np.eye(d)])
            bounds = np.vstack([bounds, np.column_stack([-strength, strength])])
            cost = np.concatenate([cost, np.zeros(d)])
        if bias:
            ones = np.zeros((1, len(cost)))
            ones[0, : len(y)] = 1.0
            rows = vstack([rows, csc_matrix(ones)]) if sparse else np.vstack([rows, ones])
        return linprog(
            cost, A_eq=rows, b_eq=np.zeros(rows.shape[0]), bounds=bounds, method=self.method,
            options=dict(self.options),
        )  # fmt: skip


def _power(values: Any) -> Any:
    """A power of two near the range of each column, 1 where that is of ordinary size."""
    if issparse(values):
        size = abs(values).max(0).toarray()[0]
    else:
        size = np.ptp(values, axis=0)
    plain = (size > 1e-3) & (size < 1e6) | (size == 0)
    return np.where(plain, 1.0, np.ldexp(1.0, np.frexp(size)[1]))
