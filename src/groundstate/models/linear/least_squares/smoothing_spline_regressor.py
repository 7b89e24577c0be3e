"""Smoothing splines."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.base import Energy
from groundstate.energy.basic import SquaredEnergy
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.linear.spline import SplineSmoothing
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.leverage import spline_leverage
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.nn.blocks.natural_splines import NaturalSplines
from groundstate.registry import models


@models.register(family="linear", task="regression", role="regressor", auto=False)
class SmoothingSplineRegressor(EnergyRegressor):
    r"""The smoothest curve that is close enough to the data; a sum of curves for several columns.

    .. math::
        e(x, y) = \tfrac12\bigl(y - b - \textstyle\sum_j g_j(x_j)\bigr)^2, \qquad
        \min_{b, g} \sum_i w_i\bigl(y_i - b - \textstyle\sum_j g_j(x_{ij})\bigr)^2
        + \lambda\sum_j \int g_j''(t)^2\,dt .

    The minimiser is a natural cubic spline with a knot at every distinct value: straight outside
    the range. :math:`\lambda \to \infty` is the least-squares line, :math:`\lambda \to 0`
    interpolates. Rows with equal x are merged into their weighted mean.

    Parameters
    ----------
    lam : float, default=None
        λ; None chooses it by generalised cross-validation, for each column.
    max_iter : int, default=20
        Rounds over the columns at most; one column needs one.
    tol : float, default=1e-4
        Largest change of a fitted value at the end, relative to the spread of y.
    device : str or torch.device, default=None
        Where predictions are computed; the fit itself runs on the CPU.

    Attributes
    ----------
    intercept_ : float
    knots_ : list of arrays
        The distinct values of each column.
    energy_ : SquaredEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SmoothingSplineRegressor
    >>> x = np.linspace(0, 3, 30)[:, None]
    >>> model = SmoothingSplineRegressor().fit(x, np.sin(x[:, 0]))
    >>> model.predict([[1.0], [2.0]]).round(3).tolist()
    [0.841, 0.909]
    """

    traits = Traits(leverage=spline_leverage, space={"lam": settings.Real(1e-8, 1e4, log=True)})

    _runs_on: Any = "answers"  # banded systems are solved on the CPU
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "lam": [None, Interval(Real, 0, None, closed="left")],
    }
    _multi_output: ClassVar[bool] = False

    def __init__(
        self,
        lam: float | None = None,
        *,
        max_iter: int = 20,
        tol: float = 1e-4,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        splines = NaturalSplines([0] * X.shape[1])
        return Plan(
            energy=SquaredEnergy(X.shape[1], net=splines),
            rule=Naive(),
            solver=SplineSmoothing(self.lam, self.max_iter, self.tol),
        )

    intercept_ = Learned(lambda model: model.energy_.net.b[0])

    def _learned(self, energy: Energy) -> dict[str, Any]:
        splines = energy.net
        assert isinstance(splines, NaturalSplines)
        knots = [k.cpu().numpy().copy() for k in splines.knots.split(splines.sizes)]
        return {"knots_": knots}
