"""Any torch module as a classifier."""

from __future__ import annotations

import warnings
from typing import Any

from torch import nn

from groundstate.compute.random import Key
from groundstate.models.networks.answers import NetworkClassifier
from groundstate.models.networks.neural import (
    engine_settings,
    fitted_module,
    wrapped_module,
)
from groundstate.registry import models


@models.register(
    family="networks", task="classification", role="classifier", max_rows=200_000, auto=False
)
class NeuralClassifier(NetworkClassifier):
    r"""Labels by any network that you bring.

    .. math::
        e(x, y) = -f_\theta(x)_y, \qquad p(y \mid x) = \operatorname{softmax}(f_\theta(x))_y .

    The module gives one score per class (no softmax at its end); for two classes one score, the
    log-odds, is enough. Training, weights, early stopping, saving and answers are those of
    ``MLPClassifier``.

    Parameters
    ----------
    module : torch module, class or function, default=None
        An instance is copied, weights and all. A class or function is called to make one; its
        parameters named ``in_features`` (or ``n_features``, ``d``, ...) and ``out_features`` (or
        ``n_outputs``, ``n_classes``, ...) get the numbers of columns and outputs. None is a perceptron
        with one hidden layer of 100 units.
    loss : "log_loss" or a learning rule, default="log_loss"
        For example ``groundstate.learn.Margin()``.

    Attributes
    ----------
    energy_ : NetworkClassEnergy, or NetworkEnergy for several labels
    module_ : the fitted module

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from torch import nn
    >>> from groundstate import NeuralClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> net = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    >>> model = NeuralClassifier(net, learning_rate_init=0.01, max_iter=100,
    ...                          n_iter_no_change=float("inf"), random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _engine = engine_settings
    module_ = property(fitted_module)

    def __init__(
        self,
        module: Any = None,
        module_params: Any = None,
        input_shape: Any = None,
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
        loss: Any = "log_loss",
        clip_norm: float | None = None,
        schedule: Any = None,
        precision: str = "32",
        compile: bool | str = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _network(self, d: int, outputs: int, key: Key) -> nn.Module:
        net = last = wrapped_module(self, d, outputs, key)
        while isinstance(last, nn.Sequential) and len(last):
            last = last[-1]
        if isinstance(last, nn.Softmax | nn.Sigmoid):
            warnings.warn(
                f"the module ends in {type(last).__name__}, but its outputs are taken as scores and "
                "normalised once more, which flattens the probabilities; leave its last layer out",
                UserWarning,
                stacklevel=2,
            )
        return net
