r"""The autoencoder whose codes move little, :math:`\min \|x - g(f(x))\|^2 + \gamma\|f'(x)\|_F^2`."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.learn.base import Rule
from groundstate.learn.rules.codes.penalties import ContractedCode
from groundstate.learn.rules.codes.reconstruction import Reconstruction
from groundstate.models.generative.autoencoders.base import AutoencoderBase
from groundstate.models.generative.autoencoders.coders import coder_pair
from groundstate.nn.blocks.mlp import ACTIVATIONS
from groundstate.nn.heads.likelihoods import Likelihood
from groundstate.registry import models


@models.register(family="autoencoders", task="representation", role="generator")
class ContractiveAutoencoder(AutoencoderBase):
    r"""An autoencoder whose code moves little where rows do,

    .. math:: \min_{f, g} \frac1n\sum_i -\log p(x_i \mid g(f(x_i)))
              + \gamma\Bigl\|\frac{\partial f}{\partial x}(x_i)\Bigr\|_F^2.

    Only directions that reconstruction needs keep their slope: those along the data. Of one sigmoid
    layer (``hidden_layer_sizes=()``) the penalty is
    :math:`\sum_j(z_j(1-z_j))^2\sum_iW_{ji}^2`; deeper encoders estimate it with random signs.

    Parameters
    ----------
    n_components : int, default=32
    gamma : float, default=0.1
        Strength of the penalty; 0 is ``Autoencoder``.
    code_activation : str or None, default="sigmoid"
        Of the code; None is linear.
    hidden_layer_sizes : sequence of int, default=()

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ContractiveAutoencoder
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> ContractiveAutoencoder(6, max_iter=20, random_state=0).fit(X).transform(X).shape
    (200, 6)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [Interval(Real, 0, None, closed="left")],
        "code_activation": [StrOptions(set(ACTIVATIONS)), None],
    }
    wide_codes = True
    gamma: float
    code_activation: str | None

    def __init__(
        self,
        n_components: int = 32,
        hidden_layer_sizes: Any = (),
        activation: str = "relu",
        gamma: float = 0.1,
        code_activation: str | None = "sigmoid",
        likelihood: Any = "squared",
        likelihood_scale: Any = 1.0,
        network: Any = None,
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int = 128,
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = 10,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "auto",
        ema_decay: float | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _coders(self, made: Likelihood, condition: int, key: Key) -> tuple[Any, Any]:
        return coder_pair(
            self.network, made, self._code, hidden=self._hidden, activation=self.activation,
            code_activation=self.code_activation, condition=condition, event=self.event_shape_,
            key=key,
        )  # fmt: skip

    def _loss(self, energy: Energy) -> Rule:
        likelihood: Any = energy.likelihood
        return Reconstruction(penalty=ContractedCode(self.gamma, likelihood.n_inputs))
