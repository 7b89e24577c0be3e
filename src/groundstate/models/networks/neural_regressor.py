"""Any torch module as a regressor."""

from __future__ import annotations

from typing import Any

from groundstate.models.networks.answers import NetworkRegressor
from groundstate.models.networks.neural import (
    engine_settings,
    fitted_module,
    wrapped_module,
)
from groundstate.registry import models


@models.register(
    family="networks", task="regression", role="regressor", max_rows=200_000, auto=False
)
class NeuralRegressor(NetworkRegressor):
    r"""Values by any network that you bring, under a loss or a distribution of your choice.

    .. math::
        e(x, y) = \ell(f_\theta(x), y), \qquad \ell = \tfrac12\|y - f\|^2 \text{ or } -\log p(y \mid
        f) .

    The module gives one number per target, or as many as the distribution has parameters
    (``"normal"`` two: mean and raw spread). Training, weights, early stopping, saving and answers
    are those of ``MLPRegressor``.

    Parameters
    ----------
    module : torch module, class or function, default=None
        An instance is copied, weights and all. A class or function is called to make one; its
        parameters named ``in_features`` (or ``n_features``, ``d``, ...) and ``out_features`` (or
        ``n_outputs``, ``n_classes``, ...) get the numbers of columns and outputs. None is a
        perceptron with one hidden layer of 100 units.
    loss : str or Head, default="squared_error"
        As in ``MLPRegressor``.

    Attributes
    ----------
    module_ : the fitted module

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from groundstate import NeuralRegressor
    >>> x = np.linspace(-2, 2, 100)[:, None]
    >>> net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
    >>> model = NeuralRegressor(net, solver="lbfgs", max_iter=2000, random_state=0)
    >>> model.fit(x, np.sin(2 * x[:, 0])).score(x, np.sin(2 * x[:, 0])) > 0.99
    True
    """

    _network, _engine = wrapped_module, engine_settings
    module_ = property(fitted_module)

    def __init__(
        self,
        module: Any = None,
        module_params: Any = None,
        input_shape: Any = None,
        loss: Any = "squared_error",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: Any = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        max_fun: int = 15000,
        clip_norm: float | None = None,
        schedule: Any = None,
        precision: str = "32",
        compile: bool | str = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())
