r"""The mean and covariance of a cloud by several estimates, for estimators that measure by them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.covariance import OAS, LedoitWolf, MinCovDet
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn import NLL
from groundstate.learn.solvers.latent.moments import GivenMoments
from groundstate.models.base import Plan

F64 = NDArray[np.float64]
ESTIMATES = ("empirical", "ledoit_wolf", "oas", "mcd")
RIDGE = 1e-6  # of the mean variance, where a covariance is singular


@dataclass(frozen=True)
class Cloud:
    """Location ``(d,)``, covariance ``(d, d)``, and what else the estimate found."""

    location: F64
    covariance: F64
    found: dict[str, Any] = field(default_factory=dict)

    def plan(self, d: int) -> Plan:
        """One Gaussian with these moments."""
        solver = GivenMoments(
            torch.from_numpy(self.location), torch.from_numpy(definite(self.covariance))
        )
        return Plan(GaussianMixtureEnergy(1, d, reg_covar=0.0), NLL(), solver)


def cloud(
    X: Tensor,
    weight: Tensor | None,
    estimate: str = "empirical",
    *,
    assume_centered: bool = False,
    support_fraction: float | None = None,
    random_state: Any = None,
) -> Cloud:
    """Estimate a mean and a covariance (divided by n); a weight is a number of copies.

    "empirical" takes any weights; the others, which are scikit-learn's, whole ones. The order of the
    rows does not matter.
    """
    x = X.detach().double().cpu().numpy()
    w = np.ones(len(x)) if weight is None else weight.detach().double().cpu().numpy()
    if not w.sum() > 0:
        raise ValueError("the weights sum to zero; at least one row needs a positive weight")
    if estimate == "empirical":
        mean = np.zeros(x.shape[1]) if assume_centered else w @ x / w.sum()
        gap = x - mean
        return Cloud(mean, (gap * w[:, None]).T @ gap / w.sum())
    if not np.array_equal(w, np.round(w)):
        raise ValueError(
            f"cov={estimate!r} counts rows, so that weights must be whole numbers; use "
            "cov='empirical' for others"
        )
    order = np.argsort(row_hash(x), kind="stable")  # the same draws for rows in any order
    rows = np.repeat(x[order], w[order].astype(np.int64), axis=0)
    unit = 1.0
    if estimate == "mcd":
        # scikit-learn takes a covariance below 1e-8 for zero; a power of two changes no digit
        spread = max(float(rows.std(0).max()), 1e-9 * float(np.abs(rows).max()))
        unit = 2.0 ** math.floor(math.log2(spread)) if spread > 0 else 1.0
        rows = rows / unit
        seed = int(Key.of(random_state).fold("subsets").low % 2**32)
        made: Any = MinCovDet(
            assume_centered=assume_centered, support_fraction=support_fraction, random_state=seed
        )
    else:
        made = (LedoitWolf if estimate == "ledoit_wolf" else OAS)(assume_centered=assume_centered)
    with warnings.catch_warnings():  # a flat cloud is measured with a little on its diagonal
        warnings.filterwarnings("ignore", "The covariance matrix associated")
        warnings.filterwarnings("ignore", "Determinant has increased")
        fitted = made.fit(rows)
    found = {}
    if estimate == "mcd":
        first = np.concatenate([[0], np.cumsum(w[order]).astype(np.int64)])[:-1]
        inside = np.zeros(len(x), dtype=bool)
        held = w[order] > 0
        inside[order[held]] = fitted.support_[first[held]]
        found = {"support_": inside, "raw_location_": unit * fitted.raw_location_,
                 "raw_covariance_": unit**2 * fitted.raw_covariance_}  # fmt: skip
    else:
        found = {"shrinkage_": float(fitted.shrinkage_)}
    location, covariance = (np.asarray(v, float) for v in (fitted.location_, fitted.covariance_))
    return Cloud(unit * location, unit**2 * covariance, found)


def definite(S: F64) -> F64:
    """S, with a little on its diagonal where it is singular."""
    size = max(float(np.trace(S)) / len(S), np.finfo(float).tiny * 1e20)
    try:
        L = np.linalg.cholesky(S)
        if (np.diagonal(L) ** 2).min() > 1e-13 * size:
            return S
    except np.linalg.LinAlgError:
        pass
    return S + RIDGE * size * np.eye(len(S))
