r"""Regret: the price of not having known θ* from the start."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.learn.callbacks.base import Callback, Run
from groundstate.learn.callbacks.held_out import evaluating

Hindsight = Literal["best", "final"]


class Regret(Callback):
    r"""The regret of an online run, :math:`R_T = \sum_{t\le T} [f_t(\theta_{t-1}) - f_t(\theta^*)]`.

    The loss of a step is taken before its update. :math:`\theta^*` is the best fixed parameter in
    hindsight, found by L-BFGS on all batches seen from the final θ (``"best"``), or the final θ
    itself (``"final"``). On convex losses, steps that fall as :math:`1/\sqrt t` have
    :math:`R_T = O(\sqrt T)`: a slope of ½ in ``slope()``. The batches are kept until the end.

    Parameters
    ----------
    hindsight : "best" or "final"
    max_iter : int, default=200
        Iterations of the search for the best.

    Attributes
    ----------
    values : Tensor (T,), the regret after every step
    comparator : dict of tensors, θ* by name

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> g = torch.Generator().manual_seed(0)
    >>> data = {"x": torch.randn(64, 2, generator=g), "y": torch.arange(64) % 2}
    >>> regret = Regret()
    >>> solver = Stochastic(batch_size=8, max_epochs=2, tol=None)
    >>> _ = fit(LinearEnergy(2, 2), data, SoftMin(), solver, callbacks=[regret], random_state=0)
    >>> regret.values.shape, bool(regret.values[-1] > 0)
    (torch.Size([16]), True)
    """

    def __init__(self, hindsight: Hindsight = "best", max_iter: int = 200) -> None:
        if hindsight not in ("best", "final"):
            raise ValueError(f"hindsight must be 'best' or 'final', got {hindsight!r}")
        self.hindsight, self.max_iter = hindsight, max_iter

    def on_begin(self, run: Run) -> None:
        self._run = run
        self._losses: list[Tensor] = []
        self._batches: list[tuple[Mapping[str, Tensor], Tensor | None]] = []
        self.values = torch.zeros(0)
        self.comparator: dict[str, Tensor] = {}

    def on_step(self, run: Run) -> None:
        if run.loss is None or run.batch is None:
            raise ValueError("Regret needs a solver that reports the loss and rows of its steps")
        # the penalty is part of the step's objective but not of f_t
        self._losses.append(self._loss(run.batch, run.weight) if run.problem.penalty else run.loss)
        self._batches.append((run.batch, run.weight))

    def _loss(self, batch: Mapping[str, Tensor], weight: Tensor | None) -> Tensor:
        with torch.no_grad():
            return self._objective(batch, weight)

    def _objective(self, batch: Mapping[str, Tensor], weight: Tensor | None) -> Tensor:
        total = 1.0 if weight is None else float(weight.sum())
        return self._run.problem.rule.mean(self._run.energy, batch, weight, total)[0]

    def on_end(self, run: Run) -> None:
        if not self._losses:
            return
        theta = {n: p for n, p in run.energy.named_parameters() if p.requires_grad}
        final = {n: p.detach().clone() for n, p in theta.items()}
        with evaluating(run.energy, run.problem.rule):
            all_losses = self._all_losses()
            if self.hindsight == "best":
                self._descend(list(theta.values()), all_losses)
            with torch.no_grad():
                best = all_losses().double()
        self.comparator = {n: p.detach().clone() for n, p in theta.items()}
        with torch.no_grad():
            for name, p in theta.items():
                p.copy_(final[name])
        self.values = (torch.stack(self._losses).double() - best).cumsum(0).cpu()

    def _all_losses(self) -> Callable[[], Tensor]:
        """The losses of all batches ``(T,)`` at the present θ, in one pass where rows are alone."""
        rule, energy, batches = self._run.problem.rule, self._run.energy, self._batches
        sizes = [len(next(iter(batch.values()))) for batch, _ in batches]
        joined = {k: torch.cat([batch[k] for batch, _ in batches]) for k in batches[0][0]}
        device = next(iter(joined.values())).device
        owner = torch.repeat_interleave(torch.tensor(sizes)).to(device)  # (rows,)

        def whole() -> Tensor:
            rows: Tensor = rule(energy, joined).loss
            shares = [
                rows.new_full((n,), 1 / n) if w is None else w / w.sum()
                for n, (_, w) in zip(sizes, batches, strict=True)
            ]
            return rows.new_zeros(len(sizes)).index_add(0, owner, rows * torch.cat(shares))

        def one_by_one() -> Tensor:
            return torch.stack([self._objective(b, w) for b, w in batches])

        with torch.no_grad():
            first = self._objective(*batches[0])
            alone = bool(torch.isclose(whole()[0], first, rtol=1e-4, atol=1e-6))
        return whole if alone else one_by_one  # a rule may compare the rows of a batch

    def _descend(self, theta: list[torch.nn.Parameter], losses: Callable[[], Tensor]) -> None:
        lbfgs = torch.optim.LBFGS(
            theta, max_iter=self.max_iter, line_search_fn="strong_wolfe", tolerance_grad=1e-9
        )

        def closure() -> float:
            lbfgs.zero_grad()
            mean = losses().mean()
            mean.backward()
            return float(mean.detach())

        with torch.enable_grad():
            lbfgs.step(closure)
        lbfgs.zero_grad(set_to_none=True)

    def slope(self, start: float = 0.1) -> float:
        """Slope of log regret over log steps, from the fraction ``start`` of the run on."""
        t = torch.arange(1, len(self.values) + 1, dtype=torch.float64)
        used = (t >= max(2.0, start * len(t))) & (self.values > 0)
        if int(used.sum()) < 2:
            return math.nan
        x, y = t[used].log(), self.values[used].log()
        x = x - x.mean()
        return float((x @ (y - y.mean())) / (x @ x))

    def state(self) -> dict[str, Any]:
        return {
            "losses": torch.stack(self._losses) if self._losses else torch.zeros(0),
            "batches": [[dict(batch), weight] for batch, weight in self._batches],
        }

    def load(self, state: dict[str, Any]) -> None:
        device = self._run.energy.placement()[0]
        self._losses = list(state["losses"].to(device).unbind())
        self._batches = [
            ({k: v.to(device) for k, v in batch.items()}, None if w is None else w.to(device))
            for batch, w in state["batches"]
        ]
