r"""How much wider than the spread of rows says is the interval of a score by folds.

The score of rows that were judged in folds estimates what the model fitted to all rows does on rows to
come. With the losses :math:`\ell_i(\hat\theta_{-k})` and :math:`\hat\theta \approx \theta - \tfrac1n\sum_j
H^{-1} g_j`, each pair of rows of different folds adds :math:`-\tfrac1{n^2} g_i^\top H^{-1} g_j` twice to the
score: once as i is judged, once as j is. The spread of rows knows one of the two, so the variance is

.. math:: \frac{\sigma^2}n \Bigl(1 + δ + \frac cn\Bigr), \qquad
          c \approx \frac{\mathrm{tr}(H^{-1} G H^{-1} G)}{\sigma^2},

a constant that grows with what is fitted. The choice among configurations adds a part that falls no
faster than the spread of rows itself: those that the rows cannot tell apart differ by as much as the
rows' error, at every n, and the final fit is one of them. Its share δ of the variance, and c, are
measured. Where folds chose another
configuration than all rows do, the score is that of another model: by how much, Δ, is known, for the
folds of the chosen one are there too. Its square is added.
"""

from __future__ import annotations

from groundstate.math.stats.interval import Interval, z_of

CHOICE, FITS = 1 / 3, 30.0  # δ and c, by simulated tables: bench/scripts/fold_intervals.py


def widened(found: Interval, n: int, apart: float = 0.0) -> tuple[float, float]:
    r"""Limits of a score of n rows judged in folds, :math:`\sqrt{(1 + δ + c/n)h^2 + z^2Δ^2}` away.

    Parameters
    ----------
    found : the interval from the spread of rows, whose limits are h away
    n : rows
    apart : Δ, the score less that of the chosen configuration on the same folds

    Examples
    --------
    >>> plain = Interval(0.8, 0.7, 0.88)
    >>> [round(end, 3) for end in widened(plain, 60)]
    [0.665, 0.908]
    >>> [round(end, 3) for end in widened(plain, 60, 0.05)]
    [0.633, 0.946]
    """
    wide = 1 + CHOICE + FITS / n
    more = (z_of(found.level) * apart) ** 2
    below = (wide * (found.estimate - found.low) ** 2 + more) ** 0.5
    above = (wide * (found.high - found.estimate) ** 2 + more) ** 0.5
    return found.estimate - below, found.estimate + above
