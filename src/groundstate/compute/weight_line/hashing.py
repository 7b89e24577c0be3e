r"""The content of a row as one 64-bit word.

With words :math:`w_j` (the bits of the entries as float64) and position keys :math:`k_j`,

.. math:: h(\text{row}) = \operatorname{mix}\Bigl(s + \sum_j
          \operatorname{mix}(w_j \oplus k_j) - \operatorname{mix}(k_j)\Bigr) \bmod 2^{64}.

An entry of zero adds nothing, so a sparse row hashes like its dense twin; the sum is over one row
alone, so neither the order of the rows nor chunks or shards can change it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.random import GOLDEN, U64, mix64
from groundstate.errors import DataError, ShapeError

_NAN = 0x7FF8000000000000
_INF = 0x7FF0000000000000
_ABS = 0x7FFFFFFFFFFFFFFF
_EXACT = 1 << 53
_CHUNK_WORDS = 1 << 16  # 512 KiB of words: a chunk stays in the second-level cache
SMALL = 1 << 14  # below this many words NumPy is as fast as compiled kernels, and needs no compiler


def row_hash(*columns: Any, seed: int = 0) -> U64:
    r"""Hash the content of each row to 64 bits.

    Parameters
    ----------
    *columns : array, torch tensor, row container, SciPy sparse matrix or None, each (N, ...)
        Taken together: ``row_hash(X, y)`` tells apart equal ``x`` with different ``y``. None is
        left out. Numbers hash by value: integers, booleans, float32 and float64 of equal value
        agree (integers up to 2^53), -0.0 equals 0.0, all NaN are equal. Text hashes by its
        characters.
    seed : int
        Another seed gives unrelated hashes.

    Returns
    -------
    array of uint64, (N,)
        Two different rows collide with probability 2^-64.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0]])
    >>> h = row_hash(X)
    >>> bool(h[0] == h[2]), bool(h[0] == h[1])
    (True, False)
    >>> bool((row_hash(X[1:]) == h[1:]).all())
    True
    """
    start = hash_start(seed)
    total: U64 | None = None
    for position, column in enumerate(columns):
        if column is None:
            continue
        part = _column_sum(column, column_keys(start, position))
        if total is None:
            total = part
        elif len(part) != len(total):
            raise ShapeError(
                f"row_hash got columns of {len(total)} and {len(part)} rows; "
                "pass arrays with one entry per row each."
            )
        else:
            total += part
    if total is None:
        raise DataError("row_hash got no columns; pass at least one array of rows.")
    total += np.uint64(start ^ GOLDEN)
    return mix64(total)


@cache
def hash_start(seed: int) -> int:
    """Where the hashes of a seed start from."""
    return int(mix64(np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64))[0])


@cache
def column_keys(start: int, position: int) -> int:
    """The origin of the position keys of one argument of `row_hash`."""
    word = np.array([start ^ (position + 1)], dtype=np.uint64)
    return int(mix64(word * np.uint64(GOLDEN))[0])


@lru_cache(8)
def position_keys(origin: int, d: int) -> U64:
    """The key of each column, not to be written to.  # (d,)"""
    counter = np.arange(1, d + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    keys = mix64(counter + np.uint64(origin))
    keys.flags.writeable = False
    return keys


def _column_sum(column: Any, origin: int) -> U64:
    if isinstance(column, torch.Tensor):
        if column.device.type != "cpu":
            from groundstate.compute.weight_line.hashing_torch import tensor_sum

            return tensor_sum(column, origin).cpu().numpy().view(np.uint64)
        column = column.detach().numpy()
    if hasattr(column, "tocsr"):
        return _sparse_sum(column, origin)
    if hasattr(column, "in_parts"):  # read from a file, rows hash like those in memory
        return np.concatenate([_column_sum(part, origin) for part in column.in_parts()])
    if hasattr(column, "hashes"):  # a container of rows
        column = column.hashes()
    array = np.asarray(column)
    if array.ndim == 0:
        raise ShapeError(f"row_hash got a single {array.dtype} value; pass an array with N rows.")
    n = len(array)
    array = array.reshape(n, int(np.prod(array.shape[1:])))
    if array.dtype.kind in "OUS":
        return _text_sum(array, origin)
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array, dtype=np.complex128).view(np.float64)
    elif array.dtype.kind in "mM":
        array = array.astype(np.int64)
    elif array.dtype.kind not in "fiub":
        raise DataError(f"row_hash cannot read dtype {array.dtype}; pass numbers or text.")
    return _dense_sum(array, position_keys(origin, array.shape[1]))


def _dense_sum(array: NDArray[Any], keys: U64) -> U64:
    n, d = array.shape
    out = np.empty(n, dtype=np.uint64)
    if n * d <= SMALL:
        out[:] = mix64(canonical_words(array) ^ keys).sum(axis=1, dtype=np.uint64)
    else:
        from groundstate.compute.weight_line.line_numba import sum_floats, sum_words

        if array.dtype.kind == "f" and array.dtype.itemsize in (4, 8):
            sum_floats(array, keys, out)
        else:
            chunk = max(1, _CHUNK_WORDS // d)
            for a in range(0, n, chunk):
                sum_words(_raw_words(array[a : a + chunk]), keys, out[a : a + chunk])
    out -= mix64(keys).sum(dtype=np.uint64)
    return out


def _raw_words(array: NDArray[Any]) -> U64:
    """The bits of the entries as float64, without a copy where they are that already."""
    values = np.ascontiguousarray(array, dtype=np.float64)
    words = values.view(np.uint64)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        large = (array > _EXACT) | (array < -_EXACT if array.dtype.kind == "i" else False)
        if large.any():
            words = np.where(large, array.astype(np.uint64), words)
    return words


def canonical_words(array: NDArray[Any]) -> U64:
    """`_raw_words` with one zero and one NaN.  # (N, d)"""
    words = _raw_words(array)
    size = words & np.uint64(_ABS)
    words = np.where(size == 0, size, words)
    return np.where(size > np.uint64(_INF), np.uint64(_NAN), words)


def _sparse_sum(matrix: Any, origin: int) -> U64:
    csr = matrix.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    words = canonical_words(np.asarray(csr.data))
    keys = position_keys(origin, csr.shape[1])[csr.indices]
    running = np.zeros(len(words) + 1, dtype=np.uint64)
    np.cumsum(mix64(words ^ keys) - mix64(keys), out=running[1:])
    return running[csr.indptr[1:]] - running[csr.indptr[:-1]]


def _text_sum(array: NDArray[Any], origin: int) -> U64:
    """Sum over the characters; padding is zero and adds nothing, so the width does not matter."""
    out = np.zeros(len(array), dtype=np.uint64)
    for j, key in enumerate(position_keys(origin, array.shape[1]).tolist()):
        text = np.ascontiguousarray(array[:, j].astype(np.str_))
        letters = text.view(np.uint32).reshape(len(text), -1) if len(text) else text.reshape(0, 0)
        out += _dense_sum(letters, position_keys(key, letters.shape[1]))
    return out
