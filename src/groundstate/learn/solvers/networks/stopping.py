r"""When the training of an estimator's network ends: at the objective, or the score of held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.compute.foreign.torch import foreach_norm
from groundstate.energy.base import Energy
from groundstate.learn.base import Batch
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.callbacks.best import Best, as_answered
from groundstate.learn.penalties.norms import penalised
from groundstate.learn.solvers.networks.descent import Descent
from groundstate.learn.stops import Patience

Score = Callable[[Energy, Batch, Tensor | None], float]
Rates = Literal["constant", "invscaling", "adaptive"]


class EstimatorStopping(Callback):
    r"""Stop when the epoch's objective, or the score of held-out rows, no longer improves by ``tol``.

    More than ``patience`` epochs without an improvement end the run; with ``rates="adaptive"`` they
    divide the rate by five until it is :math:`10^{-6}`. ``"invscaling"`` sets
    :math:`\eta_t = \eta_0/(t+1)^p` after every epoch, t counting rows. The energy and the state of the
    rule with the best score come back at the end; where an ``EMA`` leaves its average, that is scored.

    Parameters
    ----------
    tol, patience : as above; ``patience=inf`` runs all epochs
    score : of held-out rows, high is good; None watches the objective
    held_out, weight : those rows
    descent : the optimiser whose rate moves
    rates, power : how it moves
    rows : weight of the rows of an epoch
    seen : rows seen by earlier runs
    """

    def __init__(
        self,
        tol: float,
        patience: float,
        score: Score | None = None,
        held_out: Batch | None = None,
        weight: Tensor | None = None,
        *,
        descent: Descent | None = None,
        rates: Rates = "constant",
        power: float = 0.5,
        rows: float = 1.0,
        seen: float = 0.0,
    ) -> None:
        self.tol, self.patience = tol, patience
        self.score, self.held_out, self.weight = score, held_out, weight
        self.descent, self.rates, self.power = descent, rates, power
        self.rows, self.seen = rows, seen

    def on_begin(self, run: Run) -> None:
        self.stop = Patience(tol=self.tol, patience=self.patience + 1, inclusive=True)
        self.first = 0.0 if self.descent is None else self.descent.rate
        self.kept = Best()
        run.keeps_losses = True

    @property
    def watches(self) -> bool:
        """Whether an epoch can be the last."""
        return self.score is not None or self.patience < math.inf

    def reported(self, run: Run) -> float:
        """The loss of the epoch."""
        return run.objective

    def on_epoch(self, run: Run) -> bool:
        loss = self.reported(run)
        if self.score is None:
            done = self.watches and bool(self.stop(loss)[0])
        else:
            with as_answered(run):
                value = self._score(run)
                run.history.extra.setdefault("validation", []).append(value)
                done = bool(self.stop(-value)[0])
                if self.stop.better[0]:
                    self.kept.keep(run)
        self.seen += self.rows
        if self.rates == "invscaling" and self.descent is not None:
            self.descent.move(self.first / (self.seen + 1) ** self.power)
        return done and self._stops(run)

    def _score(self, run: Run) -> float:
        assert self.score is not None and self.held_out is not None
        was = run.energy.training
        run.energy.eval()
        with torch.no_grad():
            value = self.score(run.energy, self.held_out, self.weight)
        run.energy.train(was)
        return value if math.isfinite(value) else -math.inf

    def _stops(self, run: Run) -> bool:
        rate = None if self.descent is None else self.descent.rate
        if self.rates == "adaptive" and rate is not None and rate > 1e-6:
            assert self.descent is not None
            self.descent.move(rate / 5)
            self.stop.stale[:] = 0
            return False
        what = "objective" if self.score is None else "score of the held-out rows"
        run.history.stop = f"the {what} did not improve by tol={self.tol} in {self.patience} epochs"
        run.history.converged = True
        return True

    def on_end(self, run: Run) -> None:
        self.kept.put_back(run)
        run.restored = bool(self.kept)  # with the average in it

    def state(self) -> dict[str, Any]:
        rate = None if self.descent is None else self.descent.rate
        best, stale = float(self.stop.best[0]), int(self.stop.stale[0])
        return {"rest": [best, stale, self.first, self.seen, rate], **self.kept.state()}

    def load(self, state: dict[str, Any]) -> None:
        best, stale, self.first, self.seen, rate = state["rest"]
        self.stop.load([best, stale])
        if self.descent is not None:
            self.descent.rate = rate
        self.kept.load(state)


class MeanLossStopping(EstimatorStopping):
    r"""`EstimatorStopping` for K targets: the loss of an epoch is the mean over targets plus the penalty.

    The steps descend the sum over targets, :math:`J = \sum_k L_k + \Omega`; scikit-learn reports and
    watches :math:`\tfrac1K\sum_k L_k + \Omega = (J - \Omega)/K + \Omega`, each step at the weights
    before it.

    Parameters
    ----------
    targets : K
    size : rows of a step, None for all
    """

    def __init__(self, *args: Any, targets: int, size: float | None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.targets, self.size = targets, size

    @property
    def watches(self) -> bool:
        return True

    def on_begin(self, run: Run) -> None:
        super().on_begin(run)
        run.keeps_losses = False  # its own are others
        penalty = run.problem.penalty
        self.strength = float(getattr(penalty, "strength", 0.0)) / self.rows
        self.weights = [getattr(o, leaf) for _, o, leaf in penalised(run.energy)]
        self.pulls = [self._pull()]

    @torch.no_grad()
    def _pull(self) -> Tensor:
        squares = torch.stack(foreach_norm(self.weights)).square()
        return 0.5 * self.strength * squares.sum()

    def on_step(self, run: Run) -> None:
        self.pulls.append(self._pull())

    def reported(self, run: Run) -> float:
        before = torch.stack(self.pulls[:-1]).double().cpu()
        self.pulls = self.pulls[-1:]
        parts = torch.full_like(before, self.size or self.rows)
        parts[-1] = self.rows - float(parts[:-1].sum())  # the last step takes what is left
        pull = float(before @ parts) / self.rows
        loss = (run.objective - pull) / self.targets + pull
        run.history.extra.setdefault("loss", []).append(loss)
        return loss

    def state(self) -> dict[str, Any]:
        return {**super().state(), "pulls": list(self.pulls)}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.pulls = [p.to(self.weights[0]) for p in state["pulls"]]
