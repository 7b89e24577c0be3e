r"""Codes without a prior: what the code leaves over, and how far z is from the code."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.distributions.operations import isotropic


class CodeEnergy(Energy):
    r""":math:`e(x, z) = r(x) + \tfrac12\|z - g(x)\|^2 + \tfrac l2\log 2\pi`.

    The best code is :math:`g(x)`, and summed over z the energy is what the code leaves over, r(x).
    Subclasses write ``encode`` (g) and ``left`` (r).
    """

    gaussian = frozenset({"z"})
    bounded_below = True

    def encode(self, x: Tensor) -> Tensor:
        """g(x), ``(B, l)``."""
        raise TypeError(f"{type(self).__name__} must define encode(x)")

    def left(self, x: Tensor, code: Tensor) -> Tensor:
        """r(x), ``(B,)``, given the code."""
        raise TypeError(f"{type(self).__name__} must define left(x, code)")

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        code = self.encode(x)
        away = 0.5 * (z - code).square().sum(-1)
        return self.left(x, code) + away + 0.5 * z.shape[-1] * math.log(2 * math.pi)

    @offers.argmin("z")
    def best(self, x: Tensor) -> Tensor:
        return self.encode(x)

    @offers.conditional("z")
    def around(self, x: Tensor, T: float = 1.0) -> Distribution:
        return isotropic(self.encode(x), T**0.5)

    @offers.log_partition("z")
    def evidence(self, x: Tensor, T: float = 1.0) -> Tensor:
        code = self.encode(x)
        constant = 0.5 * code.shape[-1] * math.log(2 * math.pi)
        volume = 0.5 * code.shape[-1] * math.log(2 * math.pi * T)
        return volume - (self.left(x, code) + constant) / T


@registered(
    r"e(x, z) = \tfrac12\|x - b - Wg(x)\|^2 + \tfrac12\|z - g(x)\|^2 + \tfrac l2\log 2\pi",
    lambda: LinearCodeEnergy(3, 2),
)
class LinearCodeEnergy(CodeEnergy):
    r"""Distance to a plane, :math:`e(x, z) = \tfrac12\|x - b - Wz\|^2 + \tfrac l2\log 2\pi` with
    :math:`W^\top W = I`.

    The code is the projection :math:`g(x) = W^\top(x - b)`, and with it
    :math:`\|x-b-Wz\|^2 = \|x-b-Wg\|^2 + \|z-g\|^2`; this right side is the energy for any W.

    Parameters
    ----------
    d : number of features
    l : length of the code
    centred : whether there is an origin b
    noise : mean variance of the directions that are left out
    total : the whole variance
    count : weight of the rows behind the variances
    dtype : of W and b

    Attributes
    ----------
    W : Parameter, ``(d, l)``, at first the first columns of the identity
    b : Parameter, ``(d,)``; None where rows are not centred
    variance : buffer, ``(l,)``; variances along the columns of W, by the weight less one
    noise, total, count : float

    Examples
    --------
    >>> e = LinearCodeEnergy(2, 1)
    >>> e.set(torch.tensor([[0.6], [0.8]]), torch.zeros(2))
    >>> x = torch.tensor([[1.0, 2.0]])
    >>> round(e.encode(x).item(), 4), round(e.marginal("z")(x=x).item(), 4)
    (2.2, 0.08)
    """

    W: nn.Parameter
    b: nn.Parameter | None
    variance: Tensor
    noise: float
    total: float
    count: float

    def __init__(
        self,
        d: int,
        l: int,
        *,
        centred: bool = True,
        noise: float = 0.0,
        total: float = 0.0,
        count: float = 0.0,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(x=Real(d), z=Real(l))
        vars(self).update(noise=noise, total=total, count=count)
        # past `nn.Module.__setattr__`, which small fits feel
        self._parameters["W"] = nn.Parameter(torch.eye(d, l, dtype=dtype))
        self._parameters["b"] = nn.Parameter(torch.zeros(d, dtype=dtype)) if centred else None
        self._buffers["variance"] = torch.zeros(l, dtype=dtype)

    def config(self) -> dict[str, Any]:
        known = {name: getattr(self, name) for name in ("noise", "total", "count")}
        return {
            "d": self.W.shape[0], "l": self.W.shape[1], "centred": self.b is not None, **known,
        }  # fmt: skip

    @torch.no_grad()
    def set(
        self,
        W: Tensor,
        b: Tensor | None = None,
        variance: Tensor | None = None,
        **known: float,
    ) -> None:
        """Take these axes ``(d, l)``, another l than before or not, and what is known of them."""
        like = self.W
        self._parameters["W"] = nn.Parameter(W.to(like.device, like.dtype).contiguous())
        vars(self)["spaces"] = {**self.spaces, "z": Real(W.shape[1])}
        if b is not None and self.b is not None:
            self._parameters["b"] = nn.Parameter(b.to(like.device, like.dtype).clone())
        found = like.new_zeros(W.shape[1]) if variance is None else variance
        self._buffers["variance"] = found.to(like.device, like.dtype)
        vars(self).update(known)  # noise, total, count

    def encode(self, x: Tensor) -> Tensor:
        if self.b is None:
            return x @ self.W
        if x.layout != torch.strided:
            return x @ self.W - self.b @ self.W
        return (x - self.b) @ self.W

    def decode(self, z: Tensor) -> Tensor:
        """Wz + b, ``(B, d)``."""
        return z @ self.W.T if self.b is None else torch.addmm(self.b, z, self.W.T)

    def left(self, x: Tensor, code: Tensor) -> Tensor:
        if x.layout != torch.strided:
            x = x.to_dense()
        return 0.5 * (x - self.decode(code)).square().sum(-1)


@registered(
    r"e(x, z) = \tfrac12\|J(x - b)\|^2 + \tfrac12\|z - J(x - b)\|^2 + \tfrac d2\log 2\pi",
    lambda: WhiteCodeEnergy(2),
)
class WhiteCodeEnergy(CodeEnergy):
    r"""Half the squared Mahalanobis distance, and how far z is from the whitened row,
    :math:`e(x, z) = \tfrac12\|J(x - b)\|^2 + \tfrac12\|z - J(x - b)\|^2 + \tfrac d2\log 2\pi`.

    Parameters
    ----------
    d : number of features

    Attributes
    ----------
    J : Parameter, ``(d, d)``; :math:`J^\top J = \Sigma^{-1}`
    b : Parameter, ``(d,)``
    inverse : buffer, ``(d, d)``; :math:`J^{-1}`

    Examples
    --------
    >>> e = WhiteCodeEnergy(2)
    >>> _ = e.J.data.copy_(torch.diag(torch.tensor([0.5, 1.0])))
    >>> e.marginal("z")(x=torch.tensor([[2.0, 0.0], [0.0, 2.0]])).tolist()
    [0.5, 2.0]
    """

    inverse: Tensor

    def __init__(self, d: int) -> None:
        super().__init__(x=Real(d), z=Real(d))
        self.J = nn.Parameter(torch.eye(d))
        self.b = nn.Parameter(torch.zeros(d))
        self.register_buffer("inverse", torch.eye(d))

    def config(self) -> dict[str, Any]:
        return {"d": len(self.b)}

    def encode(self, x: Tensor) -> Tensor:
        return (x - self.b) @ self.J.T

    def decode(self, z: Tensor) -> Tensor:
        """:math:`J^{-1}z + b`, ``(B, d)``."""
        return torch.addmm(self.b, z, self.inverse.T)

    def left(self, x: Tensor, code: Tensor) -> Tensor:
        return 0.5 * code.square().sum(-1)
