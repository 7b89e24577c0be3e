"""Naive Bayes from the words of the other classes."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.energy.classes.naive_bayes.complement import ComplementClassEnergy
from groundstate.learn import NLL
from groundstate.learn.solvers.complement import Complement
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.bayes.discrete import DiscreteNB
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(
    family="bayes", task="classification", role="classifier", auto=False, shortlist_text=2
)
class ComplementNB(DiscreteNB):
    r"""Counts of words that are rare in all other classes.

    .. math::
        e(x, y) = -\sum_j x_j w_{yj}, \qquad
        w_{yj} = -\log\frac{\alpha + \sum_{c \ne y} n_{cj}}{\sum_{j'}(\alpha + \sum_{c \ne y} n_{cj'})} .

    A word speaks for a class when it is rare in all others, whose counts are large even where those
    of the class are few (Rennie and others, 2003). Priors decide nothing. A missing count (NaN) adds
    nothing; in learning, the other rows of its class stand for it.

    Parameters
    ----------
    fit_prior : bool, default=True
        Whether ``class_log_prior_`` is learned; it is only reported.
    class_prior : (n_classes,) array, default=None
        Class probabilities to report.
    norm : bool, default=False
        Divide the weights of a class by their sum.

    Attributes
    ----------
    feature_count_ : (n_classes, n_features) array
    feature_all_ : (n_features,) array
    feature_log_prob_ : (n_classes, n_features) array; the weights w
    energy_ : ComplementClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ComplementNB
    >>> X = np.array([[3, 0], [2, 1], [0, 4]])
    >>> ComplementNB().fit(X, ["a", "a", "b"]).predict([[1, 0], [0, 1]]).tolist()
    ['a', 'b']
    """

    traits = Traits(
        space={
            "alpha": settings.Real(1e-3, 1e1, log=True),
            "norm": settings.Choice(True, False),
        }
    )
    _positive: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = "csr"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "norm": ["boolean"],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _energy(self, x: Tensor, y: Tensor, weight: Tensor | None) -> ComplementClassEnergy:
        k, d = len(self.classes_), x.shape[1]
        return ComplementClassEnergy(k, d, self._smoothing(d), self._prior(), self.norm)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        rows = self._sparse_rows if X.layout == torch.sparse_csr else 2**18
        energy = self._energy(X, y, weight).to(X.device, X.dtype)
        return Plan(energy, NLL(), Complement(rows))

    class_log_prior_ = Learned(
        lambda model: model.energy_.log_prior,
        instead="predictions do not depend on it; set feature_log_prob_",
    )

    def _attributes(self, energy: Any, sums: dict[str, Tensor]) -> dict[str, Any]:
        named = super()._attributes(energy, sums)
        return {**named, "feature_all_": named["feature_count_"].sum(0)}
