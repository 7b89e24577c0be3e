r"""A Gaussian process known through its values at a few inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.kernels.gaussian_process.predictive import ProcessDistribution
from groundstate.energy.registering import registered
from groundstate.math.kernels import RBF, Geometry, Kernel, White
from groundstate.math.linalg.gaussian_process import cholesky

JITTER = 1e-8  # on the diagonal of the inducing points' covariance, relative to its mean


def _sparse() -> InducingProcessEnergy:
    energy = InducingProcessEnergy(1, 1, RBF(1.0) + White(0.1))
    points = torch.tensor([[0.0], [1.5]])
    energy.know(energy.kernel, points, torch.tensor([[0.3], [-1.0]]), 0.4 * torch.eye(2))
    return energy


@registered(
    r"e(x, y) = -\log N\bigl(y;\, t_x^\top\mu,\, k(x,x) - t_x^\top(I - S)t_x + \alpha\bigr)",
    _sparse,
)
class InducingProcessEnergy(ProcessDistribution):
    r"""The distribution of a new observation when the function is known through m inducing points u.

    With :math:`K_{uu} = LL^\top` the values at u are :math:`Lv`, and :math:`q(v) = N(\mu, S)`. Then
    :math:`e(x, y) = -\log N(y;\, t_x^\top\mu,\, k(x,x) - t_x^\top(I - S)t_x + \alpha)` with
    :math:`t_x = L^{-1}k_u(x)`.

    Parameters
    ----------
    d, m : numbers of inputs and outputs
    kernel : covariance; its free parameters are θ
    n : inducing points
    noise : α, variance of the noise of a new observation

    Attributes
    ----------
    theta : Parameter, logarithms of the free parameters of the kernel
    u : buffer, ``(n, d)``
    mu : buffer, ``(n, m)``
    root : buffer, ``(n, n)`` with :math:`S = RR^\top`
    shift, scale : buffers, ``(m,)``, that turn outputs back

    Examples
    --------
    >>> e = InducingProcessEnergy(1, 1, RBF(1.0)).double()
    >>> e.know(RBF(1.0), torch.zeros(1, 1).double(), torch.ones(1, 1).double(), torch.zeros(1, 1))
    >>> m, v = e.predict(torch.tensor([[0.0], [9.0]]).double())
    >>> m.round(decimals=3).flatten().tolist(), v.round(decimals=3).flatten().tolist()
    ([1.0, 0.0], [0.0, 1.0])
    """

    u: Tensor
    mu: Tensor
    root: Tensor

    def __init__(self, d: int, m: int, kernel: Kernel, n: int = 0, noise: float = 0.0) -> None:
        super().__init__(d, m, kernel, noise)
        self.register_buffer("u", torch.zeros(n, d))
        self.register_buffer("mu", torch.zeros(n, m))
        self.register_buffer("root", torch.zeros(n, n))

    def config(self) -> dict[str, Any]:
        return {**super().config(), "n": len(self.u)}

    @torch.no_grad()
    def know(self, kernel: Kernel, u: Tensor, mu: Tensor, root: Tensor) -> None:
        """Take a kernel, points ``(n, d)``, the mean ``(n, m)`` and a root ``(n, n)`` of S."""
        self.kernel = kernel
        self.theta = nn.Parameter(torch.as_tensor(kernel.theta).to(u))
        self.u, self.mu, self.root = (v.to(u).contiguous() for v in (u, mu, root))

    def whitened(self, x: Tensor) -> Tensor:
        r""":math:`t_x = L^{-1}k_u(x)`, ``(n, B)``."""
        L = inducing_factor(self.kernel, self.u, self.theta)
        K = self.kernel.of(Geometry(self.u, x), self.theta)
        return torch.linalg.solve_triangular(L, K, upper=False)

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """m(x) and v(x), both ``(B, m)``."""
        own = self.kernel.diagonal(x, self.theta)
        if not len(self.u):
            return self.shift.expand(len(x), self.m), own[:, None] * self.scale.square()
        t = self.whitened(x)
        v = own - t.square().sum(0) + (self.root.mT @ t).square().sum(0)
        mean = t.mT @ self.mu * self.scale + self.shift
        return mean, v.clamp(min=0.0)[:, None] * self.scale.square()

    def mean(self, x: Tensor) -> Tensor:
        """m(x), ``(B, m)``."""
        if not len(self.u):
            return self.shift.expand(len(x), self.m)
        return self.whitened(x).mT @ self.mu * self.scale + self.shift

    def joint(self, x: Tensor) -> Tensor:
        """Covariance of the function at these inputs, before scaling, ``(B, B)``."""
        prior = self.prior(x)
        if not len(self.u):
            return prior
        t = self.whitened(x)
        s = self.root.mT @ t
        return prior - t.mT @ t + s.mT @ s


def inducing_factor(kernel: Kernel, u: Tensor, theta: Tensor | None) -> Tensor:
    """The factor of the covariance of the inducing points, without noise, ``(n, n)``."""
    K = kernel.of(Geometry(u, u), theta)
    size = K.diagonal().mean()
    jitter = JITTER if K.dtype == torch.float64 else 1e-6
    return cholesky(K + jitter * size * torch.eye(len(K), dtype=K.dtype, device=K.device))
