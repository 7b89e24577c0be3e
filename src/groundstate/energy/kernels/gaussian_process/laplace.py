r"""Classes from Gaussian processes by Laplace's approximation of the latent function."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.kernels import RBF, Geometry, Kernel
from groundstate.math.linalg.gaussian_process import cholesky

# a logistic function as a sum of error functions (Williams and Barber, 1998)
LAMBDAS = (0.41, 0.4, 0.37, 0.44, 0.39)
COEFS = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)
TINY = 1e-15


def smoothed(mean: Tensor, var: Tensor) -> Tensor:
    r""":math:`\int \sigma(f)\,N(f; m, v)\,df`, ``(B,)``."""
    lam, coef = (mean.new_tensor(v)[:, None] for v in (LAMBDAS, COEFS))
    each = torch.erf(lam * mean / (1 + 2 * var * lam.square()).sqrt())
    p: Tensor = 0.5 * (coef * each).sum(0) + 0.5 * coef.sum()
    return p.clamp(TINY, 1 - TINY)


def _example() -> LaplaceEnergy:
    energy = LaplaceEnergy(1, RBF(1.0), 3)
    energy.x.copy_(torch.tensor([[-1.0], [0.5], [2.0]]))
    energy.g.copy_(torch.tensor([-0.3, 0.4, 0.2]))
    energy.s.copy_(torch.tensor([0.4, 0.45, 0.5]))
    return energy


@registered(r"e(x, y) = -\log\int \sigma((2y - 1)f)\,N(f;\, m(x), v(x))\,df", _example)
class LaplaceEnergy(Energy):
    r"""Two classes by a latent function, :math:`e(x, y) = -\log\int\sigma((2y-1)f)\,N(f; m(x), v(x))\,df`.

    With the posterior mode :math:`\hat f` of the rows, :math:`g = w(y - \sigma(\hat f))` and
    :math:`W = w\,\sigma(\hat f)(1 - \sigma(\hat f))`: :math:`m(x) = k_x^\top g` and
    :math:`v(x) = k(x, x) - k_x^\top(K + W^{-1})^{-1}k_x`.

    Parameters
    ----------
    d : number of features
    kernel : covariance of the latent function
    n : rows

    Attributes
    ----------
    theta : Parameter, logarithms of the free parameters of the kernel; without gradients
    x : buffer, ``(n, d)``
    g : buffer, ``(n,)``, slope of the log likelihood at the mode
    s : buffer, ``(n,)``, square roots of W

    Examples
    --------
    >>> e = LaplaceEnergy(1, RBF(1.0))
    >>> torch.exp(-e.table("y", x=torch.zeros(1, 1))).round(decimals=3).tolist()
    [[0.5, 0.5]]
    """

    normalised = frozenset({"y"})
    x: Tensor
    g: Tensor
    s: Tensor

    def __init__(self, d: int, kernel: Kernel, n: int = 0) -> None:
        super().__init__(x=Real(d), y=Finite(2))
        self.d, self.kernel = d, kernel
        self.theta = nn.Parameter(torch.as_tensor(kernel.theta, dtype=torch.get_default_dtype()))
        self.theta.requires_grad_(False)
        self.register_buffer("x", torch.zeros(n, d))
        self.register_buffer("g", torch.zeros(n))
        self.register_buffer("s", torch.zeros(n))
        self._factor: Tensor | None = None

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "kernel": self.kernel, "n": len(self.x)}

    def observe(self, kernel: Kernel, x: Tensor, g: Tensor, s: Tensor) -> None:
        """Take the mode of the latent function at these rows in."""
        self.kernel, self.x, self.g, self.s = kernel, x, g, s
        self.theta = nn.Parameter(torch.as_tensor(kernel.theta).to(x), requires_grad=False)
        self._factor = None

    def factor(self) -> Tensor:
        r"""L with :math:`LL^\top = I + W^{1/2}KW^{1/2}`, ``(n, n)``; made when it is needed."""
        L = self._factor
        if L is None or L.dtype != self.x.dtype or L.device != self.x.device:
            with torch.no_grad():
                B = self.kernel.of(Geometry(self.x), self.theta) * self.s[:, None] * self.s
                B.diagonal().add_(1.0)
                self._factor = L = cholesky(B)
        return L

    def latent(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """m(x) and v(x), ``(B,)`` each."""
        prior = self.kernel.diagonal(x, self.theta)
        if not len(self.x):
            return torch.zeros_like(prior), prior
        K = self.kernel.of(Geometry(x, self.x), self.theta)  # (B, n)
        known = torch.linalg.solve_triangular(self.factor(), self.s[:, None] * K.mT, upper=False)
        return K @ self.g, (prior - known.square().sum(0)).clamp(min=0.0)

    def mean(self, x: Tensor) -> Tensor:
        """m(x), ``(B,)``; its sign is the class."""
        if not len(self.x):
            return x.new_zeros(len(x))
        return self.kernel.of(Geometry(x, self.x), self.theta) @ self.g

    def probability(self, x: Tensor) -> Tensor:
        """p(y = 1 | x), ``(B,)``."""
        return smoothed(*self.latent(x))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        p = self.probability(x)
        return -torch.stack([1 - p, p], 1).log()

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        return x.new_zeros(len(x)) if T == 1 else torch.logsumexp(-self.energies(x) / T, 1)


def _many() -> LaplaceClassEnergy:
    return LaplaceClassEnergy(1, 3, [_example(), _example(), _example()], "one_vs_one")


@registered(r"e(x, y) = -\log p_y(1 \mid x) + \log\sum_c p_c(1 \mid x)", _many)
class LaplaceClassEnergy(Energy):
    r"""Many classes, each against the rest, :math:`e(x, y) = -\log p_y(1\mid x) + \log\sum_c p_c(1\mid x)`,
    or against each other: :math:`-e(x, y)` is then the number of won comparisons and a little of how sure
    they are.

    Parameters
    ----------
    d : number of features
    k : number of classes
    members : energies of two classes: one for each class, or for each pair (the first is y = 0)
    mode : "one_vs_rest" or "one_vs_one"

    Examples
    --------
    >>> e = LaplaceClassEnergy(1, 3, [LaplaceEnergy(1, RBF(1.0)) for _ in range(3)])
    >>> torch.exp(-e.table("y", x=torch.zeros(1, 1))).round(decimals=4).tolist()
    [[0.33329999446868896, 0.33329999446868896, 0.33329999446868896]]
    """

    def __init__(
        self, d: int, k: int, members: Sequence[Energy] = (), mode: str = "one_vs_rest"
    ) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k, self.mode = d, k, mode
        self.normalised = frozenset({"y"} if mode == "one_vs_rest" else ())
        self.members = nn.ModuleList(members)

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "members": list(self.members), "mode": self.mode}

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        p = torch.stack([one.probability(x) for one in self.members], 1)  # type: ignore[operator]
        if self.mode == "one_vs_rest":
            return -(p / p.sum(1, keepdim=True)).log()
        votes, sure = x.new_zeros(len(x), self.k), x.new_zeros(len(x), self.k)
        for pair, (a, b) in enumerate(itertools.combinations(range(self.k), 2)):
            won = (p[:, pair] > 0.5).to(x.dtype)
            sign = torch.zeros(self.k, dtype=x.dtype, device=x.device)
            sign[a], sign[b] = -1.0, 1.0
            votes = (
                votes + won[:, None] * sign.clamp_min(0) - (1 - won)[:, None] * sign.clamp_max(0)
            )
            sure = sure + p[:, pair, None] * sign
        return -(votes + sure / (3 * (sure.abs() + 1)))

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        if T == 1 and self.normalised:
            return x.new_zeros(len(x))
        return torch.logsumexp(-self.energies(x) / T, 1)
