r"""Codes that are sources of their own: energies that add over coordinates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from groundstate.energy.latent.codes import CodeEnergy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real


@registered(
    r"e(x, z) = \sum_k\log\cosh g_k(x) + \tfrac12\|z - g(x)\|^2 + \tfrac l2\log 2\pi",
    lambda: IndependentCodeEnergy(3, 2),
)
class IndependentCodeEnergy(CodeEnergy):
    r"""Sources with heavy tails, :math:`e(x, z) = \sum_k\log\cosh g_k(x) + \tfrac12\|z - g(x)\|^2
    + \tfrac l2\log 2\pi` with :math:`g(x) = U(x - b)`.

    Summed over z the energy is minus the log density of independent hyperbolic-secant sources, but for
    constants: it adds over the sources.

    Parameters
    ----------
    d : number of features
    l : number of sources

    Attributes
    ----------
    U : Parameter, ``(l, d)``, unmixing
    mixing : buffer, ``(d, l)``, its pseudo-inverse
    b : Parameter, ``(d,)``

    Examples
    --------
    >>> e = IndependentCodeEnergy(2, 2)
    >>> e.encode(torch.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """

    mixing: Tensor

    def __init__(self, d: int, l: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__(x=Real(d), z=Real(l))
        self.U = nn.Parameter(torch.eye(l, d, dtype=dtype))
        self.b = nn.Parameter(torch.zeros(d, dtype=dtype))
        self.register_buffer("mixing", torch.eye(d, l, dtype=dtype))

    def config(self) -> dict[str, Any]:
        l, d = self.U.shape
        return {"d": d, "l": l}

    @torch.no_grad()
    def set(self, U: Tensor, mixing: Tensor, b: Tensor | None) -> None:
        """Take this unmixing ``(l, d)``, its inverse and origin."""
        like = self.U
        self.U = nn.Parameter(U.to(like).contiguous())
        self.mixing = mixing.to(like).contiguous()
        if b is not None:
            self.b.copy_(b)
        vars(self)["spaces"] = {**self.spaces, "z": Real(len(U))}

    def encode(self, x: Tensor) -> Tensor:
        return (x - self.b) @ self.U.T

    def decode(self, z: Tensor) -> Tensor:
        """Mixed sources, ``(B, d)``."""
        return torch.addmm(self.b, z, self.mixing.T)

    def left(self, x: Tensor, code: Tensor) -> Tensor:
        size = code.abs()
        return (size + softplus(-2 * size) - 0.6931471805599453).sum(-1)
