r"""Sparse codes: the largest entries alone, and decoders whose atoms have length one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import linear


@blocks.register(make=lambda: TopK(2), batch=rows_of(5), formula=r"z_i\,[z_i \ge z_{(k)}]")
class TopK(nn.Module):
    """The k largest entries of every row; all others are 0.

    >>> TopK(2)(torch.tensor([[3.0, 1.0, 2.0]]))
    tensor([[3., 0., 2.]])
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"at least one entry is kept, got k={k}")
        self.k = k

    def config(self) -> dict[str, Any]:
        return {"k": self.k}

    def forward(self, z: Tensor) -> Tensor:
        top = z.topk(min(self.k, z.shape[-1]), dim=-1)
        return torch.zeros_like(z).scatter(-1, top.indices, top.values)


@blocks.register(
    make=lambda: Dictionary(4, 3), batch=rows_of(4), formula=r"\sum_j a_j D_j/\|D_j\| + b"
)
class Dictionary(nn.Module):
    r"""A sum of atoms, :math:`\sum_j a_j D_j / \|D_j\| + b`: columns of length one, so that a penalty on
    the code cannot be dodged by small codes and long atoms.

    Parameters
    ----------
    k : length of the code, the number of atoms
    d : length of an atom
    generator : source of the initial atoms; None is a fixed seed

    Examples
    --------
    >>> Dictionary(5, 3).atoms.norm(dim=1).detach()
    tensor([1., 1., 1., 1., 1.])
    """

    def __init__(self, k: int, d: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.k, self.d = k, d
        generator = generator or torch.Generator().manual_seed(0)
        self.layer = linear(k, d, True)
        with torch.no_grad():
            self.layer.weight.copy_(torch.randn(d, k, generator=generator))
            self.layer.bias.zero_()

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "d": self.d}

    @property
    def atoms(self) -> Tensor:
        """The atoms, ``(k, d)``."""
        return nn.functional.normalize(self.layer.weight, dim=0).T

    def forward(self, a: Tensor) -> Tensor:
        return torch.addmm(self.layer.bias, a, self.atoms)
