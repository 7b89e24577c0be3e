"""A linear classifier of pictures."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import nn

from groundstate.compute.rows import part, to_device
from groundstate.energy.base import Energy
from groundstate.energy.basic.net_class import NetClassEnergy
from groundstate.models.learned import Learned
from groundstate.models.rows.classifier import RowClassifier
from groundstate.nn.blocks.initialise import linear
from groundstate.registry import models


@models.register(family="vision", task="classification", role="classifier", auto=False, shortlist=2)
class LinearImageClassifier(RowClassifier):
    r"""Labels of pictures by one weight per pixel and class.

    .. math:: e(x, y) = -\sum_{c,h,w} W_{y,c,h,w}\,x_{c,h,w} - b_y, \qquad
              p(y \mid x) = \operatorname{softmax}(-e)_y

    X is an array ``(n, channels, height, width)`` or ``(n, height, width)``, a list of image files,
    or a folder of them (read batch by batch, values in [0, 1]; needs Pillow). Learning lowers the
    cross-entropy plus :math:`\tfrac\alpha2\|W\|^2`.

    Attributes
    ----------
    coef_ : (n_classes, channels, height, width) array
    intercept_ : (n_classes,) array

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LinearImageClassifier
    >>> X = np.zeros((20, 1, 4, 4)); X[:10, :, :2] = 1; X[10:, :, 2:] = 1
    >>> y = np.repeat(["top", "bottom"], 10)
    >>> LinearImageClassifier(random_state=0).fit(X, y).predict(X[[0, 19]]).tolist()
    ['top', 'bottom']
    """

    rows: ClassVar[str] = "image"
    coef_ = Learned(lambda m: m.energy_.net[1].weight.view(-1, *m.energy_.spaces["x"].shape))
    intercept_ = Learned(lambda m: m.energy_.net[1].bias)

    def _energy(self, X: Any, k: int, generator: torch.Generator) -> Energy:
        first = to_device(part(X, 0, 1), torch.device("cpu"))  # of files, one is read
        shape = tuple(first.shape[1:])
        layer = linear(torch.Size(shape).numel(), k)
        for p in layer.parameters():  # the problem is convex: any start will do
            nn.init.zeros_(p)
        return NetClassEnergy(shape, k, nn.Sequential(nn.Flatten(), layer))
