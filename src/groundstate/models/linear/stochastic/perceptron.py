"""The perceptron."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions, check_partial_fit_first_call
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.basic import LinearEnergy
from groundstate.learn import L1, L2, ElasticNet, History, OnlinePerceptron
from groundstate.learn import Perceptron as PerceptronRule
from groundstate.learn import fit as learn
from groundstate.learn.base import Penalty
from groundstate.models import settings
from groundstate.models.arrays import tensor
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import class_part, densify, sparsify
from groundstate.models.roles import EnergyClassifier
from groundstate.models.traits import Traits
from groundstate.models.validation import further
from groundstate.registry import models


@models.register(family="linear", task="classification", role="classifier")
class Perceptron(EnergyClassifier):
    r"""Linear class energies, corrected on mistakes only.

    .. math::
        e(x, y) = -(Wx + b)_y, \qquad L = e(x, y) - \min_{y'} e(x, y'),

    so a row that is right teaches nothing; a mistake :math:`\hat y` moves
    :math:`W_y \leftarrow W_y + \eta x` and :math:`W_{\hat y} \leftarrow W_{\hat y} - \eta x`. With two
    classes ``coef_`` moves by :math:`\pm\eta x`. On separable rows at distance γ from a boundary the
    number of mistakes is at most :math:`(R/\gamma)^2`, R being the largest length of a row.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"} or None, default=None
        Weights shrink a little at every visit.
    alpha : float, default=1e-4
        Strength of the penalty, per row.
    l1_ratio : float, default=0.15
        Share of the absolute values in "elasticnet".
    max_iter : int, default=1000
        Epochs at most.
    tol : float or None, default=1e-3
        Stop when the mean loss has not fallen by this for ``n_iter_no_change`` epochs; None goes on
        until no mistake is left.
    shuffle : bool, default=True
        A fresh order of the rows each epoch.
    eta0 : float, default=1.0
        Step size; without a penalty it scales the weights and changes no prediction.
    early_stopping : bool, default=False
        Watch the errors of held-out rows instead of the loss.
    validation_fraction : float, default=0.1
        The share that is held out then.
    n_iter_no_change : int, default=5
    class_weight : dict, "balanced" or None
        Factors on the rows of each class.
    multi_class : {"joint", "ovr"}, default="joint"
        All classes together, or each against the rest as in scikit-learn.
    average : bool, default=False
        End at the mean of the weights over all visits.
    verbose, n_jobs
        Accepted for scikit-learn's sake.
    device : str or torch.device, default=None
        Where predictions are computed; the fit itself runs on the CPU.

    Attributes
    ----------
    coef_ : (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    n_mistakes_ : int, mistakes over all epochs
    converged_ : bool, whether the last epoch had none
    energy_ : LinearEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Perceptron
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = Perceptron().fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[-3.0], [3.0]]).tolist(), model.converged_
    (['a', 'b'], True)
    """

    traits = Traits(
        steps="max_iter",
        space={
            "penalty": settings.Choice(None, "l2", "l1", "elasticnet"),
            "alpha": settings.Real(1e-7, 1e-1, log=True),
        },
    )

    _accept_sparse: ClassVar[bool | str] = "csr"
    _runs_on: Any = "answers"  # rows come one after the other, in compiled code
    coef_ = class_part("W")
    intercept_ = class_part("b")
    sparsify, densify = sparsify, densify
    _calibrated: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "multi_class": [StrOptions({"joint", "ovr"})],
        "average": ["boolean"],
    }

    def __init__(
        self,
        *,
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        multi_class: str = "joint",
        average: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        energy = LinearEnergy(X.shape[1], len(self.classes_), self.fit_intercept)
        last: Any = getattr(self, "energy_", None) if self.warm_start else None
        if last is not None and last.config() == energy.config():
            energy.load_state_dict(last.state_dict())
        total = float(len(X) if weight is None else weight.sum())
        return Plan(
            energy=energy, rule=PerceptronRule(), solver=self._solver(), penalty=self._prior(total)
        )

    def _solver(self) -> OnlinePerceptron:
        return OnlinePerceptron(
            eta=self.eta0,
            max_iter=self.max_iter,
            tol=self.tol,
            patience=self.n_iter_no_change,
            shuffle=self.shuffle,
            average=self.average,
            separate=self.multi_class == "ovr",
            validation=self.validation_fraction if self.early_stopping else 0.0,
        )

    def _prior(self, total: float) -> Penalty | None:
        strength = self.alpha * total
        if self.penalty is None or strength == 0:
            return None
        if self.penalty == "elasticnet":
            return ElasticNet(strength, self.l1_ratio)
        return L2(strength) if self.penalty == "l2" else L1(strength)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        found: dict[str, Any] = {}
        history: History | None = getattr(self, "history_", None)
        mistakes = [] if history is None else history.extra.get("mistakes", [])
        if mistakes:
            found["n_mistakes_"] = int(sum(mistakes))
            found["converged_"] = mistakes[-1] == 0
        return found

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch over further rows, from where the weights are.

        Parameters
        ----------
        X, y : rows and labels
        classes : all labels that will ever come; needed in the first call only
        sample_weight : (n_samples,), optional
        """
        self._validate_params()
        if self.average or self.class_weight == "balanced":
            raise ValueError(
                "partial_fit knows no later rows, so it cannot average or balance over all of "
                f"them, got average={self.average}, class_weight={self.class_weight!r}; use fit"
            )
        first = check_partial_fit_first_call(self, classes)
        X_, y_ = further(self, X, y, first)
        if first:
            self.classes_ = np.unique(np.asarray(classes))
        encoded = self._encoded("y", np.asarray(y_)).astype(np.int64)
        weight = self._row_weight(encoded, self._checked_weight(sample_weight, X_))
        host = torch.device("cpu")
        if first:
            dtype = torch.float32 if X_.dtype == np.float32 else torch.float64
            energy = LinearEnergy(X_.shape[1], len(self.classes_), self.fit_intercept)
            self.energy_ = energy.to(dtype=dtype)
            self.history_, self.n_iter_ = History(solver="OnlinePerceptron"), 0
        x = tensor(X_, host)
        if x.dtype != self.energy_.placement()[1]:
            x = x.to(self.energy_.placement()[1])
        wt = None if weight is None else tensor(weight, host)
        once = replace(self._solver(), max_iter=1, validation=0.0)
        total = float(X_.shape[0] if wt is None else wt.sum())
        found = learn(
            self.energy_, {"x": x, "y": tensor(encoded, host)}, PerceptronRule(), once,
            sample_weight=wt, penalty=self._prior(total),
            random_state=Key.of(self.random_state).fold("part", self.n_iter_),
        )  # fmt: skip
        self.n_iter_ += 1
        self.history_.objective += found.objective
        self.history_.seconds += found.seconds
        self.history_.extra.setdefault("mistakes", []).extend(found.extra["mistakes"])
        for name, value in self._learned(self.energy_).items():
            setattr(self, name, value)
        return self
