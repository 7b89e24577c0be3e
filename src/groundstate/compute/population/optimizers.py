r"""Optimisers for a population, with hyperparameters and a stop of each member's own.

The parameters of P members are one matrix :math:`\Theta` (P, D), so a step is a few elementwise
operations on it, with the hyperparameters as columns (P, 1). Members that are not active keep
their parameters bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from groundstate.compute.foreign.torch import fused_adam_, fused_adamw_
from groundstate.errors import ShapeError

PerMember: TypeAlias = float | Sequence[float] | Tensor


class StackedOptimizer:
    r"""What the optimisers share: columns of hyperparameters and the mask of active members.

    Parameters
    ----------
    flat : Tensor, (P, D)
        Parameters, changed in place.
    lr, weight_decay : float or (P,)

    Attributes
    ----------
    active : Tensor of bool, (P, 1)
    masked, fused : bool
        Whether any member has stopped, and whether one kernel does the step for all.
    clip : Tensor, (P, 1), or None
        Largest norm of each member's gradient, set by `set_clip`.
    lasso : Tensor, (P, D), or None
        Strengths of a penalty :math:`\sum_d l_{pd} |\theta_{pd}|`, whose proximal map in the metric
        of the optimiser follows each step.
    """

    fused = False
    clip: Tensor | None = None
    lasso: Tensor | None = None

    def __init__(self, flat: Tensor, lr: PerMember, weight_decay: PerMember = 0.0) -> None:
        self.flat = flat
        # 1 - 0.999 has lost three digits in float32, so the columns are float64 where they can be.
        self._wide = flat.dtype if flat.device.type == "mps" else torch.float64
        self.lr = self._column(lr, "lr")
        self.decays = weight_decay != 0.0 if isinstance(weight_decay, float) else True
        self.weight_decay = self._column(weight_decay, "weight_decay")
        self.active = torch.ones(len(flat), 1, dtype=torch.bool, device=flat.device)
        self.masked = False
        self.steps = torch.zeros(len(flat), 1, dtype=self._wide, device=flat.device)

    def _column(self, value: PerMember, name: str) -> Tensor:
        column = torch.as_tensor(value, dtype=self._wide, device=self.flat.device)
        if column.ndim > 1 or (column.ndim == 1 and len(column) != len(self.flat)):
            raise ShapeError(
                f"{name} has shape {tuple(column.shape)}; pass one number, or one for each of the "
                f"{len(self.flat)} members."
            )
        return column.reshape(-1, 1).expand(len(self.flat), 1).clone()

    def _cast(self, column: Tensor) -> Tensor:
        return column.to(self.flat.dtype)

    def set_lr(self, lr: PerMember) -> None:
        """Change the step sizes, for a schedule."""
        self.lr.copy_(self._column(lr, "lr"))

    def pace(self, lr: Tensor) -> None:
        """Change the step sizes to a column (P, 1) of this device; the kind of step stays."""
        self.lr.copy_(lr)

    def set_clip(self, clip: PerMember) -> None:
        """Bound the norm of each member's gradient."""
        self.clip = self._column(clip, "clip")

    def metric(self) -> Tensor:
        """The factor before a settled gradient, (P, 1) or (P, D)."""
        return self._cast(self.lr)

    def stop(self, members: Tensor) -> None:
        """Freeze members (a mask of P) from now on."""
        self.active &= ~members.reshape(-1, 1).to(self.active.device)
        self.masked = True

    def state(self) -> list[Tensor]:
        """Everything a step changes, for checkpoints and for undoing one."""
        return [self.flat, self.steps]

    @torch.no_grad()
    def step(self, grad: Tensor) -> None:
        """One step along a gradient (P, D)."""
        self.steps += 1
        if self.clip is not None:
            norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
            grad = grad * self._cast((self.clip / (norm + 1e-6)).clamp(max=1.0))
        before = self.flat.clone() if self.masked else None
        self._step(grad)
        if self.lasso is not None:
            size = (self.flat.abs() - self.lasso * self.metric()).clamp_min_(0.0)
            self.flat.copy_(size.copysign_(self.flat))
        if before is not None:
            torch.where(self.active, self.flat, before, out=self.flat)

    def _step(self, grad: Tensor) -> None:
        raise TypeError(
            f"{type(self).__name__} has no rule; use SGD, Adam, AdamW, RMSprop, Adagrad or Adadelta."
        )


class SGD(StackedOptimizer):
    r"""Gradient descent with momentum: :math:`v ← μ v + g`, :math:`θ ← θ - η v`.

    Parameters
    ----------
    flat : Tensor, (P, D)
    lr, momentum, weight_decay : float or (P,)
    nesterov : bool, default False

    Examples
    --------
    >>> import torch
    >>> theta = torch.ones(2, 3)
    >>> SGD(theta, lr=[0.1, 0.5]).step(torch.ones(2, 3))
    >>> theta[:, 0].tolist()
    [0.8999999761581421, 0.5]
    """

    def __init__(
        self,
        flat: Tensor,
        lr: PerMember,
        momentum: PerMember = 0.0,
        weight_decay: PerMember = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(flat, lr, weight_decay)
        self.momentum = self._column(momentum, "momentum")
        self.nesterov = nesterov
        still = isinstance(momentum, float | int) and momentum == 0
        self.velocity = None if still else torch.zeros_like(flat)

    def state(self) -> list[Tensor]:
        return [*super().state(), *([] if self.velocity is None else [self.velocity])]

    def metric(self) -> Tensor:
        return self._cast(self.lr / (1.0 - self.momentum))

    def _step(self, grad: Tensor) -> None:
        if self.decays:
            grad = torch.addcmul(grad, self.flat, self._cast(self.weight_decay))
        if self.velocity is not None:
            momentum = self._cast(self.momentum)
            self.velocity.mul_(momentum).add_(grad)
            ahead = self.nesterov
            grad = torch.addcmul(grad, self.velocity, momentum) if ahead else self.velocity
        self.flat.addcmul_(grad, self._cast(self.lr), value=-1.0)


class Adam(StackedOptimizer):
    r"""Adam: :math:`θ ← θ - η\, \hat m / (\sqrt{\hat v} + ε)`.

    Parameters
    ----------
    flat : Tensor, (P, D)
    lr, beta1, beta2, eps, weight_decay : float or (P,)
        The decay is added to the gradient.
    """

    decoupled = False

    def __init__(
        self,
        flat: Tensor,
        lr: PerMember = 1e-3,
        beta1: PerMember = 0.9,
        beta2: PerMember = 0.999,
        eps: PerMember = 1e-8,
        weight_decay: PerMember = 0.0,
    ) -> None:
        super().__init__(flat, lr, weight_decay)
        self.beta1, self.beta2 = self._column(beta1, "beta1"), self._column(beta2, "beta2")
        self.eps = self._column(eps, "eps")
        self.mean, self.square = torch.zeros_like(flat), torch.zeros_like(flat)
        # Members that share all hyperparameters are one long vector to torch's fused kernel.
        same = all(isinstance(v, float | int) for v in (lr, beta1, beta2, eps, weight_decay))
        narrow = flat.device.type == "cuda"  # that kernel reads its step size as float32
        able = flat.device.type == "cpu" or (narrow and flat.dtype == torch.float32)
        self.fused = same and able
        # One step size each, the rest shared: the kernel finds the direction, θ follows it after.
        self.paced = not same and narrow and flat.dtype == torch.float32 and _single(
            beta1, beta2, eps
        )  # fmt: skip
        kind = torch.float32 if narrow else self._wide
        self._rate = self.lr[0, 0].to(kind)
        self._count = torch.zeros((), dtype=torch.float32, device=flat.device)
        columns = (self.beta1, self.beta2, self.weight_decay, self.eps)
        self._shared = [column[0, 0].item() for column in columns]

    def set_lr(self, lr: PerMember) -> None:
        super().set_lr(lr)
        self._rate.copy_(self.lr[0, 0])
        self.fused = self.fused and isinstance(lr, float | int)

    def pace(self, lr: Tensor) -> None:
        super().pace(lr)
        self._rate.copy_(self.lr[0, 0])

    def state(self) -> list[Tensor]:
        return [*super().state(), self._count, self.mean, self.square]

    def metric(self) -> Tensor:
        root = (1.0 - self.beta2**self.steps).sqrt()
        return self._cast(self.lr * root) / (self.square.sqrt() + self._cast(self.eps * root))

    def _step(self, grad: Tensor) -> None:
        if self.fused:
            return self._fused_step(self.flat, grad, self._rate, self._shared[2])
        if self.paced:
            return self._paced_step(grad)
        work, cast = torch.empty_like(grad), self._cast
        if self.decays and self.decoupled:
            self.flat.mul_(cast(1.0 - self.lr * self.weight_decay))
        elif self.decays:
            grad = torch.addcmul(grad, self.flat, cast(self.weight_decay))
        self.mean.lerp_(grad, cast(1.0 - self.beta1))
        torch.mul(grad, grad, out=work)
        self.square.lerp_(work, cast(1.0 - self.beta2))
        # θ - η/c₁ · m / (√v/√c₂ + ε) with the columns gathered: fewer passes over (P, D).
        root = (1.0 - self.beta2**self.steps).sqrt()  # (P, 1)
        torch.sqrt(self.square, out=work).add_(cast(self.eps * root))
        torch.div(self.mean, work, out=work)
        rate = self.lr * root / (1.0 - self.beta1**self.steps)
        self.flat.addcmul_(work, cast(rate), value=-1.0)

    def _paced_step(self, grad: Tensor) -> None:
        if self.decays and self.decoupled:
            self.flat.mul_(self._cast(1.0 - self.lr * self.weight_decay))
        elif self.decays:
            grad = torch.addcmul(grad, self.flat, self._cast(self.weight_decay))
        back = torch.zeros_like(self.flat)  # becomes minus the direction
        self._fused_step(back, grad, torch.ones_like(self._rate), 0.0)
        self.flat.addcmul_(back, self._cast(self.lr))

    def _fused_step(self, flat: Tensor, grad: Tensor, rate: Tensor, weight_decay: float) -> None:
        beta1, beta2, _, eps = self._shared
        rule = fused_adamw_ if self.decoupled else fused_adam_
        self._count += 1
        rule(
            *([flat], [grad], [self.mean], [self.square], [], [self._count]),
            lr=rate,
            beta1=beta1,
            beta2=beta2,
            weight_decay=weight_decay,
            eps=eps,
            amsgrad=False,
            maximize=False,
        )


class AdamW(Adam):
    r"""Adam with decoupled decay: :math:`θ ← (1 - η λ)\, θ` before each step."""

    decoupled = True

    def __init__(
        self,
        flat: Tensor,
        lr: PerMember = 1e-3,
        beta1: PerMember = 0.9,
        beta2: PerMember = 0.999,
        eps: PerMember = 1e-8,
        weight_decay: PerMember = 1e-2,
    ) -> None:
        super().__init__(flat, lr, beta1, beta2, eps, weight_decay)


class RMSprop(StackedOptimizer):
    r"""RMSprop: :math:`v ← α v + (1-α) g^2`, :math:`θ ← θ - η\, g / (\sqrt v + ε)`.

    Parameters
    ----------
    flat : Tensor, (P, D)
    lr, alpha, eps, weight_decay : float or (P,)
    """

    def __init__(
        self,
        flat: Tensor,
        lr: PerMember = 1e-2,
        alpha: PerMember = 0.99,
        eps: PerMember = 1e-8,
        weight_decay: PerMember = 0.0,
    ) -> None:
        super().__init__(flat, lr, weight_decay)
        self.beta2, self.eps = self._column(alpha, "alpha"), self._column(eps, "eps")
        self.square = torch.zeros_like(flat)

    def state(self) -> list[Tensor]:
        return [*super().state(), self.square]

    def metric(self) -> Tensor:
        return self._cast(self.lr) / (self.square.sqrt() + self._cast(self.eps))

    def _step(self, grad: Tensor) -> None:
        if self.decays:
            grad = torch.addcmul(grad, self.flat, self._cast(self.weight_decay))
        self._gather(grad)
        root = self.square.sqrt().add_(self._cast(self.eps))
        self.flat.addcmul_(grad / root, self._cast(self.lr), value=-1.0)

    def _gather(self, grad: Tensor) -> None:
        self.square.lerp_(grad * grad, self._cast(1.0 - self.beta2))


class Adagrad(RMSprop):
    r"""Adagrad: :math:`v ← v + g^2`, :math:`θ ← θ - η\, g / (\sqrt v + ε)`.

    Parameters
    ----------
    flat : Tensor, (P, D)
    lr, eps, weight_decay : float or (P,)
    """

    def __init__(
        self,
        flat: Tensor,
        lr: PerMember = 1e-2,
        eps: PerMember = 1e-10,
        weight_decay: PerMember = 0.0,
    ) -> None:
        super().__init__(flat, lr, 1.0, eps, weight_decay)

    def _gather(self, grad: Tensor) -> None:
        self.square.addcmul_(grad, grad)


class Adadelta(StackedOptimizer):
    r"""Adadelta: :math:`v ← ρ v + (1-ρ) g^2`, :math:`Δ = g\sqrt{u + ε}/\sqrt{v + ε}`,
    :math:`u ← ρ u + (1-ρ) Δ^2`, :math:`θ ← θ - η Δ`.

    Parameters
    ----------
    flat : Tensor, (P, D)
    lr, rho, eps, weight_decay : float or (P,)
    """

    def __init__(
        self,
        flat: Tensor,
        lr: PerMember = 1.0,
        rho: PerMember = 0.9,
        eps: PerMember = 1e-6,
        weight_decay: PerMember = 0.0,
    ) -> None:
        super().__init__(flat, lr, weight_decay)
        self.rho, self.eps = self._column(rho, "rho"), self._column(eps, "eps")
        self.square, self.moved = torch.zeros_like(flat), torch.zeros_like(flat)

    def state(self) -> list[Tensor]:
        return [*super().state(), self.square, self.moved]

    def metric(self) -> Tensor:
        eps = self._cast(self.eps)
        return self._cast(self.lr) * ((self.moved + eps).sqrt() / (self.square + eps).sqrt())

    def _step(self, grad: Tensor) -> None:
        if self.decays:
            grad = torch.addcmul(grad, self.flat, self._cast(self.weight_decay))
        eps, rest = self._cast(self.eps), self._cast(1.0 - self.rho)
        self.square.lerp_(grad * grad, rest)
        step = grad * ((self.moved + eps).sqrt() / (self.square + eps).sqrt())
        self.moved.lerp_(step * step, rest)
        self.flat.addcmul_(step, self._cast(self.lr), value=-1.0)


def _single(*values: PerMember) -> bool:
    return all(isinstance(value, float | int) for value in values)
