r"""Many predictors at once: what averaging gains, and rows drawn with replacement.

.. math:: \overline{(f_m - y)^2} = (\bar f - y)^2 + \overline{(f_m - \bar f)^2} .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError, ShapeError

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Decomposition:
    """Squared errors of a committee, averaged over rows.

    Attributes
    ----------
    member : mean loss of one member, = ensemble + variance
    ensemble : loss of the mean prediction, = noise + bias where the truth is known
    variance : of the members about their mean; what averaging gains
    noise, bias : of the targets about their mean, and squared distance of the mean prediction
        from it; NaN unless ``truth`` was given
    correlation : ρ between members about the truth (or the targets), averaged over pairs
    spread : s², their mean square about it
    """

    member: float
    ensemble: float
    variance: float
    noise: float
    bias: float
    correlation: float
    spread: float

    def curve(self, members: ArrayLike) -> F64:
        """Variance of the mean of B members, :math:`\rho s^2 + (1-\rho)s^2/B`."""
        B = np.asarray(members, np.float64)
        return self.spread * (self.correlation + (1 - self.correlation) / B)


def ensemble_decomposition(
    predictions: ArrayLike, y: ArrayLike, truth: ArrayLike | None = None
) -> Decomposition:
    r"""Split the squared error of a committee.

    Parameters
    ----------
    predictions : (members, rows), or (members,) for one place with several targets
    y : (rows,) targets, or (draws,) of one place, or (draws, rows)
    truth : mean of y; by default the mean over draws where there are several

    Examples
    --------
    >>> found = ensemble_decomposition([1, 2, 6], [0, 2])
    >>> round(found.member, 6), found.ensemble, round(found.variance, 6), found.noise, found.bias
    (9.666667, 5.0, 4.666667, 1.0, 4.0)
    """
    f = np.asarray(predictions, np.float64)
    t = np.asarray(y, np.float64)
    if f.ndim == 1:
        f, t = f[:, None], t.reshape(-1, 1)
    t = t if t.ndim == 2 else t[None]
    if f.ndim != 2 or t.shape[1] != f.shape[1]:
        raise ShapeError(
            f"predictions {f.shape} and y {t.shape} disagree; give (members, rows) and (rows,) "
            "or (draws, rows)"
        )
    mean = f.mean(0)
    known = truth is not None or len(t) > 1
    centre = t.mean(0) if truth is None else np.broadcast_to(np.asarray(truth, float), mean.shape)
    errors = f - centre
    spread = float(np.square(errors).mean())
    B = len(f)
    square = float(np.square(errors.sum(0)).mean())
    pairs = (square - B * spread) / (B * (B - 1)) if B > 1 else spread
    return Decomposition(
        member=float(np.square(f[:, None] - t[None]).mean()),
        ensemble=float(np.square(mean - t).mean()),
        variance=float(np.square(f - mean).mean()),
        noise=float(np.square(t - centre).mean()) if known else float("nan"),
        bias=float(np.square(mean - centre).mean()) if known else float("nan"),
        correlation=pairs / spread if spread > 0 else 1.0,
        spread=spread,
    )


def bootstrap_indices(
    n: int, size: int | None = None, random_state: RandomState = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows drawn uniformly with replacement, and the rows that were not drawn.

    For a table with weights use ``WeightLine.bootstrap``, whose draws do not depend on the order
    of the rows. Judge a fit on the rows that were not drawn: a resample split into two parts has
    copies of the same rows on both sides.

    Examples
    --------
    >>> drawn, outside = bootstrap_indices(20, random_state=0)
    >>> len(drawn), len(set(drawn.tolist())) + len(outside)
    (20, 20)
    """
    if n < 1:
        raise DataError(f"n={n} rows; there must be at least one to draw from")
    words = Key.of(random_state).fold("bootstrap").uniform(n if size is None else size)
    drawn = np.minimum((words * n).astype(np.int64), n - 1)
    return drawn, np.setdiff1d(np.arange(n), drawn)


def bootstrap_split(
    n: int, share: float = 0.8, random_state: RandomState = None, *, leaky: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    r"""Rows to learn from, drawn with replacement, and rows to judge by, which were not drawn.

    Parameters
    ----------
    n : number of rows
    share : of the draws that a leaky split learns from
    leaky : for demonstration only: cut one resample in two, so that a share of about
        :math:`1 - e^{-\rho}` of the rows to judge by was learned from

    Examples
    --------
    >>> import numpy as np
    >>> learned, judged = bootstrap_split(2000, random_state=0)
    >>> bool(np.isin(judged, learned).any())
    False
    >>> learned, judged = bootstrap_split(20_000, random_state=0, leaky=True)
    >>> bool(np.isin(judged, learned).mean() > 0.5)
    True
    """
    drawn, outside = bootstrap_indices(n, random_state=random_state)
    if not leaky:
        return drawn, outside
    cut = round(share * n)
    return drawn[:cut], drawn[cut:]
