r"""How much wider than the spread of rows says is the interval of a score by folds.

The score of rows that were judged in folds estimates what the model fitted to all rows does on rows to
come. With the losses :math:`\ell_i(\hat\theta_{-k})` and :math:`\hat\theta \approx \theta - \tfrac1n\sum_j
H^{-1} g_j`, each pair of rows of different folds adds :math:`-\tfrac1{n^2} g_i^\top H^{-1} g_j` twice to the
score: once as i is judged, once as j is. The spread of rows knows one of the two, so the variance is

.. math:: \frac{\sigma^2}n \Bigl(1 + \frac cn\Bigr), \qquad
          c \approx \frac{\mathrm{tr}(H^{-1} G H^{-1} G)}{\sigma^2},

a constant that grows with what is fitted. Counts of right and wrong answers change only for rows at a
boundary, where pairs of rows seldom both are, and have a smaller one. Where folds chose another
configuration than all rows do, the score is that of another model: by how much, Δ, is known, for the
folds of the chosen one are there too. Its square is added.
"""

from __future__ import annotations

from groundstate.math.stats.interval import Interval, z_of

SMOOTH, COUNTED = 60.0, 20.0  # c, by simulated tables: bench/scripts/fold_intervals.py


def widened(
    found: Interval, n: int, apart: float = 0.0, *, counted: bool = False
) -> tuple[float, float]:
    r"""Limits of a score of n rows that were judged in folds, :math:`\sqrt{(1 + c/n)h^2 + z^2Δ^2}` away.

    Parameters
    ----------
    found : the interval from the spread of rows, whose limits are h away
    n : rows
    apart : Δ, the score less that of the chosen configuration on the same folds
    counted : the score counts right and wrong answers; else losses, ranks or errors are averaged

    Examples
    --------
    >>> plain = Interval(0.8, 0.7, 0.88)
    >>> [round(end, 3) for end in widened(plain, 60)]
    [0.659, 0.913]
    >>> [round(end, 3) for end in widened(plain, 60, 0.05, counted=True)]
    [0.649, 0.935]
    """
    wide = 1 + (COUNTED if counted else SMOOTH) / n
    more = (z_of(found.level) * apart) ** 2
    below = (wide * (found.estimate - found.low) ** 2 + more) ** 0.5
    above = (wide * (found.high - found.estimate) ** 2 + more) ** 0.5
    return found.estimate - below, found.estimate + above
