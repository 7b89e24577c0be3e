"""Linear regression on a quantile."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.learn import L1, Naive
from groundstate.learn.solvers.linear.quantile import QuantileProgram
from groundstate.math.losses import Quantile
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.linear.robust.line import LineRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", max_rows=100_000)
class QuantileRegressor(LineRegressor):
    r"""The line that leaves a given share of the rows below it.

    .. math::
        e(x, y) = \rho_q(y - Wx - b), \quad \rho_q(r) = r\,(q - 1[r < 0]), \qquad
        \min_{W, b} \frac1{\sum_i w_i}\sum_i w_i\,e(x_i, y_i) + \alpha\|W\|_1 .

    A linear program, solved exactly through its dual. The median (q = ½) is not moved by how far away
    an outlier is. Where several lines are best, one of the corners of that set is found.

    Parameters
    ----------
    quantile : float, default=0.5
        q, between 0 and 1.
    alpha : float, default=1.0
        Strength of the penalty, which sets weights to exactly zero; the intercept is free.
    solver : {"highs", "highs-ds", "highs-ipm"}, default="highs"
        Method of ``scipy.optimize.linprog``.
    solver_options : dict, default=None
        Options of the same.
    device : str or torch.device, default=None
        Where to predict; the program is solved on the CPU.

    Attributes
    ----------
    intercept_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import QuantileRegressor
    >>> X, y = np.arange(5.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 40.0])
    >>> QuantileRegressor(alpha=0).fit(X, y).predict([[4.0]]).round(6).tolist()
    [4.0]
    """

    _runs_on: Any = "answers"  # solved on the CPU
    traits = Traits(space={"alpha": settings.Real(1e-5, 1e1, log=True)})
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "solver": [StrOptions({"highs", "highs-ds", "highs-ipm"})],
        "solver_options": [dict, None],
    }

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "highs",
        solver_options: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        total = float(X.shape[0] if weight is None else weight.double().sum())
        return Plan(
            energy=self._energy(X, Quantile(self.quantile)),
            rule=Naive(),
            solver=QuantileProgram(self.solver, self.solver_options or {}),
            penalty=L1(self.alpha * total) if self.alpha > 0 else None,
        )
