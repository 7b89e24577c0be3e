r"""Trees as flat arrays: who asks what, where to go, and what stands in the leaves."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

MANY = 1 << 17  # visits (rows × trees) from which several threads pay


_ARRAYS = (
    "feature",
    "threshold",
    "left",
    "right",
    "nan_left",
    "value",
    "weight",
    "impurity",
    "rows",
)


@dataclass
class Tree:
    """One grown tree; a leaf has feature −1. Children are numbered within the tree.

    ``categories`` gives, for nodes that ask for a set of categories, the mask of those that go
    left; there ``threshold`` is NaN.
    """

    feature: NDArray[np.int64]  # (N,)
    threshold: NDArray[np.float64]  # (N,)
    left: NDArray[np.int64]  # (N,)
    right: NDArray[np.int64]  # (N,)
    nan_left: NDArray[np.bool_]  # (N,)
    value: NDArray[np.float64]  # (N, k)
    weight: NDArray[np.float64]  # (N,)
    impurity: NDArray[np.float64]  # (N,)
    rows: NDArray[np.int64]  # (N,)
    categories: dict[int, NDArray[np.bool_]]
    column: int = -1  # the output that a tree of one value adds to, −1: all of them

    @property
    def n_nodes(self) -> int:
        return len(self.feature)


def packed(trees: list[Tree]) -> list[Tree]:
    """The same trees in a few arrays.

    Thousands of small arrays between what grows them, which comes and goes, leave gaps in memory that
    nothing fits into: 50 KB for a tree of 2 KB.
    """
    if len(trees) < 2:
        return trees
    cuts = np.cumsum([tree.n_nodes for tree in trees])[:-1]
    parts: dict[str, list[Any]] = {
        name: np.split(np.concatenate([getattr(tree, name) for tree in trees]), cuts)
        for name in _ARRAYS
    }
    return [
        replace(tree, **{name: part[i] for name, part in parts.items()})
        for i, tree in enumerate(trees)
    ]


class TreeNodes(nn.Module):
    r"""A sum of binary trees, :math:`f(x) = \sum_t v_{\ell_t(x)}` with :math:`\ell_t(x)` a leaf.

    A node sends a row left when :math:`x_j \le t`, or when the category :math:`x_j` is in its set;
    NaN and unknown categories go where ``nan_left`` says.

    Parameters
    ----------
    n_nodes, n_trees : total number of nodes, and of trees
    k : values per node
    n_words : 64-bit words of all category sets
    dtype : of the floating numbers; None is torch's default

    Attributes
    ----------
    value : Parameter, ``(n_nodes, k)``; found by growing trees, without gradients unless asked
    feature, threshold, left, right, nan_left, weight, impurity, rows : buffers, ``(n_nodes,)``
    start : buffer, ``(n_trees + 1,)``; tree t has the nodes ``start[t]:start[t + 1]``
    column : buffer, ``(n_trees,)``
    """

    value: Tensor
    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    nan_left: Tensor
    weight: Tensor
    impurity: Tensor
    rows: Tensor
    cat_start: Tensor
    cat_size: Tensor
    bits: Tensor
    start: Tensor
    column: Tensor

    def __init__(
        self,
        n_nodes: int = 1,
        n_trees: int = 1,
        k: int = 1,
        n_words: int = 0,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if dtype is None:
            dtype = torch.get_default_dtype()
        self._parameters["value"] = nn.Parameter(_full((n_nodes, k), 0, dtype), requires_grad=False)
        held = self._buffers  # known names: what `register_buffer` would check holds
        for name, kind in _INTEGER.items():
            held[name] = _full((n_nodes,), -1, kind)
        for name in ("threshold", "weight", "impurity"):
            held[name] = _full((n_nodes,), 0, dtype)
        held["bits"] = _full((n_words,), 0, torch.int64)
        held["start"] = torch.tensor([0] + [n_nodes] * n_trees)
        held["column"] = _full((n_trees,), -1, torch.int64)

    def config(self) -> dict[str, Any]:
        n, k = self.value.shape
        return {"n_nodes": n, "n_trees": self.n_trees, "k": k, "n_words": len(self.bits)}

    @property
    def n_trees(self) -> int:
        return len(self.column)

    def set(self, trees: list[Tree]) -> None:
        """Take these trees, in the floating type and on the device of ``value``."""
        old = self.value
        device, dtype = old.device, old.dtype
        start = np.zeros(len(trees) + 1, np.int64)
        np.cumsum([len(t.feature) for t in trees], out=start[1:])
        n = int(start[-1])
        arrays: dict[str, NDArray[Any]] = {"start": start}
        for name in ("feature", "threshold", "nan_left", "weight", "impurity", "rows"):
            arrays[name] = _joined([getattr(t, name) for t in trees])
        # of many classes by far the largest, and so never held more than once beside the trees
        arrays["value"] = np.empty((n, *trees[0].value.shape[1:]), _NUMPY.get(dtype, np.float64))
        np.concatenate([t.value for t in trees], out=arrays["value"])
        for name in ("left", "right"):
            child = _joined([getattr(t, name) for t in trees])
            if len(trees) > 1:  # numbered from the first node of all; −1 stays
                child = np.where(child < 0, -1, child + np.repeat(start[:-1], np.diff(start)))
            arrays[name] = child
        first, size = np.full(n, -1, np.int32), np.zeros(n, np.int32)
        words: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        used = 0
        for tree, at in zip(trees, start):
            for v, mask in tree.categories.items():
                packed = np.packbits(np.pad(mask, (0, -len(mask) % 64)), bitorder="little")
                words.append(packed.view(np.int64))
                first[at + v], size[at + v] = used, len(mask)
                used += len(words[-1])
        arrays["cat_start"], arrays["cat_size"], arrays["bits"] = first, size, _joined(words)
        arrays["column"] = np.array([t.column for t in trees], np.int64)
        for name, array in arrays.items():
            kind = _INTEGER.get(name) or (torch.int64 if array.dtype.kind == "i" else dtype)
            # a copy: trees stay as they are
            own = array.astype(_NUMPY.get(kind, array.dtype), "C", copy=name != "value")
            made = torch.from_numpy(own)
            if kind not in _NUMPY or device.type != "cpu":
                made = made.to(device, kind)
            if name == "value":
                self._parameters[name] = nn.Parameter(made, requires_grad=old.requires_grad)
            else:
                self._buffers[name] = made  # known names: what a module would check holds

    def _load_from_state_dict(self, state: Any, prefix: str, *args: Any) -> None:
        for name in (*self._parameters, *self._buffers):  # trees of another size may come
            own, new = getattr(self, name), state.get(prefix + name)
            if isinstance(own, Tensor) and isinstance(new, Tensor) and own.shape != new.shape:
                if name != "value":
                    setattr(self, name, own.new_empty(new.shape))
                else:
                    self.value = nn.Parameter(own.new_empty(new.shape), own.requires_grad)
        super()._load_from_state_dict(state, prefix, *args)

    def _arrays(self) -> tuple[Any, ...]:
        names = (
            "feature",
            "threshold",
            "left",
            "right",
            "nan_left",
            "cat_start",
            "cat_size",
            "bits",
        )
        return (self.start[:-1].numpy(), *(getattr(self, name).numpy() for name in names))

    def _packed(self, rows: int) -> Any:
        """The nodes packed for descent, where they have no categories and the rows pay for it."""
        names = ("start", "feature", "threshold", "left", "right", "nan_left")
        now = [self._buffers[name] for name in names]
        state = [tensor._version for tensor in now if tensor is not None]
        held = self.__dict__.get("_held")
        if held and held[1] == state and all(a is b for a, b in zip(held[0], now, strict=True)):
            return held[2]
        if len(self.bits) or 8 * rows * self.n_trees < len(self.feature):
            return None
        from groundstate.energy.trees.packed_numba import pack

        made = pack(*(tensor.numpy() for tensor in now if tensor is not None))
        self.__dict__["_held"] = (now, state, made)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in self.__dict__.items() if name != "_held"}

    @torch.no_grad()
    def apply_rows(self, x: Tensor) -> Tensor:
        """The leaf of each row in each tree, as numbers of nodes, ``(B, n_trees)``."""
        if x.device.type != "cpu":
            return self.descend(x)
        from groundstate.energy.trees import (
            descent_numba as tree_kernels,
        )
        from groundstate.energy.trees import (
            packed_numba as tree_packed,
        )

        out = np.empty((len(x), self.n_trees), np.int64)
        rows, packed = x.detach().contiguous().numpy(), self._packed(len(x))
        leaves = tree_kernels.leaves if packed is None else tree_packed.leaves
        arrays = self._arrays() if packed is None else packed
        _threads(lambda lo, hi: leaves(rows, lo, hi, *arrays, out), len(x), self.n_trees)
        return torch.from_numpy(out)

    def descend(self, x: Tensor) -> Tensor:
        """`apply_rows` in torch, level by level."""
        at = self.start[:-1].expand(len(x), -1).clone()  # (B, T)
        while True:
            j = self.feature[at].long()
            inner = j >= 0
            if not bool(inner.any()):
                return at
            v = x.gather(1, j.clamp_min(0))
            known = ~torch.isnan(v)
            size = self.cat_size[at]
            category = self.cat_start[at] >= 0
            known &= ~category | ((v >= 0) & (v < size))
            go = torch.where(known & ~category, v <= self.threshold[at], self.nan_left[at])
            if len(self.bits):
                c = torch.where(known & category, v, torch.zeros_like(v)).long()
                word = (self.cat_start[at].long().clamp_min(0) + (c >> 6)).clamp_max(
                    len(self.bits) - 1
                )
                bit = (self.bits[word] >> (c & 63)) & 1
                go = torch.where(known & category, bit.bool(), go)
            step = torch.where(go, self.left[at], self.right[at]).long()
            at = torch.where(inner, step, at)

    def forward(self, x: Tensor, outputs: int) -> Tensor:
        """Sums of the leaf values, ``(B, outputs)``."""
        learning = torch.is_grad_enabled() and self.value.requires_grad
        if learning or x.device.type != "cpu":
            found = self.value[self.apply_rows(x)]  # (B, T, k)
            if bool((self.column < 0).all()):
                return found.sum(1)
            zeros = x.new_zeros(len(x), outputs)
            return zeros.index_add(1, self.column, found[..., 0])
        from groundstate.energy.trees import (
            descent_numba as tree_kernels,
        )
        from groundstate.energy.trees import (
            packed_numba as tree_packed,
        )

        out = np.zeros((len(x), outputs), np.float64)
        rows, value = x.detach().contiguous().numpy(), self.value.detach().numpy()
        packed, column = self._packed(len(x)), self.column.numpy()
        summed = tree_kernels.summed if packed is None else tree_packed.summed
        arrays = self._arrays() if packed is None else packed
        _threads(
            lambda lo, hi: summed(rows, lo, hi, *arrays, value, column, out), len(x), self.n_trees
        )
        return torch.from_numpy(out).to(self.value.dtype)

    def tree(self, t: int) -> Tree:
        """One tree, numbered from its own root."""
        lo, hi = int(self.start[t]), int(self.start[t + 1])
        part = {
            name: getattr(self, name)[lo:hi].detach().cpu().numpy()
            for name in ("feature", "left", "right", "nan_left", "threshold", "weight", "impurity",
                         "rows", "value", "cat_start", "cat_size")
        }  # fmt: skip
        sets = {}
        for v in np.flatnonzero(part["cat_start"] >= 0):
            size, at = int(part["cat_size"][v]), int(part["cat_start"][v])
            words = self.bits[at : at + -(-size // 64)].cpu().numpy()
            bits = np.unpackbits(words.view(np.uint8), bitorder="little")
            sets[int(v)] = bits[:size].astype(bool)
        for name in ("left", "right"):
            part[name] = np.where(part[name] < 0, -1, part[name] - lo).astype(np.int64)
        part.pop("cat_start"), part.pop("cat_size")
        part["feature"] = part["feature"].astype(np.int64)
        return Tree(**part, categories=sets, column=int(self.column[t]))


_INTEGER = {
    "feature": torch.int32,
    "left": torch.int32,
    "right": torch.int32,
    "nan_left": torch.bool,
    "rows": torch.int32,
    "cat_start": torch.int32,
    "cat_size": torch.int32,
}

_NUMPY: dict[torch.dtype, Any] = {
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.bool: np.bool_,
    torch.float32: np.float32,
    torch.float64: np.float64,
}


def _full(shape: tuple[int, ...], fill: int, dtype: torch.dtype) -> Tensor:
    """``torch.full``; memory of NumPy costs the single node of a small fit half as much."""
    if shape[0] == 1 and dtype in _NUMPY:
        return torch.from_numpy(np.full(shape, fill, _NUMPY[dtype]))
    return torch.full(shape, fill, dtype=dtype)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _threads(task: Any, rows: int, trees: int) -> None:
    workers = min(torch.get_num_threads(), os.cpu_count() or 1) if rows * trees >= MANY else 1
    if workers == 1:
        task(0, rows)
        return
    cuts = np.linspace(0, rows, workers + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(task, cuts[:-1], cuts[1:]))
