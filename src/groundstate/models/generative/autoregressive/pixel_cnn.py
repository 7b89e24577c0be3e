"""Pictures by the chain rule."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.sequences.pixels import OUTPUTS, PixelChainEnergy
from groundstate.models import settings
from groundstate.models.generative.autoregressive.chain import ChainGenerator
from groundstate.models.generative.coding import Coding
from groundstate.models.traits import Traits
from groundstate.registry import models

MOST = 256  # levels, as bytes have


@models.register(family="autoregressive", task="generation", role="generator", auto=False)
class PixelCNN(ChainGenerator):
    r"""A picture pixel by pixel: each is drawn given the rows above and the pixels to the left.

    .. math:: e(x) = -\sum_i\log p(x_i \mid x_1, \dots, x_{i-1}, y)

    in raster order, red before green before blue. Masked convolutions see only what came before and give
    all factors in one pass, so that log-probabilities are exact. X is an array ``(n, H, W)`` or
    ``(n, C, H, W)`` of whole numbers, as bytes are. Draws keep what they have computed: all pixels of a
    draw together cost about one pass.

    Parameters
    ----------
    n_levels : int, default=None
        Values of a pixel. Whole numbers from 0 on that are fewer stay as they are; other values are cut
        into so many equal steps between the least and the largest of ``fit``, whose middles are drawn.
        None is as many as there are of whole numbers, and 256 steps of others.
    output : {"softmax", "logistic"}, default="softmax"
        A probability for every value, or a mixture of logistic distributions cut into whole numbers, which
        knows that values have an order: for 256 levels.
    n_components : int, default=5
        Of that mixture.
    features : int, default=32
        Channels of the hidden layers.
    n_layers : int, default=4
        Gated residual blocks; each one sees a pixel further.

    Attributes
    ----------
    n_levels_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import PixelCNN
    >>> X = np.zeros((60, 4, 4), int)
    >>> X[np.arange(60), :, np.arange(60) % 4] = 1  # one column of ones
    >>> model = PixelCNN(features=16, n_layers=2, learning_rate_init=0.01, max_iter=30, random_state=0).fit(X)
    >>> model.sample(3, random_state=0).shape
    (3, 4, 4)
    >>> bool(model.score(X) > -4), bool(model.score(1 - X) < -20)  # all 2**16 pictures: -11.1
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_levels": [Interval(Integral, 2, None, closed="left"), None],
        "output": [StrOptions(set(OUTPUTS))],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "features": [Interval(Integral, 1, None, closed="left")],
        "n_layers": [Interval(Integral, 0, None, closed="left")],
    }
    _categories = None
    particles: ClassVar[int] = 16
    traits = Traits(
        space={
            "learning_rate_init": settings.Real(3e-4, 1e-2, log=True),
            "n_layers": settings.Whole(1, 8),
        }
    )
    n_levels: int | None
    output: str
    n_components: int
    features: int
    n_layers: int
    n_levels_: int

    def __init__(
        self,
        n_levels: int | None = None,
        *,
        output: str = "softmax",
        n_components: int = 5,
        features: int = 32,
        n_layers: int = 4,
        solver: Any = "adam",
        learning_rate_init: float = 2e-3,
        batch_size: int = 64,
        max_iter: int = 50,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = 10,
        tol: float = 1e-4,
        warm_start: bool = False,
        ema_decay: float | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        super()._learn_preparation(X, y, weight)
        self._counts = weight

    def _learn_coding(self, X: Tensor, weight: Tensor | None) -> None:
        kept = X if weight is None else X[weight > 0]
        low, high = float(kept.min()), float(kept.max())
        whole = low >= 0 and high < (self.n_levels or MOST) and bool((kept == kept.round()).all())
        first, width = 0.0, 1.0
        self.n_levels_ = self.n_levels or (max(2, int(high) + 1) if whole else MOST)
        if (
            not whole
        ):  # the middle of each step stands for it, and the highest value is in the last one
            width = (high - low) / self.n_levels_ * (1 + 1e-4) if high > low else 1.0
            first = low + width / 2
        d = X.shape[1]
        nothing = np.zeros(d)
        self.coding_ = Coding(
            nothing.astype(np.int64), nothing, np.full(d, first), np.full(d, width), "levels"
        )

    @property
    def _picture(self) -> tuple[int, int, int]:
        """(C, H, W); a row of a table is a picture of one line."""
        shape = self.event_shape_
        if len(shape) == 3:
            return (shape[0], shape[1], shape[2])
        return (1, shape[0], shape[1]) if len(shape) == 2 else (1, 1, shape[0])

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> Energy:  # type: ignore[override]
        energy = PixelChainEnergy(
            self._picture, self.n_levels_, self.features, self.n_layers, output=self.output,
            components=self.n_components, context=0 if y is None else y.shape[1],
            generator=key.fold("weights").torch(),
        ).to(x.device, x.dtype)  # fmt: skip
        energy.start_at(x, self.__dict__.pop("_counts"))
        return energy

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        return super()._draw(n, y, T, generator)[0].to(self.energy_.placement()[1]), None

    def bits_per_dim(self, X: Any, y: Any = None) -> float:
        r"""Mean :math:`-\log_2p` of a pixel (and channel): what a code of the pictures would need."""
        return -self.score(X, y) / (math.prod(self.event_shape_) * math.log(2))
