r"""A network gives the score of every label, :math:`e(x, y) = -f_\theta(x)_y`: of a row, or of each
of its pixels, tokens or nodes.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent

from groundstate.compute.rows import Ragged, Rows, sum_items
from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, RaggedOf, Sequence, Space, label_grid, space_of_rows
from groundstate.errors import ShapeError


def _one_label(energy: Any) -> bool:
    return isinstance(energy.spaces["y"], Finite)


def _many_labels(energy: Any) -> bool:
    return isinstance(energy.spaces["y"], Sequence)


@registered(
    r"e(x, y) = -\sum_p f_\theta(x)_{p,y_p}",
    lambda: ClassEnergy(nn.Conv2d(1, 3, 1), (1, 2, 2), label_grid(3, 2, 2)),
)
class ClassEnergy(Energy):
    r"""A network gives the score of every label, :math:`e(x, y) = -f_\theta(x)_y`.

    A structured y has a label at each position p (pixel, token, node) and the energies add,
    :math:`e(x, y) = -\sum_p f_\theta(x)_{p,y_p}`. Given x the positions are independent, so
    :math:`\arg\min_y e` is the largest score of each, :math:`\log Z = \sum_p\log\sum_k e^{f_{pk}}`,
    and :math:`p(y_p\mid x) = \operatorname{softmax}(f_p)`. Networks of any spatial size or length
    keep that freedom here.

    Parameters
    ----------
    net : module from rows of x to scores ``(B, k)``, ``(B, k, *positions)`` (pictures), with
        ``class_axis=-1`` ``(B, *positions, k)`` (tokens), or ``Ragged`` items ``(M, k)`` (nodes)
    x : space of the rows, or the shape of one
    y : number of classes, or a space: ``label_grid(k, H, W)``, ``RaggedOf(Finite(k))``
    class_axis : of the scores
    normalise : whether e is :math:`-\sum_p\log\operatorname{softmax}(f_p)_{y_p}`, with Z = 1
    ignore : a label that adds nothing, such as 255 at borders or −100 behind the end of a text;
        needs ``normalise=True``, because the scores alone do not know which positions count

    Examples
    --------
    >>> e = ClassEnergy(nn.Linear(2, 3), 2, 3)
    >>> e.table("y", x=torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    >>> pixels = ClassEnergy(nn.Conv2d(1, 3, 1), (1, 4, 5), label_grid(3, 4, 5))
    >>> pixels(x=torch.zeros(2, 1, 4, 5), y=torch.zeros(2, 4, 5, dtype=torch.int64)).shape
    torch.Size([2])
    """

    def __init__(
        self,
        net: nn.Module,
        x: int | Seq[int] | Space,
        y: int | Space,
        class_axis: int = 1,
        *,
        normalise: bool = False,
        ignore: int | None = None,
    ) -> None:
        labels = Finite(y) if isinstance(y, int) else y
        super().__init__(x=space_of_rows(x), y=labels)
        self.k = _classes(labels)
        if class_axis not in (1, -1):
            raise ValueError(f"class_axis is 1 (pictures) or -1 (tokens), got {class_axis}")
        if ignore is not None and not normalise:
            raise ValueError(f"ignore={ignore} needs normalise=True")
        self.class_axis, self.normalise, self.ignore = class_axis, normalise, ignore
        self.missing = frozenset() if ignore is None else frozenset({"y"})
        if normalise:
            self.normalised = frozenset({"y"})
        self.net = net

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "x": self.spaces["x"], "y": self.spaces["y"],
                "class_axis": self.class_axis, "normalise": self.normalise,
                "ignore": self.ignore}  # fmt: skip

    @offers.scores("y", when=_one_label)
    def scores(self, x: Any) -> Tensor:
        """The logits ``-e`` of all classes, ``(B, k)``; of a structured y ``(B, *positions, k)``."""
        found = self._raw(x)
        if isinstance(found, Ragged):
            raise ShapeError("scores of rows of different length are no table; use item_scores")
        return found

    def item_scores(self, x: Any) -> Rows:
        """The scores of every item, the classes last; ``Ragged`` where the network says so."""
        return self._raw(x)

    @offers.table("y", when=_one_label)
    def energies(self, x: Any) -> Tensor:
        return -self.scores(x)

    def forward(self, x: Any, y: Any) -> Tensor:
        f = self._raw(x)
        if isinstance(f, Ragged):
            labels = y.values if isinstance(y, Ragged) else y
            return sum_items(self._items(f.values, labels), f.offsets)
        each = self._items(f, y)
        return each.flatten(1).sum(1) if each.ndim > 1 else each

    def _raw(self, x: Any) -> Any:
        f = self.net(x)
        if isinstance(f, Ragged):
            scores = torch.log_softmax(f.values, -1) if self.normalise else f.values
            return f.like(scores)
        f = f.movedim(1, -1) if self.class_axis == 1 and f.ndim > 2 else f
        if f.shape[-1] != self.k:
            raise ShapeError(
                f"the network gives scores of shape {tuple(f.shape)} (classes last) for {self.k} "
                "classes; change the size of its last layer, or class_axis"
            )
        return torch.log_softmax(f, -1) if self.normalise else f

    def _items(self, f: Tensor, y: Tensor) -> Tensor:
        """Energies of single labels, the shape of y."""
        if f.shape[:-1] != y.shape:
            raise ShapeError(
                f"one label for each of {tuple(f.shape[:-1])} positions is needed, got y of shape "
                f"{tuple(y.shape)}"
            )
        if self.ignore is None:
            return -f.gather(-1, y[..., None]).squeeze(-1)
        counts = y != self.ignore
        e = -f.gather(-1, torch.where(counts, y, 0)[..., None]).squeeze(-1)
        return torch.where(counts, e, 0.0)

    # --- a label at each position: independent given x -----------------------------------------

    @offers.argmin("y", when=lambda e: not _one_label(e))
    def best(self, x: Any) -> Any:
        """The largest score of each position; ``Ragged`` for items of rows of different length."""
        f = self._raw(x)
        return f.like(f.values.argmax(-1)) if isinstance(f, Ragged) else f.argmax(-1)

    @offers.conditional("y", when=_many_labels)
    def distribution(self, x: Any, T: float = 1.0) -> Distribution:
        f = self.scores(x) / T
        return Independent(Categorical(logits=f, validate_args=False), f.ndim - 2)

    @offers.log_partition("y", when=lambda e: not _one_label(e))
    def log_partition(self, x: Any, T: float = 1.0) -> Tensor:
        f = self._raw(x)
        if isinstance(f, Ragged):
            return sum_items(torch.logsumexp(f.values / T, -1), f.offsets)
        return torch.logsumexp(f / T, -1).flatten(1).sum(1)


def _classes(space: Space) -> int:
    while isinstance(space, Sequence | RaggedOf):
        space = space.item
    if not isinstance(space, Finite):
        raise ValueError(f"labels are Finite(k), alone or at positions, got {space!r}")
    return space.n
