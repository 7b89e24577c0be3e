r"""Where non-negative factors start: from singular vectors, or at random."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.math.linalg.range_finder import CentredRows, randomized_svd

TINY = 1e-6  # entries below are zero
SHORT = 256  # shorter sides whose product of rows is decomposed


def singular_start(
    x: Tensor, k: int, weight: Tensor | None, fill: str, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    r"""W ``(n, k)`` and :math:`H^\top` ``(d, k)`` from :math:`X \approx \sum_j\sigma_ju_jv_j^\top`.

    Of each pair of singular vectors the heavier of the two parts :math:`(u_+, v_+)`, :math:`(u_-, v_-)`
    is taken (Boutsidis and Gallopoulos, 2008).

    Parameters
    ----------
    x : ``(n, d)``, dense or CSR
    k : at most min(n, d)
    weight : ``(n,)``, of the rows
    fill : what zeros become: "nndsvd" zero, "nndsvda" the mean of X, "nndsvdar" small random numbers,
        the same for all rows
    generator : of the random numbers

    Examples
    --------
    >>> x = torch.tensor([[3.0, 0.0], [0.0, 2.0]]).double()
    >>> W, Ht = singular_start(x, 2, None, "nndsvd", torch.Generator())
    >>> (W @ Ht.T).round(decimals=4).tolist()
    [[3.0, 0.0], [0.0, 2.0]]
    """
    rows = CentredRows(x)
    root = None if weight is None else weight.to(x.dtype).sqrt()
    s, V = _right(CentredRows(x, None, root), k, generator)
    U = rows.dot(V) / torch.where(s > 0, s, torch.inf)  # also of rows without weight
    w = torch.ones(len(U), 1).to(U) if weight is None else weight.to(U)[:, None]
    up, down = (U.clamp_min(0), V.clamp_min(0)), ((-U).clamp_min(0), (-V).clamp_min(0))
    sizes = [((w * u.square()).sum(0).sqrt(), v.square().sum(0).sqrt()) for u, v in (up, down)]
    first = sizes[0][0] * sizes[0][1] > sizes[1][0] * sizes[1][1]
    u, v, a, b = (
        torch.where(first, p, q) for p, q in zip((*up, *sizes[0]), (*down, *sizes[1]), strict=True)
    )
    scale = (s * a * b).sqrt()
    W, Ht = u * _over(scale, a), v * _over(scale, b)
    # the leading pair has one sign
    W[:, 0], Ht[:, 0] = s[0].sqrt() * U[:, 0].abs(), s[0].sqrt() * V[:, 0].abs()
    for A in (W, Ht):
        A[A < TINY] = 0.0
    if fill == "nndsvda":
        mean = float(_mean(x, weight))
        W[W == 0], Ht[Ht == 0] = mean, mean
    elif fill == "nndsvdar":
        mean = float(_mean(x, weight)) / 100
        noise = torch.randn(len(Ht) + 1, k, generator=generator, dtype=torch.float64).abs().to(W)
        W, Ht = (
            torch.where(A == 0, mean * extra, A) for A, extra in ((W, noise[:1]), (Ht, noise[1:]))
        )
    return W.contiguous(), Ht.contiguous()


def random_start(
    x: Tensor, k: int, weight: Tensor | None, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Random :math:`H^\\top` ``(d, k)`` of the scale of X, and the same codes ``(n, k)`` for every row.

    Rows then differ by what is in them alone: their order and repetition change nothing.
    """
    size = (_mean(x, weight) / k).sqrt()
    H = torch.randn(k, x.shape[1], generator=generator, dtype=torch.float64).abs().to(x)
    code = torch.randn(k, generator=generator, dtype=torch.float64).abs().to(x)
    return (size * code).expand(len(x), k).clone(), (size * H).T.contiguous()


def _mean(x: Tensor, weight: Tensor | None) -> Tensor:
    one = torch.ones(x.shape[1]).to(x.device, x.dtype)
    sums = CentredRows(x).dot(one[:, None])[:, 0]
    if weight is None:
        return sums.mean() / x.shape[1]
    return (weight.to(sums) @ sums) / (weight.sum().to(sums) * x.shape[1])


def _over(a: Tensor, b: Tensor) -> Tensor:
    return torch.where(b > 0, a / torch.where(b > 0, b, 1.0), 0.0)


def _right(rows: CentredRows, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The k largest singular values and their right vectors ``(d, k)``."""
    n, d = rows.shape
    if min(n, d) > SHORT or rows.x.layout != torch.strided:
        _, s, Vt = randomized_svd(rows, k, power=4, generator=generator)
        return s, Vt.T
    x = rows.x if rows.root is None else rows.x * rows.root[:, None]
    values, vectors = torch.linalg.eigh((x.T @ x if d <= n else x @ x.T).double())
    s, top = values[-k:].flip(0).clamp_min(0).sqrt(), vectors[:, -k:].flip(1)
    s = torch.where(s > 1e-7 * s[:1], s, 0.0)
    if d > n:
        top = (x.T.double() @ top) / torch.where(s > 0, s, torch.inf)
    return s.to(x), top.to(x)
