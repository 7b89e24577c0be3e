r"""What all models by the chain rule offer, :math:`p(x) = \prod_i p(x_{\pi(i)}\mid x_{\pi(<i)})`:
exact log-probabilities, independent draws, and the distribution of what comes next.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution

from groundstate.errors import ShapeError

REDUCTIONS = ("token", "sequence")


class Autoregressive:
    """The contract of an energy that is normalised item by item.

    Every factor is a distribution, so log-probabilities are sums, draws are independent and exact,
    and no normaliser is needed. Subclasses are energies with a normalised ``variable`` and, for
    symbols, the ability ``step``.
    """

    variable: ClassVar[str] = "x"
    order: tuple[int, ...]

    def log_prob(self, value: Tensor, **given: Any) -> Tensor:
        """:math:`\\log p` of every row, the sum of its factors, ``(B,)``."""
        e: Tensor = self(**{self.variable: value}, **given)  # type: ignore[operator]
        return -e

    def sample(self, n: int, *, generator: torch.Generator | None = None, **given: Any) -> Tensor:
        """n independent exact draws, ``(n, L)``, item by item; None is a fixed seed."""
        drawn: Tensor = self.ancestral(n, generator=generator, **given)[self.variable]  # type: ignore[attr-defined]
        return drawn

    @torch.no_grad()
    def conditional(self, prefix: Tensor, **given: Any) -> Distribution:
        """The distribution of the item that follows ``prefix`` ``(B, P)``, batch shape ``(B,)``.

        The items of the prefix stand in the model's order: entry i is the one at position
        :math:`\\pi(i)`.
        """
        prefix = self._checked(prefix)
        step: Any = self.ability("step", self.variable)  # type: ignore[attr-defined]
        increments, state = step(None, **given)
        if state.rows != len(prefix):
            nothing = torch.zeros(len(prefix), dtype=torch.int64, device=increments.device)
            increments, state = increments[nothing], state.pick(nothing)
        for t in range(prefix.shape[1]):
            increments, state = step(state.append(prefix[:, t]), **given)
        return Categorical(logits=-increments, validate_args=False)

    def loss(
        self,
        value: Tensor,
        *,
        reduction: Literal["token", "sequence"] = "token",
        weight: Tensor | None = None,
        **given: Any,
    ) -> Tensor:
        r"""The training loss.

        Parameters
        ----------
        value : ``(B, L)``
        reduction : "token" is the mean over items, :math:`\sum_i w_ie_i/\sum_iw_iL_i`;
            "sequence" sums over positions and takes the mean over rows
        weight : of the rows, ``(B,)``
        given : the energy's other variables, and ``lengths``
        """
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
        e = -self.log_prob(value, **given)
        w = torch.ones_like(e) if weight is None else weight.to(e.dtype)
        parts = self.items(value, given.get("lengths")).to(e.dtype) if reduction == "token" else 1.0
        return torch.dot(w, e) / (w * parts).sum()

    def items(self, value: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Items that count in each row, ``(B,)``."""
        if lengths is not None:
            return lengths
        return torch.full((len(value),), value.shape[1], device=value.device)

    def _checked(self, prefix: Tensor) -> Tensor:
        longest = len(self.order)
        if prefix.ndim != 2 or prefix.shape[1] >= longest:
            raise ShapeError(
                f"a prefix holds fewer than the {longest} items of a sequence, (B, P) with "
                f"P < {longest}; got {tuple(prefix.shape)}"
            )
        return prefix


def permutation(order: Any, length: int) -> tuple[int, ...]:
    """An order of the positions, by default 0, 1, 2, ..."""
    found = tuple(range(length)) if order is None else tuple(int(i) for i in order)
    if sorted(found) != list(range(length)):
        raise ValueError(f"order must be a permutation of 0..{length - 1}, got {found}")
    return found
