r"""The kernel machine: classes compared two by two by functions :math:`\sum_i \beta_i k(x_i, x) + b`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.kernels import RBF, Geometry, Kernel

TILE = 2**24  # kernel values of one piece of rows


def _example() -> KernelMachineEnergy:
    g = torch.Generator().manual_seed(0)
    energy = KernelMachineEnergy(2, 2, RBF(1.0), (2, 2))
    energy.centers.copy_(torch.randn(4, 2, generator=g))
    energy.beta.data.copy_(torch.randn(1, 4, generator=g))
    return energy


@registered(r"e(x, y) = \mp\tfrac12\bigl(\sum_i\beta_i k(x_i, x) + b\bigr)", _example)
class KernelMachineEnergy(Energy):
    r"""Two classes: :math:`e(x, y) = \mp\tfrac12 f(x)` with :math:`f(x) = \sum_i \beta_i k(x_i, x) + b`.

    More classes: one :math:`f_{ab}` for each pair, positive where a wins. The energy of a class is
    minus its number of wins minus its summed scores s, squeezed by :math:`s/3(|s| + 1)` so that they
    only break ties.

    Parameters
    ----------
    d : number of features
    k : number of classes
    kernel : a kernel
    counts : centres (support vectors) of each class; none before learning

    Attributes
    ----------
    centers : buffer, ``(m, d)``, grouped by class
    support : buffer, ``(m,)``: the rows of the training table that the centres are
    beta : Parameter, ``(k - 1, m)``; row r of a centre of class a is about class r, skipping a
    b : Parameter, ``(k(k - 1)/2,)``

    Examples
    --------
    >>> e = KernelMachineEnergy(1, 2, RBF(1.0), (1, 1))
    >>> e.set(torch.tensor([[-1.0], [1.0]]), torch.tensor([[1.0, -1.0]]), torch.zeros(1), (1, 1))
    >>> e.table("y", x=torch.tensor([[-1.0], [2.0]])).argmin(1).tolist()
    [0, 1]
    """

    centers: Tensor
    support: Tensor

    def __init__(self, d: int, k: int, kernel: Kernel, counts: Sequence[int] = ()) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k, self.kernel = d, k, kernel
        self.counts = tuple(int(c) for c in counts) or (0,) * k
        m, width = sum(self.counts), kernel_width(kernel, d)
        self.register_buffer("centers", torch.zeros(m, width))
        self.register_buffer("support", torch.zeros(m, dtype=torch.int64))
        self.beta = nn.Parameter(torch.zeros(k - 1, m))
        self.b = nn.Parameter(torch.zeros(k * (k - 1) // 2))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "kernel": self.kernel, "counts": list(self.counts)}

    @torch.no_grad()
    def set(
        self,
        centers: Tensor,
        beta: Tensor,
        b: Tensor,
        counts: Sequence[int],
        support: Tensor | None = None,
    ) -> None:
        """Take these centres and coefficients."""
        device, dtype = self.b.device, self.b.dtype
        self.counts = tuple(int(c) for c in counts)
        places = torch.arange(len(centers)) if support is None else support
        # straight into the table of buffers: torch's checks cost more than a small fit
        self._buffers["centers"] = centers.to(device, dtype).contiguous()
        self._buffers["support"] = places.to(device)
        self.beta.data = beta.to(device, dtype).contiguous()
        self.b.data = b.to(device, dtype)

    def _pieces(self, x: Tensor) -> list[Tensor]:
        return list(torch.split(x, max(1, TILE // max(1, len(self.centers)))))

    @offers.pairs("y")
    def pair_scores(self, x: Tensor) -> Tensor:
        r""":math:`f_{ab}(x)` for a < b in lexical order, ``(B, k(k-1)/2)``; positive: a wins."""
        parts = [self._scores(piece) for piece in self._pieces(x)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _scores(self, x: Tensor) -> Tensor:
        K = self.kernel.of(Geometry(x, self.centers))  # (B, m)
        if self.k == 2:
            return K @ self.beta.T + self.b
        starts = [0]
        for c in self.counts:
            starts.append(starts[-1] + c)
        sums = [
            K[:, starts[a] : starts[a + 1]] @ self.beta[:, starts[a] : starts[a + 1]].T
            for a in range(self.k)
        ]  # k of (B, k - 1)
        pairs = [(a, b) for a in range(self.k) for b in range(a + 1, self.k)]
        return torch.stack([sums[a][:, b - 1] + sums[b][:, a] for a, b in pairs], 1) + self.b

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None])[:, 0]

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        f = self.pair_scores(x)
        if self.k == 2:
            return torch.cat([-f, f], 1) / 2
        return -votes(f, self.k)

    def norms(self) -> Tensor:
        r""":math:`\|f_{ab}\|^2` in the space of the kernel, ``(k(k-1)/2,)``."""
        K = self.kernel.of(Geometry(self.centers, self.centers))
        owner = torch.repeat_interleave(torch.arange(self.k), torch.tensor(self.counts))
        found = []
        for a in range(self.k):
            for b in range(a + 1, self.k):
                first, second = owner == a, owner == b
                c = self.beta.new_zeros(len(owner))
                c = torch.where(first.to(c.device), self.beta[b - 1], c)
                c = torch.where(second.to(c.device), self.beta[a], c)
                found.append(c @ (K @ c))
        return torch.stack(found)


def votes(f: Tensor, k: int) -> Tensor:
    r"""Wins of each class plus its squeezed summed score, ``(B, k)``, from pair scores."""
    wins, total = [f.new_zeros(len(f)) for _ in range(k)], [f.new_zeros(len(f)) for _ in range(k)]
    at = 0
    for a in range(k):
        for b in range(a + 1, k):
            score = f[:, at]
            won = (score >= 0).to(f.dtype)
            wins[a], wins[b] = wins[a] + won, wins[b] + (1 - won)
            total[a], total[b] = total[a] + score, total[b] - score
            at += 1
    s = torch.stack(total, 1)
    return torch.stack(wins, 1) + s / (3 * (s.abs() + 1))


def kernel_width(kernel: Kernel, d: int) -> int:
    """Columns of the stored centres: their features, or their number where values are given."""
    from groundstate.math.kernels import Precomputed

    return 1 if isinstance(kernel, Precomputed) else d
