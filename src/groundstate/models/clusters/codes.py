r"""Labels as bits: :math:`\lceil\log_2 k\rceil` bits for each row instead of k shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def bits(k: int) -> int:
    """How many bits a label of k clusters needs, at least one."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    return max(1, (k - 1).bit_length())


def pack_labels(labels: Any, k: int) -> NDArray[np.uint8]:
    """Labels 0 to k − 1 as a string of bits, ``(⌈n ⌈log₂ k⌉ / 8⌉,)`` uint8.

    >>> pack_labels([0, 9, 3], 10).tolist()
    [9, 48]
    """
    values = np.asarray(labels)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iub"):
        raise ValueError(f"labels must be whole numbers, (n,), got {values.dtype} {values.shape}")
    if values.size and not 0 <= int(values.min()) <= int(values.max()) < k:
        raise ValueError(
            f"labels go from {int(values.min())} to {int(values.max())}; k={k} clusters have labels "
            f"0 to {k - 1}"
        )
    width = bits(k)
    places = np.arange(width - 1, -1, -1)
    table = (values[:, None].astype(np.int64) >> places) & 1
    return np.packbits(table.astype(np.uint8).ravel())


def unpack_labels(packed: Any, k: int, n: int) -> NDArray[np.int32]:
    """The n labels that `pack_labels` packed.

    >>> unpack_labels(pack_labels([0, 9, 3], 10), 10, 3).tolist()
    [0, 9, 3]
    """
    width = bits(k)
    array = np.asarray(packed, np.uint8)
    if len(array) * 8 < n * width:
        raise ValueError(f"{len(array)} bytes hold fewer than {n} labels of {width} bits")
    table = np.unpackbits(array, count=n * width).reshape(n, width).astype(np.int32)
    found: NDArray[np.int32] = table @ (1 << np.arange(width - 1, -1, -1, dtype=np.int32))
    return found.astype(np.int32)
