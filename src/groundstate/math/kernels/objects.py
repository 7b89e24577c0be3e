r"""Kernels on objects of any kind, by their numbers in a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.geometry import Geometry


@dataclass(frozen=True, repr=False)
class OnObjects(Kernel):
    r""":math:`k(i, j) = k(o_i, o_j)` for rows that hold the number of an object in a list.

    So texts, graphs or sets enter every estimator that takes a kernel: fit on the numbers of the
    training objects, ask about the numbers of the others.

    Parameters
    ----------
    objects : the list, with the objects to be asked about
    function : ``function(A, B) -> (n, m)`` on lists of objects, such as ``Spectrum(3)``

    Examples
    --------
    >>> from groundstate.math.kernels import Spectrum
    >>> k = OnObjects(("abab", "ab", "b"), Spectrum(2))
    >>> k(np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])).tolist()
    [[2.0, 0.0], [1.0, 0.0]]
    """

    objects: tuple[Any, ...]
    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "objects", tuple(self.objects))

    def _at(self, rows: Tensor) -> list[Any]:
        if rows.shape[-1] != 1:
            raise ShapeError(f"rows must hold one number of an object, got {tuple(rows.shape)}")
        numbers = rows.reshape(-1).detach().cpu().round().long().tolist()
        wrong = [i for i in numbers if not 0 <= i < len(self.objects)]
        if wrong:
            raise ShapeError(f"there are {len(self.objects)} objects, got number {wrong[0]}")
        return [self.objects[i] for i in numbers]

    def of(self, at: Geometry, theta: Tensor | None = None) -> Tensor:
        if at.x.ndim == 3:  # pairs of single rows, for the diagonal
            return self._diagonal(at)
        left = self._at(at.x)
        right = left if at.same else self._at(at.z)
        values = np.asarray(self.function(left, right))
        return torch.as_tensor(values).to(at.x)

    def _diagonal(self, at: Geometry) -> Tensor:
        objects = self._at(at.x)
        diag = getattr(self.function, "diag", None)
        if diag is not None:
            values = np.asarray(diag(objects))
        else:
            values = np.array([np.asarray(self.function([o], [o]))[0, 0] for o in objects])
        return torch.as_tensor(values).to(at.x).reshape(-1, 1, 1)

    def __repr__(self) -> str:
        return f"OnObjects({len(self.objects)} objects, {self.function!r})"
