"""What stacking adds to named members: folds, a method for each, and a final estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import HasMethods
from groundstate.energy.base import Energy
from groundstate.learn.solvers.committee import Member
from groundstate.learn.solvers.stacking import OutOfFold
from groundstate.models.ensembles.member import ClassMember, ValueMember, _asked, member
from groundstate.models.ensembles.stacking.labels import LabelAnswers
from groundstate.models.ensembles.voting.votes import Voting, _dropped
from groundstate.models.linear.fold_weights import fold_weights
from groundstate.models.traits import Traits

METHODS = ("predict_proba", "decision_function", "predict")


class ClassAnswers(ClassMember):
    """A fitted classifier and the method whose answers are features."""

    def __init__(self, d: int, k: int, estimator: Any, method: str) -> None:
        super().__init__(d, k, estimator)
        self.method = method

    def config(self) -> dict[str, Any]:
        return {**super().config(), "method": self.method}

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        """Probabilities (for two classes the second), scores or class numbers, ``(B, f)``."""
        if self.method == "predict_proba":
            whole = len(self.estimator.classes_) == self.k
            p = _asked(self.estimator, self.method, x).to(x) if whole else (-self.energies(x)).exp()
            return p[:, 1:] if self.k == 2 else p
        found = _asked(self.estimator, self.method, x).to(x)
        return found[:, None] if found.ndim == 1 else found


class ValueAnswers(ValueMember):
    """A fitted regressor whose predictions are features."""

    def features(self, x: Tensor) -> Tensor:
        """Predictions, ``(B, m)``."""
        return self.best(x)


Classes = int | tuple[int, ...] | None  # how many, of each of several labels; None for values


def asked(base: Any, k: Classes, method: str) -> Member:
    """How to fit a clone of ``base`` whose answers are features."""
    # several labels are fitted as several values are: all columns at once
    fit = member(base, None if isinstance(k, tuple) else k, seeds=False)

    def fitted(x: Tensor, y: Tensor, weight: Tensor | None, key: Any) -> Energy:
        return answers(fit(x, y, weight, key).estimator, x.shape[1], k, method)

    return fitted


def answers(estimator: Any, d: int, k: Classes, method: str) -> Energy:
    """A fitted estimator as part of a stack; what it is when nothing is left to learn."""
    if isinstance(k, tuple):
        return LabelAnswers(d, k, estimator, method)
    return ValueAnswers(d, 1, estimator) if k is None else ClassAnswers(d, k, estimator, method)


def has(name: str) -> Callable[[Any], bool]:
    """Whether the final estimator has a method."""

    def check(model: Any) -> bool:
        fitted = hasattr(model, "energy_")
        getattr(model.final_estimator_ if fitted else model._final(), name)
        return True

    return check


class Stacking(Voting):
    """Members whose out-of-fold answers a final estimator learns from.

    Parameters
    ----------
    passthrough : bool
        Whether the final estimator sees the rows too.
    verbose : int
        A progress bar on the terminal.
    device : str or torch.device
        Where answers are put together; members choose their own.

    Attributes
    ----------
    final_estimator_ : the fitted final estimator
    stack_method_ : list of str, what each member is asked
    """

    traits = Traits(space={})
    _multi_output: ClassVar[bool] = False
    _store_private: ClassVar[tuple[str, ...]] = ("_widths",)
    final_estimator: Any
    cv: Any
    passthrough: bool
    stack_method_: list[str]
    _widths: list[int]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "final_estimator": [None, HasMethods("fit")],
        "cv": "no_validation",  # type: ignore[dict-item]
        "n_jobs": "no_validation",  # type: ignore[dict-item]
        "passthrough": ["boolean"],
    }

    def _final(self) -> Any:
        """The final estimator before it is fitted."""
        raise TypeError(f"{type(self).__name__} must define _final()")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.transformer_tags.preserves_dtype = []
        if self.passthrough:
            tags.input_tags.allow_nan &= get_tags(self._final()).input_tags.allow_nan
        return tags

    def _methods(self) -> list[str]:
        """The method of each member, checked."""
        asked_for = getattr(self, "stack_method", "predict")
        found = []
        for name, base in self._listed():
            if _dropped(base):
                continue
            names = METHODS if asked_for == "auto" else (asked_for,)
            own = next((method for method in names if hasattr(base, method)), None)
            if own is None:
                raise ValueError(
                    f"Underlying estimator {name} does not implement the method {asked_for}."
                )
            found.append(own)
        return found

    def _solver(self, X: Tensor, y: Tensor, weight: Tensor | None) -> Any:
        self._check(self._listed())
        k: Classes = None if y.is_floating_point() else len(self.classes_)
        if isinstance(self.classes_ if k else None, list):
            k = tuple(len(own) for own in self.classes_)
        final = self._final()
        right = is_regressor if k is None else is_classifier
        if not right(final):
            raise ValueError(
                f"'final_estimator' parameter should be a {right.__name__[3:]}. Got {final}"
            )
        self.stack_method_ = self._methods()
        bases = list(zip(self._bases(), self.stack_method_, strict=True))
        last = asked(final, k, "predict") if isinstance(k, tuple) else member(final, k, seeds=False)
        if isinstance(self.cv, str) and self.cv == "prefit":
            for base, _ in bases:
                check_is_fitted(base)
            fits = tuple(_as_it_is(base, k, method) for base, method in bases)
            return OutOfFold(fits, last, threads=self._threads())
        fits = tuple(asked(base, k, method) for base, method in bases)
        train, held = fold_weights(X, y, weight, self.cv, k is not None)
        if not (np.count_nonzero(held, axis=0) <= 1).all():
            raise ValueError(
                "stacking needs folds that hold every row out once, got a cv that does not; pass a "
                "number of folds or a splitter such as KFold"
            )
        return OutOfFold(fits, last, train, held, threads=self._threads())

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        super()._fit(X, y, sample_weight)
        with torch.no_grad():
            row = torch.zeros(1, self.n_features_in_, dtype=self.energy_.placement()[1])
            self._widths = [self.energy_.answers(m, row).shape[1] for m in range(len(self))]
        return self

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members."""
        check_is_fitted(self, "energy_")
        return [one.estimator for one in self.energy_.members]

    @property
    def final_estimator_(self) -> Any:
        """What learned from the answers of the members."""
        check_is_fitted(self, "energy_")
        return self.energy_.final.estimator

    def transform(self, X: Any) -> Any:
        """Answers of the members (and the rows with ``passthrough``), ``(n_samples, n_answers)``."""
        x, home = self._rows(X)
        with torch.no_grad():
            return home.give(self.energy_.features(x))

    def _ask_final(self, question: str, X: Any, **options: Any) -> Any:
        """The final estimator's answer to the members' answers."""
        x, home = self._rows(X)
        with torch.no_grad():
            features = self.energy_.features(x).cpu().numpy()
        found = getattr(self.final_estimator_, question)(features, **options)
        return found, home

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of ``transform``."""
        names = []
        for name, width in zip(Voting.get_feature_names_out(self), self._widths, strict=True):
            names += [name] if width == 1 else [f"{name}{i}" for i in range(width)]
        if self.passthrough:
            given = getattr(self, "feature_names_in_", input_features)
            plain = [f"x{j}" for j in range(self.n_features_in_)]
            names += plain if given is None else list(given)
        return np.array(names, object)


def _as_it_is(base: Any, k: Classes, method: str) -> Member:
    """A member that was fitted before."""

    def fitted(x: Tensor, y: Tensor, weight: Tensor | None, key: Any) -> Energy:
        return answers(base, x.shape[1], k, method)

    return fitted
