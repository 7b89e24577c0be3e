r"""Samplers that are networks, :math:`x = g(\varepsilon)`, and what keeps them from collapsing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch
from groundstate.learn.rules.common import Plan
from groundstate.learn.rules.negatives.sources import Negatives, Source, evaluate


class PushForward(nn.Module):
    r"""The distribution of :math:`g(\varepsilon)`, :math:`\varepsilon \sim N(0, I)`, for any module g.

    Parameters
    ----------
    net : module from ``(N, noise)`` to ``(N, *event)``; with ``conditional`` it also gets the known
        variables as keywords
    noise : int
        Length of ε.
    conditional : bool, default=False
        Whether g looks at what is given.

    Examples
    --------
    >>> g = PushForward(nn.Linear(2, 3), noise=2)
    >>> g.draw(5, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([5, 3])
    """

    def __init__(self, net: nn.Module, noise: int, conditional: bool = False) -> None:
        super().__init__()
        self.net, self.noise, self.conditional = net, noise, conditional

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "noise": self.noise, "conditional": self.conditional}

    def epsilon(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Noise on the device and in the dtype of the network, ``(n, noise)``."""
        like = next(self.parameters(), torch.zeros(()))
        return torch.randn(n, self.noise, generator=generator, device=like.device, dtype=like.dtype)

    def forward(self, eps: Tensor, known: Mapping[str, Tensor] | None = None) -> Tensor:
        x: Tensor = self.net(eps, **(known or {})) if self.conditional else self.net(eps)
        return x

    def draw(
        self,
        n: int,
        known: Mapping[str, Tensor] | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """``n`` values, differentiable in the network's parameters."""
        return self(self.epsilon(n, generator), known)

    def log_abs_det(self, eps: Tensor) -> Tensor | None:
        r""":math:`\log|\det \partial g/\partial\varepsilon|`, ``(n,)``; None if g is no flow."""
        exact = getattr(self.net, "log_abs_det", None)
        if exact is None:
            return None
        value: Tensor = exact(eps)
        return value


class Affine(nn.Module):
    r"""The flow :math:`g(\varepsilon) = A\varepsilon + b` with a full matrix.

    Examples
    --------
    >>> g = Affine(2)
    >>> g.log_abs_det(torch.zeros(1, 2))
    tensor([0.], grad_fn=<ExpandBackward0>)
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.A = nn.Parameter(torch.eye(d))
        self.b = nn.Parameter(torch.zeros(d))

    def forward(self, eps: Tensor) -> Tensor:
        return torch.addmm(self.b, eps, self.A.T)

    def log_abs_det(self, eps: Tensor) -> Tensor:
        return torch.linalg.slogdet(self.A).logabsdet.expand(eps.shape[0])


class Generator(Source):
    """The draws of a generator network, one per row (times ``n``), held fixed for the energy."""

    is_objective = False

    def __init__(self, g: PushForward, n: int = 1) -> None:
        super().__init__()
        self.g, self.n = g, n

    def values(
        self, plan: Plan, batch: Batch, generator: torch.Generator | None
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Generated values ``(n, B, *event)`` by name, and the noise ``(n*B, noise)``."""
        rows = batch[plan.over[0]].shape[0]
        eps = self.g.epsilon(self.n * rows, generator)
        known = {m: v.repeat(self.n, *(1,) * (v.ndim - 1)) for m, v in plan.known(batch).items()}
        x = self.g(eps, known)
        name = plan.over[0]
        return {name: x.reshape(self.n, rows, *plan.view.spaces[name].shape)}, eps

    def reason_against(self, view: Energy, over: tuple[str, ...]) -> str | None:
        if len(over) != 1 or not view.spaces[over[0]].is_real:
            spaces = ", ".join(f"{name!r} in {view.spaces[name]!r}" for name in over)
            return (
                f"a generator learns through its draws, which needs one real variable, not {spaces}"
            )
        return None

    def draw(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Negatives:
        with torch.no_grad():
            values, _ = self.values(plan, batch, generator)
        return Negatives(evaluate(plan, batch, values, generator))


Entropy = Callable[[Tensor, torch.Generator | None], Tensor]


def gaussian_entropy_bound(x: Tensor) -> Tensor:
    """Entropy of the Gaussian with the mean and covariance of the draws, the largest possible."""
    d = x.shape[1]
    centred = x - x.mean(0)
    cov = centred.T @ centred / max(1, x.shape[0] - 1)
    return 0.5 * (d * math.log(2 * math.pi * math.e) + torch.linalg.slogdet(cov).logabsdet)


def mmd_squared(x: Tensor, y: Tensor) -> Tensor:
    r"""Squared maximum mean discrepancy with Gaussian kernels around the median distance.

    Zero in expectation exactly when the two distributions are equal (the unbiased estimate may be
    negative).

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0], [2.0]])
    >>> float(mmd_squared(x, x + 10)) > float(mmd_squared(x, x))
    True
    """
    both = torch.cat([x, y]).detach()
    scale = torch.cdist(both, both).square().flatten().median().clamp(min=1e-12)

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        squared = (a[:, None] - b[None]).square().sum(-1) / scale
        return ((-0.5 * squared).exp() + (-2 * squared).exp() + (-0.125 * squared).exp()) / 3

    n, m = x.shape[0], y.shape[0]
    xx = (kernel(x, x).sum() - n) / (n * (n - 1))
    yy = (kernel(y, y).sum() - m) / (m * (m - 1))
    return xx + yy - 2 * kernel(x, y).mean()


def wider_gaussian(x: Tensor, alpha: float, generator: torch.Generator | None) -> Tensor:
    r"""Draws from :math:`N(\mu_g, \alpha\Sigma_g)` with the moments of ``x``, without gradient."""
    with torch.no_grad():
        mean = x.mean(0)
        centred = x - mean
        cov = centred.T @ centred / max(1, x.shape[0] - 1)
        jitter = 1e-6 * cov.diagonal().mean().clamp(min=1e-6)
        eye = torch.eye(x.shape[1], device=x.device, dtype=x.dtype)
        chol = torch.linalg.cholesky(alpha * cov + jitter * eye)
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        return mean + noise @ chol.T
