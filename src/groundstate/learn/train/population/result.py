"""What a population learned: its members, their scores, the best one, all of them as a committee."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from groundstate.compute.display import Displayed, Table, span
from groundstate.energy.base import Energy
from groundstate.energy.compose.committee import CommitteeClassEnergy, CommitteeMeanEnergy
from groundstate.energy.spaces import Finite, Real
from groundstate.errors import DataError, Unsupported
from groundstate.learn.base import History


@dataclass(frozen=True)
class LearnedMember(Displayed):
    """One member, an ordinary model of its own.

    Attributes
    ----------
    energy : the learned energy
    history : epoch objectives, and why it stopped
    settings : what was its own: the row of the grid, and the seed
    score : held-out loss where there were held-out rows, else the last objective; low is good
    """

    energy: Energy
    history: History
    settings: dict[str, Any]
    score: float

    @property
    def params(self) -> dict[str, Tensor]:
        """θ by name."""
        return {name: p.detach() for name, p in self.energy.named_parameters()}

    @property
    def reason(self) -> str:
        """Why it stopped."""
        return self.history.stop

    @property
    def failed(self) -> bool:
        """Whether its loss was no longer finite."""
        return not math.isfinite(self.score)

    def _facts(self) -> dict[str, object]:
        return {**self.settings, "score": self.score, "epochs": self.history.n_iter}


@dataclass(frozen=True)
class PopulationResult(Displayed, Sequence[LearnedMember]):
    """The members in the order of the grid.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import learn_population
    >>> data = {"x": torch.tensor([[-1.0], [1.0]]), "y": torch.tensor([0, 1])}
    >>> result = learn_population(
    ...     lambda generator: LinearEnergy(1, 2), {"lr": [0.01, 1.0]}, data, epochs=5, seed=0)
    >>> result.best().settings["lr"], len(result.as_ensemble().members)
    (1.0, 2)
    """

    members: tuple[LearnedMember, ...]

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, m: Any) -> Any:
        return self.members[m]

    def __iter__(self) -> Iterator[LearnedMember]:
        return iter(self.members)

    @property
    def scores(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The score of every member, infinite where it failed.  # (P,)"""
        return np.array([m.score for m in self.members])

    def best(self) -> LearnedMember:
        """The member of lowest score; the first among equals."""
        scores = self.scores
        if not np.isfinite(scores).any():
            raise DataError(f"every member failed, the first because {self.members[0].reason}")
        found: LearnedMember = self.members[int(np.nanargmin(scores))]
        return found

    def as_ensemble(self, members: Iterable[int] | None = None) -> Energy:
        r"""Members (all that did not fail, or these) as one energy that averages them.

        Classes: :math:`-\log\frac1M\sum_m p_m(y\mid x)`; values: the mean of the predictions.
        """
        chosen = [self.members[i] for i in members] if members is not None else self.members
        kept = [m.energy for m in chosen if not m.failed]
        if not kept:
            raise DataError("there is no member left to average; every one of them failed")
        spaces = kept[0].spaces
        x, y = spaces.get("x"), spaces.get("y")
        committee: CommitteeClassEnergy | CommitteeMeanEnergy
        if isinstance(x, Real) and isinstance(y, Finite):
            committee = CommitteeClassEnergy(math.prod(x.shape), y.n)
        elif isinstance(x, Real) and isinstance(y, Real):
            committee = CommitteeMeanEnergy(math.prod(x.shape), math.prod(y.shape))
        else:
            raise Unsupported(
                f"{type(kept[0]).__name__} has no classes or values y of real rows x to average"
            )
        committee.to(*kept[0].placement())
        for energy in kept:
            committee.add(energy)
        return committee

    def table(self) -> list[dict[str, Any]]:
        """One row per member: its settings, score, epochs and why it stopped."""
        return [
            {**m.settings, "score": m.score, "epochs": m.history.n_iter, "stop": m.reason}
            for m in self.members
        ]

    def mean_by(self, *names: str) -> list[dict[str, Any]]:
        """Mean and standard error of the score of members that agree in these settings, best first.

        ``mean_by("lr")`` after a run over folds and seeds is the curve that chooses ``lr``.
        """
        groups: dict[Any, list[LearnedMember]] = {}
        for m in self.members:
            groups.setdefault(tuple(repr(m.settings.get(n)) for n in names), []).append(m)
        rows = []
        for own in groups.values():
            scores = np.array([m.score for m in own])
            spread = scores.std(ddof=1) / len(own) ** 0.5 if len(own) > 1 else math.nan
            head = {n: own[0].settings.get(n) for n in names}
            rows.append({**head, "score": float(scores.mean()), "se": float(spread), "n": len(own)})
        return sorted(rows, key=lambda r: r["score"])

    def _facts(self) -> dict[str, object]:
        failed = sum(m.failed for m in self.members)
        return {"members": len(self.members), "score": span(self.scores), "failed": failed or None}

    def _table(self) -> Table | None:
        rows = sorted(self.table(), key=lambda row: row["score"])[:5]
        # settings that all members share say nothing about any of them
        differ = [name for name in rows[0] if len({repr(row[name]) for row in rows}) > 1]
        columns = tuple(dict.fromkeys([*differ, "score", "epochs", "stop"]))
        return columns, [tuple(row[name] for name in columns) for row in rows]
