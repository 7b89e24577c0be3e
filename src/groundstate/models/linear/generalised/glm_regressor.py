"""What all generalised linear regressors have in common."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_consistent_length
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.linear.glm import GLMEnergy
from groundstate.errors import DataError
from groundstate.learn.penalties.norms import L2
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.glm.irls import IRLS
from groundstate.math.distributions import Family
from groundstate.models import settings
from groundstate.models.arrays import Home, tensor, unwrap
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import output_part
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits

METHODS: dict[str, Any] = {"auto": "auto", "newton-cholesky": "newton", "lbfgs": "lbfgs"}


class GLMRegressor(EnergyRegressor):
    r"""A family, a link and a penalty: :math:`E[y \mid x] = g^{-1}(Wx + b + o)`.

    Parameters
    ----------
    alpha : float
        Strength of the penalty; the intercept is not penalised.
    solver : {"auto", "newton-cholesky", "lbfgs"}
        "auto" takes Newton's method up to 2,000 unknowns.
    max_iter : int
    tol : float
        Largest entry of the gradient of the objective at the end.
    verbose : int
        Accepted for scikit-learn's sake; use callbacks.

    Attributes
    ----------
    energy_ : GLMEnergy
    deviance_ : float
        Summed over the rows of the fit.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions(set(METHODS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    traits = Traits(space={"alpha": settings.Real(1e-6, 1e1, log=True)}, steps="max_iter")

    _accept_sparse: ClassVar[bool | str] = "csr"
    _multi_output: ClassVar[bool] = False
    _predicts: ClassVar[str] = (
        "mean"  # of the distribution of y; its most probable value is ``infer``'s
    )
    _offset: Any = None
    coef_: Any
    dispersion_: Any
    deviance_: Any

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        verbose: int = 0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _family(self) -> Family:
        """The family that the parameters name."""
        raise TypeError(f"{type(self).__name__} must define _family()")

    def _link(self) -> Any:
        """The link that the parameters name."""
        return "log"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        try:
            tags.target_tags.positive_only = self._family().low == 0
        except (TypeError, ValueError):  # parameters are judged in fit
            tags.target_tags.positive_only = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:  # type: ignore[override]
        """Learn from rows ``X``, targets ``y``, weights, and known parts of the score.

        Parameters
        ----------
        X : (n_samples, n_features) array, frame or sparse matrix
        y : (n_samples,) or (n_samples, n_targets), within the support of the family
        sample_weight : (n_samples,); a weight of 2 is the row twice
        offset : (n_samples,) or (n_samples, n_targets)
            Added to the score with weight 1, e.g. the log of the exposure of counts.
        """
        self._offset = offset
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._offset

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        family = self._family()
        energy = GLMEnergy(X.shape[1], y.shape[1], family, self._link(), self.fit_intercept)
        family.check(y if weight is None else y[weight > 0])
        if self.warm_start:
            self._go_on(energy)
        own = torch.tensor(len(X), dtype=torch.float64) if weight is None else weight.sum()
        total = float(current().sum(own.double()))
        data = {"x": X, "y": y}
        if self._offset is not None:
            data["offset"] = self._offsets(self._offset, X, y.shape[1])
        return Plan(
            energy=energy,
            rule=NLL(),
            solver=IRLS(max_iter=self.max_iter, tol=self.tol, method=METHODS[self.solver]),
            penalty=L2(self.alpha * total) if self.alpha > 0 else None,
            data=data,
        )

    def _go_on(self, energy: GLMEnergy) -> None:
        last: Any = getattr(self, "energy_", None)
        if last is not None and last.W.shape == energy.W.shape and last.bias == energy.bias:
            with torch.no_grad():
                energy.W.copy_(last.W)
                if energy.b is not None:
                    energy.b.copy_(last.b)

    def _offsets(self, offset: Any, X: Tensor, m: int) -> Tensor:
        values, _ = unwrap(offset)
        values = check_array(values, ensure_2d=False, dtype=np.float64, input_name="offset")
        if len(values) != len(X) or values.shape[1:] not in ((), (1,), (m,)):
            raise DataError(
                f"offset must have one entry for each of the {len(X)} rows (and at most {m} "
                f"columns), got shape {values.shape}"
            )
        return tensor(values.reshape(len(X), -1), X.device).to(X.dtype)

    coef_ = output_part("W")
    intercept_ = output_part("b")

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, GLMEnergy)
        phi = energy.phi.double().cpu().numpy()
        learned: dict[str, Any] = {"dispersion_": float(phi[0]) if self._flat_target else phi}
        found = getattr(self, "history_", None)
        if found is not None and "deviance" in found.extra:
            total = found.extra["deviance"]
            learned["deviance_"] = total[0] if self._flat_target else np.array(total)
        return learned

    # --- questions -----------------------------------------------------------------------

    def _at(self, X: Any, offset: Any) -> tuple[GLMEnergy, Tensor, Tensor | None, Home]:
        x, home = self._rows(X)
        energy = self.energy_
        assert isinstance(energy, GLMEnergy)
        return energy, x, None if offset is None else self._offsets(offset, x, energy.m), home

    def _shaped(self, values: Tensor, home: Home) -> Any:
        return home.give(values[..., 0] if self._flat_target else values)

    def predict(self, X: Any, return_std: bool = False, offset: Any = None) -> Any:
        """Means of y, ``(n_samples,)`` or ``(n_samples, n_targets)``.

        With ``return_std`` also the standard deviation of y around them.
        """
        energy, x, o, home = self._at(X, offset)
        with answering(energy, x):
            mean = self._shaped(energy.mean(x, o), home)
            return (mean, self._shaped(energy.spread(x, o), home)) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.9, offset: Any = None) -> Any:
        """The central interval that holds y with probability ``level`` under the learned distribution.

        The parameters are taken as known. ``(n_samples, 2)`` or ``(n_samples, n_targets, 2)``.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        energy, x, o, home = self._at(X, offset)
        with answering(energy, x):
            mean = energy.mean(x, o)
            ends = [energy.family.quantile(q, mean, energy.phi) for q in _tails(level)]
        both = torch.stack(ends, -1)  # (B, m, 2)
        return home.give(both[:, 0] if self._flat_target else both)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = None, offset: Any = None
    ) -> Any:
        """Draws of y for each row, ``(n_rows, n_samples)`` (targets in the middle)."""
        energy, x, o, home = self._at(X, offset)
        generator = Key.of(random_state).torch(x.device)
        with answering(energy, x):
            draws = energy.family.sample(energy.mean(x, o), energy.phi, n_samples, generator)
        draws = draws.permute(1, 2, 0)  # (B, m, n)
        return home.give(draws[:, 0] if self._flat_target else draws)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        r"""D², the share of deviance explained: :math:`1 - D(y, \mu)/D(y, \bar y)`.

        A constant y has nothing to explain: 1 where it is predicted, else 0.
        """
        energy, x, o, _ = self._at(X, offset)
        y = check_array(unwrap(y)[0], ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(x, y)
        target = tensor(y.reshape(len(x), -1), x.device)
        energy.family.check(target)
        w = torch.ones(len(x), dtype=torch.float64, device=x.device)
        if sample_weight is not None:
            w = tensor(self._checked_weight(sample_weight, y), x.device)
        with answering(energy, x):
            mean = energy.mean(x, o).double()
            base = (w @ target / w.sum()).expand_as(target)
            left = w @ energy.family.unit_deviance(target, mean)
            whole = w @ energy.family.unit_deviance(target, base)
            live = w > 0
            flat = (target[live] == target[live][:1]).all(0)
            met = torch.isclose(mean, target, rtol=1e-9, atol=0)[live].all(0)
        return float(torch.where(flat, met.double(), 1 - left / whole).mean())


def _tails(level: float) -> tuple[float, float]:
    return 0.5 * (1 - level), 0.5 * (1 + level)
