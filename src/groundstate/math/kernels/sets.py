r"""A kernel on sets of vectors, and the check that a function is a kernel at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.kernels.base import Kernel, rows
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.kernels.texts import PsdReport, check_psd, cosine


@dataclass(frozen=True)
class SetKernel:
    r""":math:`k(A, B) = \frac1{|A||B|}\sum_{a\in A}\sum_{b\in B}k(a, b)`: inner products of the mean
    embeddings of sets of vectors.

    Parameters
    ----------
    base : kernel of the vectors
    normalize : divide by :math:`\sqrt{k(A, A)k(B, B)}`

    Examples
    --------
    >>> from groundstate.math.kernels import Linear
    >>> sets = [np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[3.0, 0.0]])]
    >>> SetKernel(Linear())(sets).tolist()
    [[2.0, 3.0], [3.0, 9.0]]
    """

    base: Kernel
    normalize: bool = False

    def __call__(self, A: Sequence[Any], B: Sequence[Any] | None = None) -> Any:
        """The matrix of two lists of sets ``(n_i, d)``, ``(len(A), len(B))``."""
        left, arrays = _sets(A, "A")
        right = left if B is None else _sets(B, "B")[0]
        sizes = torch.tensor([len(b) for b in right], device=left[0].device)
        which = torch.repeat_interleave(torch.arange(len(right), device=sizes.device), sizes)
        joined = torch.cat(right).to(left[0])
        out = []
        for a in left:
            mean = self.base.of(Geometry(a, joined)).mean(0)  # (all rows of B,)
            out.append(mean.new_zeros(len(right)).index_add(0, which, mean) / sizes)
        K = torch.stack(out)
        if self.normalize:
            K = cosine(K, self._norms(left), self._norms(right))
        return K.detach().numpy() if arrays else K

    def diag(self, A: Sequence[Any]) -> Any:
        """:math:`k(A, A)` of each set, ``(len(A),)``."""
        left, arrays = _sets(A, "A")
        norms = self._norms(left)
        values = (norms > 0).to(norms) if self.normalize else norms
        return values.detach().numpy() if arrays else values

    def _norms(self, sets: list[Tensor]) -> Tensor:
        return torch.stack([self.base.of(Geometry(a, a)).mean() for a in sets])


def _sets(sets: Sequence[Any], name: str) -> tuple[list[Tensor], bool]:
    found = [rows(one) for one in sets]
    if not found or any(len(x) == 0 for x, _ in found):
        raise ShapeError(f"{name} must be a list of sets with at least one vector each")
    widths = {x.shape[1] for x, _ in found}
    if len(widths) > 1:
        raise ShapeError(f"the vectors of {name} have several widths: {sorted(widths)}")
    first = found[0][0]
    return [x.to(first) for x, _ in found], found[0][1]


def check_kernel(k: Callable[..., Any], X: Any, tol: float = 1e-10) -> PsdReport:
    r"""Whether a function is a kernel on these objects: symmetric, with no eigenvalue of its matrix
    below zero.

    A kernel is a similarity, :math:`k(a, b) = \langle\varphi(a), \varphi(b)\rangle`: larger is
    closer. Minus a distance is none.

    Parameters
    ----------
    k : ``k(X, X) -> (n, n)`` on rows, texts, sets or any list of objects
    X : the objects
    tol : how far below zero, as a share of the largest eigenvalue, rounding may lead

    Examples
    --------
    >>> from scipy.spatial.distance import cdist
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> check_kernel(lambda a, b: np.exp(-cdist(a, b)), X).is_psd
    True
    >>> check_kernel(lambda a, b: -cdist(a, b), X).is_psd
    False
    """
    if not callable(k):
        raise TypeError(f"a kernel is a function of two lists of objects, got {k!r:.60}")
    values = k(X, X)
    K = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if K.shape != (len(X), len(X)):
        raise ShapeError(
            f"a kernel of {len(X)} objects must return a matrix ({len(X)}, {len(X)}), got shape "
            f"{K.shape}; wrap a function of two objects as "
            "lambda A, B: [[k(a, b) for b in B] for a in A]"
        )
    return check_psd(K, tol)
