r"""The Gaussian kernel tile by tile: one product, then the exponential while the tile is in cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

LEAST = 2**16  # numbers of a matrix below which tiles do not pay
TILE = 2**18  # numbers of one tile
SPREAD = 512.0  # squared length of rows in units of the kernel's, up to which no digits are lost


def gaussian_tiles(x: Tensor, z: Tensor, same: bool, scale: Any) -> Tensor | None:
    r""":math:`e^{-\|x_i - z_j\|^2/2\ell^2}` as :math:`e^{2u_i^\top v_j - \|u_i\|^2 - \|v_j\|^2}`, ``(n, m)``.

    None where it does not apply: batches, gradients, other devices, small matrices, and rows so far
    from each other, for this ℓ, that products would lose digits which differences keep.

    Examples
    --------
    >>> x = torch.linspace(0, 1, 300, dtype=torch.float64)[:, None]
    >>> K = gaussian_tiles(x, x, True, 0.5)
    >>> bool((K - (-2 * (x - x.T).square()).exp()).abs().max() < 1e-14)
    True
    """
    n, m = x.shape[-2], z.shape[-2]
    if x.ndim != 2 or n * m < LEAST or x.device.type != "cpu":
        return None
    scale = scale if isinstance(scale, Tensor) else torch.tensor(scale, dtype=x.dtype)
    if torch.is_grad_enabled() and any(t.requires_grad for t in (x, z, scale)):
        return None
    factor = math.sqrt(0.5) / scale.detach()
    centre = z.detach().mean(0)
    u = (x.detach() - centre) * factor
    v = u if same else (z.detach() - centre) * factor
    a = u.square().sum(1, keepdim=True)
    b = a if same else v.square().sum(1, keepdim=True)
    if not max(float(a.max()), float(b.max())) <= SPREAD:
        return None
    left = torch.cat([2 * u, -a, torch.ones_like(a)], 1)
    right = torch.cat([v, torch.ones_like(b), -b], 1).T
    values = np.empty((n, m), dtype=u.numpy().dtype)  # NumPy asks for large pages, torch does not
    K = torch.from_numpy(values)
    step = max(16, TILE // m)
    for low in range(0, n, step):
        high = min(n, low + step)
        if not same:
            torch.mm(left[low:high], right, out=K[low:high])
            _exponential(values[low:high])
            continue
        tile = left[low:high] @ right[:, low:]
        block = tile[:, : high - low]
        block.copy_(torch.triu(block, 1) + torch.triu(block, 1).T)
        _exponential(tile.numpy())
        K[low:high, low:] = tile
        K[high:, low:high] = tile[:, high - low :].T
    return K


def _exponential(values: Any) -> None:
    np.minimum(values, 0.0, out=values)
    np.exp(values, out=values)
