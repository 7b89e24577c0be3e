r"""Sums and products of a tile of rows about a point, in one pass and in registers.

.. math:: \begin{pmatrix}\sum_i w_i y_iy_i^\top & \sum_i w_iy_i\\ \cdot & \sum_i w_i\end{pmatrix},
          \qquad y = x - o .

Rows are moved, weighed and given a last entry of one while they are copied into a small block, so
that the sums are one column more of the products.
"""

from __future__ import annotations

from typing import Any

from groundstate.compute.foreign.numba import add_outer, add_outer_three, add_outer_two
from groundstate.compute.kernels.compile_numba import inner, outer

BLOCK = 64  # rows of a block: with all its columns it stays in the nearest cache


def padded(d: int) -> int:
    """Columns of a block: those of the rows, the ones, and zeros to whole registers."""
    return (d + 8) // 8 * 8


@inner
def _add(block: Any, n: Any, out: Any) -> None:
    """``out += block[:n].T @ block[:n]``, what is above the diagonal."""
    width = block.shape[1]
    j = 0
    while j < width:
        left = width - j
        if left >= 24:
            for i in range(0, j + 24, 8):
                add_outer_three(block, i, j, n, out)
            j += 24
        elif left >= 16:
            for i in range(0, j + 16, 8):
                add_outer_two(block, i, j, n, out)
            j += 16
        else:
            for i in range(0, j + 8, 8):
                add_outer(block, i, j, n, out)
            j += 8


@outer
def scatter_about(x: Any, root: Any, origin: Any, block: Any, out: Any) -> None:
    """Set ``out`` to the products; ``root`` are square roots of weights, or empty without any.

    ``block`` is ``(BLOCK, padded(d))`` of zeros in its last columns, ``out`` square; below the
    diagonal it is not what it says.
    """
    n, d = x.shape
    out[:] = 0.0
    for lo in range(0, n, BLOCK):
        m = min(BLOCK, n - lo)
        for r in range(m):
            for j in range(d):
                block[r, j] = x[lo + r, j] - origin[j]
            block[r, d] = 1.0
        if root.size:
            for r in range(m):
                for j in range(d + 1):
                    block[r, j] *= root[lo + r]
        _add(block, m, out)
