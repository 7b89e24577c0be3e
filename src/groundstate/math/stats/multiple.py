"""p-values of many tests at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.errors import DataError


def adjust_pvalues(
    p: Any, method: Literal["bonferroni", "holm", "hochberg", "bh", "by"] = "holm"
) -> NDArray[np.float64]:
    r"""p-values corrected for making several tests at once.

    ============  =======================================================================
    bonferroni    :math:`m\,p_i`
    holm          step down: :math:`\max_{j\le i}(m-j+1)p_{(j)}`; family-wise error
    hochberg      step up: :math:`\min_{j\ge i}(m-j+1)p_{(j)}`; for independent tests
    bh, by        false discovery rate, by scipy's ``false_discovery_control``
    ============  =======================================================================

    Parameters
    ----------
    p : ``(m,)``

    Returns
    -------
    ``(m,)``, in the order given

    Examples
    --------
    >>> adjust_pvalues([0.01, 0.04, 0.03, 0.005]).round(6).tolist()
    [0.03, 0.06, 0.06, 0.02]
    """
    values = np.asarray(p, np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise DataError("p must be a list of probabilities between 0 and 1")
    if method in ("bh", "by"):
        return np.asarray(scipy.stats.false_discovery_control(values, method=method))
    m = len(values)
    if method == "bonferroni":
        return np.minimum(values * m, 1.0)
    if method not in ("holm", "hochberg"):
        raise ValueError(f"method must be bonferroni, holm, hochberg, bh or by, got {method!r}")
    order = np.argsort(values, kind="stable")
    scaled = values[order] * (m - np.arange(m))
    if method == "holm":
        scaled = np.maximum.accumulate(scaled)
    else:
        scaled = np.minimum.accumulate(scaled[::-1])[::-1]
    out = np.empty(m)
    out[order] = np.minimum(scaled, 1.0)
    return out
