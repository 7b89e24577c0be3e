r"""The season of series: the lag at which they are most like themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_CLEAR = 0.2  # autocorrelation that is worth being called a season
_FILLED = 3  # seasons that a series must hold


def season_of(series: Sequence[NDArray[np.float64]]) -> int:
    r"""The lag of the highest peak of the autocorrelation
    :math:`r_k = \overline{z_tz_{t+k}} / \overline{z_t^2}`, z without its straight line; 1 without one.

    Of peaks that cannot be told apart the first is taken. All series and columns have a say.

    Parameters
    ----------
    series : of numbers ``(T,)``, none missing

    Examples
    --------
    >>> t = np.arange(100)
    >>> season_of([t + 5 * np.sin(2 * np.pi * t / 12)]), season_of([t**1.5])
    (12, 1)
    """
    reach = min(len(x) for x in series) // _FILLED
    if reach < 3:
        return 1
    found = np.mean([_correlation(np.asarray(x, np.float64), reach) for x in series], 0)
    inner = found[1:-1]
    peaks = 1 + np.flatnonzero((inner > found[:-2]) & (inner >= found[2:]))
    noise = 2 / np.sqrt(sum(len(x) for x in series))
    peaks = peaks[(peaks > 1) & (found[peaks] > max(_CLEAR, noise))]
    if not len(peaks):
        return 1
    return int(peaks[found[peaks] >= found[peaks].max() - noise / 2][0])


def _correlation(x: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """Autocorrelation at the lags 0 to ``reach``, without bias towards 0 at long lags, ``(reach + 1,)``."""
    t = np.arange(len(x))
    z = x - np.polyval(np.polyfit(t, x, 1), t)
    power = np.abs(np.fft.rfft(z, 2 * len(z))) ** 2
    sums = np.fft.irfft(power)[: reach + 1]
    if sums[0] <= 1e-12 * float((x**2).sum()):
        return np.zeros(reach + 1)
    return np.asarray(sums / sums[0] * len(z) / (len(z) - np.arange(reach + 1)))
