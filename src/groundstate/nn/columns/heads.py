r"""Columns of a table as inputs of a network, and a network's outputs as their distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

FAMILIES = ("normal", "logistic")


class ColumnHeads:
    r"""What stands between a row of columns and a network.

    A column of L levels is a categorical distribution of L logits; a real one the mixture
    :math:`\sum_{k=1}^K\pi_k\,f((x-\mu_k)/\sigma_k)/\sigma_k` of K means, scales
    :math:`\sigma_k = \sigma_{min} + e^{a_k}` and logits.

    Parameters
    ----------
    levels : number of levels of each column, 0 for a real one
    components : K
    family : f, "normal" or "logistic"
    min_scale : :math:`\sigma_{min}`

    Attributes
    ----------
    widths, sizes : inputs and outputs of each column

    Examples
    --------
    >>> heads = ColumnHeads([0, 3], components=2)
    >>> x = torch.tensor([[0.5, 2.0]])
    >>> heads.features(x).tolist(), heads.sizes
    ([[0.5, 0.0, 0.0, 1.0]], (6, 3))
    >>> heads.log_prob(torch.zeros(1, 9), x)  # 2 equal normals, 3 equal levels; the spread is 1.01
    tensor([[-1.0514, -1.0986]])
    """

    def __init__(
        self,
        levels: Sequence[int],
        components: int = 5,
        family: str = "normal",
        min_scale: float = 1e-2,
    ) -> None:
        if family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}")
        if components < 1 or not min_scale > 0:
            raise ValueError(
                f"a mixture has at least one component and positive scales, got components="
                f"{components}, min_scale={min_scale}"
            )
        self.levels = tuple(int(n) for n in levels)
        self.components, self.family, self.min_scale = components, family, float(min_scale)
        # two levels are one number, which says as much
        self.widths = tuple(n if n > 2 else 1 for n in self.levels)
        self.sizes = tuple(n or 3 * components for n in self.levels)
        self.inputs = _spans(self.widths)
        self.outputs = _spans(self.sizes)
        kinds = sorted(set(self.levels))
        self.groups = [(n, [j for j, own in enumerate(self.levels) if own == n]) for n in kinds]

    def features(self, x: Tensor) -> Tensor:
        """Inputs ``(B, sum(widths))`` of rows ``(B, d)``."""
        if not any(self.levels):
            return x
        return torch.cat([self.feature(x[:, j], j) for j in range(len(self.levels))], 1)

    def feature(self, value: Tensor, j: int) -> Tensor:
        """Inputs ``(B, width)`` of the values of one column."""
        n = self.levels[j]
        if n <= 2:
            return (value if n == 0 else 2 * value - 1)[:, None]
        index = value.detach().round().long().clamp(0, n - 1)
        return functional.one_hot(index, n).to(value.dtype)

    def log_prob(self, out: Tensor, x: Tensor) -> Tensor:
        """Log-probabilities of each column, ``(B, d)``, from outputs ``(B, sum(sizes))``."""
        found: list[Tensor] = []
        order: list[int] = []
        for n, columns in self.groups:
            order += columns
            own = self._take(out, n, columns)  # (B, m, size)
            found.append(self._grouped(own, x[:, columns], n))
        both = torch.cat(found, 1)
        if order == sorted(order):
            return both
        return both[:, torch.argsort(torch.tensor(order, device=x.device))]

    def _take(self, out: Tensor, n: int, columns: list[int]) -> Tensor:
        size = n or 3 * self.components
        if len(self.groups) == 1:
            return out.reshape(*out.shape[:-1], -1, size)
        return torch.stack([out[..., self.outputs[j]] for j in columns], -2)

    def _grouped(self, own: Tensor, x: Tensor, n: int) -> Tensor:
        if n == 0:
            return self.mixture_log_prob(own, x)
        index = x.detach().round().long().clamp(0, n - 1)
        inside = (x.detach().round() >= 0) & (x.detach().round() < n)
        log_p = functional.log_softmax(own, -1).gather(-1, index[..., None])[..., 0]
        return torch.where(inside, log_p, -math.inf) if not bool(inside.all()) else log_p

    def parameters_of(self, own: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log weights, means and scales of mixtures, each ``(..., K)``."""
        mu, raw, logits = own.chunk(3, -1)
        return functional.log_softmax(logits, -1), mu, self.min_scale + raw.clamp(max=20.0).exp()

    def mixture_log_prob(self, own: Tensor, x: Tensor) -> Tensor:
        log_pi, mu, sigma = self.parameters_of(own)
        z = (x[..., None] - mu) / sigma
        if self.family == "normal":
            each = -0.5 * z.square() - 0.5 * math.log(2 * math.pi)
        else:
            each = -z - 2 * functional.softplus(-z)
        return torch.logsumexp(log_pi + each - sigma.log(), -1)

    def draw(self, own: Tensor, j: int, T: float, generator: torch.Generator) -> Tensor:
        """Values ``(B,)`` of a column from its outputs ``(B, size)``; logits are divided by T, and
        scales are times √T."""
        if self.levels[j]:
            return _categorical(own / T, generator).to(own.dtype)
        log_pi, mu, sigma = self.parameters_of(own)
        k = _categorical(log_pi / T, generator)[:, None]
        if self.family == "normal":
            noise = torch.randn(len(own), generator=generator, device=own.device, dtype=own.dtype)
        else:
            u = torch.rand(len(own), generator=generator, device=own.device, dtype=own.dtype)
            u = u.clamp(1e-7, 1 - 1e-7)
            noise = u.log() - torch.log1p(-u)
        return mu.gather(1, k)[:, 0] + math.sqrt(T) * sigma.gather(1, k)[:, 0] * noise

    def marginals(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Outputs ``(sum(sizes),)`` that are each column's own distribution, whatever came before."""
        w = x.new_ones(len(x)) if weight is None else weight.to(x)
        found = torch.cat([self._marginal(x[:, j], w, n) for j, n in enumerate(self.levels)])
        # without the last bits, in which a weight of 2 and the row twice may differ
        return (found * 2**12).round() / 2**12

    def _marginal(self, x: Tensor, w: Tensor, n: int) -> Tensor:
        if n:
            index = x.round().long().clamp(0, n - 1)
            counts = torch.zeros(n, dtype=x.dtype, device=x.device).index_add_(0, index, w)
            return ((counts + 1) / (counts.sum() + n)).log()
        K = self.components
        order = torch.argsort(x)
        share = w[order].cumsum(0) / w.sum()
        wanted = (torch.arange(K, device=x.device, dtype=x.dtype) + 0.5) / K
        at = torch.searchsorted(share.contiguous(), wanted).clamp_(max=len(x) - 1)
        mean = (w @ x) / w.sum()
        spread = ((w @ (x - mean).square()) / w.sum()).sqrt()
        means = x[order][at] if K > 1 else mean[None]
        factor = 1.0 if K == 1 else 2.0 / K  # kernels of these quantiles cover the column
        scale = (factor * spread - self.min_scale).clamp_min(0.1 * self.min_scale).log()
        if self.family == "logistic":
            scale = scale - math.log(math.pi / math.sqrt(3))
        return torch.cat([means, scale.expand(K), x.new_zeros(K)])


def _spans(sizes: Sequence[int]) -> list[slice]:
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    return [slice(a, b) for a, b in pairwise(ends)]


def _categorical(logits: Tensor, generator: torch.Generator) -> Tensor:
    """One draw of each row by the largest perturbed logit."""
    u = torch.rand(logits.shape, generator=generator, device=logits.device, dtype=logits.dtype)
    return (logits - (-u.clamp_min(1e-20).log()).clamp_min(1e-20).log()).argmax(-1)
