"""Regression by a network for tables."""

from __future__ import annotations

from typing import Any

from groundstate.models.networks.tabular import TabularRegressor
from groundstate.registry import models


@models.register(
    family="networks", task="regression", role="regressor", max_rows=200_000, auto=False,
    shortlist=9, shortlist_rows=50_000,
)  # fmt: skip
class TabularMLPRegressor(TabularRegressor):
    r"""Values by a network made for tables, of M members that share most of their parameters.

    .. math::
        e(x, y) = \ell\Bigl(\frac1M\sum_{m=1}^M f_m(x),\ y\Bigr), \qquad \ell = \tfrac12\|y - f\|^2 .

    Numbers are scaled by their quartiles, clipped smoothly and embedded by waves (RealMLP's
    recipe); every member has scales and biases of its own around shared matrices and learns by its
    own loss (TabM's BatchEnsemble). Outputs are in units of the target's spread around its mean,
    so that no target needs scaling. Training keeps the epoch with the best held-out score.

    Parameters
    ----------
    loss : "squared_error", "absolute_error", "huber" or "quantile", default="squared_error"
        "huber" and "quantile" also as ``LocationHead`` with their settings; in units of the target's
        spread.

    Attributes
    ----------
    energy_ : NetworkEnergy
        ``energy_.net`` is a ``groundstate.nn.tabular.TabularNet``.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import TabularMLPRegressor
    >>> x = np.random.default_rng(0).uniform(-2, 2, (200, 1))
    >>> model = TabularMLPRegressor(random_state=0, max_iter=60).fit(x, 100 * np.sin(2 * x[:, 0]))
    >>> model.score(x, 100 * np.sin(2 * x[:, 0])) > 0.98
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = (128, 128),
        n_members: int = 8,
        loss: Any = "squared_error",
        *,
        n_frequencies: int = 16,
        embedding_size: int = 4,
        frequency_scale: float = 0.05,
        activation: str = "silu",
        dropout: float = 0.1,
        weight_decay: float = 0.1,
        learning_rate_init: float = 0.01,
        schedule: Any = "coslog4",
        batch_size: Any = "auto",
        max_iter: int = 100,
        early_stopping: bool = True,
        validation_fraction: float = 0.15,
        n_iter_no_change: float = 40,
        tol: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())
