r"""Gradient boosting in function space, with any base learner and any loss."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.base import Energy
from groundstate.energy.trees.additive import AdditiveClassEnergy, AdditiveEnergy
from groundstate.energy.trees.additive_losses import AdditiveLoss
from groundstate.energy.trees.nodes import Tree
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.boosting.pieces import Base, MemberBase, TreeBase
from groundstate.registry import solvers

Member = Callable[[Tensor, Tensor, Tensor | None, Key], Energy]
LineSearch = Literal["leaf", "exact", "none"]


@solvers.register(
    formula=r"F \leftarrow F + \nu\gamma h,\quad h \approx -\partial L/\partial F",
    make=lambda energy: GradientBooster(n_members=10),
)
@dataclass(frozen=True)
class GradientBooster:
    r"""Descend in function space, :math:`F \leftarrow F + \nu\gamma h`.

    :math:`F_0 = \arg\min_\gamma\sum_i w_iL(y_i, \gamma)`. In every step h is fitted by weighted least
    squares to the negative gradients :math:`r_i = -\partial L(y_i, F_i)/\partial F_i`, and γ comes
    from a line search: ``"exact"`` finds one :math:`\gamma \ge 0`, ``"leaf"`` the best constant of
    every leaf of a tree (one Newton step for classes), ``"none"`` takes γ = 1.

    Parameters
    ----------
    base : makes what fits h, called once per run with the trees to go on from; trees of depth 3
        by default
    n_members : steps; a step is one h per score
    learning_rate : ν
    line_search : how far to go
    subsample : share of the weight that each step sees, drawn without replacement
    patience : stop when the held-out loss is below none of the last so many by ``tol``; None never
    held : share of the weight that is held out for that
    tol : least improvement
    zero : start at F = 0
    first : fits what F starts from in the place of a constant, ``first(x, y, weight, key) -> Energy``
    continued : go on from what the energy has
    """

    base: Callable[[list[Tree]], Base] = lambda kept: TreeBase(kept=kept)
    n_members: int = 100
    learning_rate: float = 0.1
    line_search: LineSearch = "leaf"
    subsample: float = 1.0
    patience: int | None = None
    held: float = 0.1
    tol: float = 1e-4
    zero: bool = False
    first: Member | None = None
    continued: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, AdditiveEnergy | AdditiveClassEnergy):
            return "it fits the members of an additive energy"
        if isinstance(energy, AdditiveClassEnergy) and not isinstance(rule, SoftMin):
            return "classes are learned by SoftMin"
        if isinstance(energy, AdditiveEnergy) and not isinstance(rule, SoftMin | Naive):
            return f"the contrast of {type(rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        return "it has no penalty" if problem.penalty is not None else None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        return _Fit(self, problem).run()


class _Fit:
    """One run: rows, scores F, what is watched."""

    def __init__(self, solver: GradientBooster, problem: Problem) -> None:
        self.solver, self.problem, self.key = solver, problem, problem.key
        self.energy: Any = problem.energy
        self.x, y = problem.resident["x"], problem.resident["y"].cpu()
        self.y = y[:, 0].double() if y.is_floating_point() else y
        n, given = len(self.x), problem.sample_weight
        self.w = torch.ones(n, dtype=torch.float64) if given is None else given.double().cpu()
        self.line: WeightLine | None = None
        self.held: Tensor | None = None
        if solver.subsample < 1 or solver.patience is not None:
            table = (self.x.cpu().numpy(), self.y.numpy())
            self.line = WeightLine.of(*table, weights=self.w.numpy())
            if solver.patience is not None:
                labels = None if y.is_floating_point() else self.y.numpy()
                key = self.key.fold("validation")
                train, held = self.line.cut(key, solver.held, stratify=labels)
                if train.any() and held.any():
                    self.w, self.held = torch.from_numpy(train), torch.from_numpy(held)
                    self.line = WeightLine.of(*table, weights=train)

    def run(self) -> History:
        solver, energy, start = self.solver, self.energy, time.perf_counter()
        history = History(solver="GradientBooster", stop="max_iter")
        k = energy.k if isinstance(energy, AdditiveClassEnergy) else 0
        outputs = len(energy.b)
        kept = [energy.nodes.tree(t) for t in range(energy.nodes.n_trees)]
        kept = kept if solver.continued and kept[0].column >= 0 else []
        done = (len(kept) + len(energy.members)) // outputs if solver.continued else 0
        if done:
            F = energy.raw(self.x).double().cpu()
        else:
            energy.empty()
            loss: AdditiveLoss = energy.loss
            plain = solver.zero or solver.first is not None
            b = torch.zeros(outputs) if plain else loss.start(self.y, self.w, k)
            energy.b.copy_(b)
            F = b.double().expand(len(self.x), outputs).clone()
            if solver.first is not None:
                with torch.enable_grad():  # it may learn by gradients
                    y = self.problem.resident["y"]
                    w = None if bool((self.w == 1).all()) else self.w.to(self.x)
                    energy.first = solver.first(self.x, y, w, self.key.fold("first"))
                F = energy.starts(self.x).double().cpu()
        base = solver.base(kept)
        base.begin(self.x, self.w)
        with Monitor(self.problem.callbacks, Run(self.problem, history, solver.n_members)) as m:
            for t in range(done, solver.n_members):
                w = self._step(F, base, t, outputs, history)
                history.seconds.append(time.perf_counter() - start)
                stop = self._judge(F, w, history)
                if m.callbacks:
                    self._show(base)
                if m.epoch(history.extra["train"][-1]) or stop:
                    history.converged = stop
                    break
        self._show(base)
        history.n_iter = len(history.extra.get("train", [])) + done
        return history

    def _show(self, base: Any) -> None:
        trees = getattr(base, "trees", None)
        if trees:
            self.energy.nodes.set(trees)

    def _step(self, F: Tensor, base: Base, t: int, outputs: int, history: History) -> Tensor:
        solver, key = self.solver, self.key.fold("member", t)
        self.energy.loss = loss = self.energy.loss.adapted(F, self.y, self.w)
        w = self.w
        if solver.subsample < 1:
            assert self.line is not None
            w = torch.from_numpy(self.line.subsample(key.fold("rows"), solver.subsample))
            self._outside(F, w, history, "outside_before")
        r = loss.residual(F, self.y)  # (n, outputs)
        before = F.clone() if outputs > 1 else F
        for c in range(outputs):
            piece = base.fit(r[:, c].contiguous(), w, key.fold(c))
            gamma = 1.0
            if solver.line_search == "leaf":
                at, n = piece.leaves()
                piece.move(loss.leaves(before, self.y, w, c, at, n))
            elif solver.line_search == "exact":
                gamma = max(0.0, loss.step(F, self.y, w, c, piece.values))
                history.extra.setdefault("gamma", []).append(gamma)
            F[:, c] += solver.learning_rate * gamma * piece.values
            piece.commit(self.energy, solver.learning_rate * gamma, c)
        if solver.subsample < 1:
            self._outside(F, w, history, "outside")
        return w

    def _mean(self, F: Tensor, w: Tensor) -> float:
        value = self.energy.loss.value(F, self.y)
        return float(torch.dot(w, value) / w.sum())

    def _outside(self, F: Tensor, w: Tensor, history: History, name: str) -> None:
        rest = (self.w - w).clamp_min(0.0)
        if float(rest.sum()) > 0:
            history.extra.setdefault(name, []).append(self._mean(F, rest))

    def _judge(self, F: Tensor, w: Tensor, history: History) -> bool:
        history.extra.setdefault("train", []).append(self._mean(F, w))
        if self.solver.patience is None or self.held is None:
            return False
        seen = history.extra.setdefault("validation", [])
        value = self._mean(F, self.held)
        recent = seen[-self.solver.patience :]
        seen.append(value)
        if len(recent) < self.solver.patience or any(value + self.solver.tol < v for v in recent):
            return False
        history.stop = f"no improvement in {self.solver.patience} steps"
        return True


__all__ = ["GradientBooster", "LineSearch", "MemberBase", "TreeBase"]
