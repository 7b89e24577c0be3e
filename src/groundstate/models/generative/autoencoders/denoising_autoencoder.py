r"""The autoencoder that repairs rows, :math:`\min E\|x - g(f(\tilde x))\|^2`."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.learn.base import Rule
from groundstate.learn.rules.codes.reconstruction import Reconstruction
from groundstate.models.generative.autoencoders.base import AutoencoderBase
from groundstate.nn.blocks.corrupt import KINDS, Corruption
from groundstate.registry import models


@models.register(family="autoencoders", task="representation", role="generator")
class DenoisingAutoencoder(AutoencoderBase):
    r"""An autoencoder whose inputs are made worse in every step while its target stays clean,

    .. math:: \min_{f, g} E_{\tilde x \mid x}\bigl[-\log p(x \mid g(f(\tilde x)))\bigr].

    The best answer to a noisy row is the mean of the clean ones, so that for small Gaussian noise
    :math:`g(f(x)) - x \approx \sigma^2\nabla\log p(x)`: towards where rows are dense. Copying does not
    pay, so the code may be longer than a row.

    Parameters
    ----------
    n_components : int, default=32
    corruption : "gaussian", "mask" or "saltpepper"
        Add noise of standard deviation ``level`` to coded rows; set cells to 0, or to the end of their
        column, each with probability ``level``.
    level : float, default=0.3
        0 is ``Autoencoder``.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import DenoisingAutoencoder
    >>> t = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    >>> X = np.column_stack([np.cos(t), np.sin(t)])
    >>> model = DenoisingAutoencoder(8, (32,), max_iter=100, learning_rate_init=0.01, random_state=0).fit(X)
    >>> worse = X + 0.2 * np.random.default_rng(1).normal(size=X.shape)
    >>> bool(((model.denoise(worse) - X) ** 2).mean() < ((worse - X) ** 2).mean())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "corruption": [StrOptions(set(KINDS))],
        "level": [Interval(Real, 0, None, closed="left")],
    }
    wide_codes = True
    corruption: Any
    level: float
    _ends: tuple[Tensor, Tensor]

    def __init__(
        self,
        n_components: int = 32,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "relu",
        corruption: str = "gaussian",
        level: float = 0.3,
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

    def _made_likelihood(self, x: Tensor) -> Any:
        made = super()._made_likelihood(x)
        inputs = made.inputs(x)
        self._ends = inputs.amin(0), inputs.amax(0)
        return made

    def _loss(self, energy: Energy) -> Rule:
        ends = self._ends
        del self._ends
        return Reconstruction(Corruption(self.corruption, self.level, *ends))

    def denoise(self, X: Any, y: Any = None) -> Any:
        """Rows repaired: the mean of clean rows given noisy ones, in the form of X."""
        return self.reconstruct(X, y)
