"""Pictures with their labels, and the mean colour and contrast of a set of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.rows import Rows, count, describe, part, to_device

_CHUNK = 512


@dataclass(frozen=True, repr=False)
class ImageSet:
    """Pictures and their labels; estimators take it in the place of X, with y.

    Attributes
    ----------
    rows : tensor ``(n, C, H, W)``, ``Pixels`` or ``Files``
    y : array ``(n,)`` of labels
    classes : tuple of all labels, sorted
    """

    rows: Rows
    y: NDArray[Any]
    classes: tuple[Any, ...]

    def __len__(self) -> int:
        return count(self.rows)

    def counts(self) -> dict[Any, int]:
        """Pictures of each class."""
        return {c: int((self.y == c).sum()) for c in self.classes}

    def __repr__(self) -> str:
        return f"{describe(self.rows)}, {len(self.classes)} classes"


Parts = Mapping[str, ImageSet]


def channel_moments(rows: Rows, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""Mean and standard deviation of every channel over pictures and pixels, in float64.

    Computed block by block, so pictures on disk never are in memory together, and summed over
    processes. A weight of 2 is the picture twice.

    Returns
    -------
    mean, std : ``(C,)``; a constant channel has std 1

    Examples
    --------
    >>> mean, std = channel_moments(torch.tensor([0.0, 1.0, 0.0, 1.0]).view(1, 1, 2, 2))
    >>> mean.tolist(), std.tolist()
    ([0.5], [0.5])
    """
    n = count(rows)
    w = torch.ones(n, dtype=torch.float64) if weight is None else weight.detach().double()
    total, total_weight = None, 0.0
    first: Tensor | None = None
    reduce = current()
    for at in range(0, n, _CHUNK):
        block = part(rows, at, min(at + _CHUNK, n))
        x: Any = block if isinstance(block, Tensor) else to_device(block, torch.device("cpu"))
        x = x.double().flatten(2)  # (b, C, pixels)
        if first is None:
            first = reduce.broadcast(x[0].mean(1))  # sums around a value nearby lose no digits
        x = x - first[:, None]
        own = w[at : at + len(x)].to(x.device)
        sums = torch.stack([own @ x.mean(2), own @ x.square().mean(2)])  # (2, C)
        total = sums if total is None else total + sums
        total_weight += float(own.sum())
    assert total is not None and first is not None
    everyone = reduce.sum(total.new_tensor(total_weight))
    shift, square = reduce.sum(total) / everyone
    std = (square - shift.square()).clamp_min(0).sqrt()
    return first + shift, torch.where(std > 1e-12, std, torch.ones_like(std))


def labels_of(y: Any, names: Any) -> NDArray[np.str_]:
    """Names of classes by their numbers."""
    return np.asarray(names, dtype=np.str_)[np.asarray(y, dtype=np.int64)]
