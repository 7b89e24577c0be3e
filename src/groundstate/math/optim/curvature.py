r"""Eigenvalues of the Hessian of a loss: all of them, or the outermost by Lanczos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.math.optim.flat import Flat, Loss, Params
from groundstate.math.optim.objective import Objective

FULL = 2000  # parameters up to which the Hessian is formed
ZERO = 1e-6  # relative size below which an eigenvalue counts as zero


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of a Hessian.

    Attributes
    ----------
    values : ascending; all ``(d,)``, or k Ritz values whose ends are those of the spectrum
    is_full : whether all are there
    gradient_norm : norm of the gradient at the point
    """

    values: Tensor
    is_full: bool
    gradient_norm: float

    @property
    def condition_number(self) -> float:
        return condition_number(self.values)


def hessian_spectrum(
    loss: Loss, params: Params, *data: Any, k: int | None = None, seed: int = 0
) -> Spectrum:
    r"""Eigenvalues of :math:`\nabla^2L(\theta)`.

    Up to 2000 parameters the Hessian is formed. Beyond that k steps of Lanczos need k products with
    it (two gradients each) and find both ends of the spectrum.

    Parameters
    ----------
    loss : ``loss(params, *data)``, a scalar written in torch
    params : a tensor, or name to tensor
    data : handed to the loss
    k : number of Lanczos steps; None takes all eigenvalues up to 2000 parameters, else 20
    seed : of the first Lanczos vector

    Examples
    --------
    >>> hessian_spectrum(lambda x: x[0] ** 2 - 3 * x[1] ** 2, torch.zeros(2)).values
    tensor([-6.,  2.])
    """
    flat = Flat(params)
    objective = Objective(flat.loss(loss, data), flat.start)
    norm = float(objective.gradient(flat.start).norm())
    d = flat.start.numel()
    if k is None and d <= FULL:
        return Spectrum(torch.linalg.eigvalsh(objective.hessian(flat.start)), True, norm)
    steps = min(d, 20 if k is None else k)
    if steps < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    first = torch.randn(d, generator=torch.Generator().manual_seed(seed)).to(flat.start)
    values = lanczos(objective.product(flat.start), first, steps)
    return Spectrum(values, len(values) == d, norm)


def lanczos(times: Callable[[Tensor], Tensor], first: Tensor, k: int) -> Tensor:
    r"""Ritz values of a symmetric map after k steps from a vector, ascending.

    Every new vector is made orthogonal to all before, twice, so no eigenvalue appears more than
    once by rounding.

    Examples
    --------
    >>> A = torch.diag(torch.arange(1.0, 101.0))
    >>> ends = lanczos(lambda v: A @ v, torch.ones(100), 60)
    >>> round(float(ends[0]), 3), round(float(ends[-1]), 3)
    (1.0, 100.0)
    """
    basis = torch.zeros(k, first.numel(), dtype=first.dtype, device=first.device)
    alpha, beta = [], []
    v = first / first.norm()
    scale = 0.0
    for j in range(k):
        basis[j] = v
        w = times(v)
        alpha.append(w @ v)
        for _ in range(2):
            w = w - basis[: j + 1].T @ (basis[: j + 1] @ w)
        size = w.norm()
        scale = max(scale, abs(float(alpha[-1])), float(size))
        if j + 1 == k or float(size) <= 100 * torch.finfo(w.dtype).eps * scale:
            break  # the vectors so far span an invariant space
        beta.append(size)
        v = w / size
    T = torch.diag(torch.stack(alpha))
    if beta:
        off = torch.diag(torch.stack(beta[: len(alpha) - 1]), 1)
        T = T + off + off.T
    return torch.linalg.eigvalsh(T)


def condition_number(values: Tensor) -> float:
    r""":math:`\kappa = \max|\lambda|/\min|\lambda|`; infinite where an eigenvalue is zero.

    Examples
    --------
    >>> condition_number(torch.tensor([-2.0, 1.0, 10.0]))
    10.0
    """
    sizes = torch.as_tensor(values).abs()
    least, most = float(sizes.min()), float(sizes.max())
    return most / least if least > 0 else float("inf")


Kind = Literal["minimum", "maximum", "saddle", "degenerate"]


@dataclass(frozen=True)
class Critical:
    """What a point of a loss is by the signs of its curvature.

    Attributes
    ----------
    kind : "minimum", "maximum", "saddle" or "degenerate"
    spectrum : eigenvalues it was decided by
    is_stationary : whether the gradient is small, :math:`\\le` ``gradient_tol``
    """

    kind: Kind
    spectrum: Spectrum
    is_stationary: bool


def critical_point(
    loss: Loss,
    params: Params,
    *data: Any,
    k: int | None = None,
    tol: float = ZERO,
    gradient_tol: float = 1e-4,
) -> Critical:
    r"""Minimum, maximum, saddle or degenerate, from the signs of the eigenvalues.

    Eigenvalues within :math:`\text{tol}\cdot\max|\lambda|` of zero decide nothing: with them and no
    two opposite signs the point is degenerate. A zero gradient alone says only "stationary".

    Parameters
    ----------
    loss, params, data, k : see ``hessian_spectrum``
    tol : relative zero of an eigenvalue
    gradient_tol : largest norm of the gradient of a stationary point

    Examples
    --------
    >>> critical_point(lambda x: x[0] ** 2 - x[1] ** 2, torch.zeros(2)).kind
    'saddle'
    """
    spectrum = hessian_spectrum(loss, params, *data, k=k)
    values = spectrum.values
    zero = tol * float(values.abs().max())
    up, down = bool((values > zero).any()), bool((values < -zero).any())
    kind: Kind = "degenerate"
    if up and down:
        kind = "saddle"
    elif bool((values > zero).all()):
        kind = "minimum"
    elif bool((values < -zero).all()):
        kind = "maximum"
    return Critical(kind, spectrum, spectrum.gradient_norm <= gradient_tol)
