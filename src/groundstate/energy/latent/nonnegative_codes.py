r"""Rows as sums of parts: neither parts nor codes have negative entries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.linalg.nonnegative.descent import least_squares_codes
from groundstate.math.linalg.nonnegative.multiplicative import beta_divergence, divergence_codes
from groundstate.math.linalg.range_finder import CentredRows


@registered(
    r"e(x, z) = \sum_j d_\beta(x_j \mid (zH)_j) + \lambda_1\|z\|_1 + \tfrac{\lambda_2}2\|z\|^2,"
    r"\quad x, z, H \ge 0",
    lambda: NonnegativeCodeEnergy(3, 2),
)
class NonnegativeCodeEnergy(Energy):
    r"""What a sum of parts leaves over, :math:`e(x, z) = \sum_j d_\beta(x_j \mid (zH)_j)
    + \lambda_1\|z\|_1 + \tfrac{\lambda_2}2\|z\|^2` with x, z and H not negative.

    :math:`d_2` is half the squared distance, :math:`d_1` the Kullback-Leibler divergence of counts,
    :math:`d_0` that of Itakura and Saito. For :math:`1 \le \beta \le 2` the energy is convex in z.

    Parameters
    ----------
    d : number of features
    l : number of parts
    beta : of the divergence
    l1, l2 : penalties of the code

    Attributes
    ----------
    H : Parameter, ``(l, d)``, the parts

    Examples
    --------
    >>> e = NonnegativeCodeEnergy(2, 1)
    >>> _ = e.H.data.copy_(torch.tensor([[1.0, 2.0]]))
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 1.0]])
    >>> e.encode(x).tolist(), e.minimal("z")(x=x).tolist()
    ([[1.0], [1.0]], [0.0, 2.5])
    """

    bounded_below = True

    def __init__(
        self, d: int, l: int, *, beta: float = 2.0, l1: float = 0.0, l2: float = 0.0
    ) -> None:
        super().__init__(x=Real(d, low=0.0), z=Real(l, low=0.0))
        self.beta, self.l1, self.l2 = float(beta), float(l1), float(l2)
        self.H = nn.Parameter(torch.eye(l, d) + 0.5)

    def config(self) -> dict[str, Any]:
        l, d = self.H.shape
        return {"d": d, "l": l, "beta": self.beta, "l1": self.l1, "l2": self.l2}

    @torch.no_grad()
    def set(self, H: Tensor) -> None:
        """Take these parts ``(l, d)``."""
        self.H = nn.Parameter(H.to(self.H).contiguous())
        vars(self)["spaces"] = {**self.spaces, "z": Real(len(H), low=0.0)}

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        x = x if x.layout == torch.strided else x.to_dense()
        e = beta_divergence(x, z @ self.H, self.beta)
        if self.l1:
            e = e + self.l1 * z.sum(-1)
        return e + 0.5 * self.l2 * z.square().sum(-1) if self.l2 else e

    def decode(self, z: Tensor) -> Tensor:
        """zH, ``(B, d)``."""
        return z @ self.H

    @torch.no_grad()
    def encode(self, x: Tensor, tol: float = 1e-10, max_iter: int = 10_000) -> Tensor:
        """The best codes, ``(B, l)``: by coordinate descent, or multiplicative steps for other losses."""
        if self.beta != 2:
            Ht = self.H.T.contiguous()
            return divergence_codes(x, Ht, self.beta, self.l1, self.l2, tol, max_iter)
        H = self.H.double()
        G = H @ H.T
        G.diagonal().add_(self.l2)
        P = CentredRows(x).dot(self.H.T.contiguous()) - self.l1
        return least_squares_codes(G, P).to(x.dtype)

    @offers.argmin("z", when=lambda energy: energy.beta == 2)
    def best(self, x: Tensor) -> Tensor:
        return self.encode(x)
