r"""How much wider than the spread of rows says is the interval of a score by folds.

The score of rows that were judged in folds estimates what the model fitted to all rows does on rows to
come. With the losses :math:`\ell_i(\hat\theta_{-k})` and :math:`\hat\theta \approx \theta - \tfrac1n\sum_j
H^{-1} g_j`, each pair of rows of different folds adds :math:`-\tfrac1{n^2} g_i^\top H^{-1} g_j` twice to the
score: once as i is judged, once as j is. The spread of rows knows one of the two, so the variance is

.. math:: \frac{\sigma^2}n (1 + φ), \qquad φ = \frac{v}{\sigma^2}, \qquad
          v = \frac{\mathrm{tr}(H^{-1} G H^{-1} G)}n ,

v being what the fit contributes to the variance of a row's loss. Where the loss of a perfect answer
varies too (squared errors of noisy values), φ is c/n with a c that grows with what is fitted. Where it
does not (a class that hardly depends on the columns: probabilities near the share of the class lose
nearly the same on every row), most of σ² is v and φ stays near 1 at every n; so it does for fits that
jump, as trees do. φ = δ + c/n has both parts, as simulated tables need them.

Where folds chose another configuration than all rows do, there are two scores on the same rows: that
of the rule, which chose with fewer rows and is a little worse than the final fit, and that of the
chosen configuration, which is the best of many on these very rows and so looks better than it is. What
is to come lies between the two or not far away, and the interval of the rule is continued by the
difference Δ towards the other one, and not away from it.
"""

from __future__ import annotations

from groundstate.math.stats.interval import Interval

# δ and c, from simulated tables: bench/scripts/fold_intervals.py
ALWAYS, FITS = 1 / 3, 20.0


def widened(found: Interval, n: int, apart: float = 0.0) -> tuple[float, float]:
    r"""Limits of a score of n rows judged in folds: :math:`\sqrt{1 + δ + c/n}` times as far away.

    Parameters
    ----------
    found : the interval from the spread of rows
    n : rows
    apart : Δ, the score less that of the chosen configuration on the same folds, by which the limit
        on the side of that configuration moves on

    Examples
    --------
    >>> plain = Interval(0.8, 0.7, 0.88)
    >>> [round(end, 3) for end in widened(plain, 60)]
    [0.671, 0.903]
    >>> [round(end, 3) for end in widened(plain, 60, -0.05)]
    [0.671, 0.953]
    """
    wide = (1 + ALWAYS + FITS / n) ** 0.5
    low = found.estimate - wide * (found.estimate - found.low)
    high = found.estimate + wide * (found.high - found.estimate)
    return low - max(apart, 0.0), high + max(-apart, 0.0)
