r"""Joint distributions of a few discrete variables as tables: sum, product and chain rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key, RandomState
from groundstate.math.arrays import as_tensor, to_numpy


class JointTable:
    r"""P(a, b, ...) as an array with one named axis per variable, or P(a, ... | c, ...).

    .. math:: P(a \mid b) = \frac{P(a, b)}{P(b)}, \qquad P(b) = \sum_a P(a, b), \qquad
              P(a, b, c) = P(a)\,P(b \mid a)\,P(c \mid a, b)

    Conditional tables have the variables that are given as their first axes; what remains sums to one.
    Everything is differentiable in ``p``.

    Parameters
    ----------
    p : non-negative ``(k_1, ..., k_n)``, divided by its sum
    names : one per axis
    given : the names among them that are conditioned on, which must come first

    Examples
    --------
    >>> rain = JointTable([[0.3, 0.1], [0.2, 0.4]], ["rain", "wet"])
    >>> rain.marginal("wet").p
    array([0.5, 0.5])
    >>> rain.conditional("rain", given="wet").p  # rows: wet
    array([[0.6, 0.4],
           [0.2, 0.8]])
    >>> rain.given(wet=1)
    JointTable P(rain), shape (2,)
    """

    def __init__(self, p: Any, names: Sequence[str], *, given: Sequence[str] = ()) -> None:
        self._numpy = not isinstance(p, Tensor)
        table = as_tensor(p, "p")
        self.names, self.conditions = tuple(names), tuple(given)
        if table.ndim != len(self.names) or len(set(self.names)) != len(self.names):
            raise ValueError(
                f"p has {table.ndim} axes and needs as many different names, got {self.names}"
            )
        if self.names[: len(self.conditions)] != self.conditions:
            raise ValueError(f"the given variables {self.conditions} must be the first axes")
        if bool((table.detach() < 0).any()):
            raise ValueError("p has negative entries; probabilities are at least 0")
        free = tuple(range(len(self.conditions), table.ndim))
        total = table.sum(free, keepdim=True) if free else table
        if not bool((total.detach() > 0).all()):
            raise ValueError("p sums to 0; there is nothing to normalise")
        self._p = table / total

    @property
    def p(self) -> Any:
        """The table, an array or a tensor as it was given."""
        return to_numpy(self._p) if self._numpy else self._p

    def marginal(self, *names: str) -> JointTable:
        """P(names): the sum over all others, axes in the order asked for."""
        self._unconditional("marginal")
        return self._make(self._summed(names), names)

    def conditional(self, names: str | Sequence[str], given: str | Sequence[str]) -> JointTable:
        """P(names | given), for every value of what is given."""
        self._unconditional("conditional")
        a, b = _listed(names), _listed(given)
        if set(a) & set(b):
            raise ValueError(f"{sorted(set(a) & set(b))} stand on both sides of the bar")
        joint = self._summed((*b, *a))
        total = joint.sum(tuple(range(len(b), joint.ndim)), keepdim=True)
        if not bool((total.detach() > 0).all()):
            raise ValueError(
                f"some values of {b} have probability 0, so nothing can be conditioned on them; use "
                "given(...) with values that occur"
            )
        return self._make(joint / total, (*b, *a), given=b)

    def given(self, **values: int) -> JointTable:
        """P(the others | these values), values counted from 0."""
        index: list[Any] = [slice(None)] * self._p.ndim
        for name, value in values.items():
            axis = self._axis(name)
            if not 0 <= value < self._p.shape[axis]:
                raise ValueError(
                    f"{name}={value} is not one of its values 0 to {self._p.shape[axis] - 1}"
                )
            index[axis] = value
        part = self._p[tuple(index)]
        rest = [name for name in self.names if name not in values]
        if not rest:
            raise ValueError("every variable was given; nothing is left to have a distribution")
        if not float(part.detach().sum()) > 0:
            observed = ", ".join(f"{k}={v}" for k, v in values.items())
            raise ValueError(f"{observed} has probability 0 and cannot be conditioned on")
        left = [name for name in self.conditions if name not in values]
        return self._make(part, rest, given=left)

    def chain(self, order: Sequence[str]) -> list[JointTable]:
        """Factors P(a), P(b | a), P(c | a, b), ... whose product is the joint table."""
        if sorted(order) != sorted(self.names):
            raise ValueError(f"order must name each of {self.names} once, got {tuple(order)}")
        first = [self.marginal(order[0])]
        return first + [self.conditional(order[i], order[:i]) for i in range(1, len(order))]

    @classmethod
    def product(cls, factors: Sequence[JointTable], names: Sequence[str]) -> JointTable:
        """The joint table that factors such as those of :meth:`chain` multiply to."""
        place = {name: i for i, name in enumerate(names)}
        operands: list[Any] = []
        for factor in factors:
            operands += [factor._p, [place[name] for name in factor.names]]
        joint = torch.einsum(*operands, list(range(len(names))))
        return cls(to_numpy(joint) if factors[0]._numpy else joint, names)

    def is_independent(
        self, a: str | Sequence[str], b: str | Sequence[str], given: str | Sequence[str] = (),
        tol: float = 1e-12,
    ) -> bool:  # fmt: skip
        r"""Whether :math:`P(a, b, c)P(c) = P(a, c)P(b, c)` to ``tol`` everywhere."""
        one, two, c = _listed(a), _listed(b), _listed(given)
        joint = self._summed((*c, *one, *two))
        lead, m, n = len(c), len(one), len(two)
        ax1, ax2 = tuple(range(lead, lead + m)), tuple(range(lead + m, lead + m + n))
        pa, pb = joint.sum(ax2, keepdim=True), joint.sum(ax1, keepdim=True)
        pc = joint.sum((*ax1, *ax2), keepdim=True)
        return bool((joint * pc - pa * pb).detach().abs().max() <= tol)

    def sample(self, n: int, random_state: Key | RandomState = None) -> Any:
        """``(n, variables)`` whole numbers."""
        self._unconditional("sample")
        flat = self._p.detach().flatten()
        generator = Key.of(random_state).torch(flat.device)
        hit = torch.multinomial(flat, n, replacement=True, generator=generator)
        rows = torch.stack(torch.unravel_index(hit, self._p.shape), -1)
        return rows.numpy() if self._numpy else rows

    def log_prob(self, rows: Any) -> Any:
        """log P of rows ``(..., variables)`` of whole numbers."""
        at = torch.as_tensor(np.asarray(rows) if not isinstance(rows, Tensor) else rows).long()
        if at.shape[-1] != self._p.ndim:
            raise ValueError(f"rows have {at.shape[-1]} columns for {self._p.ndim} variables")
        out = self._p[tuple(at.unbind(-1))].log()
        return to_numpy(out) if self._numpy else out

    def entropy(self) -> Any:
        r""":math:`-\sum p\log p` in nats."""
        self._unconditional("entropy")
        out = -torch.special.xlogy(self._p, self._p).sum()
        return to_numpy(out) if self._numpy else out

    def _summed(self, names: Sequence[str]) -> Tensor:
        axes = [self._axis(name) for name in names]
        if len(set(axes)) != len(axes) or not axes:
            raise ValueError(f"name each variable once, got {tuple(names)}")
        others = [i for i in range(self._p.ndim) if i not in axes]
        order = self._p.permute(*axes, *others)
        return order.sum(tuple(range(len(axes), order.ndim))) if others else order

    def _axis(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"there is no variable {name!r}; the table has {self.names}")
        return self.names.index(name)

    def _unconditional(self, what: str) -> None:
        if self.conditions:
            raise ValueError(
                f"{what} needs a joint table, this one is conditional on {self.conditions}; multiply "
                "it with their distribution first (JointTable.product)"
            )

    def _make(self, p: Tensor, names: Sequence[str], given: Sequence[str] = ()) -> JointTable:
        made = JointTable(p, names, given=given)
        made._numpy = self._numpy
        return made

    def __repr__(self) -> str:
        free = ", ".join(self.names[len(self.conditions) :])
        bar = f" | {', '.join(self.conditions)}" if self.conditions else ""
        return f"JointTable P({free}{bar}), shape {tuple(self._p.shape)}"


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
