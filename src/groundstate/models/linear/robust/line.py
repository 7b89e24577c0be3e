"""What regressors with a loss of the residual of a line have in common."""

from __future__ import annotations

from typing import ClassVar

from sklearn.utils import Tags
from torch import Tensor

from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.math.losses import ResidualLoss
from groundstate.models.learned import Learned
from groundstate.models.linear.coefficients import output_part
from groundstate.models.roles import EnergyRegressor


class LineRegressor(EnergyRegressor):
    r"""One target and :math:`e(x, y) = \rho((y - Wx - b)/\sigma)`; a preset names ρ and its solver.

    Parameters
    ----------
    max_iter : int

    Attributes
    ----------
    coef_ : (n_features,)
    energy_ : LinearLossEnergy
    """

    _accept_sparse: ClassVar[bool | str] = "csr"
    _multi_output: ClassVar[bool] = False
    fit_intercept: bool
    coef_ = Learned(lambda model: model.energy_.W[0])
    intercept_ = output_part("b")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _energy(self, X: Tensor, loss: ResidualLoss) -> LinearLossEnergy:
        """A line through zero, or with ``warm_start`` the last one."""
        energy = LinearLossEnergy(X.shape[1], loss, self.fit_intercept)
        last = getattr(self, "energy_", None) if getattr(self, "warm_start", False) else None
        if isinstance(last, LinearLossEnergy) and last.config() == energy.config():
            energy.load_state_dict(last.state_dict())
        return energy
