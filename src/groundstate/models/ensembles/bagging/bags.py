"""What bagging adds to a committee: drawn rows, drawn columns, answers out of the bag."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.learn.solvers.committee import FitMembers
from groundstate.models import settings
from groundstate.models.ensembles.committees import CommitteeModel, amount
from groundstate.models.ensembles.grown import fits
from groundstate.models.traits import Traits


class Bagging(CommitteeModel):
    """One kind of member, each on its own draw of rows and columns.

    Parameters
    ----------
    max_samples : int, float or None
        Rows drawn per member; None draws as many as there are.
    max_features : int or float
        Columns drawn per member.
    bootstrap : bool
        Draw rows with replacement; without, a member sees all rows or a share of them.
    bootstrap_features : bool
        Draw columns with replacement.
    oob_score : bool or callable
        Judge every row by the members that did not see it.
    warm_start : bool
        Keep the members of the last fit and add what is missing.

    Attributes
    ----------
    oob_score_ : float, with ``oob_score``
    estimators_samples_ : list of arrays, the rows of each member (not kept in files)
    estimators_ : list of fitted members
    estimators_features_ : list of arrays, the columns of each member
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_samples": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "bootstrap_features": ["boolean"],
        "oob_score": ["boolean", callable],
    }

    traits = Traits(
        space={
            "n_estimators": settings.Whole(5, 100, log=True),
            "max_features": settings.Real(0.3, 1.0),
        },
        steps="n_estimators",
        counts_all_steps=True,
    )

    _bags: list[NDArray[np.float32]]

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: Any = None,
        max_features: Any = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _base(self) -> Any:
        """The member unless one was given."""
        raise TypeError(f"{type(self).__name__} must define _base()")

    def _kinds(self) -> list[Any]:
        return [self._base() if self.estimator is None else self.estimator]

    def _solver(self, X: Tensor, y: Tensor, weight: Tensor | None) -> FitMembers:
        if self.oob_score and not self.bootstrap:
            raise ValueError(
                "oob_score needs bootstrap=True: otherwise every member sees every row"
            )
        d = X.shape[1]
        total = len(X) if weight is None else float(weight.sum())
        draws, share = None, self.max_samples
        if isinstance(share, Integral) or (share is not None and share < 1):
            draws = amount(share, total, "max_samples")
            if draws > total and not self.bootstrap:
                raise ValueError(
                    f"max_samples={draws} rows without replacement, but there are {total:g}"
                )
        columns = amount(self.max_features, d, "max_features")
        if columns > d:
            raise ValueError(f"max_features={columns}, but X has {d} columns")
        (base,) = self._kinds()
        k = None if y.is_floating_point() else len(self.classes_)
        whole = columns == d and not self.bootstrap_features
        return FitMembers(
            (fits(base, k, X, weight, whole),) * self.n_estimators,
            bootstrap=self.bootstrap,
            draws=draws,
            columns=columns,
            repeat_columns=self.bootstrap_features,
            out_of_bag=bool(self.oob_score),
            continued=self.warm_start,
            earlier=tuple(bag for bag in self._earlier() if len(bag) == len(X)),
            threads=self._threads(),
        )

    def _earlier(self) -> list[Any]:
        """What members of an earlier fit saw."""
        return list(getattr(self, "_bags", ())) if self.warm_start else []

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        earlier = self._earlier()
        super()._fit(X, y, sample_weight)
        found: Any = self.history_.extra.pop("bags", [])
        bags = [np.ones(len(y)) if bag is None else bag for bag in found]
        self._bags = [*earlier, *(bag.astype(np.float32) for bag in bags)]
        outside = self.history_.extra.pop("out_of_bag", None)
        if outside is not None:
            self._judge(np.asarray(outside), y, sample_weight)
        return self

    def _judge(self, outside: NDArray[Any], y: Any, weight: Any) -> None:
        """Set what is known about rows from the members that did not see them."""
        raise TypeError(f"{type(self).__name__} must define _judge(outside, y, weight)")

    @property
    def estimator_(self) -> Any:
        """The member that is cloned."""
        return self._kinds()[0]

    @property
    def estimators_features_(self) -> list[NDArray[np.int64]]:
        """Columns that each member sees."""
        every = np.arange(self.n_features_in_)
        return [every if own is None else np.array(own) for own in self.energy_.columns]

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """Rows that each member saw, as often as it saw them."""
        bags = getattr(self, "_bags", None)
        if bags is None:
            raise AttributeError(
                "which rows a member saw is known after fit, and not kept in files"
            )
        counts = [np.ceil(bag - 1e-4).astype(np.int64) for bag in bags]
        return [np.repeat(np.arange(len(own)), own) for own in counts]
