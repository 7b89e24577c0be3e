"""Sequences as people have them, and answers in the same form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.rows import Ragged
from groundstate.compute.rows.ragged import offsets_of
from groundstate.data.sequences.read import SequenceRows
from groundstate.errors import DataError, ShapeError
from groundstate.models.arrays import Home, unwrap


@dataclass(frozen=True)
class SequenceForm:
    """How sequences came: "steps" (one array, with lengths), "array" or "list"."""

    kind: str
    home: Home

    def give(self, rows: Ragged) -> Any:
        """Answers for every step in the form of the sequences."""
        if self.kind == "steps":
            return self.home.give(rows.values)
        if self.kind == "array":
            shape = (len(rows), -1, *rows.item_shape)
            return self.home.give(rows.values.reshape(shape))
        return [self.home.give(part) for part in rows.values.split(rows.lengths.tolist())]


def read(X: Any, lengths: Any = None) -> tuple[Ragged, SequenceForm]:
    """Rows of steps ``(length, d)``, float, and how answers go back.

    Parameters
    ----------
    X : Ragged rows; a list of arrays ``(length, d)`` or ``(length,)``; an array ``(n, length, d)``; or
        all steps of all sequences ``(sum of lengths, d)`` as hmmlearn takes them
    lengths : of the sequences, with the last form; None: it is one sequence
    """
    home = Home(X.device) if isinstance(X, Tensor) else Home()
    shape = tuple(getattr(X, "shape", ()))
    if isinstance(X, Ragged) or (lengths is None and len(shape) != 2):
        if isinstance(X, Ragged):
            rows: Any = X
        else:
            try:
                rows = SequenceRows().read(X)
            except DataError as error:
                raise DataError(f"HiddenMarkovModel takes sequences: {error}") from None
        form = SequenceForm("array" if len(shape) == 3 else "list", home)
        return _floats(rows), form
    array, _ = unwrap(X)
    array = np.asarray(array)
    if array.ndim != 2:
        raise ShapeError(
            f"with lengths, X holds all steps one after the other, (n_steps, n_features); got {shape}"
        )
    sizes = [len(array)] if lengths is None else [int(n) for n in np.asarray(lengths).ravel()]
    if sum(sizes) != len(array) or min(sizes, default=0) < 0:
        raise ShapeError(f"lengths add up to {sum(sizes)}, but X has {len(array)} steps")
    values = X.detach() if isinstance(X, Tensor) else torch.from_numpy(np.ascontiguousarray(array))
    offsets = offsets_of(torch.tensor(sizes)).to(values.device)
    return _floats(Ragged(values, offsets)), SequenceForm("steps", home)


def _floats(rows: Ragged) -> Ragged:
    values = rows.values
    if not values.is_floating_point():
        values = values.to(torch.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2:
        raise ShapeError(f"a step is a vector, got steps of shape {tuple(values.shape[1:])}")
    if bool(torch.isfinite(values.sum())):  # as no sum with NaN or infinity in it
        return rows.like(values)
    absent = torch.isnan(values)
    if bool(torch.isinf(values).any()):
        raise DataError("X holds infinity; a step that is missing is NaN in all its features")
    partly = absent.any(1) & ~absent.all(1)
    if bool(partly.any()):
        step = int(partly.nonzero()[0, 0])
        raise DataError(
            f"step {step} of X is NaN in some features alone; a step is missing as a whole (NaN in all "
            "its features) or not at all"
        )
    return Ragged(values, rows.offsets)
