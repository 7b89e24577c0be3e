"""C4.5."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.trees.branching import BranchingEnergy
from groundstate.learn import SoftMin
from groundstate.learn.solvers.trees.branching import GrowBranches
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.traits import Traits
from groundstate.models.trees.attributes import AttributeTree
from groundstate.models.trees.inputs import category_sizes
from groundstate.registry import models


@models.register(family="trees", task="classification", role="classifier")
class C45Classifier(AttributeTree):
    r"""A tree of questions about categories and numbers, by gain ratio, pruned pessimistically.

    .. math::
        e(x, y) = -\log \sum_\ell \pi_\ell(x)\, p_\ell(y), \qquad
        \text{ratio} = \frac{IG}{-\sum_v \frac{n_v}{n}\log_2\frac{n_v}{n}} .

    Among the columns of at least average gain the one of largest gain ratio is asked for. Numbers
    are cut in two at the threshold of largest gain. Rows with a missing value count for the known
    share of the gain and go down all branches with the shares :math:`\pi` of the others, in
    prediction too. A branch becomes a leaf, or its largest child takes its place, if the predicted
    errors :math:`n\,U_{cf}(e, n)` do not rise, where U is the exact binomial upper limit.

    Parameters
    ----------
    cf : float, default=0.25
        Confidence of pruning; smaller prunes more.
    min_samples_leaf : float, default=2
        Least weight of at least two answers to a question.
    prune : bool, default=True
    costs : (n_features,) array, default=None
        Prices of asking; columns are then chosen by :math:`IG^2/\text{cost}`.
    categorical_features : array of indices, names or booleans, "from_dtype" or None
        Text is always a category.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import C45Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = C45Classifier().fit(X, y)
    >>> round(model.score(X, y), 2), model.export_text().splitlines()[0]
    (0.98, '|--- x2 <= 2.45')
    """

    traits = Traits(
        space={
            "cf": settings.Real(0.01, 0.5, log=True),
            "min_samples_leaf": settings.Whole(1, 20, log=True),
        }
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cf": [Interval(Real, 0, 1, closed="neither")],
        "min_samples_leaf": [Interval(Real, 0, None, closed="left")],
        "prune": ["boolean"],
        "costs": ["array-like", None],
        "categorical_features": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        *,
        cf: float = 0.25,
        min_samples_leaf: float = 2,
        prune: bool = True,
        costs: Any = None,
        categorical_features: Any = "from_dtype",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        costs = None if self.costs is None else tuple(float(c) for c in self.costs)
        if costs is not None and (len(costs) != X.shape[1] or min(costs) <= 0):
            raise ValueError(
                f"costs must be {X.shape[1]} positive numbers, one per column; got {costs}"
            )
        solver = GrowBranches(
            categories=category_sizes(self, X.shape[1]),
            min_leaf=self.min_samples_leaf,
            costs=costs,
            cf=self.cf if self.prune else None,
        )
        energy = BranchingEnergy(X.shape[1], len(self.classes_), spread=True)
        return Plan(energy, SoftMin(), solver)
