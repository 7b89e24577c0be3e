"""A generative adversarial network of rows given a label or values."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils import Tags

from groundstate.models.generative.adversarial.gan import GAN
from groundstate.registry import models


@models.register(family="adversarial", task="generation", role="generator")
class ConditionalGAN(GAN):
    r"""A generator and a discriminator that both see y: rows of a wanted kind.

    .. math:: \min_G\max_D E\log D(x, y) + E\log(1 - D(G(z, y), y)), \qquad e(x, y) = -\mathrm{logit}\,D(x, y)

    The same model as ``GAN`` fitted with y (labels or real columns), and y is required. A
    discriminator that sees y finds a good row with a wrong label out; one that sees x alone cannot.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ConditionalGAN
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["low", "high"], 200)
    >>> X = (rng.normal(0, 0.5, 400) + np.where(y == "high", 3, -3))[:, None].astype("float32")
    >>> model = ConditionalGAN(4, (32,), learning_rate_init=2e-3, max_iter=40, random_state=0).fit(X, y)
    >>> drawn = model.sample(500, "high", random_state=0)
    >>> drawn.shape, bool(drawn.mean() > 1)
    ((500, 1), True)
    """

    _takes_classes: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows ``X`` and what they are given, ``y``; a weight of 2 is the row twice."""
        if y is None:
            raise ValueError(
                "ConditionalGAN requires y to be passed, but the target y is None; GAN learns rows "
                "without y"
            )
        return super().fit(X, y, sample_weight)
