"""Logistic regression with its penalty chosen by cross-validation."""

from __future__ import annotations

from itertools import pairwise
from math import isinf, log, prod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import logsumexp
from sklearn.metrics import check_scoring, get_scorer_names
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.energy.basic import LinearEnergy
from groundstate.learn.solvers.linear.least_squares_sums import is_sparse, scipy_rows
from groundstate.learn.solvers.logistic.folds import (
    FixedParameters,
    FoldPaths,
    fold_paths,
    sparse_fold_paths,
)
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.linear.fold_weights import fold_weights
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.linear.logistic.model import SOLVERS, LinearSoftminClassifier, penalty_for
from groundstate.models.traits import Cost, Traits
from groundstate.registry import models


@models.register(family="linear", task="classification", role="classifier", shortlist=1)
class LogisticRegressionCV(LinearSoftminClassifier):
    r"""Logistic regression whose penalty predicts held-out rows best.

    .. math::
        e(x, y) = -(Wx + b)_y, \qquad
        \hat C = \arg\max_C \sum_f \mathrm{score}_f\Bigl(\arg\min_\theta
        C\sum_i w_{fi}[\,e(x_i, y_i) - F(x_i)\,] + \tfrac12\|\theta\|^2\Bigr) .

    All folds of one strength are learned as one population, and strengths follow one another along
    the path, so that the whole search costs a few fits. A weight of 2 is the
    row twice within a fold.

    Parameters
    ----------
    Cs : int or array of floats, default=10
        Inverse strengths to choose from; a number asks for that many between 1e-4 and 1e4.
    l1_ratios : array of floats in [0, 1], default=(0.0,)
        Mixtures of penalties to choose from; see ``LogisticRegression``.
    cv : int, splitter, iterable or None, default=None
        How many folds (None is 5) of rows in their order, labels spread evenly, as in scikit-learn, a
        splitter, or pairs of indices.
    scoring : str, callable or None, default=None
        What to maximise; None is the accuracy. ``"neg_log_loss"`` also takes classes that a fold does
        not hold out.
    solver, tol, max_iter, class_weight, random_state
        As in ``LogisticRegression``, for the fit to all rows.
    refit : bool, default=True
        Learn from all rows with the best penalty; else average the folds' best parameters.
    dual, n_jobs, verbose, intercept_scaling
        Accepted for scikit-learn's sake.
    use_legacy_attributes : bool, default=False
        Give ``C_``, ``scores_`` and ``coefs_paths_`` in scikit-learn's older shapes, by class.
    device : str or torch.device, default=None
        Where to learn from all rows; the folds are learned on the CPU.

    Attributes
    ----------
    C_, l1_ratio_ : float
        The choice.
    Cs_, l1_ratios_ : arrays
    scores_ : (n_folds, n_l1_ratios, n_cs)
    coefs_paths_ : (n_folds, n_l1_ratios, n_cs, n_classes or 1, n_features + 1)
        The intercept is last.
    n_iter_ : (n_folds, n_l1_ratios, n_cs)
    coef_, intercept_, odds_ratio_, classes_, energy_
        As in ``LogisticRegression``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=5).fit(X, y)
    >>> model.scores_.shape, bool(model.score(X, y) > 0.95)
    ((5, 1, 5), True)
    """

    # columns of unit scale that separate the classes want far less penalty than C = 1
    traits = Traits(
        cost=Cost(0.002, rows=0.7, columns=1.3, classes=1.6),
        preset={"scoring": "neg_log_loss"},
        space={"fit_intercept": settings.Choice(True, False)},
    )

    _runs_on: Any = "answers"  # folds are compared on the CPU
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "l1_ratios": ["array-like"],
        "dual": ["boolean"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "solver": [StrOptions(SOLVERS)],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "refit": ["boolean"],
        "use_legacy_attributes": ["boolean"],
    }

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = (0.0,),
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        scoring: Any = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        n_jobs: Any = None,
        verbose: int = 0,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        use_legacy_attributes: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        counted = isinstance(self.Cs, Integral)
        Cs = np.logspace(-4, 4, self.Cs) if counted else np.asarray(self.Cs, dtype=np.float64)
        ratios = np.atleast_1d(np.asarray(self.l1_ratios, dtype=np.float64))
        if Cs.ndim != 1 or not len(Cs) or not (Cs > 0).all():
            raise ValueError(f"Cs must be a number or positive values, got {self.Cs!r}")
        if not len(ratios) or not ((ratios >= 0) & (ratios <= 1)).all():
            raise ValueError(f"l1_ratios must lie between 0 and 1, got {self.l1_ratios!r}")
        x, labels = X.cpu(), y.cpu()
        given = self.__dict__.pop("_own", None)
        own = None if given is None else torch.from_numpy(given)
        train, held = fold_weights(x, labels, own, self.cv, True)
        learned = train
        if weight is not None:  # factors of the classes too
            full = weight.cpu().double().numpy()
            base = np.ones(len(full)) if given is None else given.astype(np.float64)
            learned = train * np.where(base > 0, full / base.clip(1e-300), 1.0)
        order = np.argsort(-1.0 / Cs, kind="stable")
        paths = [self._path(x, labels, learned, Cs[order], float(r)) for r in ratios]
        back = np.argsort(order, kind="stable")
        theta = np.stack([path.theta[:, back] for path in paths], 1)  # (folds, ratios, Cs, R, D)
        steps = np.stack([path.steps[:, back] for path in paths], 1)
        scores = self._scores(x, labels, held, theta)
        self._share = float(train.sum() / (train + held).sum())
        self.Cs_, self.l1_ratios_ = Cs, ratios
        self._searched = {"coefs_paths_": theta, "scores_": scores, "n_iter_": np.maximum(steps, 1)}
        return self._chosen(X, weight, theta, scores)

    def _chosen(self, X: Tensor, weight: Tensor | None, theta: Any, scores: Any) -> Plan:
        """The plan of the fit to all rows, which begins at the mean of the folds."""
        classes = len(self.classes_)
        if self.refit:
            ratio, c = np.unravel_index(int(scores.mean(0).argmax()), scores.shape[1:])
            start = self._toward_all(theta[:, ratio].mean(0), int(c))
            self.C_, self.l1_ratio_ = float(self.Cs_[c]), float(self.l1_ratios_[ratio])
        else:
            flat = scores.reshape(len(scores), -1).argmax(1)
            best = np.unravel_index(flat, scores.shape[1:])
            start = theta[(np.arange(len(scores)), *best)].mean(0)
            self.C_ = float(self.Cs_[best[1]].mean())
            self.l1_ratio_ = float(self.l1_ratios_[best[0]].mean())
        plan = self._plan(X, weight, self.C_, self.l1_ratio_, classes)
        energy, p = plan.energy, X.shape[1]
        assert isinstance(energy, LinearEnergy)
        values = np.concatenate([-start / 2, start / 2]) if classes == 2 else start
        energy.W.data = torch.from_numpy(np.ascontiguousarray(values[:, :p])).to(X.dtype)
        if energy.b is not None:
            energy.b.data = torch.from_numpy(values[:, p].copy()).to(X.dtype)
        if not self.refit:
            plan.solver = FixedParameters()
        return plan

    def _toward_all(self, path: Any, c: int) -> Any:
        r"""Where the path of the folds' mean :math:`(S, R, D)` has the penalty of all rows.

        A fold has a share ρ of the rows, so that of the mean loss of all rows is ρλ of a fold.
        """
        order = np.argsort(self.Cs_, kind="stable").tolist()
        first = max(0, min(order.index(c) - 1, len(order) - 4))
        near = order[first : first + 4]
        nodes = [log(self.Cs_[k]) for k in near]
        place = log(self.Cs_[c] / self._share)
        if len(near) < 4 or min(b - a for a, b in pairwise(nodes)) < 0.1 or isinf(nodes[-1]):
            return path[c]
        shares = [prod((place - b) / (a - b) for b in nodes if b != a) for a in nodes]
        return sum(share * path[k] for share, k in zip(shares, near, strict=True))

    def _row_weight(self, y: Any, weight: Any) -> Any:
        """As every classifier; remembers the rows' own weights, which cut and score the folds."""
        full = super()._row_weight(y, weight)
        self._own = weight
        return full

    def _path(self, x: Tensor, y: Tensor, weights: Any, Cs: Any, ratio: float) -> FoldPaths:
        """All folds along the strengths, from strong to weak."""
        classes = len(self.classes_)
        if ratio == 0:
            return fold_paths(
                x, y, weights, 1.0 / Cs, classes, self.fit_intercept, self.tol, self.max_iter
            )
        penalties: Any = [penalty_for(float(C), ratio, classes) for C in Cs]
        return sparse_fold_paths(
            x, y, weights, penalties, classes, self.fit_intercept, self.tol**2, self.max_iter
        )

    def _scores(self, x: Tensor, y: Tensor, held: Any, theta: Any) -> Any:
        """Of every fold, ratio and strength on the fold's held-out rows."""
        rows = scipy_rows(x) if is_sparse(x) else x.numpy()
        out = np.empty(theta.shape[:3])
        by_members = _MEMBERS.get(self.scoring) if not callable(self.scoring) else None
        scorer: Any = None
        if by_members is None:
            scorer = check_scoring(self._like(theta[0, 0, 0]), scoring=self.scoring)
        members = theta.reshape(len(theta), -1, *theta.shape[3:])
        new = np.ones(members.shape[1], np.bool_)
        new[1:] = (members[:, 1:] != members[:, :-1]).any((0, 2, 3))
        place = new.cumsum() - 1
        for f, weight in enumerate(held):
            live = np.flatnonzero(weight > 0)
            X = rows[live] if is_sparse(x) else rows.take(live, 0)
            labels, w = y.numpy()[live], weight[live]
            if by_members is not None:  # of all different members in one product
                found = by_members(self._outputs(members[f, new], X), labels) @ w / w.sum()
                out[f] = found[place].reshape(out.shape[1:])
                continue
            extra = {} if (w == 1).all() else {"sample_weight": w}
            for at in np.ndindex(*theta.shape[1:3]):
                model = self._like(theta[(f, *at)])
                out[(f, *at)] = scorer(model, X, self.classes_[labels], **extra)
        return out

    def _outputs(self, members: Any, X: Any) -> Any:
        """Scores ``(members, R, n)`` that parameters ``(members, R, D)`` give rows."""
        flat = members.reshape(-1, members.shape[2])
        W = flat[:, : X.shape[1]]
        s = W @ X.T if isinstance(X, np.ndarray) else (X @ W.T).T
        if self.fit_intercept:
            s += flat[:, X.shape[1], None]
        return s.reshape(*members.shape[:2], -1)

    def _like(self, theta: Any) -> LogisticRegression:
        """A fitted model with such parameters, for scorers."""
        classes, p = len(self.classes_), self.n_features_in_
        energy = LinearEnergy(p, classes, self.fit_intercept).double()
        values = np.concatenate([-theta / 2, theta / 2]) if classes == 2 else theta
        with torch.no_grad():
            energy.W.copy_(torch.from_numpy(values[:, :p]))
            if energy.b is not None:
                energy.b.copy_(torch.from_numpy(values[:, -1]))
        model = LogisticRegression(fit_intercept=self.fit_intercept)
        model.energy_, model.classes_, model.n_features_in_ = energy, self.classes_, p
        return model

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """What ``scoring`` says of labels and predictions; the accuracy where it is None."""
        scorer = check_scoring(self, scoring=self.scoring or "accuracy")
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer(self, X, y, **extra))

    def _learned(self, energy: Energy) -> dict[str, Any]:
        learned = super()._learned(energy)
        path = getattr(self, "_searched", None)
        if not hasattr(self, "history_") or path is None:
            return learned
        learned.update(path)
        if self.use_legacy_attributes:
            several = len(self.classes_) > 2
            names = self.classes_ if several else self.classes_[1:]
            paths = np.moveaxis(path["coefs_paths_"], 1, 2)
            scores = np.moveaxis(path["scores_"], 1, 2)
            learned["coefs_paths_"] = {c: paths[:, :, :, k] for k, c in enumerate(names)}
            learned["scores_"] = dict.fromkeys(names, scores)
            learned["C_"] = np.repeat(self.C_, len(names))
            learned["l1_ratio_"] = np.repeat(self.l1_ratio_, len(names))
        return learned


def _right(scores: Any, labels: Any) -> Any:
    """Whether members answer rightly, from scores ``(members, R, n)``."""
    answers = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(1)
    return answers == labels.astype(answers.dtype)


def _log_proba(scores: Any, labels: Any) -> Any:
    """Logarithm of the probability of the right class, no less than that of the smallest step from 1, as
    in scikit-learn's metric."""
    if scores.shape[1] == 1:
        found = -np.logaddexp(0.0, np.where(labels > 0, -scores[:, 0], scores[:, 0]))
    else:
        own = np.take_along_axis(scores, labels[None, None].astype(np.intp), 1)[:, 0]
        found = own - logsumexp(scores, axis=1)
    return np.maximum(found, log(np.finfo(np.float64).eps))


_MEMBERS = {None: _right, "accuracy": _right, "neg_log_loss": _log_proba}
