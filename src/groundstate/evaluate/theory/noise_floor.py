r"""How low can the risk go? The noise of a target, without a model of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.errors import DataError
from groundstate.evaluate.rows import columns, n_rows
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.means import mean_interval

Floats = NDArray[np.float64]
_ROWS = 20_000  # rows whose neighbours are looked up
_REPEATED = 10  # rows beyond the first of their kind that make repeats worth more than neighbours


@dataclass(frozen=True)
class Floor(Displayed):
    """The least risk any model can have, as far as the table tells.

    Attributes
    ----------
    risk : Interval
    method : ``"repeated x"``, ``"nearest neighbour"`` or ``"given"``
    """

    risk: Interval
    method: str

    def __str__(self) -> str:
        return f"{self.risk} by {self.method}"


def noise_floor(X: Any, y: Any, loss: str = "squared", level: float = 0.95) -> Floor | None:
    r"""The part of the risk that is noise.

    From rows with the same x where there are enough of them: the pooled variance within them, or
    the share that does not have the most frequent label. Otherwise from each row and its nearest
    neighbour (columns standardised): :math:`\tfrac12\overline{(y_i - y_{nn(i)})^2}` for squared
    and :math:`\overline{|y_i - y_{nn(i)}|}/\sqrt2` for absolute loss, which also holds what the
    function moves between neighbours; for labels, with the share r of neighbours that disagree,
    :math:`\frac{K-1}K\bigl(1 - \sqrt{1 - \tfrac{K}{K-1} r}\bigr)` (Cover and Hart).

    Parameters
    ----------
    X : a table; without numeric columns and without repeats there is no estimate
    y : ``(N,)``
    loss : ``"squared"``, ``"absolute"`` or ``"zero_one"``

    Returns
    -------
    Floor, or None where the table tells nothing

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(2000, 1))
    >>> floor = noise_floor(x, np.sin(6 * x[:, 0]) + 0.3 * rng.normal(size=2000))
    >>> round(floor.risk.estimate, 2), floor.method
    (0.09, 'nearest neighbour')
    """
    if loss not in ("squared", "absolute", "zero_one"):
        raise ValueError(f"loss must be squared, absolute or zero_one, got {loss!r}")
    if type(X).__module__.startswith("groundstate.data."):
        X = X.features  # a table holds its own target, which must not find neighbours
    target, n = np.asarray(y), n_rows(X)
    if target.shape != (n,):
        raise DataError(f"y has shape {target.shape}; expected one target per row, ({n},)")
    if loss == "zero_one":
        target = np.unique(target, return_inverse=True)[1].reshape(-1)
    place = np.unique(row_hash(*columns(X)), return_inverse=True)[1].reshape(-1)
    times = np.bincount(place)
    if int((times - 1).sum()) >= _REPEATED:
        rows, labels = np.flatnonzero(times[place] > 1), place
        values = _within(target[rows], labels[rows], loss)
        found = mean_interval(values, level, cluster=labels[rows])
        return Floor(Interval(found.estimate, max(found.low, 0.0), found.high, level, found.method),
                     "repeated x")  # fmt: skip
    gaps = _neighbours(X, target, loss)
    if gaps is None:
        return None
    found = mean_interval(gaps, level)
    if loss == "zero_one":
        k = int(target.max()) + 1
        low, mid, high = (_cover_hart(v, k) for v in (found.low, found.estimate, found.high))
        found = Interval(mid, low, high, level, "Cover-Hart")
    return Floor(found, "nearest neighbour")


def _within(y: NDArray[Any], place: NDArray[np.intp], loss: str) -> Floats:
    """Unbiased losses of the best answer to rows that share their x."""
    _, group = np.unique(place, return_inverse=True)
    group = group.reshape(-1)
    times = np.bincount(group)[group]
    if loss == "zero_one":
        table = np.zeros((int(group.max()) + 1, int(y.max()) + 1))
        np.add.at(table, (group, y), 1)
        # two rows of one x disagree with chance Σ p(1 − p); halved, a bound from below on the error
        same = table[group, y]
        return (times - same) / (times - 1) / 2
    v = y.astype(np.float64)
    if loss == "squared":
        mean = np.bincount(group, v) / np.bincount(group)
        return np.square(v - mean[group]) * times / (times - 1)
    out = np.empty(len(v))
    for g in range(int(group.max()) + 1):
        at = np.flatnonzero(group == g)
        out[at] = np.abs(v[at] - np.median(v[at])) * len(at) / (len(at) - 1)
    return out


def _neighbours(X: Any, y: NDArray[Any], loss: str) -> Floats | None:
    """What each row and its nearest neighbour differ by.  # (n,)"""
    import scipy.spatial

    from groundstate.evaluate.frames import frame_of, numeric_columns

    array = X.toarray() if hasattr(X, "tocsr") else X
    table = numeric_columns(frame_of(array))
    if not table or len(y) < 10:
        return None
    values = np.stack(list(table.values()), 1)[:_ROWS]
    values = np.where(np.isfinite(values), values, np.nanmedian(values, 0))
    spread = values.std(0)
    values = values[:, spread > 0] / spread[spread > 0]
    if not values.shape[1]:
        return None
    near = scipy.spatial.cKDTree(values).query(values, 2)[1]
    near = np.where(near[:, 0] == np.arange(len(values)), near[:, 1], near[:, 0])
    a, b = y[: len(values)], y[near]
    if loss == "zero_one":
        return (a != b).astype(np.float64)
    gap = a.astype(np.float64) - b.astype(np.float64)
    return np.square(gap) / 2 if loss == "squared" else np.abs(gap) / np.sqrt(2)


def _cover_hart(r: float, k: int) -> float:
    share = (k - 1) / k
    return share * (1 - float(np.sqrt(max(0.0, 1 - min(max(r, 0.0), share) / share))))
