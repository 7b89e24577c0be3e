r"""Tune by gradient: L-BFGS on the logarithm of a penalty, with implicit hypergradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from optuna.study import Study
from scipy.optimize import minimize
from torch import Tensor

from groundstate.errors import Unsupported
from groundstate.models.traits import traits_of
from groundstate.tune.gradients.hypergradients import Problem, Risk, hypergradient
from groundstate.tune.learn import fit
from groundstate.tune.rows import Rows
from groundstate.tune.space import Real, Space
from groundstate.tune.trials import Plan


class _Enough(Exception):
    """All trials are spent."""


def descend(study: Study, space: Space, plan: Plan, n_trials: int) -> None:
    r"""Lower the mean squared error or log loss of the validation rows in :math:`\log\lambda`.

    Every point that L-BFGS visits is a trial, whose value is the plan's risk. The search begins in
    the middle of the range.
    """
    name = traits_of(plan.estimator).strength
    row = None if name is None else space.settings.get(name)
    if name is None or list(space) != [name] or not isinstance(row, Real) or row.low <= 0:
        raise Unsupported(
            "sampler='gradient' tunes the positive strength alone of a smooth penalty, as Ridge's "
            f"'alpha' or LogisticRegression's 'C', got {type(plan.estimator).__name__} with "
            f"{space.names}; take sampler='smbo'"
        )
    spent = len(study.get_trials(deepcopy=False))
    begin = 0.5 * (math.log(row.low) + math.log(row.high))
    if spent:
        begin = math.log(study.best_params[name])

    def objective(point: Any) -> tuple[float, Any]:
        nonlocal spent
        if spent >= n_trials:
            raise _Enough
        spent += 1
        value = float(np.clip(math.exp(point[0]), row.low, row.high))
        _record(study, space, plan, name, value)
        return _smooth(plan, name, value)

    bounds = [(math.log(row.low), math.log(row.high))]
    try:
        minimize(objective, np.array([begin]), jac=True, method="L-BFGS-B", bounds=bounds)
    except _Enough:
        return


def _record(study: Study, space: Space, plan: Plan, name: str, value: float) -> None:
    study.enqueue_trial({name: value})
    trial = study.ask()
    run = plan.run(space.suggest(trial))
    for _, tasks in plan.stages:
        plan.advance([run], tasks, 1)
    trial.set_user_attr("rows", run.rows)
    trial.set_user_attr("seconds", run.seconds)
    if run.error is not None:
        from optuna.trial import TrialState

        trial.set_user_attr("error", run.error)
        study.tell(trial, state=TrialState.FAIL)
        return
    trial.set_user_attr("risks", [[float(r) for r in row] for row in run.risks])
    study.tell(trial, run.risk)


def _smooth(plan: Plan, name: str, value: float) -> tuple[float, Any]:
    """Mean over the parts of the validation loss and of its slope in log λ."""
    total, slope = 0.0, 0.0
    lam = torch.tensor([math.log(value)], dtype=torch.float64)
    for part in plan.parts:
        model = fit(plan.estimator, {name: value}, part.train, plan.key.fold("fit", 0))
        theta = _theta(model)
        train = _risk(model, part.train, penalised=True)
        judge = _risk(model, part.test, penalised=False)
        problem = Problem(train, judge, theta)
        total += float(judge(theta, lam))
        slope += float(hypergradient(problem, lam, tol=1e-8, max_iter=200))
    return total / len(plan.parts), np.array([slope / len(plan.parts)])


def _theta(model: Any) -> Tensor:
    coef = np.atleast_2d(np.asarray(model.coef_, np.float64))
    offset = np.broadcast_to(np.asarray(model.intercept_, np.float64).reshape(-1), len(coef))
    columns = [coef, offset[:, None]] if model.fit_intercept else [coef]
    return torch.from_numpy(np.concatenate(columns, 1).reshape(-1))


def _risk(model: Any, rows: Rows, penalised: bool) -> Risk:
    """Training risk with its penalty, or mean loss of validation rows, as a function of θ, log λ."""
    X = torch.from_numpy(np.asarray(rows.X, np.float64))
    p = X.shape[1]
    if model.fit_intercept:
        X = torch.cat([X, torch.ones(len(X), 1, dtype=X.dtype)], 1)
    w = torch.from_numpy(rows.weight)
    classes = getattr(model, "classes_", None)
    if classes is None:
        target = torch.from_numpy(np.asarray(rows.y, np.float64))
        target = target[:, None] if target.ndim == 1 else target
    else:
        target = torch.from_numpy(np.searchsorted(classes, np.asarray(rows.y)))

    def risk(theta: Tensor, lam: Tensor) -> Tensor:
        W = theta.reshape(-1, X.shape[1])
        s = X @ W.T  # (n, R)
        if classes is None:
            each = (s - target).square().sum(1)
        elif len(W) == 1:
            each = torch.nn.functional.softplus(s[:, 0]) - target * s[:, 0]
        else:
            each = s.logsumexp(1) - s.gather(1, target[:, None])[:, 0]
        if not penalised:
            return (w * each).sum() / w.sum()
        size = W[:, :p].square().sum()
        if classes is None:
            return 0.5 * (w * each).sum() + 0.5 * lam[0].exp() * size
        return lam[0].exp() * (w * each).sum() + 0.5 * size

    return risk
