r"""An ensemble in the race: greedy weights by out-of-fold answers, judged without its own rows.

With the errors :math:`e_{ic}` of configuration c on judged row i, from a fit that had not seen the row,
the mean of squared errors of the weighted mean of answers is :math:`a^\top G a`,
:math:`G = \tfrac1W\sum_i w_i e_i e_i^\top`. Starting from the best configuration, the one that lowers it most
is added again and again, with replacement (Caruana et al. 2004); the best stage is kept. G is a sum over
parts of the rows, so that weights for any choice of parts cost next to nothing: rows of a part are always
answered with weights that the other parts chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats

if TYPE_CHECKING:
    from groundstate.study.race.field import Race

ENSEMBLE = "ensemble"
_STEPS = 12  # members that are added, with replacement
_MOST = 8  # configurations that may be members: those of the lowest squared error
_CELLS = 20_000_000  # errors that are held at once


def greedy(G: Floats, steps: int = _STEPS) -> Floats:
    """Weights that add up to one and lower :math:`a^T G a`, added one member at a time, ``(M,)``.

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
        # adding m to the members with counts c: (c + 1_m)' G (c + 1_m) / step²
        risks = (count @ G @ count + 2 * (G @ count) + np.diag(G)) / step**2 + barred
        count = count.copy()
        count[int(np.argmin(risks))] += 1
        if risks.min() < best * (1 - 1e-9):
            best, kept = float(risks.min()), count
    return np.asarray(kept / kept.sum())


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
        self._grams = [self._gram(i) for i in range(len(race.parts))]
        self._known: dict[frozenset[int], Floats] = {}

    def _table(self, name: str) -> Floats | None:
        predicted = self.race.predictions[name]
        return predicted.values if predicted.classes is None else predicted.probability

    def _gram(self, part: int) -> Floats:
        race, rows = self.race, self.race.parts[part]
        wide = 1 if race.classes is None else len(race.classes)
        most = max(1, _CELLS // (wide * max(len(self.names), 1)))
        rows = rows[:: -(-len(rows) // most)]  # an even share of a large part
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
            found = greedy(np.sum(some, axis=0)) if some else np.full(m, 1 / m)
            self._known[parts] = found
        return self._known[parts]

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
