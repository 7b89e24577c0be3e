r"""Draws of Gaussian processes: on a grid by the Fourier transform, after data by Matheron's rule."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.errors import Unreliable
from groundstate.math.arrays import as_tensor
from groundstate.math.kernels.base import Kernel, rows
from groundstate.math.kernels.geometry import Geometry
from groundstate.math.linalg.gaussian_process import draws

NEGLIGIBLE = 1e-6  # share of the variance that may be cut off without a word


def matheron(
    kernel: Kernel,
    x: Tensor,
    observed: Tensor,
    a: Tensor,
    factor: Tensor,
    spread: Tensor,
    n: int,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Posterior draws by Matheron's rule, ``(n, B, m)``.

    A prior draw at old and new inputs is corrected by what it missed at the old ones:
    :math:`f_* + k_*^\top K^{-1}(y - f - \varepsilon)`.

    Parameters
    ----------
    kernel : covariance
    x, observed : new ``(B, d)`` and old ``(N, d)`` inputs
    a : :math:`K^{-1}y`, ``(N, m)``
    factor : of K, ``(N, N)``
    spread : noise of the old observations beyond the kernel's own, ``(N,)``
    n : draws
    """
    both = torch.cat([x, observed])
    m = a.shape[1]
    smooth = kernel.of(Geometry(both, both))
    prior = draws(smooth, n * m, generator).reshape(n, m, len(both))
    own = kernel.diagonal(both) - kernel.diagonal(both, noise=False)
    own[len(x) :] += spread  # a weight divides the noise, so that spread may be negative
    noise = torch.randn(prior.shape, generator=generator, dtype=x.dtype, device=x.device)
    prior = prior + noise * own.clamp(min=0).sqrt()
    new, old = prior[..., : len(x)], prior[..., len(x) :]
    cross = kernel.of(Geometry(x, observed))  # (B, N)
    missed = torch.cholesky_solve(old.reshape(-1, len(observed)).T, factor)  # (N, n m)
    correction = (cross @ missed).T.reshape(n, m, len(x))
    return (new - correction).mT + cross @ a


def sample_path(
    kernel: Kernel,
    X: Any,
    n_samples: int = 1,
    mean: Any = 0.0,
    random_state: RandomState = None,
) -> Any:
    r"""Draws :math:`f = m + Lz` of a Gaussian process at rows, :math:`LL^\top = k(X, X)`.

    A matrix that is singular in floating point gets a jitter on its diagonal: 1e-10 of its mean,
    times ten as long as the factor fails.

    Parameters
    ----------
    kernel : covariance
    X : ``(n, d)``
    n_samples : draws
    mean : a number, or ``(n,)``
    random_state : source of the draws

    Returns
    -------
    ``(n_samples, n)``

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> sample_path(RBF(0.3), np.linspace(0, 1, 20)[:, None], 3, random_state=0).shape
    (3, 20)
    """
    as_tensor(X, "X")  # refuses what is not finite
    x, was_array = rows(X)
    generator = Key.of(random_state).fold("path").torch(x.device)
    centre = torch.as_tensor(mean).to(x)
    f = centre + draws(kernel.of(Geometry(x)), n_samples, generator)
    return f.detach().numpy() if was_array else f


def sample_field(
    kernel: Kernel, grid: Any, n_samples: int = 1, random_state: RandomState = None
) -> NDArray[np.float64]:
    r"""Draws of a stationary Gaussian field on a regular grid, by circulant embedding.

    The covariance on a torus of twice the size is diagonal under the Fourier transform, so a draw
    costs :math:`O(N\log N)`. Where the embedding is not positive the torus is doubled, twice at
    most; what is left below zero is cut off, and a warning says how much of the variance that is.

    Parameters
    ----------
    kernel : stationary
    grid : evenly spaced points ``(n,)``, or one such array for each axis
    n_samples : draws
    random_state : source of the draws

    Returns
    -------
    (n_samples, n₁, n₂, ...) array

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> sample_field(RBF(0.1), np.linspace(0, 1, 11), 3, random_state=0).shape
    (3, 11)
    """
    if not kernel.is_stationary():
        raise ValueError(f"circulant embedding needs a stationary kernel, got {kernel!r}")
    single = np.ndim(grid[0]) == 0
    axes = [np.asarray(g, float) for g in ([grid] if single else grid)]
    steps = [g[1] - g[0] if len(g) > 1 else 1.0 for g in axes]
    for g, h in zip(axes, steps, strict=True):
        if len(g) > 2 and not np.allclose(np.diff(g), h, rtol=1e-6):
            raise ValueError("the grid must be evenly spaced along each axis")
    spectrum, cut = _spectrum(kernel, axes, steps)
    if cut > NEGLIGIBLE:
        warnings.warn(
            f"the embedding of {kernel!r} on this grid is not positive: {cut:.1%} of its variance "
            "was cut off; use a shorter length scale, a wider grid, or sample_path",
            Unreliable,
            stacklevel=2,
        )
    size = spectrum.shape
    generator = Key.of(random_state).fold("field").torch()
    noise = torch.randn(n_samples, *size, 2, generator=generator, dtype=torch.float64)
    z = torch.view_as_complex(noise)
    dims = tuple(range(1, len(size) + 1))
    field = torch.fft.fftn(spectrum.sqrt() * z, dim=dims) / math.sqrt(math.prod(size))
    inside = (slice(None), *(slice(0, len(g)) for g in axes))
    out: NDArray[np.float64] = field.real[inside].numpy()
    return out


def gaussian_random_field(
    grid: Any, kernel: Kernel, n_samples: int = 1, random_state: RandomState = 0
) -> NDArray[np.float64]:
    """`sample_field` with the grid first.

    >>> from groundstate.math.kernels import RBF
    >>> gaussian_random_field(np.linspace(0, 1, 11), RBF(0.1), 3).shape
    (3, 11)
    """
    return sample_field(kernel, grid, n_samples, random_state)


def _spectrum(kernel: Kernel, axes: list[NDArray[Any]], steps: list[float]) -> tuple[Tensor, float]:
    """Eigenvalues of the circulant covariance, not negative, and the share that was cut off."""
    origin = np.zeros((1, len(axes)))
    noise = float(kernel.diag(origin)[0]) - float(kernel(origin, origin)[0, 0])
    for factor in (2, 4, 8):
        sizes = [factor * len(g) for g in axes]
        lags = [np.minimum(np.arange(s), s - np.arange(s)) * h for s, h in zip(sizes, steps)]
        points = np.stack([m.ravel() for m in np.meshgrid(*lags, indexing="ij")], 1)
        base = kernel(points, origin)[:, 0]
        base[0] += noise
        values = torch.fft.fftn(torch.from_numpy(base.reshape(sizes))).real
        if float(values.min()) >= -1e-9 * float(values.max()):
            break
    negative = -values.clamp(max=0).sum() / values.sum().clamp(min=torch.finfo(values.dtype).tiny)
    return values.clamp(min=0), float(negative)
