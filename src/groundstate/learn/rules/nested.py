r"""Learning inside learning: a few steps on a task, differentiated through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms

Theta = dict[str, Tensor]


class _Loss(nn.Module):
    """The mean loss of a rule, as a function of the energy's parameters."""

    def __init__(self, energy: Energy, rule: Rule) -> None:
        super().__init__()
        self.energy, self.rule = energy, rule

    def forward(self, batch: Batch) -> Tensor:
        return self.rule.mean(self.energy, batch)[0]

    def at(self, theta: Theta, batch: Batch) -> Tensor:
        named = {f"energy.{name}": value for name, value in theta.items()}
        value: Tensor = torch.func.functional_call(self, named, (batch,))
        return value


def adapt(
    energy: Energy,
    rule: Rule,
    batch: Batch,
    *,
    steps: int = 1,
    lr: float | Tensor = 0.01,
    first_order: bool = False,
    theta: Theta | None = None,
) -> Theta:
    r"""The parameters after some steps of gradient descent on a batch, with their graph.

    .. math:: \theta_{k+1} = \theta_k - \alpha\,\nabla L_{\text{support}}(\theta_k)

    The energy keeps its own parameters, and the result depends on them: its gradient sees the steps
    (``first_order=False``) or takes the inner gradients for constants.

    Parameters
    ----------
    energy, rule, batch : what is lowered
    steps, lr : of plain gradient descent; ``lr`` may be a learned scalar
    first_order : whether inner gradients count as constants
    theta : where to start; the energy's parameters by default

    Returns
    -------
    dict of tensors by name

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin
    >>> energy = LinearEnergy(1, 2)
    >>> batch = {"x": torch.ones(2, 1), "y": torch.tensor([1, 1])}
    >>> before, after = energy.W, adapt(energy, SoftMin(), batch, lr=1.0)["W"]
    >>> after.requires_grad, bool((after != before).all())
    (True, True)
    """
    loss = _Loss(energy, rule)
    if theta is None:
        theta = {n: p for n, p in energy.named_parameters() if p.requires_grad}
    slope = torch.func.grad(loss.at)
    for _ in range(steps):
        found: Theta = slope(theta, batch)
        theta = {
            n: p - lr * (found[n].detach() if first_order else found[n]) for n, p in theta.items()
        }
    return theta


class Nested(Rule):
    r"""The loss on a task's query rows after some steps on its support rows (MAML).

    .. math:: L(\theta) = L_{\text{query}}\bigl(\theta - \alpha\nabla
        L_{\text{support}}(\theta)\bigr)

    A row of the batch is a whole task: every variable has one more axis, ``(T, n, *event)``, whose
    first ``support`` entries are the support rows and the others the query rows. All tasks of a
    batch adapt at once, and ``sample_weight`` weighs tasks.

    Parameters
    ----------
    rule : Rule
        The loss inside and outside; it must not sample.
    support : int
        Support rows of a task.
    steps, lr, first_order
        See ``adapt``; ``steps=0`` is joint training.
    learn_lr : bool, default=False
        Learn the inner rate, on a log scale, with θ.

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> g = torch.Generator().manual_seed(0)
    >>> x = torch.randn(16, 10, 2, generator=g)
    >>> sign = torch.where(torch.arange(16) % 2 == 0, 1.0, -1.0)  # tasks disagree
    >>> tasks = {"x": x, "y": ((x[..., 0] * sign[:, None]) > 0).long()}
    >>> energy, rule = LinearEnergy(2, 2), Nested(SoftMin(), support=5, steps=2, lr=1.0)
    >>> history = fit(energy, tasks, rule, Stochastic(max_epochs=20, tol=None), random_state=0)
    >>> rule(energy, tasks).loss.shape
    torch.Size([16])
    """

    needs_gradient = True

    def __init__(
        self,
        rule: Rule,
        support: int,
        *,
        steps: int = 1,
        lr: float = 0.01,
        first_order: bool = False,
        learn_lr: bool = False,
    ) -> None:
        super().__init__()
        if support < 1:
            raise ValueError(f"support must be at least 1 row of a task, got {support}")
        if steps < 0:
            raise ValueError(f"steps must be at least 0, got {steps}")
        if not lr > 0:
            raise ValueError(f"lr must be positive, got {lr}")
        self.rule, self.support, self.steps, self.first_order = rule, support, steps, first_order
        log = torch.tensor(float(lr)).log()
        self.log_lr = nn.Parameter(log, requires_grad=learn_lr)
        self.over, self.latent, self.smooth = rule.over, rule.latent, rule.smooth

    @property
    def lr(self) -> Tensor:
        """The inner rate."""
        return self.log_lr.exp()

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        theta: Theta = {n: p for n, p in energy.named_parameters() if p.requires_grad}
        loss = _Loss(energy, self.rule)
        lr = self.lr

        def task(rows: dict[str, Tensor]) -> Tensor:
            near = {k: v[: self.support] for k, v in rows.items()}
            far = {k: v[self.support :] for k, v in rows.items()}
            moved = adapt(
                energy, self.rule, near, steps=self.steps, lr=lr, first_order=self.first_order,
                theta=theta,
            )  # fmt: skip
            return loss.at(moved, far)

        each: Callable[..., Any] = torch.func.vmap(task, randomness="different")
        values: Tensor = each(dict(batch))  # (T,)
        return Terms(values, lambda: (values, torch.zeros_like(values)))

    def events(self, batch: Batch) -> Batch:
        return {k: v.flatten(0, 1) if v.ndim > 1 else v for k, v in batch.items()}

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        short = [k for k, v in batch.items() if v.ndim < 2 or v.shape[1] <= self.support]
        if short:
            return (
                f"a task needs more than support={self.support} rows on the second axis, but "
                f"{', '.join(short)} has not"
            )
        one = {k: v[0] for k, v in batch.items()}
        return self.rule.reason_against(energy, one)
