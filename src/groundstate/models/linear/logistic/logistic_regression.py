"""Logistic and softmax regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from groundstate.compute.foreign.sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    check_partial_fit_first_call,
)
from groundstate.energy.basic import LinearEnergy
from groundstate.learn import SoftMin
from groundstate.learn.base import History
from groundstate.learn.solvers.linear.online_descent import BATCH, Stream, cut, rate_for
from groundstate.models import settings
from groundstate.models.arrays import tensor
from groundstate.models.base import Plan
from groundstate.models.linear.logistic.members import logistic_members
from groundstate.models.linear.logistic.model import SOLVERS, LinearSoftminClassifier, penalty_for
from groundstate.models.resident import places
from groundstate.models.traits import Cost, Traits
from groundstate.models.validation import further
from groundstate.registry import models


@models.register(
    family="linear", task="classification", role="classifier", shortlist=1, shortlist_text=1
)
class LogisticRegression(LinearSoftminClassifier):
    r"""Linear class energies, learned by cross-entropy.

    .. math::
        e(x, y) = -(Wx + b)_y, \qquad
        \min_{W, b}\; C\sum_i w_i\,[\,e(x_i, y_i) - F(x_i)\,] + \rho\|\theta\|_1
        + \frac{1 - \rho}{2}\|\theta\|^2, \qquad F(x) = -\log\sum_y e^{-e(x, y)} .

    :math:`p(y\mid x) = \mathrm{softmax}(Wx + b)`. With two classes θ is the difference
    :math:`W_1 - W_0`, as in scikit-learn, and :math:`f = \theta^\top x + b` are the log-odds; with more
    it is W. Without a penalty :math:`\sum_k W_k = 0` fixes what the probabilities leave open.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty; ``numpy.inf`` for none. Intercepts are not penalised.
    l1_ratio : float in [0, 1], default=0.0
        ρ: 0 is a Gaussian prior, 1 a Laplace prior that sets weights to exactly zero.
    dual, intercept_scaling, verbose, n_jobs
        Accepted for scikit-learn's sake.
    tol : float, default=1e-4
        Largest entry of the gradient of the mean objective at the end; with ``l1_ratio`` its square
        is the duality gap relative to the objective at zero.
    class_weight : dict, "balanced" or None
        Factors on the rows of each class.
    random_state : int, default=None
        Used by stochastic solvers only.
    solver : {"auto", "lbfgs", "newton-cg", "newton-cholesky", "liblinear", "sag", "saga", "sgd"}, \
            a solver object or None, default="auto"
        "auto" takes Newton's method while its Hessian is small (from a part of the rows where there
        are many), else L-BFGS or, for sparse rows, Newton with conjugate gradients; with
        ``l1_ratio`` proximal Newton. "liblinear", "sag" and "saga" name the same minimum (the
        intercept is never penalised) and are solved as "auto". "sgd" is stochastic descent with
        averaging.
    max_iter : int, default=100
        Steps at most; epochs of "sgd".

    Attributes
    ----------
    coef_ : (1, n_features) for two classes, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    odds_ratio_ : array like coef_
        Factor on the odds of a class when a column grows by one, :math:`e^{\theta_j}`.
    separable_ : bool
        Whether a fit without penalty stopped because planes separate the classes; the weights are
        then those of the last step.
    energy_ : LinearEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> model.predict(X[:2]).tolist(), round(model.score(X, y), 3)
    ([0, 0], 0.973)
    """

    traits = Traits(
        cost=Cost(0.0015, columns=0.8, classes=1.0),
        program=logistic_members,
        space={"C": settings.Real(1e-4, 1e4, log=True)},
        strength="C",
        steps="max_iter",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "dual": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions(SOLVERS), HasMethods("run"), None],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        random_state: Any = None,
        solver: Any = "auto",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        self.__dict__.pop("stream_", None)  # a fit begins anew
        plan = self._plan(X, weight, self.C, self.l1_ratio or 0.0, len(self.classes_))
        if self.warm_start:
            self._go_on(plan.energy)
        return plan

    @property
    def _runs_on(self) -> str:
        return "answers" if self.l1_ratio else "any"  # proximal Newton is compiled for the CPU

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows of a stream, once, in their order, by averaged descent.

        The objective is that of ``fit`` on the rows seen so far. ``fit`` begins anew.

        Parameters
        ----------
        X, y : rows and labels
        classes : all labels that will ever come; needed in the first call only
        sample_weight : (n_samples,), optional
        """
        self._validate_params()
        if self.l1_ratio or self.class_weight == "balanced":
            raise ValueError(
                "partial_fit needs l1_ratio=0 and no balanced class_weight, which a stream does "
                f"not know; got l1_ratio={self.l1_ratio} and class_weight={self.class_weight!r}"
            )
        first = check_partial_fit_first_call(self, classes) or not hasattr(self, "stream_")
        X_, y_ = further(self, X, y, first)
        index = self._encoded("y", np.asarray(y_)).astype(np.int64)
        weight = self._row_weight(index, self._checked_weight(sample_weight, X_))
        device, _ = places(self, X)
        x, target = tensor(X_, device), tensor(index, device)
        w = None if weight is None else tensor(weight, device)
        many = len(self.classes_)
        if first:
            self.energy_ = LinearEnergy(x.shape[1], many, self.fit_intercept).to(device, x.dtype)
            self.history_ = History(solver="Stream")
            stream = Stream(rate_for(cut(x, 0, BATCH), self.energy_))  # the first batch alone
        else:
            stream = Stream(**self.stream_)
        penalty = penalty_for(self.C, 0.0, many)
        loss = stream.consume(self.energy_, SoftMin(), {"x": x, "y": target}, w, penalty)
        self.stream_: dict[str, Any] = dict(vars(stream))
        self.history_.objective.append(loss)
        self.history_.n_iter = self.n_iter_ = stream.steps
        for name, value in self._learned(self.energy_).items():
            setattr(self, name, value)
        return self
