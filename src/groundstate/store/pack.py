"""Values to JSON plus arrays.

JSON says what JSON can say (None, bool, int, finite float, str, list, dict with text keys);
anything else is a node ``{"$": kind, ...}``. Arrays go to a side table and the node holds their
key. Equal arrays are kept once, so a network and a copy of its weights cost the space of one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import OrderedDict
from typing import Any

import numpy as np

from groundstate.errors import NotStorableError, StoreError, Unsupported
from groundstate.store.archive import Array
from groundstate.store.arrays import encode_array, encode_tensor, is_tensor
from groundstate.store.generators import encode_generator
from groundstate.store.objects import class_id, hook_of

TAG = "$"
MAX_DEPTH = 100


def pack(value: Any, name: str = "value") -> tuple[Any, dict[str, Array]]:
    """JSON and arrays that together hold ``value``.

    Parameters
    ----------
    value
        Nested dict, list, tuple, set of None, bool, int, float, str, bytes, NumPy scalars and
        arrays (numbers, text, dates, objects), sparse matrices, torch tensors and generators,
        and objects of known classes (see :func:`groundstate.store.register`).
    name
        What messages call the value.

    Returns
    -------
    (state, arrays)

    Raises
    ------
    StoreError
        For a value of another type, naming where it was found.

    Examples
    --------
    >>> state, arrays = pack({"a": 1, "w": np.zeros(2), "t": (float("inf"),)})
    >>> state["a"], state["w"], state["t"]
    (1, {'$': 'array', 'key': 'w'}, {'$': 'tuple', 'v': [{'$': 'float', 'v': 'inf'}]})
    >>> arrays["w"]
    array([0., 0.])
    """
    packer = Packer(name)
    return packer.pack(value, ()), packer.arrays


class Packer:
    """One walk over a value; ``arrays`` and ``classes`` fill up on the way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arrays: dict[str, Array] = {}
        self.classes: set[str] = set()
        self._keys: dict[bytes, str] = {}

    def pack(self, value: Any, path: tuple[str, ...]) -> Any:
        """The JSON of ``value``, found at ``path`` of the whole."""
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is int:
            return value
        if kind is float:
            return value if math.isfinite(value) else {TAG: "float", "v": str(value)}
        if len(path) > MAX_DEPTH:
            raise StoreError(
                f"cannot store {self._where(path[:3])}...: it is nested deeper than {MAX_DEPTH} "
                "levels; does it contain itself?"
            )
        if kind is list:
            return self._each(value, path)
        if kind is dict or kind is OrderedDict:
            return self._dict(value, path)
        if kind is tuple:
            return {TAG: "tuple", "v": self._each(value, path)}
        if kind is set or kind is frozenset:
            items = sorted(self._each(list(value), path), key=json.dumps)
            return {TAG: kind.__name__, "v": items}
        if kind is bytes:
            return {TAG: "bytes", "key": self._keep(np.frombuffer(value, np.uint8), path)}
        if kind is slice:
            return {TAG: "slice", "v": self._each([value.start, value.stop, value.step], path)}
        if isinstance(value, np.generic):
            return self._scalar(value, path)
        if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            return self._array(value, path)
        if is_tensor(value):
            note, block = encode_tensor(value, self._where(path))
            return {TAG: "tensor", "key": self._keep(block, path), **note}
        if kind.__module__ == "torch" and kind.__name__ in ("device", "dtype"):
            return {TAG: f"torch {kind.__name__}", "v": str(value)}
        if isinstance(value, np.dtype):
            return {TAG: "dtype", "v": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {TAG: "scalar type", "v": np.dtype(value).str}
        return self._special(value, path)

    def _special(self, value: Any, path: tuple[str, ...]) -> Any:
        generator = encode_generator(value)
        if generator is not None:
            name, state = generator
            return {TAG: "generator", "name": name, "state": self.pack(state, (*path, "state"))}
        if type(value).__module__.startswith("scipy.sparse"):
            return self._sparse(value, path)
        identity = class_id(type(value))
        hook = hook_of(type(value)) if identity is not None else None
        if identity is None or hook is None:
            raise NotStorableError(
                f"cannot store {self._where(path)}: {_type_name(value)} is not a type the store "
                "knows; give it to_state/from_state and call groundstate.store.register on its "
                "class, or leave it out"
            )
        self.classes.add(identity)
        try:
            parts = hook.parts(value, self._where(path))
        except Unsupported as error:
            raise StoreError(f"cannot store {self._where(path)}: {error}") from error
        return {
            TAG: "object",
            "class": identity,
            **{k: self._dict(v, path) for k, v in parts.items()},
        }

    def _each(self, values: Any, path: tuple[str, ...]) -> list[Any]:
        return [self.pack(value, (*path, str(i))) for i, value in enumerate(values)]

    def _dict(self, values: dict[Any, Any], path: tuple[str, ...]) -> Any:
        if TAG not in values and all(type(key) is str for key in values):
            return {key: self.pack(value, (*path, key)) for key, value in values.items()}
        items = [
            [self.pack(key, (*path, f"key {i}")), self.pack(value, (*path, str(key)))]
            for i, (key, value) in enumerate(values.items())
        ]
        return {TAG: "dict", "v": items}

    def _scalar(self, value: np.generic, path: tuple[str, ...]) -> Any:
        if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
            plain = self.pack(value.item(), path)
            return {TAG: "scalar", "dtype": value.dtype.name, "v": plain}
        if isinstance(value, np.str_):
            return {TAG: "scalar", "dtype": "str", "v": str(value)}
        note, block = encode_array(np.asarray(value), self._where(path))
        return {TAG: "array", "key": self._keep(block, path), "scalar": True, **note}

    def _array(self, value: Array, path: tuple[str, ...]) -> Any:
        array = np.asarray(value)
        if array.dtype == object:
            return {TAG: "objects", "shape": list(array.shape), "v": self._each(array.flat, path)}
        note, block = encode_array(array, self._where(path))
        return {TAG: "array", "key": self._keep(block, path), **note}

    def _sparse(self, value: Any, path: tuple[str, ...]) -> Any:
        kind = type(value).__name__  # csr_matrix, csc_array, ...
        if kind not in SPARSE:
            raise StoreError(
                f"cannot store {self._where(path)}: {kind} is not among the sparse formats kept; "
                "convert it with .tocsr()"
            )
        names = ("data", "indices", "indptr")
        parts = {name: self.pack(getattr(value, name), (*path, name)) for name in names}
        return {TAG: "sparse", "kind": kind, "shape": list(value.shape), **parts}

    def _keep(self, block: Array, path: tuple[str, ...]) -> str:
        """The key of a block; blocks with equal content share one."""
        head = f"{block.dtype.str}{block.shape}".encode()
        digest = hashlib.sha256(head + b"\0")
        digest.update(block.data if block.size else b"")
        key = self._keys.get(digest.digest())
        if key is None:
            stem = key = "/".join(path) or "value"
            count = 1
            while key in self.arrays:
                count += 1
                key = f"{stem}#{count}"
            self._keys[digest.digest()] = key
            self.arrays[key] = block
        return key

    def _where(self, path: tuple[str, ...]) -> str:
        return ".".join((self.name, *path))


SPARSE = frozenset({"csr_matrix", "csc_matrix", "csr_array", "csc_array"})


def _type_name(value: Any) -> str:
    kind = type(value)
    return (
        f"a {kind.__qualname__}"
        if kind.__module__ == "builtins"
        else (f"a {kind.__module__}.{kind.__qualname__}")
    )
