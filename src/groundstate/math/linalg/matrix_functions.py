r"""Functions of matrices: logarithm, roots and powers, with a gradient at repeated eigenvalues too.

For a symmetric :math:`A = Q\Lambda Q^\top` a function is :math:`f(A) = Qf(\Lambda)Q^\top`, and its
derivative in the direction E is (Daleckii and Krein)

.. math:: Q\,\bigl(K\circ(Q^\top EQ)\bigr)\,Q^\top, \qquad
    K_{ij} = \frac{f(\lambda_i) - f(\lambda_j)}{\lambda_i - \lambda_j},\quad
    K_{ij} = f'(\lambda_i)\ \text{where equal}.

Automatic differentiation through the eigenvectors divides by :math:`\lambda_i - \lambda_j` instead
and gives NaN there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import Unsupported
from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import looks_hermitian, square

Scalar = Callable[[Tensor], Tensor]


@takes_arrays("A")
def spd_function(A: Any, f: Scalar, df: Scalar | None = None, *, positive: bool = True) -> Any:
    r""":math:`f(A) = Q f(\Lambda) Q^\top` of symmetric positive definite matrices.

    Differentiable twice in A, also where eigenvalues repeat.

    Parameters
    ----------
    A : ``(..., n, n)``, symmetric (Hermitian)
    f : function of a tensor of eigenvalues, entry by entry
    df : its derivative; None differentiates f
    positive : refuse eigenvalues that are not above zero; False is for functions of all reals

    Examples
    --------
    >>> spd_function([[2.0, 0.0], [0.0, 3.0]], torch.square).round(12).tolist()
    [[4.0, 0.0], [0.0, 9.0]]
    """
    if not looks_hermitian(square(A)):
        raise ValueError("A must be symmetric; pass (A + A.T) / 2 if the difference is rounding")
    return _of_symmetric(A, f, df, positive)


@takes_arrays("A")
def logm(A: Any) -> Any:
    r"""The matrix logarithm, :math:`e^{\log A} = A`.

    Symmetric positive definite matrices have a gradient (``spd_function``); others are handed to
    scipy and have none. :math:`\log(AB) = \log A + \log B` only where A and B commute.

    Parameters
    ----------
    A : ``(..., n, n)`` without eigenvalues on the negative real axis or at zero

    Examples
    --------
    >>> logm([[3.0, 1.0], [1.0, 2.0]]).round(7).tolist()
    [[1.0199234, 0.4304089], [0.4304089, 0.5895145]]
    """
    if looks_hermitian(square(A)):
        return _of_symmetric(A, torch.log, torch.reciprocal)
    from scipy.linalg import logm as general

    return _by_scipy(A, general, "logm")


@takes_arrays("A")
def sqrtm(A: Any) -> Any:
    r"""The principal square root, :math:`A^{1/2}A^{1/2} = A`; see ``logm`` for what has a gradient.

    Examples
    --------
    >>> sqrtm([[3.0, 1.0], [1.0, 2.0]]).round(7).tolist()
    [[1.7013016, 0.3249197], [0.3249197, 1.3763819]]
    """
    if looks_hermitian(square(A)):
        return _of_symmetric(A, torch.sqrt, lambda x: 0.5 * x.rsqrt())
    from scipy.linalg import sqrtm as general

    return _by_scipy(A, general, "sqrtm")


@takes_arrays("A")
def inv_sqrtm(A: Any) -> Any:
    r""":math:`A^{-1/2}`, the inverse of the principal root; see ``logm`` for what has a gradient.

    Examples
    --------
    >>> inv_sqrtm([[3.0, 1.0], [1.0, 2.0]]).round(7).tolist()
    [[0.6155367, -0.1453085], [-0.1453085, 0.7608452]]
    """
    if looks_hermitian(square(A)):
        return _of_symmetric(A, torch.rsqrt, lambda x: -0.5 * x.pow(-1.5))
    from scipy.linalg import sqrtm as general

    return _by_scipy(A, lambda a: np.linalg.inv(general(a)), "inv_sqrtm")


@takes_arrays("A")
def powm(A: Any, p: float) -> Any:
    r"""The principal power :math:`A^p = e^{p\log A}`; see ``logm`` for what has a gradient.

    Parameters
    ----------
    A : ``(..., n, n)``
    p : real exponent

    Examples
    --------
    >>> powm([[4.0, 0.0], [0.0, 9.0]], 1.5).round(12).tolist()
    [[8.0, 0.0], [0.0, 27.0]]
    """
    if looks_hermitian(square(A)):
        return _of_symmetric(A, lambda x: x.pow(p), lambda x: p * x.pow(p - 1))
    from scipy.linalg import fractional_matrix_power as general

    return _by_scipy(A, lambda a: general(a, p), "powm")


def _of_symmetric(A: Tensor, f: Scalar, df: Scalar | None, positive: bool = True) -> Tensor:
    A = 0.5 * (A + A.mH)
    values, Q = torch.linalg.eigh(A.detach())
    if positive:
        floor = A.shape[-1] * torch.finfo(values.dtype).eps * values.abs().amax(-1)
        if not bool((values[..., 0] > floor).all()):
            raise np.linalg.LinAlgError(
                f"A is not positive definite: its least eigenvalue is {float(values.min()):.3g}; "
                "add a multiple of the identity or leave out dependent directions"
            )
    out: Tensor = _Spectral.apply(A, values, Q, f, df or _derivative(f))
    return out


def _by_scipy(A: Tensor, general: Callable[[Any], Any], name: str) -> Tensor:
    if A.requires_grad:
        raise Unsupported(
            f"{name} has a gradient for symmetric positive definite matrices only; "
            "pass A.detach(), or (A + A.T) / 2 if the difference is rounding"
        )
    values = torch.linalg.eigvals(A)
    size = values.abs().amax(-1, keepdim=True)
    floor = A.shape[-1] * torch.finfo(A.dtype).eps * size
    if bool(((values.imag.abs() <= floor) & (values.real <= floor)).any()):
        raise np.linalg.LinAlgError(
            f"{name} needs a matrix without eigenvalues at or below zero on the real axis; the "
            f"least real part is {float(values.real.min()):.3g}"
        )
    flat = A.reshape(-1, *A.shape[-2:]).cpu().numpy()
    found = np.stack([general(a) for a in flat]).reshape(A.shape)
    if not A.is_complex() and np.iscomplexobj(found):
        found = found.real  # no eigenvalue lies on the cut, so that the principal branch is real
    return torch.as_tensor(found).to(A)


def _derivative(f: Scalar) -> Scalar:
    """The derivative of a function that works entry by entry."""

    def slope(x: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            (found,) = torch.autograd.grad(f(leaf).sum(), leaf)
        return found.detach()

    return slope


def first_difference(values: Tensor, f: Scalar, df: Scalar) -> Tensor:
    r""":math:`f[\lambda_i, \lambda_j]`, ``(..., n, n)``.

    Below a relative gap of :math:`\varepsilon^{1/3}` the slope in the middle is nearer to it than
    the quotient, whose digits cancel.
    """
    a, b = values[..., :, None], values[..., None, :]
    close, gap = _near(a, b)
    fa = f(values)
    quotient = (fa[..., :, None] - fa[..., None, :]) / torch.where(close, 1.0, gap)
    return torch.where(close, df(0.5 * (a + b)), quotient)


def second_difference(values: Tensor, f: Scalar, df: Scalar) -> Tensor:
    r""":math:`f[\lambda_i, \lambda_k, \lambda_j]`, ``(..., n, n, n)`` in the order i, k, j.

    It is the difference of two first ones over the widest gap of the three numbers, and half the
    second derivative in their middle where all are close.
    """
    n = values.shape[-1]
    shape = (*values.shape, n, n)
    three = torch.stack([
        values[..., :, None, None].expand(shape),
        values[..., None, :, None].expand(shape),
        values[..., None, None, :].expand(shape),
    ]).sort(0).values  # fmt: skip
    low, middle, high = three.unbind(0)

    def first(a: Tensor, b: Tensor) -> Tensor:
        close, gap = _near(a, b)
        quotient = (f(a) - f(b)) / torch.where(close, 1.0, gap)
        return torch.where(close, df(0.5 * (a + b)), quotient)

    close, gap = _near(high, low, 0.25)
    wide = (first(middle, high) - first(low, middle)) / torch.where(close, 1.0, gap)
    return torch.where(close, 0.5 * _derivative(df)((low + middle + high) / 3), wide)


def _near(a: Tensor, b: Tensor, power: float = 1 / 3) -> tuple[Tensor, Tensor]:
    gap = a - b
    tol = torch.finfo(gap.dtype).eps ** power
    return gap.abs() <= tol * torch.maximum(a.abs(), b.abs()), gap


class _Spectral(torch.autograd.Function):
    """f(A) from the eigenvalues and eigenvectors of A."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, values: Tensor, Q: Tensor, f: Scalar, df: Scalar) -> Tensor:
        ctx.save_for_backward(A, values, Q)
        ctx.f, ctx.df = f, df
        return (Q * f(values)[..., None, :]) @ Q.mH

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        A, values, Q = ctx.saved_tensors
        out = _Frechet.apply(A, grads[0], values, Q, ctx.f, ctx.df)
        return out, None, None, None, None


class _Frechet(torch.autograd.Function):
    """The derivative of f(A) in the direction G, itself differentiable in A and G."""

    @staticmethod
    def forward(
        ctx: Any, A: Tensor, G: Tensor, values: Tensor, Q: Tensor, f: Scalar, df: Scalar
    ) -> Tensor:
        K = first_difference(values, f, df)
        ctx.save_for_backward(G, values, Q, K)
        ctx.f, ctx.df = f, df
        return Q @ (K * (Q.mH @ G @ Q)) @ Q.mH

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        G, values, Q, K = ctx.saved_tensors
        g, h = Q.mH @ G @ Q, Q.mH @ grads[0] @ Q
        to_A = None
        if ctx.needs_input_grad[0]:
            D = second_difference(values, ctx.f, ctx.df).to(g.dtype)
            both = torch.einsum("...ik,...ikj,...kj->...ij", g.mH, D, h)
            both = both + torch.einsum("...ik,...ikj,...kj->...ij", h, D, g.mH)
            to_A = Q @ both @ Q.mH
        return to_A, Q @ (K * h) @ Q.mH, None, None, None, None
