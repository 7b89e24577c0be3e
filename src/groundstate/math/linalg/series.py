r"""Exponential and logarithm by their power series, to look at; ``torch.linalg.matrix_exp`` and
``logm`` are what to compute with.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from groundstate.errors import Unreliable
from groundstate.math.arrays import takes_arrays
from groundstate.math.linalg.checks import eye_like, square


@takes_arrays("A")
def exp_series(A: Any, terms: int = 20, *, partial: bool = False) -> Any:
    r""":math:`\sum_{k=0}^{K-1} A^k/k!`, which converges to :math:`e^A` for every A.

    Parameters
    ----------
    A : ``(..., n, n)``
    terms : K
    partial : give all partial sums, ``(K, ..., n, n)``

    Examples
    --------
    >>> exp_series([[1.0]]).round(12).tolist()
    [[2.718281828459]]
    """
    if terms < 1:
        raise ValueError(f"terms must be at least 1, got {terms}")
    term = eye_like(square(A)).expand(A.shape)
    sums = [term]
    for k in range(1, terms):
        term = term @ A / k
        sums.append(sums[-1] + term)
    return torch.stack(sums) if partial else sums[-1]


@takes_arrays("A")
def log_series(A: Any, terms: int = 20, *, partial: bool = False) -> Any:
    r""":math:`\sum_{k=1}^{K} \frac{(-1)^{k+1}}k (A - I)^k`, which converges to :math:`\log A` only where
    the spectral radius of :math:`A - I` is below 1; elsewhere it warns.

    Parameters
    ----------
    A : ``(..., n, n)``
    terms : K
    partial : give all partial sums, ``(K, ..., n, n)``

    Examples
    --------
    >>> log_series([[1.2, 0.1], [0.1, 0.9]]).round(7).tolist()
    [[0.1781156, 0.0961908], [0.0961908, -0.1104569]]
    """
    if terms < 1:
        raise ValueError(f"terms must be at least 1, got {terms}")
    X = square(A) - eye_like(A)
    radius = float(torch.linalg.eigvals(X.detach()).abs().max())
    if not radius < 1:
        warnings.warn(
            f"the logarithmic series diverges: A - I has spectral radius {radius:.4g}, and it "
            "converges below 1 only; use logm",
            Unreliable,
            stacklevel=3,
        )
    power = X
    sums = [X]
    for k in range(2, terms + 1):
        power = -power @ X
        sums.append(sums[-1] + power / k)
    return torch.stack(sums) if partial else sums[-1]
