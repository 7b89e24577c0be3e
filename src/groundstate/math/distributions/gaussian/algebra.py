r"""Sums, images, shadows, slices and products of Gaussian distributions.

A distribution is given as ``(mean, covariance)``, arrays or tensors ``(..., d)`` and ``(..., d, d)``, or as
a torch ``MultivariateNormal``, and comes back in kind. Leading dimensions are batches.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from groundstate.math.arrays import as_tensor, to_numpy

Index = int | Sequence[int] | slice


class Moments(NamedTuple):
    """Mean ``(..., d)`` and covariance ``(..., d, d)`` of a Gaussian distribution."""

    mean: Any
    covariance: Any


def of_gaussians(*names: str, arrays: Sequence[str] = ()) -> Callable[[Any], Any]:
    """Let a function of ``Moments`` take pairs and ``MultivariateNormal`` and answer in kind.

    Parameters
    ----------
    names : arguments that are distributions
    arrays : arguments that are plain arrays
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            given = {n: bound.arguments[n] for n in names if bound.arguments.get(n) is not None}
            flat = [part for p in given.values() if isinstance(p, tuple | list) for part in p]
            flat += [p.loc for p in given.values() if isinstance(p, MultivariateNormal)]
            flat += [bound.arguments[n] for n in arrays if n in bound.arguments]
            like = next((v for v in flat if isinstance(v, Tensor)), None)
            for name, value in given.items():
                bound.arguments[name] = _moments(value, name, like)
            for name in arrays:
                if bound.arguments.get(name) is not None:
                    bound.arguments[name] = as_tensor(bound.arguments[name], name, like)
            out = function(*bound.args, **bound.kwargs)
            if isinstance(next(iter(given.values()), None), MultivariateNormal):
                return in_torch(out)
            return out if like is not None else to_numpy(out)

        return call

    return decorate


def in_torch(out: Any) -> Any:
    """Moments as a ``MultivariateNormal``, other answers as they are."""
    return MultivariateNormal(*out, validate_args=False) if isinstance(out, Moments) else out


def _moments(value: Any, name: str, like: Tensor | None) -> Moments:
    if isinstance(value, MultivariateNormal):
        return Moments(value.loc, value.covariance_matrix)
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(
            f"{name} must be a pair (mean, covariance) or a MultivariateNormal, got "
            f"{type(value).__name__}"
        )
    mean, cov = (as_tensor(part, name, like) for part in value)
    mean = mean.unsqueeze(-1) if mean.ndim == 0 else mean
    cov = cov.reshape(*cov.shape[:-1], 1, 1) if cov.ndim == 0 else cov
    if cov.ndim < 2 or cov.shape[-1] != cov.shape[-2] or mean.shape[-1] != cov.shape[-1]:
        raise ValueError(
            f"{name} needs a mean (..., d) and a covariance (..., d, d), got shapes "
            f"{tuple(mean.shape)} and {tuple(cov.shape)}"
        )
    return Moments(mean, cov)


def factor(S: Tensor, what: str = "covariance") -> Tensor:
    """The lower Cholesky factor, or an error that names the matrix."""
    L, failed = torch.linalg.cholesky_ex(S)
    if bool(failed.any()):
        raise ValueError(
            f"the {what} is not positive definite; add noise to its diagonal or drop columns that "
            "are combinations of others"
        )
    return L


@of_gaussians("p", arrays=("A", "b"))
def affine(p: Any, A: Any, b: Any = 0.0) -> Any:
    r""":math:`Ax + b \sim N(Am + b,\ ASA^\top)`.

    Parameters
    ----------
    p : distribution of x, dimension d
    A : ``(..., k, d)``
    b : ``(..., k)``

    Examples
    --------
    >>> affine(([1.0, 0.0], [[3.0, 1.0], [1.0, 2.0]]), [[1.0, -1.0]], [2.0])
    Moments(mean=array([3.]), covariance=array([[3.]]))
    """
    mean, S = p
    return Moments((A @ mean.unsqueeze(-1)).squeeze(-1) + b, A @ S @ A.mT)


@of_gaussians("p", "q")
def add(p: Any, q: Any, sign: int = 1) -> Any:
    r""":math:`x \pm y \sim N(m_x \pm m_y,\ S_x + S_y)` for independent x, y: variances add, always.

    Examples
    --------
    >>> add((3.0, 4.0), (1.0, 5.0), sign=-1)
    Moments(mean=array([2.]), covariance=array([[9.]]))
    """
    if sign not in (1, -1):
        raise ValueError(f"sign is 1 for a sum and -1 for a difference, got {sign}")
    return Moments(p.mean + sign * q.mean, p.covariance + q.covariance)


@of_gaussians("p")
def marginal(p: Any, index: Index) -> Any:
    """The distribution of some coordinates: rows and columns are picked.

    Examples
    --------
    >>> marginal(([1.0, 0.0], [[3.0, 1.0], [1.0, 2.0]]), [1])
    Moments(mean=array([0.]), covariance=array([[2.]]))
    """
    keep = positions(index, p.mean.shape[-1])
    return Moments(p.mean[..., keep], p.covariance[..., keep, :][..., keep])


@of_gaussians("p", arrays=("value",))
def condition(p: Any, index: Index, value: Any, noise: float = 0.0) -> Any:
    r"""The other coordinates a given that coordinates b were seen at ``value``:

    .. math:: m_a + S_{ab}(S_{bb} + \text{noise}\,I)^{-1}(v - m_b), \qquad
              S_{aa} - S_{ab}(S_{bb} + \text{noise}\,I)^{-1}S_{ba}

    Parameters
    ----------
    p : joint distribution, dimension d
    index : coordinates that were seen
    value : ``(..., k)``
    noise : variance of the error with which they were seen

    Examples
    --------
    >>> mean, cov = condition(([0.0, 0.0], [[3.0, 1.0], [1.0, 2.0]]), [0], [1.0])
    >>> mean.round(6), cov.round(6)
    (array([0.333333]), array([[1.666667]]))
    """
    d = p.mean.shape[-1]
    b = positions(index, d)
    a = [i for i in range(d) if i not in set(b)]
    value = value.unsqueeze(-1) if value.ndim == 0 else value
    if value.shape[-1] != len(b):
        raise ValueError(f"value has {value.shape[-1]} numbers for {len(b)} seen coordinates")
    if noise < 0:
        raise ValueError(f"noise is a variance, at least 0, got {noise}")
    S = p.covariance
    Sbb = S[..., b, :][..., b]
    if noise:
        Sbb = Sbb + noise * torch.eye(len(b), dtype=S.dtype, device=S.device)
    L = factor(Sbb, "covariance of what was seen")
    half = torch.linalg.solve_triangular(L, S[..., b, :][..., a], upper=False)
    off = (value - p.mean[..., b]).unsqueeze(-1)
    white = torch.linalg.solve_triangular(L, off, upper=False)
    mean = p.mean[..., a] + (half.mT @ white).squeeze(-1)
    cov = S[..., a, :][..., a] - half.mT @ half
    return Moments(mean, cov.expand(*mean.shape[:-1], *cov.shape[-2:]))


@of_gaussians("p", "q")
def product(p: Any, q: Any) -> Any:
    r"""The distribution :math:`\propto p(x)\,q(x)`: precisions add,
    :math:`S = (S_p^{-1} + S_q^{-1})^{-1}` and :math:`m = S(S_p^{-1}m_p + S_q^{-1}m_q)`.

    Computed as :math:`S_p - S_p(S_p + S_q)^{-1}S_p`, so that one of the two may be singular.

    Examples
    --------
    >>> product((0.0, 1.0), (1.0, 1.0))
    Moments(mean=array([0.5]), covariance=array([[0.5]]))
    """
    L = factor(p.covariance + q.covariance, "sum of the covariances")
    half = torch.linalg.solve_triangular(L, p.covariance, upper=False)
    gap = (q.mean - p.mean).unsqueeze(-1)
    white = torch.linalg.solve_triangular(L, gap, upper=False)
    mean = p.mean + (half.mT @ white).squeeze(-1)
    return Moments(mean, p.covariance - half.mT @ half)


@of_gaussians("p", arrays=("A",))
def expected_quadratic(p: Any, A: Any) -> Any:
    r""":math:`E[x^\top A x] = \mathrm{tr}(AS) + m^\top A m`.

    Examples
    --------
    >>> expected_quadratic(([1.0, 2.0], [[3.0, 1.0], [1.0, 2.0]]), [[1.0, 0.0], [0.0, 1.0]])
    10.0
    """
    m = p.mean.unsqueeze(-1)
    return (A * p.covariance.mT).sum((-2, -1)) + (m.mT @ A @ m).squeeze(-1).squeeze(-1)


def positions(index: Index, d: int) -> list[int]:
    """Coordinates as a list, counted from the front, or an error."""
    if isinstance(index, slice):
        return list(range(d))[index]
    found = [int(i) for i in ([index] if isinstance(index, int) else index)]
    if any(not -d <= i < d for i in found) or len({i % d for i in found}) != len(found):
        raise ValueError(f"coordinates {found} are not different numbers below {d}")
    return [i % d for i in found]
