r"""A guaranteed risk for a linear classifier with Gaussian weights, by PAC-Bayes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.math.divergences.bernoulli import kl_bernoulli_inv
from groundstate.math.stats.bounds_pac_bayes import LogTerm, kl_gaussians
from groundstate.math.stats.bounds_pac_bayes import pac_bayes as bound_of

Floats = NDArray[np.float64]
GRID = tuple(float(2.0**k) for k in range(-8, 3))


@dataclass(frozen=True)
class Guarantee(Displayed):
    r"""A bound of the Gibbs risk and what it is made of.

    Attributes
    ----------
    bound : with probability at least 1 - delta over the rows the Gibbs risk is below it
    risk : mean error on the rows when weights are drawn from Q
    risk_upper : the same with the Monte Carlo error added
    kl : KL(Q, P) in nats
    posterior_std, prior_std : s (one number or one for each weight) and s0
    mean : centre of Q
    n, delta : rows and probability of failure
    """

    bound: float
    risk: float
    risk_upper: float
    kl: float
    posterior_std: Any
    prior_std: float
    mean: Floats
    n: int
    delta: float


def pac_bayes(
    model: Any,
    X: Any,
    y: Any,
    prior: Any = None,
    posterior: Any = "grid",
    *,
    prior_std: Any = "grid",
    delta: float = 0.05,
    form: Literal["kl", "sqrt"] = "kl",
    log_term: LogTerm = "seeger",
    gibbs: Literal["monte_carlo", "exact"] = "monte_carlo",
    n_draws: int = 1000,
    rows: Any = None,
    prior_rows: Any = None,
    objective: Literal["given", "pac_bayes"] = "given",
    key: Key | RandomState = 0,
) -> Guarantee:
    r"""Bound the risk of :math:`Q = N(\theta, \mathrm{diag}\,s^2)` with
    :math:`P = N(\theta_0, s_0^2 I)`:

    .. math:: \mathrm{kl}\bigl(\hat R(Q)\,\|\,R(Q)\bigr) \le
        \frac{\mathrm{KL}(Q\|P) + \log((n+1)/\delta)}{n} .

    The posterior may depend on the rows, the prior may not: its scale is one of a geometric grid,
    which costs a share of δ for each, and its centre may come from other rows.

    Parameters
    ----------
    model : fitted linear classifier with ``coef_``, ``intercept_`` and ``classes_``
    X, y : the rows of the bound, none of which the prior has seen
    prior : centre θ0: None is zero; a model fitted to other rows, or an array like θ
    posterior : s, one number or one for each weight; ``"grid"`` takes the best of a grid
    prior_std : s0, or ``"grid"``
    form, log_term, delta : as in :func:`groundstate.math.stats.bounds.pac_bayes`
    gibbs : mean over draws of Q, whose own error takes half of δ; ``"exact"`` for two classes
    n_draws : draws of Q
    rows, prior_rows : which rows of a table X, y are, and which the prior was learned from;
        they must have none in common
    objective : ``"pac_bayes"`` first moves θ and s to where the bound is lowest (two classes)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)); y = X[:, 0] + 0.3 * rng.normal(size=1000) > 0
    >>> found = pac_bayes(LogisticRegression().fit(X, y), X, y, gibbs="exact")
    >>> found.risk < 0.15 < found.bound < 0.25
    True
    """
    _disjoint(rows, prior_rows)
    A, labels, theta, classes = _problem(model, X, y)
    start = _centre(prior, theta)
    grid_p = list(GRID) if isinstance(prior_std, str) else [float(prior_std)]
    grid_q = list(GRID) if isinstance(posterior, str) else [posterior]
    if gibbs == "exact" and classes > 2:
        raise DataError("the exact Gibbs risk is for two classes; take gibbs='monte_carlo'")
    if objective == "pac_bayes":
        theta, best_s = _descend(A, labels, theta, start, grid_p, delta / len(grid_p))
        grid_q = [best_s]
    elif objective != "given":
        raise DataError(f"objective is 'given' or 'pac_bayes', got {objective!r}")
    n = len(labels)
    share = delta if gibbs == "exact" else delta / 2
    base, found = Key.of(key), []
    for i, s in enumerate(grid_q):
        if gibbs == "exact":
            risk = upper = _exact(A, labels, theta, s)
        else:
            risk = _drawn(A, labels, theta, s, n_draws, base.fold("draws", i))
            spent = math.log(2 * len(grid_q) / delta) / n_draws
            upper = float(kl_bernoulli_inv(risk, spent))
        for s0 in grid_p:
            kl = kl_gaussians(theta, s, start, s0)
            value = bound_of(upper, n, kl, share / len(grid_p), form, log_term)
            found.append(Guarantee(value, risk, upper, kl, s, s0, theta, n, delta))
    return min(found, key=lambda row: row.bound)


def _problem(model: Any, X: Any, y: Any) -> tuple[Floats, NDArray[np.intp], Floats, int]:
    """Rows with a one, class numbers, weights (d + 1,) or (K, d + 1), number of classes."""
    if not hasattr(model, "coef_") or not hasattr(model, "classes_"):
        raise DataError(
            f"{type(model).__name__} has no coef_ and classes_; the bound is for fitted linear "
            "classifiers such as LogisticRegression"
        )
    A = np.asarray(X, np.float64)
    A = np.column_stack([A, np.ones(len(A))])
    coef = np.atleast_2d(np.asarray(model.coef_, np.float64))
    offset = np.broadcast_to(np.asarray(model.intercept_, np.float64).reshape(-1), len(coef))
    theta = np.column_stack([coef, offset])
    classes = np.asarray(model.classes_)
    truth = np.asarray(y)
    labels = np.minimum(np.searchsorted(classes, truth), len(classes) - 1)
    if (classes[labels] != truth).any():
        raise DataError(f"y has labels that the model does not know; it knows {classes.tolist()}")
    return A, labels, theta[0] if len(classes) == 2 else theta, len(classes)


def _centre(prior: Any, theta: Floats) -> Floats:
    if prior is None:
        return np.zeros_like(theta)
    if hasattr(prior, "coef_"):
        coef = np.atleast_2d(np.asarray(prior.coef_, np.float64))
        offset = np.broadcast_to(np.asarray(prior.intercept_, np.float64).reshape(-1), len(coef))
        prior = np.column_stack([coef, offset])
    start = np.asarray(prior, np.float64)
    if start.size != theta.size:
        raise DataError(f"the prior has {start.size} weights, the posterior {theta.size}")
    return start.reshape(theta.shape)


def _disjoint(rows: Any, prior_rows: Any) -> None:
    if prior_rows is None:
        return
    if rows is None:
        raise DataError("pass rows= beside prior_rows=, so that they can be checked to be disjoint")
    common = np.intersect1d(np.asarray(rows), np.asarray(prior_rows))
    if len(common):
        raise DataError(
            f"{len(common)} rows are both in rows and in prior_rows, so the prior has seen them; "
            "learn the prior from other rows"
        )


def _exact(A: Floats, labels: NDArray[np.intp], theta: Floats, s: Any) -> float:
    """Gibbs risk of two classes, the mean of Phi(-margin / spread)."""
    sign = 2.0 * labels - 1.0
    spread = np.sqrt(np.square(A) @ np.broadcast_to(np.square(np.asarray(s, float)), theta.shape))
    return float(ndtr(-sign * (A @ theta) / spread).mean())


def _drawn(
    A: Floats, labels: NDArray[np.intp], theta: Floats, s: Any, draws: int, key: Key
) -> float:
    """Mean over draws of the weights of the share of wrong rows.

    The draws are independent and each share lies in [0, 1], which is what the kl inversion needs.
    """
    rng = key.numpy()
    wrong, done = 0.0, 0
    while done < draws:
        m = min(64, draws - done)
        W = theta + np.asarray(s, float) * rng.standard_normal((m, *theta.shape))
        if theta.ndim == 1:
            predicted = (A @ W.T > 0).astype(np.intp)  # (n, m)
        else:
            predicted = np.einsum("nd,mkd->nmk", A, W).argmax(-1)
        wrong += float((predicted != labels[:, None]).mean(0).sum())
        done += m
    return wrong / draws


def _descend(
    A: Floats,
    labels: NDArray[np.intp],
    theta: Floats,
    start: Floats,
    grid_p: list[float],
    delta: float,
) -> tuple[Floats, Floats]:
    r"""Minimise :math:`\hat R(Q) + \sqrt{(\mathrm{KL} + \log((n+1)/\delta))/2n}` in θ and log s."""
    import torch
    from scipy.optimize import minimize

    if theta.ndim != 1:
        raise DataError("objective='pac_bayes' trains two classes; pass a binary classifier")
    a = torch.from_numpy(A)
    sign = torch.from_numpy(2.0 * labels - 1.0)
    origin = torch.from_numpy(start)
    n, d = A.shape

    def loss(flat: Floats, s0: float) -> tuple[float, Floats]:
        values = torch.from_numpy(flat).requires_grad_()
        mean, s = values[:d], values[d:].exp()
        z = sign * (a @ mean) / (a.square() @ s.square()).sqrt()
        risk = torch.special.ndtr(-z).mean()
        ratio = (s / s0).square()
        kl = 0.5 * (ratio + ((mean - origin) / s0).square() - 1 - ratio.log()).sum()
        value = risk + ((kl + math.log((n + 1) / delta)) / (2 * n)).sqrt()
        (slope,) = torch.autograd.grad(value, values)
        return float(value.detach()), slope.numpy()

    best: tuple[float, Floats] | None = None
    for s0 in grid_p:
        begin = np.concatenate([theta, np.full(d, math.log(s0))])
        found = minimize(loss, begin, args=(s0,), jac=True, method="L-BFGS-B",
                         bounds=[(None, None)] * d + [(-12.0, 5.0)] * d)  # fmt: skip
        if best is None or found.fun < best[0]:
            best = (float(found.fun), np.asarray(found.x))
    assert best is not None
    return best[1][:d], np.exp(best[1][d:])
