r"""Likelihoods of a reconstruction: what the numbers of a decoder say about a row,
:math:`\log p(x \mid \text{out})`, ``(B,)``.

====================== ============================ ===================== ======================
name                   rows x                       outputs of a decoder  parameters of its own
====================== ============================ ===================== ======================
squared                real                         d, the mean           none; not normalised
gaussian               real                         d, the mean           σ, unless it is fixed
student_t              real, heavy tails            d, the location       s, unless it is fixed
bernoulli              in [0, 1]                    d logits              none
discretized_logistic   on a grid of [−1, 1]         d, the location       s, unless it is fixed
categorical            level numbers                Σ levels, logits      none
mixed                  real columns and levels      d_real + Σ levels     σ, unless it is fixed
====================== ============================ ===================== ======================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.heads.likelihoods.base import BernoulliLikelihood as BernoulliLikelihood
from groundstate.nn.heads.likelihoods.base import Likelihood as Likelihood
from groundstate.nn.heads.likelihoods.base import SquaredError as SquaredError
from groundstate.nn.heads.likelihoods.levels import CategoricalLikelihood as CategoricalLikelihood
from groundstate.nn.heads.likelihoods.levels import MixedLikelihood as MixedLikelihood
from groundstate.nn.heads.likelihoods.scaled import (
    DiscretizedLogisticLikelihood as DiscretizedLogisticLikelihood,
)
from groundstate.nn.heads.likelihoods.scaled import GaussianLikelihood as GaussianLikelihood
from groundstate.nn.heads.likelihoods.scaled import Scale as Scale
from groundstate.nn.heads.likelihoods.scaled import StudentTLikelihood as StudentTLikelihood

LIKELIHOODS: dict[str, Callable[..., Likelihood]] = {
    "squared": SquaredError,
    "gaussian": GaussianLikelihood,
    "student_t": StudentTLikelihood,
    "bernoulli": BernoulliLikelihood,
    "discretized_logistic": DiscretizedLogisticLikelihood,
    "categorical": CategoricalLikelihood,
    "mixed": MixedLikelihood,
}


def likelihood(
    kind: str | Likelihood, d: int, levels: Sequence[int] | None = None, **options: Any
) -> Likelihood:
    """The likelihood of this name for rows of ``d`` columns; a module is taken as it is.

    Parameters
    ----------
    kind : name of ``LIKELIHOODS``, or a module
    d : columns
    levels : number of levels of each column, 0 for a real one; of "categorical" and "mixed"
    options : ``scale``, ``floor``, ``df``, ``bins`` where the likelihood has them

    Examples
    --------
    >>> likelihood("gaussian", 3, scale="learned")
    GaussianLikelihood(d=3, scale='learned', floor=0.001)
    """
    if isinstance(kind, Likelihood):
        if kind.d != d:
            raise ShapeError(f"the rows have {d} columns, but the likelihood is of {kind.d}")
        return kind
    if kind not in LIKELIHOODS:
        raise Unsupported(f"there is no likelihood {kind!r}; use one of {', '.join(LIKELIHOODS)}")
    if kind in ("categorical", "mixed"):
        if levels is None or len(levels) != d:
            raise ValueError(
                f"likelihood={kind!r} needs the number of levels of each of the {d} columns (0 for "
                f"a real one), got levels={levels}"
            )
        return LIKELIHOODS[kind](levels, **options)
    return LIKELIHOODS[kind](d, **options)
