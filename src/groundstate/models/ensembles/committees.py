"""What committees of estimators share: members of any kind, their average, the rows they saw."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar

from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.thread_policy import answering
from groundstate.energy.compose.committee import CommitteeClassEnergy, CommitteeMeanEnergy
from groundstate.learn import Naive, SoftMin
from groundstate.learn.solvers.committee import FitMembers
from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.ensembles.grown import estimator_of, fits
from groundstate.models.ensembles.sequence import each_member, member_at
from groundstate.models.trees.inputs import started


class CommitteeModel(EnergyEstimator):
    """Members of any kind behind one energy; they see numbers, with NaN where all of them take it.

    Parameters
    ----------
    n_estimators : int
    device : str or torch.device
        Where answers are averaged; members choose their own.
    """

    __getitem__, __iter__ = member_at, each_member

    energy_: Any
    n_jobs: int | None
    _hard: bool = False
    _takes_nan: bool
    _single_class: ClassVar[bool] = True  # a dull committee is one too
    _runs_on: Any = "cpu"  # members may be foreign
    _store_private: ClassVar[tuple[str, ...]] = ("_takes_nan",)

    def _bases(self) -> list[Any]:
        """The members before they are fitted."""
        raise TypeError(f"{type(self).__name__} must define _bases()")

    def _kinds(self) -> list[Any]:
        """Members of different kind, whose tags decide what may come in."""
        return self._bases()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            own = [get_tags(base) for base in self._kinds()]
        except (AttributeError, TypeError, ValueError):  # fit says what is wrong with them
            return tags
        tags.input_tags.allow_nan = all(t.input_tags.allow_nan for t in own)
        tags.input_tags.sparse = all(t.input_tags.sparse for t in own)
        tags.target_tags.multi_output &= all(t.target_tags.multi_output for t in own)
        return tags

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        return self.__dict__.get("_takes_nan", False)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        takes = get_tags(self).input_tags
        self._takes_nan = bool(takes.allow_nan)
        X = X.toarray() if issparse(X) and takes.sparse else X  # members see dense rows
        return super()._checked(X, y)

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        if "energy_" not in self.__dict__:
            check_is_fitted(self, "energy_")
        X = X.toarray() if issparse(X) and get_tags(self).input_tags.sparse else X
        return super()._rows(X)

    def _solver(self, X: Tensor, y: Tensor, weight: Tensor | None) -> FitMembers:
        k = None if y.is_floating_point() else len(self.classes_)
        bases = self._bases()
        made = {id(base): fits(base, k, X, weight) for base in {id(b): b for b in bases}.values()}
        each = tuple(made[id(base)] for base in bases)
        return FitMembers(each, bootstrap=False, threads=self._threads())

    def _threads(self) -> int:
        return 1 if self.n_jobs is None else int(effective_n_jobs(self.n_jobs))

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        solver = self._solver(X, y, weight)
        if y.is_floating_point():
            return Plan(
                started(self, CommitteeMeanEnergy(X.shape[1], y.shape[1]), _size), Naive(), solver
            )
        energy = CommitteeClassEnergy(X.shape[1], len(self.classes_), hard=self._hard)
        return Plan(started(self, energy, _size), SoftMin(), solver)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members."""
        check_is_fitted(self, "energy_")
        (base, *_) = self._kinds()  # only committees of one kind hold bare energies
        return [estimator_of(one, base) for one in self.energy_.members]

    def __len__(self) -> int:
        return len(self.energy_.members)

    classes_: NDArray[Any]

    @property
    def n_classes_(self) -> int:
        """How many classes there are."""
        if not hasattr(self, "classes_"):
            raise AttributeError(f"{type(self).__name__} has no classes")
        return len(self.classes_)


def predict(model: Any, X: Any) -> Any:
    """Values of lowest energy, ``(n_samples,)`` or ``(n_samples, n_targets)``."""
    x, home = model._rows(X)
    with answering(model.energy_, x):
        y = model.energy_.predict(x)
    return home.give(y[:, 0] if model._flat_target else y)


def _size(energy: Any) -> int:
    return len(energy.members)


def amount(share: Any, total: float, name: str) -> int:
    """A number as it is, a share of ``total`` rounded; at least one."""
    if isinstance(share, Integral):
        return int(share)
    if not 0 < share <= 1:
        raise ValueError(f"{name}={share} is a share and must be above 0 and at most 1")
    return max(1, math.floor(share * total + 1e-9))
