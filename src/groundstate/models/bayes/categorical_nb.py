"""Naive Bayes for categories."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.classes.naive_bayes.categorical import CategoricalClassEnergy
from groundstate.energy.classes.naive_bayes.missing import spoilt
from groundstate.errors import DataError
from groundstate.models.arrays import Home
from groundstate.models.bayes.discrete import DiscreteNB
from groundstate.models.learned import LearnedLayers
from groundstate.models.tables.categories import Categories
from groundstate.registry import models


@models.register(family="bayes", task="classification", role="classifier")
class CategoricalNB(DiscreteNB):
    r"""Features that are independent categories given the class.

    .. math::
        e(x, y) = -\log\pi_y - \sum_j \log p_{yj}(x_j), \qquad
        p_{yj}(c) = \frac{n_{yj}(c) + \alpha}{n_y + \alpha C_j} .

    Features hold the numbers of the categories, 0 to :math:`C_j - 1`, or words: text, and columns of
    a frame that are no numbers. A missing value (NaN, None) is a term that is left out, so
    :math:`n_y` counts the rows that have the feature; so is a word that was not seen in fitting.
    Further rows given to ``partial_fit`` may bring further categories.

    Parameters
    ----------
    alpha : float, default=1.0
        Counts added to every category.
    min_categories : int or (n_features,) array of int, default=None
        Least number of categories of each feature, where not all of them are in the rows.

    Attributes
    ----------
    category_count_, feature_log_prob_ : lists of (n_classes, n_categories) arrays, one per feature
    n_categories_ : (n_features,) array
    categories_ : list of (n_categories,) arrays, one per feature
        The words of a feature, sorted, or its numbers.
    energy_ : CategoricalClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import CategoricalNB
    >>> X = np.array([[0, 2], [0, 1], [1, 0]])
    >>> CategoricalNB().fit(X, ["a", "a", "b"]).predict([[0, 0]]).tolist()
    ['a']
    >>> words = CategoricalNB().fit([["red", "big"], ["blue", None]], ["a", "b"])
    >>> words.predict([["blue", "small"]]).tolist()
    ['b']
    """

    _positive: ClassVar[bool] = True
    _wants: ClassVar[str] = "categories are words, or numbers from zero"
    _categories: ClassVar[Any] = Categories(text=True)
    _allow_nan: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _features(self, x: Tensor) -> Tensor:
        known = hasattr(self, "n_categories_") and hasattr(self, "energy_")
        if known and x.device.type == "cpu" and len(x):
            rows = x.numpy()  # NaN is neither above nor below, and goes the careful way
            if rows.min() > -1 and (rows < self.n_categories_).all():
                return x.long()
        codes = (x.masked_fill(x.isnan(), -1.0) if spoilt(x) else x).long()
        if not known:
            return codes
        sizes = codes.new_tensor(self.n_categories_)
        beyond = (codes >= sizes) | (x <= -1)
        if bool(beyond.any()):
            j = int(beyond.any(0).nonzero()[0])
            raise DataError(
                f"feature {j} holds category {int(codes[:, j].max())}, but only 0 to "
                f"{int(sizes[j]) - 1} are known; raise min_categories when fitting"
            )
        return codes

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Any:
        if hasattr(self, "n_categories_"):
            del self.n_categories_  # of an earlier fit
        return super()._build(X, y, weight)

    def _energy(self, x: Tensor, y: Tensor, weight: Tensor | None) -> CategoricalClassEnergy:
        sizes = np.maximum(x.amax(0).cpu().numpy() + 1, 1)
        if self.min_categories is not None:
            least = np.asarray(self.min_categories)
            if least.dtype.kind not in "iu" or least.shape not in ((), sizes.shape):
                raise ValueError(
                    "'min_categories' should be an integer or one per feature "
                    f"({len(sizes)}), got {self.min_categories!r}"
                )
            sizes = np.maximum(sizes, least)
        self.n_categories_ = sizes
        alpha = self._smoothing(1) if np.ndim(self.alpha) == 0 else self._bad_alpha()
        return CategoricalClassEnergy(len(self.classes_), sizes.tolist(), alpha, self._prior())

    def _bad_alpha(self) -> float:
        raise ValueError(f"alpha of CategoricalNB must be one number, got {self.alpha!r}")

    _device_rows: ClassVar[bool] = False  # levels of categories are found on the host
    feature_log_prob_ = LearnedLayers(
        lambda model: model.energy_.log_p().split(list(model.n_categories_), 1),
        instead="set energy_.W, whose softmax over the levels of a column it is",
    )

    def _attributes(self, energy: Any, sums: dict[str, Tensor]) -> dict[str, Any]:
        named = super()._attributes(energy, sums)
        edges = np.cumsum(self.n_categories_)[:-1]
        return {
            "class_count_": named["class_count_"],
            "category_count_": np.split(named["feature_count_"], edges, axis=1),
            "categories_": [
                self._levels.get(j, np.arange(n)) for j, n in enumerate(self.n_categories_)
            ],
        }

    def _words(self, X: Any, first: bool) -> Any:
        read = self._categories
        table = read.table(self, X)
        if not first:
            before, self._levels = self._levels, {}
            read.coded(self, table, learn=True)
            found, self._levels = self._levels, dict(before)
            for j in before.keys() & found.keys():
                if before[j].dtype.kind == found[j].dtype.kind:
                    self._levels[j] = np.union1d(before[j], found[j])
            return read.coded(self, table, learn=False)
        self._levels = {}
        return read.coded(self, table, learn=True)

    def _make_room(self, X: Any) -> None:
        known: Any = self.n_categories_
        words = [len(self._levels.get(j, ())) for j in range(len(known))]
        top = np.fmax.reduce(X, axis=0, initial=-1.0).astype(known.dtype) + 1
        sizes = np.maximum(np.maximum(known, words), top)
        place = [  # where the categories that were there stand now
            np.searchsorted(self._levels[j], self.categories_[j]) if j in self._levels
            else np.arange(n) for j, n in enumerate(known)
        ]  # fmt: skip
        if (sizes == known).all() and all((at == np.arange(len(at))).all() for at in place):
            return
        old = np.split(self.statistics_["x"].numpy(), np.cumsum(known)[:-1], axis=1)
        new = [np.zeros((len(self.classes_), n)) for n in sizes]
        for counts, grown, at in zip(old, new, place, strict=True):
            grown[:, at] = counts[:, : len(at)]
        x = torch.from_numpy(np.concatenate(new, axis=1))
        self.statistics_ = {**self.statistics_, "x": x}
        self.n_categories_ = sizes
        energy: Any = self.energy_
        grown_energy = CategoricalClassEnergy(
            len(self.classes_), sizes.tolist(), energy.alpha, self._prior()
        )
        self.energy_ = grown_energy.to(*energy.placement())

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        if name != "x" or not self._levels:
            return super()._decoded(name, values, home)
        codes = values.cpu().numpy()
        out = codes.astype(object)
        for j, levels in self._levels.items():
            # room made by min_categories has no word
            words = np.append(levels.astype(object), [None] * int(self.n_categories_[j]))
            out[..., j] = words[codes[..., j]]
        return out
