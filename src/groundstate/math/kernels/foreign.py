r"""Kernels of another library, as objects that know their own parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.math.kernels.base import Kernel
from groundstate.math.kernels.geometry import Geometry

STEP = 1e-5  # in theta, of the slopes that the object does not give
BLOCK = 256  # rows whose matrix is formed for its diagonal


@dataclass(frozen=True, repr=False)
class Foreign(Kernel):
    r""":math:`k(X, Z)` by an object with ``theta``, ``bounds``, ``clone_with_theta`` and ``diag``, which
    gives its matrix when called and, with ``eval_gradient=True``, the slopes in theta: the protocol of
    scikit-learn's kernels.

    Parameters
    ----------
    kernel : the object

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import PairwiseKernel
    >>> twin = Foreign(PairwiseKernel(metric="linear"))
    >>> twin(np.eye(2)).tolist(), twin.n_dims
    ([[1.0, 0.0], [0.0, 1.0]], 1)
    """

    kernel: Any

    def is_stationary(self) -> bool:
        return bool(self.kernel.is_stationary())

    @property
    def n_dims(self) -> int:
        return len(self.kernel.theta)

    @property
    def theta(self) -> NDArray[np.float64]:
        return np.asarray(self.kernel.theta, dtype=np.float64)

    @property
    def bounds(self) -> NDArray[np.float64]:
        return np.asarray(self.kernel.bounds, dtype=np.float64).reshape(-1, 2)

    def clone_with_theta(self, theta: Any) -> Self:
        theta = np.asarray(theta, float).reshape(-1)
        self._check_size(len(theta))
        return type(self)(self.kernel.clone_with_theta(theta))

    def of(self, at: Geometry, theta: Tensor | None = None) -> Tensor:
        if at.x.ndim == 3:  # pairs of single rows
            return self.diagonal(at.x[:, 0], theta, noise=at.same)[:, None, None]
        x, z = (v.detach().double().cpu().numpy() for v in (at.x, at.z))

        def values(kernel: Any) -> Any:
            return kernel(x) if at.same else kernel(x, z)

        if not at.same or theta is None or not theta.requires_grad or not self.n_dims:
            return self._at(theta, values, at.x)
        K, slopes = self._chosen(theta)(x, eval_gradient=True)
        return _with_slopes(K, slopes, theta, at.x)

    def diagonal(self, x: Tensor, theta: Tensor | None = None, *, noise: bool = True) -> Tensor:
        rows = x.detach().double().cpu().numpy()

        def values(kernel: Any) -> Any:
            if noise:
                return kernel.diag(rows)
            parts = (rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK))
            return np.concatenate([np.diagonal(kernel(p, p.copy())) for p in parts])

        return self._at(theta, values, x)

    def _chosen(self, theta: Tensor | None) -> Any:
        if theta is None:
            return self.kernel
        return self.kernel.clone_with_theta(theta.detach().double().cpu().numpy())

    def _at(self, theta: Tensor | None, values: Any, like: Tensor) -> Tensor:
        """Values at theta, with slopes by differences where they are asked for."""
        found = np.asarray(values(self._chosen(theta)))
        if theta is None or not theta.requires_grad or not self.n_dims:
            return torch.as_tensor(np.ascontiguousarray(found)).to(like)
        middle = theta.detach().double().cpu().numpy()
        slopes = []
        for step in STEP * np.eye(len(middle)):
            up, down = (self.kernel.clone_with_theta(middle + s * step) for s in (1, -1))
            slopes.append((values(up) - values(down)) / (2 * STEP))
        return _with_slopes(found, np.stack(slopes, -1), theta, like)

    def _jacobian(self, x: Tensor) -> tuple[Tensor, Tensor]:
        K, slopes = self.kernel(x.detach().double().cpu().numpy(), eval_gradient=True)
        return torch.as_tensor(K).to(x), torch.as_tensor(slopes).to(x)

    def __repr__(self) -> str:
        return repr(self.kernel)


def _with_slopes(values: Any, slopes: Any, theta: Tensor, like: Tensor) -> Tensor:
    """Values whose derivatives in theta are the slopes."""
    K, dK = (torch.as_tensor(np.ascontiguousarray(v)).to(like) for v in (values, slopes))
    return K + dK @ (theta - theta.detach()).to(like)
