r"""How many axes carry more than noise, by the evidence of probabilistic PCA (Minka, 2000)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

F64 = NDArray[np.float64]


def minka_dimension(variances: F64, n: float) -> int:
    r"""The number of axes of largest evidence.

    Laplace's approximation of :math:`\log p(X \mid k)` for the model with k axes of their own
    variance and one variance for the rest.

    Parameters
    ----------
    variances : ``(d,)``, the largest first
    n : number of rows

    Examples
    --------
    >>> minka_dimension(np.array([9.0, 4.0, 0.31, 0.3, 0.29]), 400)
    2
    """
    evidence = np.full(len(variances), -math.inf)
    for k in range(1, len(variances)):
        evidence[k] = _evidence(variances, k, n)
    return int(evidence.argmax())


def _evidence(variances: F64, k: int, n: float) -> float:
    """Equation 77 and appendix A of "Automatic choice of dimensionality for PCA"."""
    d = len(variances)
    tiny = 1e-15
    if variances[k - 1] < tiny:  # an axis without variance is no signal
        return -math.inf
    i = np.arange(1, k + 1)
    uniform = -k * math.log(2.0) + float(
        (gammaln((d - i + 1) / 2.0) - math.log(math.pi) * (d - i + 1) / 2.0).sum()
    )
    own = -float(np.log(variances[:k]).sum()) * n / 2.0
    noise = max(tiny, float(variances[k:].sum()) / (d - k))
    rest = -math.log(noise) * n * (d - k) / 2.0
    free = d * k - k * (k + 1.0) / 2.0
    scale = math.log(2.0 * math.pi) * (free + k) / 2.0
    assumed = variances.copy()
    assumed[k:] = noise
    pairs = variances[:k, None] - variances[None, :]
    inverse = 1.0 / assumed[None, :] - 1.0 / assumed[:k, None]
    upper = np.triu(np.ones((k, d), dtype=bool), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        curvature = float((np.log(pairs * inverse) + math.log(n))[upper].sum())
    if math.isnan(curvature):
        return -math.inf
    return uniform + own + rest + scale - curvature / 2.0 - k * math.log(n) / 2.0
