r"""ID3 and C4.5: questions by information gain, one branch per answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import beta

from groundstate.energy.trees.branching import Branch, BranchingEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.passes import at_once
from groundstate.math.info.entropy import entropy
from groundstate.math.info.mutual_information import mutual_information
from groundstate.registry import solvers

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def upper_limit(errors: float, n: float, cf: float = 0.25) -> float:
    r"""The error rate p at which ``errors`` or fewer of n have probability ``cf`` (exact binomial).

    Examples
    --------
    >>> [round(upper_limit(*case), 6) for case in ((0, 6), (0, 9), (0, 1), (1, 16))]
    [0.206299, 0.142756, 0.75, 0.159611]
    """
    if n <= 0:
        return 0.0
    return 1.0 if errors >= n else float(beta.ppf(1 - cf, errors + 1, n - errors))


@solvers.register(formula=r"\max\ IG(\text{attribute})\ \text{or}\ IG/SplitInfo",
                  make=lambda energy: GrowBranches())  # fmt: skip
@dataclass(frozen=True)
class GrowBranches:
    r"""Grow a tree with one branch per answer.

    Parameters
    ----------
    ratio : choose by gain ratio among attributes of at least average gain (C4.5) instead of by
        gain (ID3)
    categories : (d,) number of values of each column, 0 for numbers, which are cut at a threshold
    min_leaf : least weight of at least two answers
    costs : (d,) price of asking; the choice is then by :math:`IG^2/\text{cost}`
    cf : confidence of pessimistic pruning; None does not prune
    """

    ratio: bool = True
    categories: tuple[int, ...] | None = None
    min_leaf: float = 2.0
    costs: tuple[float, ...] | None = None
    cf: float | None = 0.25

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, BranchingEnergy):
            return "it grows the tree of a branching energy"
        if not isinstance(problem.rule, SoftMin | Naive):
            return "leaves minimise the summed energy: use SoftMin or Naive"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None:
            return "it has no penalty; prune with cf="
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy: Any = problem.energy
        weight = problem.sample_weight
        X = problem.resident["x"].double().cpu().numpy()
        w = np.ones(len(X)) if weight is None else weight.double().cpu().numpy()
        rows = np.flatnonzero(w)
        build = _Builder(self, X, problem.resident["y"].cpu().numpy(), energy.k)
        with at_once(problem, "GrowBranches", "grown") as history:
            root = build.grow(rows, w[rows], frozenset(range(X.shape[1])), None)
            if self.cf is not None:
                build.prune(root, rows, w[rows])
            energy.set(root)
        return history


@dataclass
class _Question:
    attribute: int
    threshold: float
    gain: float
    info: float  # entropy of the answers
    answer: I64  # (rows,) −1: missing


class _Builder:
    def __init__(self, solver: GrowBranches, X: F64, y: I64, k: int) -> None:
        self.solver, self.X, self.y, self.k = solver, X, y, k
        sizes = solver.categories
        self.sizes = np.zeros(X.shape[1], np.int64) if sizes is None else np.array(sizes)

    def counts(self, rows: I64, w: F64) -> F64:
        return np.bincount(self.y[rows], w, self.k).astype(np.float64)

    def grow(self, rows: I64, w: F64, left: frozenset[int], parent: Branch | None) -> Branch:
        """The branch of these rows; one without rows says what its parent expects."""
        node = Branch(self.counts(rows, w) if len(rows) or parent is None else parent.counts.copy())
        small = self.solver.ratio and w.sum() < 2 * self.solver.min_leaf
        if not len(rows) or (node.counts > 0).sum() < 2 or not left or small:
            return node
        best = self._choose(rows, w, left)
        if best is None:
            return node
        node.attribute, node.threshold = best.attribute, best.threshold
        answers = 2 if not np.isnan(best.threshold) else int(self.sizes[best.attribute])
        known = best.answer >= 0
        mass = np.bincount(best.answer[known], w[known], answers)
        node.shares = mass / mass.sum()
        asked = left if not np.isnan(best.threshold) else left - {best.attribute}
        for c in range(answers):
            own = best.answer == c
            share = np.where(own, 1.0, np.where(known, 0.0, node.shares[c])) * w
            there = share > 0
            node.children.append(self.grow(rows[there], share[there], asked, node))
        return node

    def _choose(self, rows: I64, w: F64, left: frozenset[int]) -> _Question | None:
        found = [q for j in sorted(left) if (q := self._question(j, rows, w)) is not None]
        if not found:
            return None
        if not self.solver.ratio:
            return _first_best(found, [q.gain for q in found])
        if self.solver.costs is not None:
            return _first_best(found, [q.gain**2 / self.solver.costs[q.attribute] for q in found])
        average = float(np.mean([q.gain for q in found])) - 1e-12
        good = [q for q in found if q.gain >= average]
        return _first_best(good, [q.gain / q.info if q.info > 0 else 0.0 for q in good])

    def _question(self, j: int, rows: I64, w: F64) -> _Question | None:
        values = self.X[rows, j]
        known = ~np.isnan(values)
        if not known.any():
            return None
        threshold = np.nan
        if self.sizes[j]:
            answer = np.where(known, np.nan_to_num(values), -1).astype(np.int64)
            answers = int(self.sizes[j])
        else:
            threshold = self._threshold(values[known], self.y[rows[known]], w[known])
            if np.isnan(threshold):
                return None
            answer = np.where(known, values > threshold, -1).astype(np.int64)
            answers = 2
        table = np.zeros((answers, self.k))
        np.add.at(table, (answer[known], self.y[rows[known]]), w[known])
        mass = table.sum(1)
        if self.solver.ratio and (mass >= self.solver.min_leaf).sum() < 2:
            return None
        share = float(w[known].sum() / w.sum())
        gain = share * mutual_information(table, base=2)
        if gain <= 1e-12:
            return None
        gone = w[~known].sum()
        info = entropy(np.r_[mass, gone] if gone > 0 else mass, base=2)
        return _Question(j, threshold, float(gain), info, answer)

    def _threshold(self, values: F64, y: I64, w: F64) -> float:
        """The cut of largest gain, half way between two values; NaN where there is none."""
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        sums = np.zeros((len(values), self.k))
        sums[np.arange(len(values)), y[order]] = w[order]
        below = np.cumsum(sums, 0)
        place = np.flatnonzero(ordered[1:] > ordered[:-1])
        left, right = below[place], below[-1] - below[place]
        least = self.solver.min_leaf * (1 - 1e-12)
        fits = (left.sum(1) >= least) & (right.sum(1) >= least)
        if not fits.any():
            return float("nan")
        score = np.where(fits, _impure(left) + _impure(right), np.inf)
        at = place[int(np.argmin(np.round(score, 10)))]
        middle = 0.5 * ordered[at] + 0.5 * ordered[at + 1]
        return float(middle if middle < ordered[at + 1] else ordered[at])

    # --- pruning -------------------------------------------------------------------------

    def prune(self, node: Branch, rows: I64, w: F64) -> float:
        """Prune bottom up; the predicted errors of what is left."""
        cf = self.solver.cf
        assert cf is not None
        n = float(w.sum())
        leaf = n * upper_limit(n - float(self.counts(rows, w).max(initial=0.0)), n, cf)
        if node.is_leaf:
            return n * upper_limit(self._wrong(node, rows, w), n, cf)
        parts = self._parts(node, rows, w)
        tree = sum(self.prune(child, *part) for child, part in zip(node.children, parts))
        largest = node.children[int(np.argmax(node.shares))]
        raised = np.inf if largest.is_leaf else self._predicted(largest, rows, w)
        if leaf <= tree + 1e-9 and leaf <= raised + 1e-9:
            node.make_leaf()
            return leaf
        if raised <= tree + 1e-9:
            node.attribute, node.threshold = largest.attribute, largest.threshold
            node.children, node.shares = largest.children, largest.shares
            self._recount(node, rows, w)
            return float(raised)
        return float(tree)

    def _parts(self, node: Branch, rows: I64, w: F64) -> list[tuple[I64, F64]]:
        answer = node.answers(self.X[rows, node.attribute])
        out = []
        for c in range(len(node.children)):
            share = np.where(answer == c, 1.0, np.where(answer < 0, node.shares[c], 0.0)) * w
            out.append((rows[share > 0], share[share > 0]))
        return out

    def _predicted(self, node: Branch, rows: I64, w: F64) -> float:
        """Predicted errors of a branch on given rows, as it is."""
        n = float(w.sum())
        if node.is_leaf:
            return n * upper_limit(self._wrong(node, rows, w), n, self.solver.cf or 0.25)
        parts = self._parts(node, rows, w)
        return sum(self._predicted(child, *part) for child, part in zip(node.children, parts))

    def _wrong(self, node: Branch, rows: I64, w: F64) -> float:
        return float(w[self.y[rows] != int(node.counts.argmax())].sum())

    def _recount(self, node: Branch, rows: I64, w: F64) -> None:
        """Class weights of a branch that was moved up, from the rows that now reach it."""
        if len(rows):
            node.counts = self.counts(rows, w)
        if not node.is_leaf:
            for child, part in zip(node.children, self._parts(node, rows, w)):
                self._recount(child, *part)


def _impure(table: F64) -> F64:
    """Weighted entropy of each row of class weights, up to a factor."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(table > 0, table * np.log(table), 0.0).sum(1)
    total = table.sum(1)
    return total * np.log(np.maximum(total, 1e-300)) - logs


def _first_best(found: list[_Question], score: list[float]) -> _Question:
    """The first of those that share the highest score."""
    top = max(score)
    return next(q for q, s in zip(found, score) if s >= top - 1e-12)
