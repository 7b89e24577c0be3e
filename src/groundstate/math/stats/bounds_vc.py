r"""Bounds that hold for all members of a class at once, by how many rows it can label in every way."""

from __future__ import annotations

import math
from typing import Literal


def vc(n: int, delta: float, d: float, form: Literal["vapnik", "symmetrised"] = "vapnik") -> float:
    r"""Width of the Vapnik-Chervonenkis bound for a class of dimension d, at :math:`1-\delta`:

    .. math::
        \text{vapnik: } \sqrt{\frac{d(\log(2n/d) + 1) + \log(4/\delta)}{n}}, \qquad
        \text{symmetrised: } \sqrt{\tfrac8n\bigl(\log\tfrac4\delta + d\log\tfrac{2en}{d}\bigr)} .

    Parameters
    ----------
    n : number of rows
    delta : probability that the bound fails
    d : Vapnik-Chervonenkis dimension; p + 1 for half-spaces in p dimensions
    form : the constants of the bound

    Examples
    --------
    >>> round(vc(1000, 0.05, 11), 6), round(vc(10**5, 0.05, 3, form="symmetrised"), 6)
    (0.269472, 0.057064)
    """
    if n < 1 or not 0 < d <= 2 * n:
        raise ValueError(
            f"the bound needs n >= 1 rows and a dimension 0 < d <= 2n, got n={n}, d={d}"
        )
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is a probability between 0 and 1, got {delta}")
    growth = d * (math.log(2 * n / d) + 1)  # d log(2en/d)
    if form == "vapnik":
        return math.sqrt((growth + math.log(4 / delta)) / n)
    if form == "symmetrised":
        return math.sqrt(8 / n * (math.log(4 / delta) + growth))
    raise ValueError(f"form must be 'vapnik' or 'symmetrised', got {form!r}")


def growth(n: int, d: int) -> int:
    r"""Sauer's bound on the number of labellings of n rows, :math:`\sum_{i=0}^d \binom ni`.

    It is :math:`2^n` up to n = d and a polynomial beyond.

    Examples
    --------
    >>> [growth(n, 3) for n in (2, 3, 4, 10)]
    [4, 8, 15, 176]
    """
    if n < 0 or d < 0:
        raise ValueError(f"n and d are counts of at least 0, got n={n}, d={d}")
    return sum(math.comb(n, i) for i in range(min(d, n) + 1))
