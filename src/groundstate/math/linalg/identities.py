r"""Identities of matrix algebra as a table: a statement, and a function that measures how far it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import eye_like, square

inv, det = torch.linalg.inv, torch.linalg.det


@dataclass(frozen=True)
class Identity:
    r"""One identity: ``identity(A, B, C, r)`` is the relative gap between its two sides.

    Attributes
    ----------
    statement : in words and symbols
    sides : left and right side of matrices A, B, C ``(..., n, n)`` and a number r
    """

    statement: str
    sides: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]

    def __call__(self, A: Any, B: Any, C: Any, r: Any = 2.0) -> Any:
        return _gap(self.sides, A, B, C, r)


@takes_arrays("A", "B", "C", "r")
def _gap(sides: Any, A: Any, B: Any, C: Any, r: Any) -> Any:
    for name, value in (("A", A), ("B", B), ("C", C)):
        square(value, name)
    left, right = sides(A, B, C, r)
    axes = tuple(range(A.ndim - 2, left.ndim))
    if not axes:  # numbers, one for each matrix of a batch
        return (left - right).abs() / (1 + torch.maximum(left.abs(), right.abs()))
    size = torch.maximum(left.abs().amax(axes), right.abs().amax(axes))
    return (left - right).abs().amax(axes) / (1 + size)


def trace(A: Tensor) -> Tensor:
    return A.diagonal(dim1=-2, dim2=-1).sum(-1)


def _sum_of_outer(A: Tensor, B: Tensor, C: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    return A @ B, sum((A[..., :, [k]] @ B[..., [k], :] for k in range(A.shape[-1])), 0 * A)


def _inner_products(A: Tensor, B: Tensor, C: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    return A @ B, (A[..., :, None, :] * B.mT[..., None, :, :]).sum(-1)


def _columns(A: Tensor, B: Tensor, C: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    units = eye_like(A).unbind(-1)
    return A, torch.stack([(A @ e[:, None])[..., 0] for e in units], -1)


def _similar(A: Tensor, B: Tensor) -> Tensor:
    return torch.linalg.solve(B, A @ B)


def _polynomial(A: Tensor) -> Tensor:
    """Traces of the powers of A, which fix the eigenvalues."""
    power, out = A, []
    for _ in range(A.shape[-1]):
        out.append(trace(power))
        power = power @ A
    return torch.stack(out, -1)


def _r(r: Tensor) -> Tensor:
    return r[..., None, None]


identities: dict[str, Identity] = {
    "product-inner": Identity(
        "(AB)_ij is the inner product of row i and column j", _inner_products
    ),
    "product-outer": Identity("AB is the sum of column k of A times row k of B", _sum_of_outer),
    "columns": Identity("column j of A is the image of the unit vector e_j", _columns),
    "associative": Identity("(AB)C = A(BC)", lambda A, B, C, r: ((A @ B) @ C, A @ (B @ C))),
    "distributive": Identity("A(B + C) = AB + AC", lambda A, B, C, r: (A @ (B + C), A @ B + A @ C)),
    "inverse": Identity(
        "A inv(A) = I", lambda A, B, C, r: (A @ inv(A), eye_like(A).expand(A.shape))
    ),
    "inverse-inverse": Identity("inv(inv(A)) = A", lambda A, B, C, r: (inv(inv(A)), A)),
    "inverse-product": Identity(
        "inv(AB) = inv(B) inv(A)", lambda A, B, C, r: (inv(A @ B), inv(B) @ inv(A))
    ),
    "inverse-scalar": Identity(
        "inv(rA) = inv(A) / r", lambda A, B, C, r: (inv(_r(r) * A), inv(A) / _r(r))
    ),
    "inverse-transpose": Identity("inv(Aᵀ) = inv(A)ᵀ", lambda A, B, C, r: (inv(A.mT), inv(A).mT)),
    "transpose-transpose": Identity("(Aᵀ)ᵀ = A", lambda A, B, C, r: (A.mT.mT, A)),
    "transpose-sum": Identity("(A + B)ᵀ = Aᵀ + Bᵀ", lambda A, B, C, r: ((A + B).mT, A.mT + B.mT)),
    "transpose-product": Identity("(AB)ᵀ = Bᵀ Aᵀ", lambda A, B, C, r: ((A @ B).mT, B.mT @ A.mT)),
    "trace-linear": Identity(
        "Tr(A + rB) = Tr A + r Tr B",
        lambda A, B, C, r: (trace(A + _r(r) * B), trace(A) + r * trace(B)),
    ),
    "trace-transpose": Identity("Tr Aᵀ = Tr A", lambda A, B, C, r: (trace(A.mT), trace(A))),
    "trace-product": Identity("Tr(AB) = Tr(BA)", lambda A, B, C, r: (trace(A @ B), trace(B @ A))),
    "trace-cyclic": Identity(
        "Tr(ABC) = Tr(BCA) = Tr(CAB), cyclic orders only",
        lambda A, B, C, r: (
            torch.stack([trace(A @ B @ C), trace(A @ B @ C)], -1),
            torch.stack([trace(B @ C @ A), trace(C @ A @ B)], -1),
        ),
    ),
    "trace-similar": Identity(
        "Tr(inv(B) A B) = Tr A", lambda A, B, C, r: (trace(_similar(A, B)), trace(A))
    ),
    "det-product": Identity(
        "det(AB) = det A det B", lambda A, B, C, r: (det(A @ B), det(A) * det(B))
    ),
    "det-transpose": Identity("det Aᵀ = det A", lambda A, B, C, r: (det(A.mT), det(A))),
    "det-inverse": Identity(
        "det inv(A) = 1 / det A", lambda A, B, C, r: (det(inv(A)) * det(A), det(A) / det(A))
    ),
    "det-scalar": Identity(
        "det(rA) = rⁿ det A", lambda A, B, C, r: (det(_r(r) * A), r ** A.shape[-1] * det(A))
    ),
    "det-triangular": Identity(
        "det of a triangular matrix is the product of its diagonal",
        lambda A, B, C, r: (det(A.triu()), A.diagonal(dim1=-2, dim2=-1).prod(-1)),
    ),
    "det-similar": Identity(
        "det(inv(B) A B) = det A", lambda A, B, C, r: (det(_similar(A, B)), det(A))
    ),
    "similar": Identity(
        "inv(B) A B has the eigenvalues of A (traces of powers)",
        lambda A, B, C, r: (_polynomial(_similar(A, B)), _polynomial(A)),
    ),
}
