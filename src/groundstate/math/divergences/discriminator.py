r"""The best discriminator between two distributions, and what the game of a GAN is then worth.

.. math:: D^*(x) = \frac{p(x)}{p(x) + q(x)} = \sigma(\log p - \log q), \qquad
    V^* = \max_D E_p\log D + E_q\log(1 - D) = 2\,JS(p, q) - 2\log2
"""

from __future__ import annotations

import math
from typing import Any

import torch

from groundstate.math.arrays import takes_arrays
from groundstate.math.divergences.js import js


@takes_arrays("logp", "logq", finite=False)
def optimal_discriminator(logp: Any, logq: Any) -> Any:
    r""":math:`D^* = \sigma(\log p - \log q)`: the probability that a row is real, when real rows come
    from p and generated ones, just as many, from q.

    Read backwards, the logit of a trained discriminator is the log of the density ratio.

    Parameters
    ----------
    logp, logq : log-densities of the same rows; ``-inf`` where a density is zero, not both at once

    Examples
    --------
    Between N(0, 1) and N(2, 1) it is :math:`\sigma(2 - 2x)`:

    >>> x = torch.tensor([0.0, 1.0])
    >>> optimal_discriminator(-(x**2) / 2, -((x - 2) ** 2) / 2)
    tensor([0.8808, 0.5000])
    """
    for name, value in (("logp", logp), ("logq", logq)):
        if bool((torch.isnan(value) | (value == math.inf)).any()):
            raise ValueError(f"{name} must hold log-densities, below infinity, but has NaN or inf")
    nowhere = (logp == -math.inf) & (logq == -math.inf)
    if bool(nowhere.any()):
        raise ValueError(
            "a row has the density 0 under both p and q; no discriminator is best there"
        )
    return torch.sigmoid(logp - logq)


def optimal_value(p: Any, q: Any, **settings: Any) -> Any:
    r""":math:`V^* = 2\,JS(p, q) - 2\log2`, between :math:`-2\log2` (equal) and 0 (apart).

    Parameters
    ----------
    p, q : tables of probabilities or torch distributions
    settings : of ``js``

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> round(float(optimal_value(Normal(0.0, 1.0), Normal(2.0, 1.0))), 4)
    -0.7126
    """
    return 2 * js(p, q, **settings) - 2 * math.log(2)
