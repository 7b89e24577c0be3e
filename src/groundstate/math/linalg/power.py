r"""The largest eigenvalue of a symmetric map, by products with it alone."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def largest_eigenvalue(
    product: Callable[[Tensor], Tensor], start: Tensor, *, n_iter: int = 200, tol: float = 0.0
) -> float:
    r"""The largest :math:`|\lambda|` by power iteration, :math:`v \leftarrow Av/\|Av\|`.

    Parameters
    ----------
    product : Av for v ``(n,)``
    start : v, not orthogonal to the eigenvector
    n_iter, tol : products at most, and relative change at which to stop

    Examples
    --------
    >>> import torch
    >>> A = torch.diag(torch.tensor([1.0, -5.0]).double())
    >>> round(largest_eigenvalue(lambda v: A @ v, torch.ones(2).double()), 6)
    5.0
    """
    v, last = start / start.norm(), 0.0
    for _ in range(n_iter):
        v = product(v)
        size = float(v.norm())
        if size == 0:
            return 0.0
        v = v / size
        if abs(size - last) <= tol * size:
            return size
        last = size
    return last
