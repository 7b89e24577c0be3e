"""Classifiers learned in one pass of sums: ``fit``, ``partial_fit`` and draws."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import check_partial_fit_first_call
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.classes.naive_bayes.joint import JointClassEnergy
from groundstate.errors import Unsupported
from groundstate.learn import NLL, Closed, History
from groundstate.models.arrays import Home, tensor, unwrap
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.resident import places
from groundstate.models.roles import EnergyClassifier
from groundstate.models.validation import checked_count, further


def class_probabilities() -> Learned:
    """π of the classes, which need not sum to one when it is set."""
    return Learned(
        lambda model: model.energy_.log_prior.exp(),
        lambda model, value: model.energy_.logits.copy_(value.log()),
    )


class ClosedFormClassifier(EnergyClassifier):
    r"""A joint energy :math:`-\log p(x, y)` whose minimiser follows from sums over rows.

    Parameters
    ----------
    priors : (n_classes,) array
        Class probabilities; None takes the shares of the rows.
    shrinkage : float in [0, 1], "auto" or None
        Towards a multiple of the identity; "auto" is Ledoit and Wolf's amount.
    covariance_estimator : object with ``fit`` and ``covariance_``
        Finds the covariance of each class, in place of ``shrinkage`` (not with "svd").

    Attributes
    ----------
    statistics_ : dict of tensors
        The sums; those of further rows are added by ``partial_fit``.
    """

    statistics_: dict[str, Tensor]
    _sparse_rows: ClassVar[int] = 2**62  # sparse rows cannot be cut into chunks

    def _energy(self, x: Tensor, y: Tensor, weight: Tensor | None) -> JointClassEnergy:
        """The energy for such rows, its parameters still unknown."""
        raise TypeError(f"{type(self).__name__} must define _energy(x, y, weight)")

    def _features(self, x: Tensor) -> Tensor:
        """Rows as the energy wants them."""
        return x

    def _attributes(self, energy: Any, sums: dict[str, Tensor]) -> dict[str, Any]:
        """Fitted attributes by scikit-learn's names."""
        return {}

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        x = self._features(X)
        rows = self._sparse_rows if x.layout == torch.sparse_csr else 2**18
        return Plan(
            energy=self._energy(x, y, weight).to(X.device, X.dtype),
            rule=NLL(over=("x", "y")),
            solver=Closed(chunk_rows=rows, with_objective=False),
            data={"x": x, "y": y},
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, JointClassEnergy)
        sums = {name: value.cpu() for name, value in energy.sums.items()}
        return {"statistics_": sums, **self._attributes(energy, sums)}

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        x, home = super()._rows(X)
        return self._features(x), home

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows; the result is that of ``fit`` on all rows seen so far.

        Parameters
        ----------
        X, y : rows and labels
        classes : all labels that will ever come; needed in the first call only
        sample_weight : (n_samples,), optional
        """
        self._validate_params()
        if getattr(self, "covariance_estimator", None) is not None:
            raise Unsupported(
                "a covariance_estimator sees all rows at once; use fit, or shrinkage instead"
            )
        first = check_partial_fit_first_call(self, classes) or not hasattr(self, "energy_")
        device, _ = places(self, X)
        X_, y_ = further(self, self._words(unwrap(X)[0], first), y, first)
        if first:
            self.classes_ = np.unique(np.asarray(classes))
        if not first and sample_weight is not None and not np.any(unwrap(sample_weight)[0]):
            return self  # rows that count for nothing
        weight = self._checked_weight(sample_weight, X_)
        encoded = self._encoded("y", np.asarray(y_)).astype(np.int64)
        X_ = self._non_negative(X_)
        if not first:
            self._make_room(X_)
        x, yt = self._features(tensor(X_, device)), tensor(encoded, device)
        wt = None if weight is None else tensor(weight, device)
        if first:
            energy = self._energy(x, yt, wt)
            kept = torch.float32 if X_.dtype == np.float32 else torch.float64
            self.energy_ = energy.to(device, kept)
            self.history_ = History(solver="Closed", stop="closed form", converged=True)
            self.n_iter_ = 0
        energy = self.energy_  # type: ignore[assignment]
        with torch.no_grad():
            sums = energy.stats(wt, x=x, y=yt)  # type: ignore[operator]
            if not first:
                # sums that were stored without it come from rows that lacked nothing
                before = {"seen": self.statistics_["n"][:, None], **self.statistics_}
                sums = {k: v + before[k].to(v.device) for k, v in sums.items()}
            energy.from_stats(sums)  # type: ignore[operator]
        self.n_iter_ += 1
        for name, value in self._learned(energy).items():
            setattr(self, name, value)
        return self

    def _words(self, X: Any, first: bool) -> Any:
        """Further rows with numbers for words."""
        return X

    def _make_room(self, X: Any) -> None:
        """Let the energy and its sums grow where further rows ask for it."""

    def _non_negative(self, X: Any) -> Any:
        """Rows, refused where the model cannot have such values."""
        return X

    def _checked(self, X: Any, y: Any) -> Any:
        X, y, attributes = super()._checked(X, y)
        return self._non_negative(X), y, attributes

    def predict_joint_log_proba(self, X: Any) -> Any:
        r""":math:`\log p(x, y) = -e(x, y)` of all classes, ``(n_samples, n_classes)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._joint(x))

    def _joint(self, x: Tensor) -> Tensor:
        return -self.energy_.table("y", x=x)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Any]:
        """Draw rows and their labels from the learned distribution."""
        check_is_fitted(self, "energy_")
        generator = Key.of(random_state).torch(self.energy_.placement()[0])
        if self.energy_.ancestral is None:
            raise Unsupported(f"{type(self).__name__} has no distribution of rows to draw from")
        n = checked_count(n_samples)
        with answering(self.energy_, torch.empty(n, 0)):
            found = self.energy_.ancestral(n, generator=generator)  # type: ignore[operator]
        return self._decoded("x", found["x"], Home()), self.classes_[found["y"].cpu().numpy()]


def checked_prior(prior: Any, classes: int) -> list[float] | None:
    """Given class probabilities, checked; None stays None."""
    if prior is None:
        return None
    values = np.asarray(prior, dtype=np.float64)
    if values.shape != (classes,):
        raise ValueError(
            f"Number of priors must match number of classes, got {values.shape} for {classes}."
        )
    if (values < 0).any():
        raise ValueError(f"Priors must be non-negative, got {values.tolist()}.")
    if not np.isclose(values.sum(), 1.0):
        raise ValueError(f"The sum of the priors should be 1, got {values.sum():.6g}.")
    return values.tolist()
