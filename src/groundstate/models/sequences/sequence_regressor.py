"""Numbers of sequences by a network."""

from __future__ import annotations

from typing import Any

from torch import nn

from groundstate.models.rows.network_roles import RowNetworkRegressor
from groundstate.models.sequences.whole import SequenceRows
from groundstate.registry import models


@models.register(family="sequences", task="regression", role="regressor", auto=False)
class SequenceRegressor(SequenceRows, RowNetworkRegressor):
    r"""A number (or several) for each sequence, from the states of a network that reads it.

    .. math:: e(x, y) = \tfrac12\|y - (\mu + s\,f_\theta(x))\|^2, \qquad
              f_\theta(x) = W\,\rho(h_1, \dots, h_T) + b

    ρ is the last state, or their mean, maximum or an attention to them; μ and s are mean and scale of
    the targets. Learning lowers the mean energy on mini-batches and stops by a held-out part.

    Attributes
    ----------
    energy_ : SquaredEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SequenceRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(n, 2)) for n in rng.integers(3, 8, 60)]
    >>> y = np.array([x[-1, 0] for x in X])
    >>> model = SequenceRegressor(max_epochs=60, lr=0.01, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    def __init__(
        self, network: Any = "gru", network_params: Any = None, *, readout: str | None = None,
        bucket: bool = False, tokens: str = "word", embedding: int = 32, max_epochs: int = 100,
        batch_size: int = 32, optimizer: Any = "adamw", lr: float = 3e-3,
        weight_decay: float = 1e-2, val_fraction: float = 0.1, patience: int | None = 10,
        schedule: Any = None, clip_norm: float | None = 1.0, precision: str = "auto",
        compile: Any = False, warm_start: bool = False, verbose: Any = False,
        random_state: Any = None, device: Any = None, callbacks: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net[0][1]
