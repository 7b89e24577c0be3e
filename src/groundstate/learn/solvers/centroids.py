r"""Means or medians of the classes, drawn towards the middle of all rows where that is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.classes.centroids import CentroidClassEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.solvers.passes import at_once

TINY = 1e-300


@dataclass(frozen=True)
class Centroids:
    r"""Set :math:`\mu_y = \arg\min_\mu \sum_{i: y_i = y} w_i\,\|x_i - \mu\|_p^p`, p = 2 or 1, then shrink.

    With a threshold δ, :math:`\mu_y = \bar x + m_y s\,\mathrm{soft}_\delta\bigl((\mu_y - \bar x)/(m_y s)
    \bigr)`, where :math:`m_y^2 = 1/n_y - 1/n` and s is the spread within classes plus its median
    (Tibshirani and others, 2002): a feature in which no class differs by much decides nothing.

    Parameters
    ----------
    threshold : δ, in standard errors of a centroid; None shrinks nothing
    """

    threshold: float | None = None

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, CentroidClassEnergy):
            return "it is for centroids of classes"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        return None if problem.penalty is None else "it has no penalty but its threshold"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy, data = problem.energy, problem.resident
        assert isinstance(energy, CentroidClassEnergy)
        with at_once(problem, "Centroids") as history:
            self._place(energy, data["x"], data["y"], problem.sample_weight)
        return history

    def _place(
        self, energy: CentroidClassEnergy, x: Tensor, y: Tensor, weight: Tensor | None
    ) -> None:
        sums = _arrays(energy.sums_of(x, y, weight))
        n = sums["n"][:, None]
        total = n.sum()
        middle = sums["x"].sum(0) / total
        mu = np.where(n > 0, sums["x"] / np.maximum(n, TINY), middle)  # a class without weight
        if energy.metric == "manhattan":
            mu = _medians(x, y, weight, mu)
        origin = torch.from_numpy(mu).to(x.device)
        about = _arrays(energy.sums_of(x, y, weight, origin, squares=True))["xx"].sum(0)
        free = total - energy.k  # one row a class says nothing about the spread
        spread = np.sqrt(about / free) if free > 0 else np.zeros_like(about)
        if not spread.any():
            _check_different(x if weight is None else x[weight > 0])
        unit = np.sqrt(np.maximum(1 / np.maximum(n, TINY) - 1 / total, 0.0))
        unit = unit * (spread + np.median(spread))  # (k, d)
        deviation = np.where(unit > 0, (mu - middle) / np.maximum(unit, TINY), 0.0)
        if self.threshold:
            left = np.maximum(np.abs(deviation) - self.threshold, 0.0)
            deviation = np.sign(deviation) * left
            mu = np.where(unit > 0, middle + unit * deviation, mu)
        energy.place(*(torch.from_numpy(v) for v in (sums["n"], mu, spread, deviation)))


def _arrays(sums: dict[str, Tensor]) -> dict[str, NDArray[np.float64]]:
    return {name: value.cpu().numpy() for name, value in sums.items()}


def _check_different(x: Tensor) -> None:
    if bool((x == x[0]).all()):
        raise DataError(
            "All features have zero variance: every row is the same, so no distance tells the "
            "classes apart; pass rows that differ"
        )


def _medians(
    x: Tensor, y: Tensor, weight: Tensor | None, otherwise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Medians of every class and feature, ``(k, d)``."""
    w = torch.ones(len(x), device=x.device) if weight is None else weight
    out = otherwise.copy()
    for c in range(len(out)):
        own = (y == c) & (w > 0)
        if bool(own.any()):
            out[c] = _median(x[own].double(), w[own].double()).cpu().numpy()
    return out


def _median(x: Tensor, w: Tensor) -> Tensor:
    """The middle of the line on which row i is as long as its weight; halfway between two rows."""
    values, order = x.sort(0)
    upto = w[order].cumsum(0)
    half = 0.5 * upto[-1]
    at = [(upto < half * (1 + side)).sum(0, keepdim=True) for side in (-1e-12, 1e-12)]
    low, high = (values.gather(0, a.clamp_max(len(x) - 1))[0] for a in at)
    return 0.5 * (low + high)
