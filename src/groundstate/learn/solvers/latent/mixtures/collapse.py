r"""Components that became narrow within one M-step, whose covariances sums of features cannot hold.

A variance from sums about a common origin, :math:`\sum r y^2 / n - m^2`, is wrong by rounding of :math:`m^2`.
Where the new variance is so small that this counts, the sums are taken again about the new means, with the
shares r of the parameters before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Categorical

from groundstate.compute.reduce import current
from groundstate.learn.solvers.latent.mixtures.host import upper, wide
from groundstate.learn.solvers.latent.mixtures.pass_numba import DIAGONAL

if TYPE_CHECKING:
    from groundstate.learn.solvers.latent.mixtures.steps import GaussianM

ROWS = 2**14  # whose differences are held at once
EPS = float(np.finfo(np.float64).eps)
NONE = np.empty(0, dtype=np.int64)
DIGITS = 1e-8  # largest error of a log density that the fast path may make


def too_narrow(step: GaussianM) -> NDArray[np.int64]:
    """Components whose log densities sums of features would miss by more than ``DIGITS``."""
    k, d = step.mixture.mu.shape
    U = wide(step.mixture.U)
    if step.kind == DIAGONAL:
        sizes = np.square(U.reshape(k, -1) * np.diagonal(step.back)).max(1)
    else:
        sizes = np.square(step.back.T @ (U * upper(d))).sum((-2, -1))
    well = EPS * step.radius * sizes <= DIGITS
    return NONE if well.all() else np.flatnonzero(~np.broadcast_to(well, k))


@torch.no_grad()
def resummed(
    step: GaussianM, lost: NDArray[np.int64], n: Tensor, mean: Tensor, cov: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Counts ``(k,)``, means and covariances with those of ``lost`` summed by differences.

    The mixture holds the parameters of before. One covariance for all components is summed over all.
    """
    shared = step.mixture.covariance_type == "tied"
    at = torch.arange(len(n)) if shared else torch.from_numpy(lost)
    mean, cov = mean.clone(), cov.clone()
    d = mean.shape[1]
    square = step.mixture.covariance_type in ("full", "tied")
    first = mean.new_zeros(len(at), d)
    second = mean.new_zeros(len(at), d, d) if square else mean.new_zeros(len(at), d)
    for batch, weight in step.problem.chunks(ROWS):
        distribution, _ = step.complete.distribution(batch, step.T)
        assert isinstance(distribution, Categorical)
        r = distribution.probs.double().to(mean.device)
        r = r if weight is None else r * weight.double().to(mean.device)[:, None]
        x = batch["x"].double().to(mean.device)
        for i, z in enumerate(at.tolist()):
            diff = x - mean[z]
            scaled = diff * r[:, z : z + 1]
            first[i] += scaled.sum(0)
            second[i] += scaled.T @ diff if square else (scaled * diff).sum(0)
    sums = current().sum_dict({"x": first, "xx": second})
    count = n[at].clamp_min(torch.finfo(n.dtype).tiny)
    moved = sums["x"] / count[:, None]
    mean[at] += moved
    if shared:
        cov = (sums["xx"].sum(0) - (count[:, None] * moved).T @ moved) / count.sum()
    elif square:
        cov[at] = sums["xx"] / count[:, None, None] - moved[:, :, None] * moved[:, None]
    else:
        variance = (sums["xx"] / count[:, None] - moved.square()).clamp_min(0)
        cov[at] = variance.mean(1) if cov.ndim == 1 else variance
    return n, mean, cov
