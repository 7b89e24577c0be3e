"""What the compiled optimiser step of a population reads, step by step and member by member."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.population.optimizers import SGD, Adagrad, Adam, RMSprop, StackedOptimizer
from groundstate.compute.population.stack import Population
from groundstate.errors import NotApplicable

_TINY = np.finfo(np.float64).tiny


class StepScalars:
    r"""The scalars of every member's next steps, penalties and clipping included.

    Parameters
    ----------
    population : Population
    optimizer : StackedOptimizer
        Its state is what changes, so that a step of its own could follow.
    ridge, lasso : array, (P,), or None
        Adds :math:`\tfrac12 r_p |\theta_p|^2 + l_p |\theta_p|_1` over the penalised tensors.
    penalised : names of tensors

    Attributes
    ----------
    blocks : array, (tensors, 4)
        Where the gradient of a tensor begins, where the tensor does, its size, whether it is
        penalised; gradients of a member lie as its parameters do.
    """

    def __init__(
        self,
        population: Population,
        optimizer: StackedOptimizer,
        ridge: NDArray[Any] | None = None,
        lasso: NDArray[Any] | None = None,
        penalised: Collection[str] = (),
    ) -> None:
        self.optimizer, self.theta = optimizer, population.flat.numpy()
        table = [
            (at, at, shape.numel(), int(name in penalised))
            for name, (at, shape) in population.places.items()
        ]
        self.blocks = np.array(table, dtype=np.int64)
        empty = np.empty((1, 0), self.theta.dtype)
        mean = getattr(optimizer, "mean", getattr(optimizer, "velocity", None))
        square = getattr(optimizer, "square", None)
        self.mean = empty if mean is None else mean.numpy()
        self.square = empty if square is None else square.numpy()
        self.columns = np.zeros((len(self.theta), 12))
        self.columns[:, 4] = 1.0
        self.columns[:, 6] = 0.0 if ridge is None else ridge
        self.columns[:, 7] = 0.0 if lasso is None else lasso
        self.nesterov = bool(getattr(optimizer, "nesterov", False))
        self.rule = _rule(optimizer)
        self.steps = optimizer.steps[:, 0].numpy()
        self.mark: tuple[int, ...] = ()

    def columns_of(self, awake: NDArray[Any], lr: Tensor | None) -> NDArray[Any]:
        """Count the steps of members awake (K, P); the scalars of each.  # (K, P, 12)"""
        table = np.empty((*awake.shape, self.columns.shape[1]), self.theta.dtype)
        for k, row in enumerate(awake):
            self.steps += row
            self._fill(None if lr is None else lr[k])
            table[k] = self.columns
        return table

    def _fill(self, lr: Tensor | None) -> None:
        """The scalars of this step, computed in double precision."""
        opt, c = self.optimizer, self.columns
        mark = () if lr is not None else (id(opt.lr), opt.lr._version, id(opt.clip))
        if lr is not None or mark != self.mark:
            self._fill_settings(opt.lr if lr is None else lr)
            self.mark = mark
        if isinstance(opt, Adam):
            t = self.steps
            root = np.sqrt(1.0 - self.beta2**t)
            c[:, 3] = self.eps * root
            c[:, 0] = self.lr * root
            # members that never moved have t = 0 and are not looked at
            c[:, 9] = c[:, 0] / np.maximum(1.0 - self.beta1**t, _TINY)

    def _fill_settings(self, rates: Tensor) -> None:
        """What stays until a step size moves."""
        opt, c = self.optimizer, self.columns

        def own(column: Tensor) -> NDArray[Any]:
            values: NDArray[Any] = column[:, 0].numpy()
            return values

        lr, decay = own(rates), own(opt.weight_decay)
        clip = opt.clip
        c[:, 8] = -1.0 if clip is None else own(clip)
        c[:, 5] = decay
        c[:, 0] = c[:, 9] = lr
        match opt:
            case Adam():
                self.lr, self.eps = lr, own(opt.eps)
                self.beta1, self.beta2 = own(opt.beta1), own(opt.beta2)
                c[:, 1], c[:, 2] = self.beta1, self.beta2
                c[:, 10], c[:, 11] = 1.0 - self.beta1, 1.0 - self.beta2
                if opt.decoupled:
                    c[:, 4], c[:, 5] = 1.0 - lr * decay, 0.0
            case SGD():
                c[:, 1] = own(opt.momentum)
                c[:, 0] = lr / (1.0 - c[:, 1])
            case RMSprop():
                c[:, 2], c[:, 3] = own(opt.beta2), own(opt.eps)
                c[:, 11] = 1.0 - c[:, 2]


def _rule(optimizer: StackedOptimizer) -> int:
    from groundstate.compute.population import update_numba as kernels

    kinds = (
        (Adam, kernels.ADAM), (SGD, kernels.SGD), (Adagrad, kernels.ADAGRAD),
        (RMSprop, kernels.RMSPROP),
    )  # fmt: skip
    for kind, code in kinds:
        if isinstance(optimizer, kind):
            return code
    raise NotApplicable(f"the compiled step has no rule for {type(optimizer).__name__}")
