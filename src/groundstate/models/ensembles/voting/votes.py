"""What voting adds to a committee: named members of different kinds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, is_classifier, is_regressor
from sklearn.utils import Bunch
from torch import Tensor

from groundstate.compute.foreign.sklearn import BaseComposition
from groundstate.learn.solvers.committee import FitMembers
from groundstate.models.ensembles.committees import CommitteeModel
from groundstate.models.ensembles.member import member
from groundstate.models.traits import Traits


class Voting(TransformerMixin, CommitteeModel, BaseComposition):
    """Members of different kinds on the same rows, by name; ``"drop"`` leaves one out.

    Parameters
    ----------
    weights : (n_members,) array
        a, up to a factor; equal unless given.
    estimators : list of (name, classifier)
        ``"drop"`` in the place of a member leaves it out. None takes a tree, naive Bayes and a
        small forest.
    verbose : bool
        A progress bar on the terminal.

    Attributes
    ----------
    named_estimators_ : the same by name
    """

    traits = Traits(space={})

    estimators: Any
    weights: Any

    def _defaults(self) -> list[tuple[str, Any]]:
        """The members unless some were given."""
        raise TypeError(f"{type(self).__name__} must define _defaults()")

    def _listed(self) -> list[tuple[str, Any]]:
        return self._defaults() if self.estimators is None else list(self.estimators)

    def _bases(self) -> list[Any]:
        return [base for _, base in self._listed() if not _dropped(base)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with ``deep`` also the members and theirs."""
        if self.estimators is None or not deep:
            return super().get_params(deep=deep)
        params: dict[str, Any] = self._get_params("estimators", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a member by its name, or its own as ``name__parameter``."""
        if self.estimators is None and "estimators" not in params:
            return super().set_params(**params)
        self._set_params("estimators", **params)
        return self

    @property
    def named_estimators(self) -> Bunch:
        """Members before they are fitted, by name."""
        return Bunch(**dict(self._listed()))

    @property
    def named_estimators_(self) -> Bunch:
        """Fitted members by name."""
        fitted = iter(self.estimators_)
        return Bunch(**{name: b if _dropped(b) else next(fitted) for name, b in self._listed()})

    def _solver(self, X: Tensor, y: Tensor, weight: Tensor | None) -> FitMembers:
        listed = self._listed()
        self._check(listed)
        weights = None
        if self.weights is not None:
            if len(self.weights) != len(listed):
                raise ValueError(
                    "Number of `estimators` and weights must be equal; got "
                    f"{len(self.weights)} weights, {len(listed)} estimators"
                )
            kept = [float(w) for w, (_, b) in zip(self.weights, listed) if not _dropped(b)]
            if min(kept) < 0 or sum(kept) <= 0:
                raise ValueError(f"weights must not be negative or all zero, got {kept}")
            weights = tuple(kept)
        k = None if y.is_floating_point() else len(self.classes_)
        fits = tuple(member(base, k, seeds=False) for base in self._bases())
        return FitMembers(fits, weights, bootstrap=False, threads=self._threads())

    def _check(self, listed: list[tuple[str, Any]]) -> None:
        if not listed or not all(
            isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str)
            for item in listed
        ):
            raise ValueError(
                "Invalid 'estimators' attribute, 'estimators' should be a non-empty list of "
                "(string, estimator) tuples."
            )
        self._validate_names([name for name, _ in listed])
        if not self._bases():
            raise ValueError("All estimators are dropped. At least one is required.")
        right = is_classifier if is_classifier(self) else is_regressor
        for base in self._bases():
            if not right(base):
                raise ValueError(
                    f"The estimator {type(base).__name__} should be a {right.__name__[3:]}."
                )

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        super()._fit(X, y, sample_weight)
        self.history_.extra.pop("bags", None)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then the answers of the members to the same rows."""
        return self.fit(X, y, sample_weight).transform(X)

    def transform(self, X: Any) -> Any:
        """Answers of the members."""
        raise TypeError(f"{type(self).__name__} must define transform(X)")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of ``transform``."""
        head = type(self).__name__.lower()
        return np.array([f"{head}_{name}" for name, b in self._listed() if not _dropped(b)], object)


def _dropped(base: Any) -> bool:
    return isinstance(base, str) and base == "drop"
