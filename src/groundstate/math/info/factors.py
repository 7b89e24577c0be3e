r"""What single entries of a code say about single factors: :math:`I(z_j; v_k)/H(v_k)`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import ShapeError
from groundstate.math.info.mutual_information import mutual_information

F64 = NDArray[np.float64]


class FactorInformation(NamedTuple):
    r"""Information of codes about factors, as shares of what there is to know.

    Attributes
    ----------
    shares : (n_codes, n_factors), :math:`I(z_j; v_k)/H(v_k)` in [0, 1]
    gaps : (n_factors,), the largest share of each factor less the second largest
    """

    shares: F64
    gaps: F64

    @property
    def gap(self) -> float:
        """Mean gap over the factors: 1 where one entry of the code knows each factor alone."""
        return float(self.gaps.mean())


def mutual_information_gap(codes: Any, factors: Any, bins: int = 20) -> FactorInformation:
    r""":math:`\frac1K\sum_k\frac{I(z_{(1)}; v_k) - I(z_{(2)}; v_k)}{H(v_k)}`, how much more the best entry
    of a code says about a factor than the second best (Chen et al. 2018).

    Each column is cut at its own quantiles; with n rows and B bins the estimate of an information is about
    :math:`(B - 1)^2/2n` too large, the same for every pair.

    Parameters
    ----------
    codes : array ``(n, n_codes)``
    factors : array ``(n, n_factors)`` of continuous values
    bins : of each column

    Examples
    --------
    >>> v = np.random.default_rng(0).random((2000, 2))
    >>> turned = v @ [[0.6, 0.8], [-0.8, 0.6]]
    >>> mutual_information_gap(v, v).gap > 0.9, mutual_information_gap(turned, v).gap < 0.3
    (True, True)
    """
    z, v = (np.asarray(a, np.float64) for a in (codes, factors))
    if z.ndim != 2 or v.ndim != 2 or len(z) != len(v) or z.shape[1] < 2:
        raise ShapeError(
            "codes are (n, at least 2) and factors (n, k) for the same n rows, got "
            f"{z.shape} and {v.shape}"
        )
    if not 2 <= bins <= len(z):
        raise ValueError(f"bins must be between 2 and the {len(z)} rows, got {bins}")
    a, b = (_quantiles(columns, bins) for columns in (z, v))
    joint = np.zeros((z.shape[1], v.shape[1], bins, bins))
    for j in range(z.shape[1]):
        for k in range(v.shape[1]):
            np.add.at(joint[j, k], (a[:, j], b[:, k]), 1.0)
    shares = np.asarray(mutual_information(joint)) / np.log(bins)
    best = np.sort(shares, 0)
    return FactorInformation(shares, best[-1] - best[-2])


def _quantiles(columns: F64, bins: int) -> NDArray[np.int64]:
    """The bin of every value, equally many in each."""
    ranks = columns.argsort(0, kind="stable").argsort(0, kind="stable")
    return ranks * bins // len(columns)
