"""Labels of sequences by a network."""

from __future__ import annotations

from typing import Any

from torch import nn

from groundstate.models.rows.network_roles import RowNetworkClassifier
from groundstate.models.sequences.whole import SequenceRows
from groundstate.registry import models


@models.register(family="sequences", task="classification", role="classifier", auto=False)
class SequenceClassifier(SequenceRows, RowNetworkClassifier):
    r"""A label for each sequence, from the states of a network that reads it.

    .. math:: e(x, y) = -f_\theta(x)_y, \qquad f_\theta(x) = W\,\rho(h_1, \dots, h_T) + b, \qquad
              p(y\mid x) = \operatorname{softmax}(f_\theta(x))_y

    ρ is the last state, or their mean, maximum or an attention to them. Learning lowers the
    cross-entropy on mini-batches and stops by a held-out part of the rows.

    Attributes
    ----------
    energy_ : NetClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SequenceClassifier
    >>> rng = np.random.default_rng(0)
    >>> rise = [np.sort(rng.normal(size=n)) for n in rng.integers(4, 9, 40)]
    >>> X, y = [r if i % 2 else r[::-1] for i, r in enumerate(rise)], np.arange(40) % 2
    >>> model = SequenceClassifier(max_epochs=30, lr=0.01, random_state=0).fit(X, y)
    >>> model.predict([[-1.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.5, -1.0]]).tolist()
    [1, 0]
    """

    def __init__(
        self, network: Any = "gru", network_params: Any = None, *, readout: str | None = None,
        bucket: bool = False, tokens: str = "word", embedding: int = 32, max_epochs: int = 100,
        batch_size: int = 32, optimizer: Any = "adamw", lr: float = 3e-3,
        weight_decay: float = 1e-2, val_fraction: float = 0.1, patience: int | None = 10,
        schedule: Any = None, clip_norm: float | None = 1.0, precision: str = "auto",
        compile: Any = False, class_weight: Any = None, warm_start: bool = False,
        verbose: Any = False, random_state: Any = None, device: Any = None, callbacks: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net[1]
