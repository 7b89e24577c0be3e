r"""The autoencoder, :math:`\min \tfrac1n\sum_i\|x_i - g(f(x_i))\|^2`."""

from __future__ import annotations

from typing import Any

from groundstate.models.generative.autoencoders.base import AutoencoderBase
from groundstate.registry import models


@models.register(family="autoencoders", task="representation", role="generator")
class Autoencoder(AutoencoderBase):
    r"""Two networks, one into a code and one back, that lose as little as possible on the way,

    .. math:: \min_{f, g} \frac1n\sum_i -\log p(x_i \mid g(f(x_i))), \qquad f: R^d \to R^k,
              \quad g: R^k \to R^d,

    with the squared error :math:`\|x - g(f(x))\|^2` by default. Its energy is
    :math:`e(x, z) = -\log p(x \mid g(z)) - \log p(z)` with a normal distribution of codes that is
    fitted after learning: ``sample`` decodes codes of it. Nothing in the objective asks codes to fill
    that distribution, so there is no density of rows (``log_prob_kind_`` is "none") and draws between
    the codes of training rows may be of no use; a ``VAE`` repairs that. With ``activation="identity"``
    and ``hidden_layer_sizes=()`` the optimum is the subspace of PCA.

    Parameters
    ----------
    n_components : int, default=2
    hidden_layer_sizes : sequence of int, default=(128, 64)

    Attributes
    ----------
    loss_curve_ : list of float, the reconstruction error of every epoch

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Autoencoder
    >>> t = np.linspace(-1, 1, 200)
    >>> X = np.column_stack([t, t**2, -t])
    >>> model = Autoencoder(1, (16,), max_iter=300, learning_rate_init=0.01, random_state=0).fit(X)
    >>> model.transform(X).shape, bool(model.reconstruction_error(X).mean() < 0.05)
    ((200, 1), True)
    """

    def __init__(
        self,
        n_components: int = 2,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "relu",
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
