r"""Directions: the distribution :math:`p(x) \propto e^{\kappa\mu^\top x}` on the unit sphere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.compute.foreign.torch import standard_gamma
from groundstate.math.arrays import as_tensor
from groundstate.math.distributions.calculus.quadrature import log_integral


class _Sphere(constraints.Constraint):
    """Vectors of length one."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value.norm(dim=-1) - 1).abs() < 1e-4


def log_normaliser(kappa: Tensor, d: int) -> Tensor:
    r""":math:`\log\int_{S^{d-1}} e^{\kappa\mu^\top x}\,dx`, differentiable in κ.

    The height :math:`t = \mu^\top x` has density :math:`\propto e^{\kappa t}(1 - t^2)^{(d-3)/2}`, which is
    integrated over :math:`t = \tanh u`; the rest of the sphere is a sphere of one dimension less.

    >>> zero = torch.tensor(0.0).double()
    >>> round(float(log_normaliser(zero, 3).exp() / (4 * math.pi)), 10)
    1.0
    """
    k = kappa.unsqueeze(-1)

    def log_f(u: Tensor) -> Tensor:
        a = u.abs()
        log_cosh = a + torch.log1p((-2 * a).exp()) - math.log(2)
        # e^{κ(t - 1)}: subtracting the largest keeps large κ in range; 1 - tanh u = 2σ(-2u)
        return -2 * k * torch.sigmoid(-2 * u) - (d - 1) * log_cosh

    wide = torch.full_like(kappa.detach(), 350.0)
    belt = math.log(2) + 0.5 * (d - 1) * math.log(math.pi) - math.lgamma(0.5 * (d - 1))
    return log_integral(log_f, -wide, wide) + kappa + belt


class VonMisesFisher(Distribution):
    r"""The distribution of directions around μ: :math:`p(x) = e^{\kappa\mu^\top x}/C_d(\kappa)`,
    :math:`C_d(\kappa) = (2\pi)^{d/2}I_{d/2-1}(\kappa)/\kappa^{d/2-1}`.

    κ = 0 is uniform on the sphere; d = 2 is von Mises' distribution of an angle.

    Parameters
    ----------
    loc : mean direction μ, ``(..., d)`` of length one, d ≥ 2
    concentration : κ ≥ 0, ``(...)``

    Examples
    --------
    >>> p = VonMisesFisher(torch.tensor([0.0, 0.0, 1.0]).double(), torch.tensor(2.0).double())
    >>> round(float(p.log_prob(p.loc)), 6)  # log(κ e^κ / 4π sinh κ)
    -1.126244
    """

    arg_constraints = {"loc": _Sphere(), "concentration": constraints.nonnegative}
    support = _Sphere()

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        loc = as_tensor(loc, "loc")
        kappa = torch.as_tensor(concentration, dtype=loc.dtype, device=loc.device)
        if loc.ndim < 1 or loc.shape[-1] < 2:
            raise ValueError(
                f"loc must be a vector of at least two numbers, got {tuple(loc.shape)}"
            )
        batch = torch.broadcast_shapes(loc.shape[:-1], kappa.shape)
        self.loc = loc.expand(*batch, loc.shape[-1])
        self.concentration = kappa.expand(batch)
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)

    @property
    def dimension(self) -> int:
        return self.event_shape[0]

    def expand(self, batch_shape: Any, _instance: Any = None) -> VonMisesFisher:
        shape = torch.Size(batch_shape)
        return VonMisesFisher(self.loc.expand(*shape, self.dimension),
                              self.concentration.expand(shape), validate_args=False)  # fmt: skip

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        height = (value * self.loc).sum(-1)
        return self.concentration * height - log_normaliser(self.concentration, self.dimension)

    def resultant(self) -> Tensor:
        r"""Mean height :math:`A_d(\kappa) = E[\mu^\top x] = C_d'/C_d`, in [0, 1)."""
        return _resultant(self.concentration, self.dimension)

    @property
    def mean(self) -> Tensor:
        return self.resultant().unsqueeze(-1) * self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return (
            log_normaliser(self.concentration, self.dimension)
            - self.concentration * self.resultant()
        )

    has_rsample = True

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n, *batch, d)`` by Wood's rejection of heights (1994), from an explicit generator."""
        with torch.no_grad():
            return self.placed(n, generator)

    def placed(self, n: int, generator: torch.Generator) -> Tensor:
        r"""Draws that carry gradients: the height moves with κ so that it keeps its place in the
        distribution, :math:`dw/d\kappa = -\partial_\kappa F(w;\kappa)/p(w;\kappa)`."""
        height = _Height.apply(self.concentration, self._heights(n, generator), self.dimension)
        noise = torch.randn(
            *height.shape, self.dimension, generator=generator, device=generator.device,
            dtype=torch.float64,
        ).to(self.loc)  # fmt: skip
        side = noise - (noise * self.loc).sum(-1, keepdim=True) * self.loc
        side = torch.nn.functional.normalize(side, dim=-1)
        h = height.unsqueeze(-1)
        return h * self.loc + (1 - h.square()).clamp_min(1e-12).sqrt() * side

    def _heights(self, n: int, generator: torch.Generator) -> Tensor:
        d, size = self.dimension, (n, *self.batch_shape)
        like: dict[str, Any] = {"dtype": torch.float64, "device": generator.device}
        k = self.concentration.detach().to(**like).expand(size)
        b = (d - 1) / (2 * k + (4 * k.square() + (d - 1) ** 2).sqrt())
        x0 = (1 - b) / (1 + b)
        c = k * x0 + (d - 1) * torch.log1p(-x0.square())
        shape = torch.full(size, 0.5 * (d - 1), **like)
        height, open_ = (
            torch.zeros(size, **like),
            torch.ones(size, dtype=torch.bool, device=k.device),
        )
        while bool(open_.any()):
            one = standard_gamma(shape, generator)
            z = one / (one + standard_gamma(shape, generator))  # Beta((d-1)/2, (d-1)/2)
            w = (1 - (1 + b) * z) / (1 - (1 - b) * z)
            u = torch.rand(size, generator=generator, **like)
            taken = open_ & (k * w + (d - 1) * torch.log1p(-x0 * w) - c >= u.log())
            height, open_ = torch.where(taken, w, height), open_ & ~taken
        return height.clamp(-1, 1).to(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = torch.Size(sample_shape)
        generator = torch.Generator(self.loc.device).manual_seed(int(torch.randint(2**62, ())))
        return self.placed(shape.numel(), generator).reshape(
            *shape, *self.batch_shape, self.dimension
        )

    @classmethod
    def fit(cls, X: Any, sample_weight: Any = None) -> VonMisesFisher:
        r"""Maximum likelihood: μ is the direction of the mean and :math:`A_d(\kappa) = |\bar x|`.

        Parameters
        ----------
        X : ``(n, d)`` rows of length one

        Examples
        --------
        >>> p = VonMisesFisher(torch.tensor([1.0, 0.0, 0.0]).double(), 5.0)
        >>> found = VonMisesFisher.fit(p.draw(20_000, torch.Generator().manual_seed(0)))
        >>> bool((found.concentration - 5).abs() < 0.15)
        True
        """
        x = as_tensor(X, "X")
        if x.ndim != 2 or not bool(((x.norm(dim=1) - 1).abs() < 1e-4).all()):
            raise ValueError("X must be rows of length one, (n, d); divide them by their norms")
        w = (
            torch.ones(len(x)).to(x)
            if sample_weight is None
            else as_tensor(sample_weight, "weight")
        )
        mean = (w.unsqueeze(-1) * x).sum(0) / w.sum()
        r = mean.norm()
        if float(r) >= 1 - 1e-12:
            raise ValueError("all rows point the same way; the concentration is infinite")
        d = x.shape[1]
        kappa = r * (d - r.square()) / (1 - r.square())  # Banerjee's start, then Newton
        for _ in range(20):
            A = _resultant(kappa, d)
            slope = 1 - A.square() - (d - 1) / kappa.clamp(min=1e-12) * A
            kappa = (kappa - (A - r) / slope.clamp(min=1e-12)).clamp(min=0)
        return cls(mean / r, kappa)


def _resultant(kappa: Tensor, d: int) -> Tensor:
    """The derivative of the log normaliser, itself differentiable."""
    with torch.enable_grad():
        at = kappa if kappa.requires_grad else kappa.detach().requires_grad_()
        total = log_normaliser(at, d).sum()
        (slope,) = torch.autograd.grad(total, at, create_graph=kappa.requires_grad)
    return slope


class _Height(torch.autograd.Function):
    """Heights that were drawn, with their derivative in κ."""

    @staticmethod
    def forward(ctx: Any, kappa: Tensor, height: Tensor, d: int) -> Tensor:
        ctx.save_for_backward(kappa, height)
        ctx.d = d
        return height.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        kappa, height = ctx.saved_tensors
        slope = _height_slope(kappa.double(), height.double(), ctx.d).to(grad)
        return (grad * slope).sum(0), None, None


def _height_slope(kappa: Tensor, w: Tensor, d: int, nodes: int = 48) -> Tensor:
    r""":math:`-\partial_\kappa F(w)/p(w)` with :math:`p(t) \propto e^{\kappa t}(1-t^2)^{(d-3)/2}`.

    Over the angle, :math:`t = -\cos a`, the weight is :math:`\sin^{d-2}a`, smooth for every d; what is
    more than 40/κ below w has no mass.
    """
    mean = _resultant(kappa, d).detach()
    w = w.clamp(-1 + 1e-9, 1 - 1e-9)
    low = torch.arccos((-(w - 40 / kappa.clamp_min(1e-6))).clamp(-1, 1))
    high = torch.arccos(-w)
    x, weight = (torch.from_numpy(v).to(w) for v in np.polynomial.legendre.leggauss(nodes))
    half = 0.5 * (high - low)
    a = low.unsqueeze(-1) + half.unsqueeze(-1) * (x + 1)
    t = -a.cos()
    inside = (t - mean.unsqueeze(-1)) * (kappa.unsqueeze(-1) * (t - w.unsqueeze(-1))).exp()
    total = (inside * a.sin() ** (d - 2) * weight).sum(-1) * half
    return -total / (1 - w.square()) ** (0.5 * (d - 3))
