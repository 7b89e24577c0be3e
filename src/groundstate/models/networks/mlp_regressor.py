"""A multilayer perceptron that predicts values."""

from __future__ import annotations

from typing import Any

from groundstate.models.networks.answers import NetworkRegressor
from groundstate.models.networks.mlp import (
    MLP_TRAITS,
    biases_of_layers,
    n_layers,
    n_outputs,
    out_activation,
    perceptron,
    weights_of_layers,
)
from groundstate.registry import models


@models.register(
    family="networks",
    task="regression",
    role="regressor",
    max_rows=200_000,
    auto=False,
    shortlist=5,
    shortlist_rows=200_000,
)
class MLPRegressor(NetworkRegressor):
    r"""Values by a multilayer perceptron, under a loss or a distribution of your choice.

    .. math::
        e(x, y) = \tfrac12\|y - f_\theta(x)\|^2 \quad\text{or}\quad -\log p(y \mid f_\theta(x)),
        \qquad h_{l+1} = \sigma(W_l h_l + b_l) .

    With a distribution as ``loss`` the network gives its parameters: ``"normal"`` learns mean and
    spread of every row. ``predict`` gives the mean, ``predict_dist`` the distribution,
    ``predict_interval`` its middle. Scale inputs and targets: columns of very different size learn
    badly.

    Parameters
    ----------
    loss : str or Head, default="squared_error"
        "squared_error", "absolute_error", "huber", "quantile", "poisson", or a distribution:
        "normal", "laplace", "student_t", "lognormal", "gamma", "exponential", "beta", "von_mises",
        "negative_binomial", "multivariate_normal"; or a head with settings of its own, such as
        ``groundstate.energy.networks.location.LocationHead("quantile", q=0.9)``.

    Attributes
    ----------
    coefs_, intercepts_ : lists of arrays, (in, out) and (out,)
    n_layers_, n_outputs_ : int
    out_activation_ : str

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MLPRegressor
    >>> x = np.linspace(-2, 2, 80)[:, None]
    >>> model = MLPRegressor(hidden_layer_sizes=(20,), activation="tanh", solver="lbfgs",
    ...                      max_iter=2000, random_state=0).fit(x, np.sin(2 * x[:, 0]))
    >>> model.score(x, np.sin(2 * x[:, 0])) > 0.99
    True
    """

    traits = MLP_TRAITS
    _network = perceptron
    coefs_ = weights_of_layers()
    intercepts_ = biases_of_layers()
    n_layers_ = property(n_layers)
    n_outputs_ = property(n_outputs)
    out_activation_ = property(out_activation)

    def __init__(
        self,
        loss: Any = "squared_error",
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
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
        dropout: float = 0.0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())
