"""Rows with unit covariance."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.base import OneToOneFeatureMixin
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.codes import WhiteCodeEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.spectrum import moments, upright
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.factors.linear_codes import LinearCodes
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models


@dataclass(frozen=True)
class Whitening:
    """J and its inverse from the covariance of the rows, in one pass."""

    method: str = "zca"
    eps: float = 0.0

    def reason_against(self, problem: Problem) -> str | None:
        return None if isinstance(problem.energy, WhiteCodeEnergy) else "it is for whitened rows"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, WhiteCodeEnergy)
        history = History(converged=True, solver="Whitening", stop="closed form")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            sums = moments(problem)
            J, inverse = self._maps(sums.covariance())
            energy.b.copy_(sums.mean)
            energy.J.copy_(J)
            energy.inverse.copy_(inverse)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(math.nan)
        return history

    def _maps(self, cov: Tensor) -> tuple[Tensor, Tensor]:
        d = len(cov)
        if self.method == "cholesky":
            L, failed = torch.linalg.cholesky_ex(cov + self.eps * torch.eye(d).to(cov))
            if bool(failed):
                raise ValueError(
                    "the covariance is singular and has no Cholesky factor; drop constant or "
                    "repeated features, pass eps > 0, or use method='zca'"
                )
            return torch.linalg.solve_triangular(L, torch.eye(d).to(L), upper=False), L
        values, vectors = torch.linalg.eigh(cov)
        values, vectors = values.flip(0) + self.eps, upright(vectors.flip(1))
        root = values.clamp_min(0).sqrt()
        there = values > d * 2.3e-16 * values[0]  # directions without variance have no code
        down = torch.where(there, 1 / root, 0.0)
        Q = vectors.T
        if self.method == "pca":
            return down[:, None] * Q, vectors * root
        return vectors @ (down[:, None] * Q), vectors @ (root[:, None] * Q)


@models.register(family="factors", task="representation", role="transformer")
class Whitener(OneToOneFeatureMixin, LinearCodes):
    r"""Rows moved, turned and scaled so that their covariance is the identity.

    .. math::
        z = J(x - b), \quad J^\top J = \Sigma^{-1}, \qquad
        e(x, z) = \tfrac12\|J(x-b)\|^2 + \tfrac12\|z - J(x-b)\|^2 + \text{const} .

    The energy of a row is half its squared Mahalanobis distance.

    Parameters
    ----------
    method : {"zca", "pca", "cholesky"}, default="zca"
        :math:`J = \Sigma^{-1/2}`, which changes rows least; :math:`\Lambda^{-1/2}Q^\top`, features are
        principal axes; :math:`L^{-1}` with :math:`\Sigma = LL^\top`, feature after feature.
    eps : float, default=0
        Added to every variance. With 0, directions without variance have the code 0.

    Attributes
    ----------
    mean_ : (n_features,) array
    whitening_ : (n_features, n_features) array, J
    energy_ : WhiteCodeEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Whitener
    >>> X = np.random.default_rng(0).normal(size=(50, 2)) @ [[2.0, 1.0], [0.0, 1.0]]
    >>> np.allclose(np.cov(Whitener().fit_transform(X).T, ddof=0), np.eye(2))
    True
    """

    traits = Traits(space={"method": settings.Choice("zca", "pca")})
    _accept_sparse: ClassVar[bool | str] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions({"zca", "pca", "cholesky"})],
        "eps": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self, method: str = "zca", *, eps: float = 0.0, device: Any = None, callbacks: Any = None
    ) -> None:
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        solver = Whitening(self.method, self.eps)
        return Plan(WhiteCodeEnergy(X.shape[1]), Naive(latent="minimise"), solver)

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_

    mean_ = Learned(lambda model: model.energy_.b)
    whitening_ = Learned(lambda model: model.energy_.J)
