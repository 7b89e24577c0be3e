r"""Counts of the other classes: one pass of sums, then smoothed shares."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.classes.naive_bayes.complement import ComplementClassEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.solvers.passes import at_once


@dataclass(frozen=True)
class Complement:
    r"""Set :math:`w_y = \arg\min_w -\sum_{i: y_i \ne y}\sum_j x_{ij}\log p_j`, :math:`w = -\log p`, with p
    smoothed: how the words are shared out in all rows that are not of the class.

    Parameters
    ----------
    chunk_rows : rows of one pass over resident data
    """

    chunk_rows: int = 2**18

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, ComplementClassEnergy):
            return "it is for complements of classes"
        return None if problem.penalty is None else "smoothing is its only penalty"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, ComplementClassEnergy)
        total: dict[str, Tensor] = {}
        with at_once(problem, "Complement") as history:
            for batch, weight in problem.chunks(self.chunk_rows):
                for k, v in energy.stats(weight, **batch).items():
                    total[k] = total[k] + v if k in total else v
            energy.from_stats(current().sum_dict(total))
        return history
