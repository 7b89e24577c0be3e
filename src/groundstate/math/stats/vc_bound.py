r"""What the error on the rows seen promises about rows to come."""

from __future__ import annotations


def vc_bound(risk: float, n: int, h: int, delta: float = 0.05) -> float:
    r"""Vapnik's bound on the risk, with probability :math:`1 - \delta` over the n rows:

    .. math:: R \le R_{\mathrm{emp}} + \sqrt{\frac{h\,(\ln(2n/h) + 1) - \ln(\delta/4)}{n}} .

    It falls with the rows and rises with the capacity; the best trade of the two is structural risk
    minimisation. It is above one, and says nothing, while n is not much larger than h.

    Parameters
    ----------
    risk : share of wrong rows among those seen, :math:`R_{\mathrm{emp}}`, in [0, 1]
    n : number of rows
    h : Vapnik-Chervonenkis dimension; p + 1 for planes in p dimensions
    delta : probability that the bound fails

    Examples
    --------
    >>> round(vc_bound(0.0, n=1000, h=3, delta=0.05), 6)
    0.163978
    """
    if not 0.0 <= risk <= 1.0:
        raise ValueError(f"risk is a share of rows from 0 to 1, got {risk}")
    if n < 1 or not 0 < h <= 2 * n:
        raise ValueError(
            f"the bound needs n >= 1 rows and a dimension 0 < h <= 2n, got n={n}, h={h}"
        )
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is a probability between 0 and 1, got {delta}")
    from groundstate.math.stats.bounds_vc import vc

    return risk + vc(n, delta, h)
