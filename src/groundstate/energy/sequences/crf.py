r"""A conditional random field, :math:`e(x,y) = -\sum_t f_\theta(x)_{t,y_t} - \sum_t A_{y_{t-1},y_t}`."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.rows import Ragged
from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, RaggedOf, Sequence, Space, space_of_rows
from groundstate.errors import ShapeError
from groundstate.math.chains.chain import ChainDistribution, ChainFactors


def _ragged(energy: Any) -> bool:
    return isinstance(energy.spaces["y"], RaggedOf)


def _fixed(energy: Any) -> bool:
    return not _ragged(energy)


@registered(
    r"e(x, y) = -\sum_t f_\theta(x)_{t,y_t} - \sum_t A_{y_{t-1} y_t}",
    lambda: CRFEnergy(nn.Linear(2, 3), (4, 2), Sequence(Finite(3), 4)),
)
class CRFEnergy(Energy):
    r"""A network scores every label of every step, a table every pair of neighbours.

    .. math:: e(x, y) = -s_{y_1} - \sum_{t=1}^{T} f_\theta(x)_{t,y_t}
              - \sum_{t=2}^{T} A_{y_{t-1},y_t} - s'_{y_T}, \qquad
              p(y\mid x) = e^{-e(x,y)}/Z(x)

    A linear-chain conditional random field: :math:`\log Z` by the forward algorithm and the best
    sequence by Viterbi's, both in :math:`O(TK^2)` for all rows at once. With A, s, s' = 0 the steps
    are independent and each is a softmax.

    Parameters
    ----------
    net : module from rows of x to scores ``(B, T, K)``, or to ``Ragged`` items ``(M, K)``
    x : space of the rows, or the shape of one
    y : ``RaggedOf(Finite(K))``, or ``Sequence(Finite(K), T)`` for rows of one length; shorter rows
        pass ``lengths`` ``(B,)``
    ends : whether the first and the last label have scores s and s' of their own

    Attributes
    ----------
    A : Parameter, ``(K, K)``: score of label i followed by label j
    first, last : Parameters, ``(K,)``: s and s'

    Examples
    --------
    >>> from groundstate.energy import Real
    >>> from groundstate.nn import Recurrent
    >>> e = CRFEnergy(Recurrent("gru", 2, 3), RaggedOf(Real(2)), RaggedOf(Finite(3)))
    >>> x = Ragged.of([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]])
    >>> e.best(x)
    2 sequences of 1 to 2 items of shape (), int64
    >>> y = Ragged.of([[0, 2], [1]])
    >>> torch.allclose(e(x=x, y=y), -e.log_prob(x, y) - e.log_partition(x))
    True
    """

    context = ("lengths",)
    unpenalised = ("first", "last")

    def __init__(
        self, net: nn.Module, x: int | Seq[int] | Space, y: Space, *, ends: bool = True
    ) -> None:
        super().__init__(x=space_of_rows(x), y=y)
        item = y.item if isinstance(y, RaggedOf | Sequence) else None
        if not isinstance(item, Finite):
            raise ValueError(f"labels are RaggedOf(Finite(k)) or Sequence(Finite(k), T), got {y!r}")
        self.net, self.k, self.ends = net, item.n, ends
        self.A = nn.Parameter(torch.zeros(self.k, self.k))
        self.first = nn.Parameter(torch.zeros(self.k)) if ends else None
        self.last = nn.Parameter(torch.zeros(self.k)) if ends else None

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "x": self.spaces["x"], "y": self.spaces["y"], "ends": self.ends}

    @offers.chain("y", when=_fixed)
    def factors(self, x: Any, lengths: Tensor | None = None) -> ChainFactors:
        """The chain of every row; of rows without steps one step that counts nothing."""
        return self._factors(x, lengths)[0]

    def _factors(self, x: Any, lengths: Tensor | None = None) -> tuple[ChainFactors, Tensor]:
        """The chain, and how many steps rows really have."""
        scores = self.net(x)
        if isinstance(scores, Ragged):
            lengths = scores.lengths
            longest = max(int(lengths.max()) if len(scores) else 1, 1)
            scores = scores.padded(length=longest)
        if scores.ndim != 3 or scores.shape[-1] != self.k:
            raise ShapeError(
                f"the network gives scores of shape {tuple(scores.shape)}; {self.k} of each step "
                f"are needed, (B, T, {self.k}) or ragged items ({self.k},)"
            )
        held = None if lengths is None else lengths.clamp(min=1)
        if self.first is not None and self.last is not None:
            steps = torch.arange(scores.shape[1], device=scores.device)
            final = scores.shape[1] - 1 if held is None else (held - 1)[:, None]
            starts = (steps == 0).to(scores.dtype)[None, :, None] * self.first
            stops = (steps[None] == final).to(scores.dtype)[..., None] * self.last
            scores = scores + starts + stops
        factors = ChainFactors(-scores, -self.A.to(scores.dtype), held)
        return factors, factors.steps if lengths is None else lengths

    def forward(self, x: Any, y: Any, lengths: Tensor | None = None) -> Tensor:
        factors, steps = self._factors(x, lengths)
        if not isinstance(y, Ragged):
            return factors.energy(y)
        if not torch.equal(y.lengths, steps):
            raise ShapeError("every step needs a label: x and y are of different lengths")
        e = factors.energy(y.padded(length=factors.unary.shape[1]))
        return torch.where(y.lengths > 0, e, 0.0)

    @offers.argmin("y", when=_ragged)
    def best(self, x: Any) -> Ragged:
        """The labels of lowest energy, by Viterbi's algorithm."""
        factors, lengths = self._factors(x)
        mode = ChainDistribution(factors).mode
        return Ragged(mode[_inside(mode, lengths)], _offsets(lengths))

    @offers.log_partition("y", when=_ragged)
    def log_partition(self, x: Any, T: float = 1.0) -> Tensor:
        """:math:`\\log Z(x)` by the forward algorithm, ``(B,)``."""
        factors, lengths = self._factors(x)
        found = ChainDistribution(factors, T).log_partition
        return torch.where(lengths > 0, found, 0.0)

    def log_prob(self, x: Any, y: Any) -> Tensor:
        """:math:`\\log p(y\\mid x)`, ``(B,)``."""
        return -self(x=x, y=y) - self.log_partition(x)

    def marginals(self, x: Any) -> Ragged:
        """:math:`p(y_t = k\\mid x)` of every step, items ``(M, K)``."""
        factors, lengths = self._factors(x)
        found = ChainDistribution(factors).marginals
        return Ragged(found[_inside(found, lengths)], _offsets(lengths))


def _inside(padded: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]


def _offsets(lengths: Tensor) -> Tensor:
    return torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
