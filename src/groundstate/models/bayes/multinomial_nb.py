"""Naive Bayes for counts."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from groundstate.energy.classes.naive_bayes.counts import MultinomialClassEnergy
from groundstate.models.bayes.discrete import DiscreteNB
from groundstate.registry import models


@models.register(family="bayes", task="classification", role="classifier", shortlist_text=3)
class MultinomialNB(DiscreteNB):
    r"""Counts of words that are drawn from the class.

    .. math::
        e(x, y) = -\log\pi_y - \sum_j x_j\log p_{yj} + c(x), \qquad
        p_{yj} = \frac{n_{yj} + \alpha}{\sum_{j'} (n_{yj'} + \alpha)} .

    The number of words is Poisson with the same mean in all classes and decides nothing. A missing
    count (NaN) is a factor that is left out; in learning, the counts of the other rows of the class
    stand for it, :math:`n_{yj}` being scaled up to all of them.

    Attributes
    ----------
    feature_count_, feature_log_prob_ : (n_classes, n_features) arrays
    energy_ : MultinomialClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MultinomialNB
    >>> X = np.array([[3, 0], [2, 1], [0, 4]])
    >>> MultinomialNB().fit(X, ["a", "a", "b"]).predict([[1, 0], [0, 1]]).tolist()
    ['a', 'b']
    """

    _positive: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = "csr"

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _class_table(self, x: Tensor) -> Tensor:
        # what all classes share needs no computing
        return -self.energy_.word_scores(x)  # type: ignore[operator]

    def _joint(self, x: Tensor) -> Tensor:
        return -self._class_table(x)  # of the words in their order, as in scikit-learn

    def _energy(self, x: Tensor, y: Tensor, weight: Tensor | None) -> MultinomialClassEnergy:
        d = x.shape[1]
        return MultinomialClassEnergy(len(self.classes_), d, self._smoothing(d), self._prior())
