r"""Missing entries are factors that are left out, :math:`-\log\pi_y - \sum_{j\,\text{seen}}\log p(x_j\mid y)`.

Nothing is looked for beforehand: NaN spreads to sums and energies, which are few, and only where
one is found there are they computed again with the factors left out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.foreign.torch import functorch_active
from groundstate.energy.classes.naive_bayes.sums_numba import observed_class_sums

if TYPE_CHECKING:
    from groundstate.energy.classes.naive_bayes.joint import JointClassEnergy


def spoilt(values: Tensor) -> bool:
    """Whether NaN is among the values; not looked for under ``vmap``, where values decide nothing.

    >>> spoilt(torch.tensor([1.0, torch.nan]))
    True
    """
    if functorch_active():
        return False
    return math.isnan(values.detach().sum().item())


def without_missing(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows with zeros for NaN, and ones where they were; sparse rows stay sparse.

    >>> filled, gone = without_missing(torch.tensor([[2.0, torch.nan]]))
    >>> filled.tolist(), gone.tolist()
    ([[2.0, 0.0]], [[0.0, 1.0]])
    """
    if x.layout != torch.sparse_csr:
        gone = x.isnan()
        return x.masked_fill(gone, 0.0), gone.to(x.dtype)
    v = x.values()
    gone = v.isnan()
    filled, ones = (
        torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), part, x.shape)
        for part in (v.masked_fill(gone, 0.0), gone.to(v.dtype))
    )
    return filled, ones


def observed_sums(
    energy: JointClassEnergy,
    x: Tensor,
    y: Tensor | Distribution,
    weights: Tensor | None,
    origin: Tensor | None = None,
    squares: bool = False,
) -> dict[str, Tensor]:
    """``energy.sums_of`` over what is observed, and its weight ``seen`` per class and feature.

    Parameters
    ----------
    x : rows ``(B, d)`` that may hold NaN
    y, weights, origin, squares : see ``JointClassEnergy.sums_of``
    """
    sums = energy.sums_of(x, y, weights, origin, squares)
    n = sums["n"][:, None]
    if not spoilt(sums["x"]):
        return {**sums, "seen": n.repeat(1, x.shape[1])}
    if x.layout == torch.sparse_csr:
        filled, gone = without_missing(x)
        seen = n - energy.sums_of(gone, y, weights)["x"]
        seen = torch.where(seen > 1e-12 * n, seen, 0.0)  # two orders of adding up the weights
        return {**energy.sums_of(filled, y, weights), "seen": seen}
    if origin is None:
        origin = x.new_zeros(energy.k, x.shape[1], dtype=torch.float64)
    if x.is_cuda or isinstance(y, Distribution):
        return _products(energy, x, y, weights, origin, squares)
    w = np.empty(0) if weights is None else weights.double().numpy()
    found = observed_class_sums(x.detach().numpy(), y.numpy(), w, origin.double().numpy(), squares)
    names = ("n", "seen", "x", "xx") if squares else ("n", "seen", "x")
    return {name: torch.from_numpy(v) for name, v in zip(names, found, strict=False)}


def _products(
    energy: JointClassEnergy,
    x: Tensor,
    y: Tensor | Distribution,
    weights: Tensor | None,
    origin: Tensor,
    squares: bool,
) -> dict[str, Tensor]:
    """The sums as matrix products, for a GPU and for distributions of y."""
    r, gone = energy.per_class(y, weights), x.isnan()
    rows = x.double() if isinstance(y, Distribution) else x.double() - origin[y]
    rows = rows.masked_fill(gone, 0.0)
    sums = {"n": r.sum(0), "seen": r.T @ (~gone).double(), "x": r.T @ rows}
    return {**sums, "xx": r.T @ rows.square()} if squares else sums


def seen_weight(stats: dict[str, Tensor]) -> Tensor:
    """Weight of the observed entries: ``(k, d)``, or ``(k, 1)`` where nothing is missing."""
    return stats["seen"] if some_missing(stats) else stats["n"][:, None]


def some_missing(stats: dict[str, Tensor]) -> bool:
    """Whether some row lacked some feature."""
    if "seen" not in stats:
        return False
    seen, n = stats["seen"].detach(), stats["n"].detach()[:, None]
    if seen.device.type == "cpu":  # NumPy compares few numbers in a third of torch's time
        return not bool((seen.numpy() == n.numpy()).all())
    return not bool((seen == n).all())


def shared(sums: Tensor, seen: Tensor) -> Tensor:
    """Means ``(k, d)`` of what is observed; where a class has nothing, the mean of all rows.

    A feature that nobody observed has the mean zero.
    """
    means = sums / seen.clamp_min(1e-300)
    if float(seen.min()) > 0:
        return means
    return torch.where(seen > 0, means, sums.sum(0) / seen.sum(0).clamp_min(1e-300))
