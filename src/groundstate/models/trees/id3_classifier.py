"""ID3."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from groundstate.energy.trees.branching import BranchingEnergy
from groundstate.learn import SoftMin
from groundstate.learn.solvers.trees.branching import GrowBranches
from groundstate.models.base import Plan
from groundstate.models.tables.categories import Categories
from groundstate.models.traits import Traits
from groundstate.models.trees.attributes import AttributeTree
from groundstate.models.trees.inputs import category_sizes
from groundstate.registry import models


@models.register(family="trees", task="classification", role="classifier", auto=False)
class ID3Classifier(AttributeTree):
    r"""A tree of questions about categories, each chosen by information gain.

    .. math::
        e(x, y) = -\log p_{\ell(x)}(y), \qquad
        IG = H(y) - \sum_v \frac{n_v}{n} H(y \mid x_j = v), \quad H = -\sum_c p_c\log_2 p_c .

    Every column is a category; a node asks for the column of largest gain (the first of equals),
    with one branch per value, and no column twice on a path. A node that is pure, has no columns
    left or gains nothing is a leaf. A value that was never seen gets the shares of the node.

    Examples
    --------
    >>> from groundstate import ID3Classifier
    >>> X = [["hot", "dry"], ["hot", "wet"], ["cold", "dry"], ["cold", "wet"]]
    >>> model = ID3Classifier().fit(X, ["out", "in", "out", "in"])
    >>> model.predict([["mild", "dry"]]).tolist()
    ['out']
    >>> print(model.export_text())
    |--- x1 = dry
    |   |--- class out [0, 1]
    |--- x1 = wet
    |   |--- class in [1, 0]
    """

    traits = Traits(space={})

    def __init__(self, *, device: Any = None, callbacks: Any = None) -> None:
        self.device = device
        self.callbacks = callbacks

    _categories: ClassVar[Any] = Categories(text=True, every=True)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        sizes = category_sizes(self, X.shape[1])
        solver = GrowBranches(ratio=False, categories=sizes, min_leaf=0.0, cf=None)
        energy = BranchingEnergy(X.shape[1], len(self.classes_))
        return Plan(energy, SoftMin(), solver)
