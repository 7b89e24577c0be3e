"""What rows looked like to their user: shape, kind of array, names and types of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.models.arrays import Home
from groundstate.models.entries import unique_names


@dataclass(frozen=True)
class Shapes:
    """How rows came, so that new ones come out in the same way.

    Attributes
    ----------
    event : shape of one row; empty before the columns of a table are counted
    kind : "numpy", "torch", or the library of a frame
    whole : for each column whether it held whole numbers, in frames
    """

    event: tuple[int, ...]
    kind: str = "numpy"
    whole: tuple[bool, ...] = ()

    def closed(self, columns: int) -> Shapes:
        """With the number of columns of a table."""
        return self if self.event else replace(self, event=(columns,))

    def home(self, model: Any) -> Home:
        """Where answers go."""
        return Home(model.energy_.placement()[0]) if self.kind == "torch" else Home()


def flattened(X: Any) -> tuple[Any, Shapes]:
    """Rows of any shape as a table ``(n, d)``, and what they looked like."""
    if hasattr(X, "columns"):
        import narwhals as nw

        unique_names(X)
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            whole = tuple(frame[:, j].dtype.is_integer() for j in range(frame.shape[1]))
            return X, Shapes((), str(frame.implementation.value), whole)
    kind = "torch" if isinstance(X, Tensor) else "numpy"
    if not hasattr(X, "shape"):
        X = _as_array(X)
    shape = tuple(getattr(X, "shape", ()))
    if len(shape) <= 2 or not shape[0]:
        return X, Shapes((), kind)
    return X.reshape(shape[0], -1), Shapes(tuple(int(n) for n in shape[1:]), kind)


def _as_array(X: Any) -> Any:
    """Nested lists of numbers as an array where they have more than two axes, else as they are."""
    inner, depth = X, 0
    while isinstance(inner, list | tuple) and len(inner):
        inner, depth = inner[0], depth + 1
    depth += int(getattr(inner, "ndim", 0))  # other things that act as arrays are no lists
    return np.asarray(X) if depth > 2 else X


def as_given(
    rows: Tensor, model: Any, X: Any = None, home: Home | None = None, absent: Tensor | None = None
) -> Any:
    """Rows of a table ``(n, d)`` in the form that the model was fitted to.

    Of completed rows, ``X`` are those they complete, and ``absent`` says which cells are new.
    """
    shapes: Shapes = model._shapes
    levels: dict[int, Any] = getattr(model, "_levels", {})
    if X is not None:
        kept = flattened(X)[0]
        if not levels and isinstance(kept, np.ndarray) and kept.dtype.kind == "f":
            out = np.array(kept)  # known cells to the last bit
            gone = absent.cpu().numpy() if absent is not None else np.zeros(kept.shape, bool)
            out[gone] = rows.cpu().numpy()[gone]
            return out.reshape(-1, *shapes.event)
    if not levels:
        home = home or shapes.home(model)
        return home.give(rows.reshape(len(rows), *shapes.event))
    columns = _columns(rows, levels, shapes.whole)
    if shapes.kind in ("numpy", "torch"):
        out = np.empty(tuple(rows.shape), dtype=object)
        for j, column in enumerate(columns):
            out[:, j] = column
        return out
    import narwhals as nw

    names = [str(name) for name in model.feature_names_in_]
    backend: Any = shapes.kind
    return nw.from_dict(dict(zip(names, columns, strict=True)), backend=backend).to_native()


def _columns(rows: Tensor, levels: dict[int, Any], whole: tuple[bool, ...]) -> list[Any]:
    values = rows.detach().cpu().to(torch.float64).numpy()
    out: list[Any] = []
    for j in range(values.shape[1]):
        if j in levels:
            out.append(levels[j][values[:, j].astype(np.int64)].tolist())
        elif whole and whole[j]:
            out.append(np.rint(values[:, j]).astype(np.int64))
        else:
            out.append(values[:, j])
    return out
