"""JSON plus arrays back to values: the mirror of :mod:`groundstate.store.pack`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from groundstate.errors import StoreError
from groundstate.store.archive import Array, brief
from groundstate.store.arrays import decode_array, decode_tensor
from groundstate.store.generators import decode_generator
from groundstate.store.objects import class_of, hook_of
from groundstate.store.pack import MAX_DEPTH, SPARSE, TAG

_DTYPE = re.compile(r"[<>|=]?([biufc]\d{1,2}|[SU]\d{0,6}|O|[Mm]8(\[\w{1,4}\])?|\?)")
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SCALAR = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|str")
T = TypeVar("T")


def unpack(state: Any, arrays: dict[str, Array], device: str = "cpu") -> Any:
    """The value that :func:`groundstate.store.pack` took apart.

    Parameters
    ----------
    state, arrays
        As ``pack`` gave them.
    device
        Where tensors go: a device, or ``"stored"`` for the one each was on.

    Examples
    --------
    >>> from groundstate.store import pack
    >>> unpack(*pack({"t": (1, float("-inf")), 2: np.arange(3)}))
    {'t': (1, -inf), 2: array([0, 1, 2])}
    """
    try:
        return Unpacker(arrays, device).unpack(state)
    except StoreError:
        raise
    # a hostile state can make any class refuse its arguments in its own way
    except Exception as error:
        raise StoreError(
            f"the stored state does not fit this version ({type(error).__name__}: {brief(error)})"
        ) from error


class Unpacker:
    """One walk over a state."""

    def __init__(self, arrays: dict[str, Array], device: str) -> None:
        self.arrays, self.device = arrays, device

    def unpack(self, node: Any, depth: int = 0) -> Any:
        if depth > 2 * MAX_DEPTH:
            raise StoreError(f"the stored state is nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, list):
            return [self.unpack(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            return node
        if TAG not in node:
            return {key: self.unpack(value, depth + 1) for key, value in node.items()}
        kind = node[TAG]
        decode = _KINDS.get(kind) if isinstance(kind, str) else None
        if decode is None:
            raise StoreError(f"unknown kind of value {kind!r:.40} in the stored state")
        return decode(self, node, depth + 1)

    def _list(self, node: dict[str, Any], depth: int) -> list[Any]:
        return [self.unpack(item, depth) for item in _typed(node["v"], list)]

    def _float(self, node: dict[str, Any], depth: int) -> float:
        return _FLOATS[node["v"]]

    def _dict(self, node: dict[str, Any], depth: int) -> dict[Any, Any]:
        return {self.unpack(key, depth): self.unpack(value, depth) for key, value in node["v"]}

    def _bytes(self, node: dict[str, Any], depth: int) -> bytes:
        return self._block(node).tobytes()

    def _scalar(self, node: dict[str, Any], depth: int) -> Any:
        name = _typed(node["dtype"], str)
        value = self.unpack(node["v"], depth)
        if _SCALAR.fullmatch(name) is None or isinstance(value, (list, dict, np.ndarray)):
            raise StoreError(f"unknown kind of number {name!r:.40}")
        return np.str_(value) if name == "str" else np.dtype(name).type(value)

    def _array(self, node: dict[str, Any], depth: int) -> Any:
        array = decode_array(node, self._block(node))
        return array[()] if node.get("scalar") is True and array.ndim == 0 else array

    def _objects(self, node: dict[str, Any], depth: int) -> Array:
        values = self._list(node, depth)
        shape = tuple(_typed(n, int) for n in node["shape"])
        if any(n < 0 for n in shape) or math.prod(shape) != len(values):
            raise StoreError(f"an array of {len(values)} objects cannot have shape {brief(shape)}")
        array = np.empty(len(values), object)
        for i, value in enumerate(values):  # one by one: numpy would turn lists into axes
            array[i] = value
        return array.reshape(shape)

    def _tensor(self, node: dict[str, Any], depth: int) -> Any:
        return decode_tensor(node, self._block(node), self.device)

    def _dtype(self, node: dict[str, Any], depth: int) -> Any:
        word = _typed(node["v"], str)
        if _DTYPE.fullmatch(word) is None:
            raise StoreError(f"unknown dtype {word!r:.40}")
        dtype = np.dtype(word)
        return dtype if node[TAG] == "dtype" else dtype.type

    def _torch(self, node: dict[str, Any], depth: int) -> Any:
        import torch

        word = _typed(node["v"], str)
        if node[TAG] == "torch device":
            return torch.device(word)
        found = getattr(torch, word.removeprefix("torch."), None)
        if not isinstance(found, torch.dtype):
            raise StoreError(f"unknown dtype {word!r:.40}")
        return found

    def _generator(self, node: dict[str, Any], depth: int) -> Any:
        return decode_generator(node["name"], self.unpack(node["state"], depth))

    def _sparse(self, node: dict[str, Any], depth: int) -> Any:
        import scipy.sparse

        if node["kind"] not in SPARSE:
            raise StoreError(f"unknown sparse format {node['kind']!r:.40}")
        parts = tuple(self.unpack(node[name], depth) for name in ("data", "indices", "indptr"))
        shape = tuple(_typed(n, int) for n in node["shape"])
        matrix = getattr(scipy.sparse, node["kind"])(parts, shape=shape)
        matrix.check_format(full_check=True)  # indices out of range would crash products in C
        return matrix

    def _object(self, node: dict[str, Any], depth: int) -> Any:
        cls = class_of(node["class"])
        hook = hook_of(cls)
        if hook is None:
            raise StoreError(f"class {node['class']!r:.80} cannot be restored from a file")
        parts = {
            name: _typed(self.unpack(value, depth), dict)
            for name, value in node.items()
            if name not in (TAG, "class")
        }
        return hook.build(cls, parts, self.device)

    def _block(self, node: dict[str, Any]) -> Array:
        key = node["key"]
        if not isinstance(key, str) or key not in self.arrays:
            raise StoreError(f"the stored state refers to an array {key!r:.60} that is not there")
        return self.arrays[key]


def _typed(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise StoreError(
            f"the stored state has a {type(value).__name__} in place of a {kind.__name__}"
        )
    return value


_KINDS: dict[str, Callable[[Unpacker, dict[str, Any], int], Any]] = {
    "float": Unpacker._float,
    "tuple": lambda self, node, depth: tuple(self._list(node, depth)),
    "set": lambda self, node, depth: set(self._list(node, depth)),
    "frozenset": lambda self, node, depth: frozenset(self._list(node, depth)),
    "slice": lambda self, node, depth: slice(*self._list(node, depth)),
    "dict": Unpacker._dict,
    "bytes": Unpacker._bytes,
    "scalar": Unpacker._scalar,
    "array": Unpacker._array,
    "objects": Unpacker._objects,
    "tensor": Unpacker._tensor,
    "dtype": Unpacker._dtype,
    "scalar type": Unpacker._dtype,
    "torch device": Unpacker._torch,
    "torch dtype": Unpacker._torch,
    "generator": Unpacker._generator,
    "sparse": Unpacker._sparse,
    "object": Unpacker._object,
}
