"""Rows held out for early stopping, cut from the weight line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.rows import Rows, hash_together, take
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError


class HeldOut(NamedTuple):
    """Rows to learn from and rows to judge by, each with its weights (None when all are 1)."""

    train: dict[str, Any]
    train_weight: Tensor | None
    held: dict[str, Any]
    held_weight: Tensor | None


def hold_out(
    data: Mapping[str, Rows],
    fraction: float = 0.2,
    *,
    sample_weight: Tensor | None = None,
    stratify: str | None = "y",
    random_state: Any = None,
) -> HeldOut:
    """Split rows for early stopping: whole groups of equal rows, so that nothing leaks.

    The cut is one of the weight line: it depends neither on the order of the rows nor on whether a
    row stands there twice or with weight 2.

    Parameters
    ----------
    data : tensors ``(N, *event)`` or containers of rows, by variable name
    fraction : share of the weight to hold out
    sample_weight : ``(N,)``
    stratify : name of an integer variable whose values have the same shares on both sides; ignored
        when it is absent or not an integer
    random_state : int, key or None

    Returns
    -------
    HeldOut

    Examples
    --------
    >>> x = torch.arange(10.0)[:, None]
    >>> parts = hold_out({"x": x, "y": torch.arange(10) % 2}, 0.2, random_state=0)
    >>> len(parts.train["x"]), parts.held["y"].bincount().tolist()
    (8, [1, 1])
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be above 0 and below 1, got {fraction}")
    line = WeightLine(hash_together(data), sample_weight)
    labels = None if stratify is None else data.get(stratify)
    strata = None
    if isinstance(labels, Tensor) and not labels.is_floating_point() and labels.ndim == 1:
        strata = labels.cpu().numpy()
    parts = torch.from_numpy(line.cut(Key.of(random_state).fold("held"), fraction, stratify=strata))
    if not bool((parts.sum(1) > 0).all()):
        raise DataError(
            f"fraction={fraction} of {len(labels if labels is not None else parts[0])} rows leaves "
            "one side empty; hold out more rows, or none"
        )
    sides: list[tuple[dict[str, Rows], Tensor | None]] = []
    for weight in parts:
        index = weight.nonzero().squeeze(1)
        rows = {k: take(v, index) for k, v in data.items()}
        kept = None
        if sample_weight is not None:
            kept = weight[index].to(sample_weight)
        sides.append((rows, kept))
    return HeldOut(*sides[0], *sides[1])
