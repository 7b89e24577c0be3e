r"""Distance to a plane in the space of a kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.kernels.machine import kernel_width
from groundstate.energy.latent.codes import CodeEnergy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.kernels import RBF, Geometry, Kernel, Precomputed

TILE = 2**24  # kernel values of one piece of rows


def _example() -> KernelCodeEnergy:
    energy = KernelCodeEnergy(2, 1, RBF(1.0))
    x = torch.tensor([[0.0, 0.0], [1.0, 0.5], [-1.0, 1.0]])
    energy.set(
        x, torch.tensor([[0.5], [-0.7], [0.2]]), torch.tensor([0.1]), torch.full((3,), 1 / 3), 0.6
    )
    return energy


@registered(
    r"e(x, z) = \tfrac12\|\phi(x) - \mu\|^2 - \tfrac12\|g(x)\|^2 + \tfrac12\|z - g(x)\|^2"
    r" + \tfrac l2\log 2\pi",
    _example,
)
class KernelCodeEnergy(CodeEnergy):
    r"""Distance to a plane among the images of rows,
    :math:`e(x, z) = \tfrac12\|\phi(x) - \mu - \sum_k z_kv_k\|^2 + \tfrac l2\log 2\pi`.

    Axes are :math:`v_k = \sum_i A_{ik}(\phi(x_i) - \mu)`, orthonormal, so that codes are
    :math:`g(x) = k(x)^\top A - c`, k(x) the kernel values with the centres. The mean is
    :math:`\mu = \sum_i q_i\phi(x_i)`. Away from orthonormal axes this is no distance and falls without end,
    so that A and c take no gradient steps: they are set together, by an eigendecomposition.

    Parameters
    ----------
    d : number of features
    l : length of the code
    kernel : a kernel
    n : centres

    Attributes
    ----------
    centers : buffer, ``(n, d)``
    A : Parameter, ``(n, l)``
    c : Parameter, ``(l,)``
    q : buffer, ``(n,)``
    square : buffer, ``()``; :math:`\|\mu\|^2`

    Examples
    --------
    >>> from groundstate.math.kernels import Linear
    >>> e = KernelCodeEnergy(1, 1, Linear())
    >>> e.set(torch.tensor([[1.0]]), torch.ones(1, 1), torch.zeros(1), torch.zeros(1), 0.0)
    >>> e.encode(torch.tensor([[3.0]])).tolist()
    [[3.0]]
    """

    A: nn.Parameter
    c: nn.Parameter
    centers: Tensor
    q: Tensor
    square: Tensor

    def __init__(self, d: int, l: int, kernel: Kernel, n: int = 0) -> None:
        super().__init__(x=Real(d), z=Real(l))
        self.d, self.kernel = d, kernel
        self._hold(
            torch.zeros(n, kernel_width(kernel, d)), torch.zeros(n, l), torch.zeros(l),
            torch.zeros(n), torch.zeros(()),
        )  # fmt: skip

    def _hold(self, centers: Tensor, A: Tensor, c: Tensor, q: Tensor, square: Tensor) -> None:
        # past `nn.Module.__setattr__`, which small fits feel
        self._buffers.update(centers=centers, q=q, square=square)
        for name, value in (("A", A), ("c", c)):
            self._parameters[name] = nn.Parameter(value, requires_grad=False)

    def config(self) -> dict[str, Any]:
        n, l = self.A.shape
        return {"d": self.d, "l": l, "kernel": self.kernel, "n": n}

    @torch.no_grad()
    def set(self, centers: Tensor, A: Tensor, c: Tensor, q: Tensor, square: float) -> None:
        """Take these centres, coefficients of the axes and of the mean."""
        to = self.A.device, self.A.dtype
        centers, A, c, q = (v.to(*to).contiguous() for v in (centers, A, c, q))
        self._hold(centers, A, c, q, self.square.new_tensor(square))
        vars(self)["spaces"] = {**self.spaces, "z": Real(A.shape[1])}

    def values(self, x: Tensor) -> Tensor:
        """k(x), ``(B, n)``."""
        return self.kernel.of(Geometry(x, self.centers))

    def encode(self, x: Tensor) -> Tensor:
        if not len(self.centers):
            return x.new_zeros(len(x), 0) @ self.A - self.c
        pieces = torch.split(x, max(1, TILE // len(self.centers)))
        return torch.cat([self.values(piece) @ self.A for piece in pieces]) - self.c

    def left(self, x: Tensor, code: Tensor) -> Tensor:
        if isinstance(self.kernel, Precomputed):
            return x.new_zeros(len(x))  # k(x, x) is not known
        away = self.kernel.diagonal(x, noise=False)
        if len(self.centers):
            away = away - 2 * self.values(x) @ self.q + self.square
        return 0.5 * (away - code.square().sum(-1))
