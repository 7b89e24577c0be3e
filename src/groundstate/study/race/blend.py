r"""An ensemble in the race: greedy weights by out-of-fold answers, judged without its own rows.

With the errors :math:`e_{ic}` of configuration c on judged row i, from a fit that had not seen the row,
the mean of squared errors of the weighted mean of answers is :math:`a^\top G a`,
:math:`G = \tfrac1W\sum_i w_i e_i e_i^\top`. Starting from the best configuration, the one that lowers it most
is added again and again, with replacement (Caruana et al. 2004); the best stage is kept. G is a sum over
parts of the rows, so that weights for any choice of parts cost next to nothing: rows of a part are always
answered with weights that the other parts chose. Where log loss chooses, members are added by
:math:`-\tfrac1W\sum_i w_i \log a^\top p_i`, :math:`p_{ic}` the probability of the true class, instead: a member
that is certain and wrong on one row then needs the others beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats

if TYPE_CHECKING:
    from groundstate.study.race.field import Race

ENSEMBLE = "ensemble"
_STEPS = 12  # members that are added, with replacement
_MOST = 8  # configurations that may be members: those of the lowest squared error
_CELLS = 20_000_000  # errors that are held at once
_TINY = 1e-15  # least probability of the true class that counts

Risks = Callable[[Floats, int], Floats]  # of adding each to members with counts, as the k-th


def greedy(G: Floats, steps: int = _STEPS, risks: Risks | None = None) -> Floats:
    """Weights that add up to one and lower :math:`a^T G a`, added one member at a time, ``(M,)``.

    Parameters
    ----------
    G : products of the members' errors
    steps : members that are added
    risks : what to lower instead; G only says then who may be a member

    Examples
    --------
    >>> greedy(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [0.5, 0.5]
    >>> greedy(np.array([[1.0, 1.0], [1.0, 1.5]])).tolist()
    [1.0, 0.0]
    """
    count = np.zeros(len(G))
    best, kept = np.inf, count
    barred = np.zeros(len(G))
    barred[np.argsort(np.diag(G), kind="stable")[_MOST:]] = np.inf
    for step in range(1, steps + 1):
        found = (_squares(G, count, step) if risks is None else risks(count, step)) + barred
        count = count.copy()
        count[int(np.argmin(found))] += 1
        if found.min() < best * (1 - 1e-9):
            best, kept = float(found.min()), count
    return np.asarray(kept / kept.sum())


def _squares(G: Floats, count: Floats, step: int) -> Floats:
    """With m added to the counts c: :math:`(c + 1_m)^T G (c + 1_m) / k^2`, ``(M,)``."""
    return np.asarray((count @ G @ count + 2 * (G @ count) + np.diag(G)) / step**2)


def log_losses(p: Floats, weight: Floats) -> Risks:
    """Mean log losses of weighted means of probabilities of the true class, p ``(M, n)``.

    >>> certain = np.array([[0.9, 0.0], [0.5, 0.5]])
    >>> greedy(np.eye(2), risks=log_losses(certain, np.ones(2))).round(2).tolist()
    [0.0, 1.0]
    >>> mixed = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> greedy(np.eye(2), risks=log_losses(mixed, np.ones(2))).tolist()
    [0.5, 0.5]
    """

    def risks(count: Floats, step: int) -> Floats:
        means = (count @ p + p) / step  # (M, n)
        return np.asarray(-np.log(np.maximum(means, _TINY)) @ weight / max(weight.sum(), _TINY))

    return risks


class Blend:
    """Weights of the ensemble for every choice of parts.

    Parameters
    ----------
    race : with the answers of its configurations
    names : configurations that may be members
    """

    def __init__(self, race: Race, names: Sequence[str]) -> None:
        self.race = race
        able = (n for n in names if race.classes is None or self._table(n) is not None)
        self.names = sorted(able)
        self._logs = race.measure.name == "log_loss"
        self._grams = [self._gram(i) for i in range(len(race.parts))]
        self._known: dict[frozenset[int], Floats] = {}

    def _table(self, name: str) -> Floats | None:
        predicted = self.race.predictions[name]
        return predicted.values if predicted.classes is None else predicted.probability

    def _some(self, part: int) -> NDArray[np.intp]:
        """The rows of a part, an even share of a large one."""
        rows, classes = self.race.parts[part], self.race.classes
        wide = 1 if classes is None else len(classes)
        most = max(1, _CELLS // (wide * max(len(self.names), 1)))
        return rows[:: -(-len(rows) // most)]

    def _gram(self, part: int) -> Floats:
        race, rows = self.race, self._some(part)
        wide = 1 if race.classes is None else len(race.classes)
        truth = race.truth[rows]
        aim = truth if race.classes is None else np.eye(wide)[truth]
        root = np.sqrt(race.weight[rows]).reshape((-1,) + (1,) * (aim.ndim - 1))
        errors = [(root * (np.asarray(self._table(n))[rows] - aim)).ravel() for n in self.names]
        E = np.stack(errors) if errors else np.empty((0, 1))
        share = race.weight[race.parts[part]].sum() / max(race.weight[rows].sum(), 1e-300)
        return np.asarray(share * (E @ E.T))

    def weights(self, parts: frozenset[int]) -> Floats:
        """Weights that these parts of the rows choose; equal ones without rows, ``(M,)``."""
        if parts not in self._known:
            m = len(self.names)
            some = [self._grams[i] for i in sorted(parts)]
            risks = self._by_logs(sorted(parts)) if self._logs and some else None
            found = greedy(np.sum(some, axis=0), risks=risks) if some else np.full(m, 1 / m)
            self._known[parts] = found
        return self._known[parts]

    def _by_logs(self, parts: Sequence[int]) -> Risks:
        rows = np.concatenate([self._some(i) for i in parts])
        truth = self.race.truth[rows]
        tables = [np.asarray(self._table(name)) for name in self.names]
        p = np.stack([table[rows, truth] for table in tables])  # (M, n)
        return log_losses(p, self.race.weight[rows])

    def answers(self, parts: frozenset[int]) -> Prediction:
        """Answers for the rows of these parts, each by weights of the others among them."""
        pieces = []
        for i in sorted(parts):
            rows = self.race.parts[i]
            pieces.append((rows, self._mean(rows, self.weights(parts - {i}))))
        return Prediction.assemble(pieces, len(self.race.rows))

    def _mean(self, rows: Any, weights: Floats) -> Prediction:
        used = [(a, np.asarray(self._table(n))[rows]) for a, n in zip(weights, self.names) if a]
        mean = np.asarray(sum(a * table for a, table in used))
        classes = self.race.predictions[self.names[0]].classes
        if classes is None:
            return Prediction(mean)
        return Prediction(mean.argmax(1), mean, mean, classes)

    def members(self) -> dict[str, float]:
        """Names and weights that all rows together choose."""
        found = self.weights(frozenset(range(len(self.race.parts))))
        return {name: float(a) for name, a in zip(self.names, found) if a}
