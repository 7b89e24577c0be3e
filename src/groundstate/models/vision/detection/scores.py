"""How well a detector finds what is in pictures that it did not learn from."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.rows import count, split, to_device
from groundstate.energy.base import Energy
from groundstate.learn.base import Batch
from groundstate.nn.detection.precision import average_precision_detection


def mean_precision(energy: Energy, rows: Batch, weight: Tensor | None, *, size: int) -> float:
    r"""Average precision in each picture, :math:`\sum_i w_i\,\mathrm{AP}_i / \sum_i w_i` over those that
    hold an object, of all processes.

    The loss does not say when a detector is good: it is smallest before any region meets an object,
    when all there is to say is "background", and it grows while boxes are found.
    """
    x: Any = rows["x"]
    y: Any = rows["y"]
    device, n = energy.placement()[0], count(x)
    sizes = [min(size, n - at) for at in range(0, n, size)]
    w = [1.0] * n if weight is None else weight.tolist()
    total = torch.zeros(2, dtype=torch.float64)
    found: list[Any] = []
    for part in split(x, sizes):
        found += energy.detect(to_device(part, device))  # type: ignore[operator]
    for i, answer in enumerate(found):
        own = y[i]
        if not len(own.boxes.values):
            continue
        truth = {"boxes": own.boxes.values, "labels": own.labels.values}
        answer = {"boxes": answer.boxes, "labels": answer.labels, "scores": answer.scores}
        total += w[i] * torch.tensor([average_precision_detection([truth], [answer]).ap, 1.0])
    total = current().sum(total)
    return float(total[0] / total[1]) if float(total[1]) > 0 else -math.inf
