r"""A function of coordinates as a network, :math:`u_\theta: \mathbb R^d \to \mathbb R^m`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.architectures import architecture, rows

ACTIVATIONS = ("tanh", "sine", "gelu", "sigmoid", "silu", "softplus")
OMEGA = 30.0


class Sine(nn.Module):
    r""":math:`\sin(\omega z)`."""

    def __init__(self, omega: float = OMEGA) -> None:
        super().__init__()
        self.omega = omega

    def forward(self, z: Tensor) -> Tensor:
        return torch.sin(self.omega * z)


class Rescale(nn.Module):
    r"""From a box to :math:`[-1, 1]^d`, :math:`2(x - \text{low})/(\text{high} - \text{low}) - 1`.

    A side without length is moved to 0 and keeps its scale.

    Parameters
    ----------
    low, high : corners of the box, ``(d,)``

    Examples
    --------
    >>> Rescale([0.0, -1.0], [2.0, 1.0])(torch.tensor([[0.5, 1.0]]))
    tensor([[-0.5000,  1.0000]])
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, low: Sequence[float], high: Sequence[float]) -> None:
        super().__init__()
        a = torch.as_tensor(low, dtype=torch.float64).reshape(-1)
        b = torch.as_tensor(high, dtype=torch.float64).reshape(-1)
        if a.shape != b.shape or bool((b < a).any()):
            raise ValueError(f"low must be below high, got {a.tolist()} and {b.tolist()}")
        self.low, self.high = a.tolist(), b.tolist()
        width = b - a
        scale = torch.where(width > 0, 2 / width, 1.0)
        self.register_buffer("scale", scale.to(torch.get_default_dtype()))
        self.register_buffer("shift", (-(a + b) / 2 * scale).to(torch.get_default_dtype()))

    def config(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale + self.shift


class FourierFeatures(nn.Module):
    r""":math:`[\sin 2\pi Bx, \cos 2\pi Bx]` with fixed :math:`B_{jk} \sim N(0, \sigma^2)`.

    Parameters
    ----------
    in_features : d
    n : frequencies; 2n features
    sigma : spread of the frequencies
    generator : of B; None is a fixed seed
    """

    B: Tensor

    def __init__(
        self, in_features: int, n: int, sigma: float = 1.0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.in_features, self.n, self.sigma = in_features, n, sigma
        source = generator or torch.Generator().manual_seed(0)
        self.register_buffer("B", sigma * torch.randn(n, in_features, generator=source))

    def config(self) -> dict[str, Any]:
        return {"in_features": self.in_features, "n": self.n, "sigma": self.sigma}

    def forward(self, x: Tensor) -> Tensor:
        z = 2 * math.pi * (x @ self.B.T)
        return torch.cat([torch.sin(z), torch.cos(z)], -1)


@architecture("coordinate", kind="coordinate", inputs=rows(2), shape=(2,))
class CoordinateNet(nn.Module):
    r"""A function of coordinates, :math:`u_\theta(x) = W_L\sigma(\cdots\sigma(W_1\tilde x + b_1)) + b_L`.

    Inputs are scaled to :math:`[-1, 1]^d` by the box ``low`` to ``high``. With ``activation="sine"``
    weights start as in SIREN (Sitzmann et al. 2020, :math:`\omega_0 = 30`): uniform on
    :math:`\pm 1/d` in the first layer and :math:`\pm\sqrt{6/n}/\omega_0` in the others; else by
    Glorot's rule. An image is such a function, of two coordinates.

    Parameters
    ----------
    in_features : d
    out_features : m
    hidden : widths of the hidden layers
    activation : "tanh", "sine", "gelu", "sigmoid", "silu" or "softplus"
    fourier : number of random Fourier features of the input, :math:`[\sin 2\pi Bx, \cos 2\pi Bx]`; 0 none
    low, high : corners of the box of inputs, numbers or ``(d,)``
    omega : :math:`\omega_0` of the sines
    sigma : spread of the frequencies B
    generator : source of the initial weights; None is a fixed seed

    Attributes
    ----------
    layers : nn.Sequential

    Examples
    --------
    >>> net = CoordinateNet(2, 1, (20,) * 8)
    >>> sum(p.numel() for p in net.parameters()), net(torch.zeros(5, 2)).shape
    (3021, torch.Size([5, 1]))
    """

    def __init__(
        self,
        in_features: int = 2,
        out_features: int = 1,
        hidden: Sequence[int] = (20, 20, 20, 20),
        activation: str = "tanh",
        fourier: int = 0,
        low: float | Sequence[float] = -1.0,
        high: float | Sequence[float] = 1.0,
        *,
        omega: float = OMEGA,
        sigma: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        if fourier < 0 or min([in_features, out_features, *hidden]) < 1:
            raise ValueError(
                f"sizes must be at least 1 and fourier at least 0, got {in_features}, "
                f"{tuple(hidden)}, {out_features} and fourier={fourier}"
            )
        self.in_features, self.out_features, self.hidden = in_features, out_features, tuple(hidden)
        self.activation, self.fourier, self.omega, self.sigma = activation, fourier, omega, sigma
        self.low, self.high = (
            [float(v)] * in_features if isinstance(v, int | float) else list(v) for v in (low, high)
        )
        source = generator or torch.Generator().manual_seed(0)
        parts: list[nn.Module] = [Rescale(self.low, self.high)]
        width = in_features
        if fourier:
            parts.append(FourierFeatures(width, fourier, sigma, source))
            width = 2 * fourier
        for at, size in enumerate((*self.hidden, out_features)):
            parts.append(self._layer(width, size, at == 0, source))
            if at < len(self.hidden):
                parts.append(_activation(activation, omega))
            width = size
        self.layers = nn.Sequential(*parts)

    def _layer(self, d: int, m: int, first: bool, generator: torch.Generator) -> nn.Linear:
        layer: nn.Linear = nn.utils.skip_init(nn.Linear, d, m)
        glorot = math.sqrt(6 / (d + m))
        siren = 1 / d if first else math.sqrt(6 / d) / self.omega
        bound = siren if self.activation == "sine" else glorot
        if layer.weight.is_meta:
            return layer
        with torch.no_grad():
            layer.weight.copy_(bound * (2 * torch.rand(m, d, generator=generator) - 1))
            layer.bias.copy_(
                (2 * torch.rand(m, generator=generator) - 1) / math.sqrt(d)
                if self.activation == "sine"
                else torch.zeros(m)
            )
        return layer

    def config(self) -> dict[str, Any]:
        return {
            "in_features": self.in_features, "out_features": self.out_features,
            "hidden": list(self.hidden), "activation": self.activation, "fourier": self.fourier,
            "low": self.low, "high": self.high, "omega": self.omega, "sigma": self.sigma,
        }  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] != self.in_features:
            raise ShapeError(
                f"CoordinateNet takes points (..., {self.in_features}), got {tuple(x.shape)}"
            )
        u: Tensor = self.layers(x)
        return u


def _activation(name: str, omega: float) -> nn.Module:
    if name == "sine":
        return Sine(omega)
    return {"tanh": nn.Tanh, "gelu": nn.GELU, "sigmoid": nn.Sigmoid, "silu": nn.SiLU,
            "softplus": nn.Softplus}[name]()  # fmt: skip
