r"""The free energy of a table of energies, :math:`F = -T\log\sum_k e^{-e_k/T}`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import as_tensor, to_numpy


def free_energy(e: Any, T: float = 1.0, dim: int | tuple[int, ...] = -1) -> Any:
    r"""The soft minimum :math:`F_T(e) = -T\log\sum_k e^{-e_k/T}`, with gradient softmax(−e/T).

    ``T=0`` is the minimum (the subgradient goes to one minimiser, the lowest index). ``T=inf`` is
    the limit of :math:`F_T + T\log K`, the mean over the values that are not forbidden. Half
    precision is raised to float32. ``+inf`` entries have weight and gradient zero; a row of only
    ``+inf`` has F = +inf.

    Parameters
    ----------
    e : energies, any shape; an array or list is answered as NumPy
    T : temperature in [0, inf]
    dim : axis or axes of the values

    Examples
    --------
    >>> e = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    >>> [round(float(free_energy(e, T)), 6) for T in (10.0, 1.0, 0.1, 0.0)]
    [-9.019428, 0.592394, 0.999995, 1.0]
    """
    if not isinstance(e, Tensor):
        return to_numpy(free_energy(as_tensor(e, "e", finite=False), T, dim))
    if not e.is_floating_point():
        e = e.double()
    if not T >= 0:
        raise ValueError(f"temperature must be in [0, inf], got T={T}")
    if e.dtype in (torch.float16, torch.bfloat16):
        e = e.float()
    if isinstance(dim, tuple):
        axes = sorted(d % e.ndim for d in dim)
        e = e.movedim(axes, tuple(range(-len(axes), 0))).flatten(-len(axes))
        dim = -1
    if T == 0:
        return e.gather(dim, e.argmin(dim, keepdim=True)).squeeze(dim)
    if math.isinf(T):
        allowed = ~torch.isposinf(e)
        count = allowed.sum(dim)
        total = torch.where(allowed, e, 0.0).sum(dim)
        return torch.where(count > 0, total / count.clamp_min(1), math.inf)
    if T == 1:
        return -torch.logsumexp(-e, dim)
    return -T * torch.logsumexp(e * (-1.0 / T), dim)


def boltzmann_logits(e: Tensor, T: float = 1.0) -> Tensor:
    """``-e/T`` for ``T`` in (0, inf], −inf where a value is forbidden, whatever ``T`` is."""
    if math.isinf(T):
        return torch.where(torch.isposinf(e), -math.inf, 0.0).to(e.dtype)
    return -e if T == 1 else e * (-1.0 / T)
