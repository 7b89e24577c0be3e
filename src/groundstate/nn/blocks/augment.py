r"""Random changes of inputs that keep their meaning, batched, on the device of the batch.

Every example draws its own change. Shapes are kept, and in evaluation mode nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.compute.foreign.torch import standard_gamma

Rng = torch.Generator | None


class Transform(nn.Module):
    """Base of transforms: ``change`` acts on all examples, ``p`` says on how many it is kept.

    Parameters
    ----------
    p : probability that an example is changed
    label_preserving : whether the label stays right; say False e.g. for mirrored letters
    """

    def __init__(self, p: float = 1.0, label_preserving: bool = True) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be a probability in [0, 1], got {p}")
        self.p, self.label_preserving = p, label_preserving

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        """Change every example of ``x`` ``(B, ...)`` at random."""
        return x

    def forward(self, x: Tensor, generator: Rng = None) -> Tensor:
        if not self.training or self.p == 0:
            return x
        changed = self.change(x, generator)
        if self.p == 1:
            return changed
        chosen = _uniform(x, generator) < self.p
        return torch.where(_column(chosen, x), changed, x)


class Flip(Transform):
    """Mirror along an axis, by default left and right in half of the examples."""

    def __init__(self, axis: int = -1, p: float = 0.5, label_preserving: bool = True) -> None:
        super().__init__(p, label_preserving)
        self.axis = axis

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        return x.flip(self.axis)


class Shift(Transform):
    """Move by up to ``by`` places along every one of the last ``axes`` axes; ``fill`` comes in.

    Images are ``(B, C, H, W)`` with ``axes=2``, series ``(B, C, T)`` or ``(B, T)`` with ``axes=1``.
    """

    def __init__(
        self, by: int = 2, axes: int = 2, fill: float = 0.0, p: float = 1.0,
        label_preserving: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(p, label_preserving)
        if by < 0:
            raise ValueError(f"by is a number of places, at least 0, got {by}")
        self.by, self.axes, self.fill = by, axes, fill

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        if x.ndim <= self.axes:
            raise ValueError(
                f"Shift along {self.axes} axes needs a batch with more axes, got {tuple(x.shape)}"
            )
        for axis in range(x.ndim - self.axes, x.ndim):
            x = self._along(x, axis, generator)
        return x

    def _along(self, x: Tensor, axis: int, generator: Rng) -> Tensor:
        n, rows = x.shape[axis], len(x)
        size = (rows, 1)
        by = torch.randint(-self.by, self.by + 1, size, generator=generator, device=x.device)
        source = torch.arange(n, device=x.device) - by  # (B, n)
        outside = (source < 0) | (source >= n)
        shape = [rows] + [1] * (x.ndim - 1)
        shape[axis] = n
        index = source.clamp(0, n - 1).view(shape).expand_as(x)
        return x.gather(axis, index).masked_fill(outside.view(shape), self.fill)


class Crop(Shift):
    """Cut the original size at a random place out of the example padded by ``padding``."""

    def __init__(
        self, padding: int = 4, axes: int = 2, fill: float = 0.0, p: float = 1.0,
        label_preserving: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(padding, axes, fill, p, label_preserving)


class Rotate(Transform):
    """Turn images ``(B, C, H, W)`` about their middle by up to ± ``degrees``."""

    def __init__(
        self, degrees: float = 15.0, p: float = 1.0, label_preserving: bool = True,
        mode: str = "bilinear",
    ) -> None:  # fmt: skip
        super().__init__(p, label_preserving)
        self.degrees, self.mode = degrees, mode

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        if x.ndim != 4:
            raise ValueError(f"Rotate needs images (B, C, H, W), got {tuple(x.shape)}")
        angle = (2 * _uniform(x, generator) - 1) * math.radians(self.degrees)  # (B,)
        c, s = torch.cos(angle), torch.sin(angle)
        aspect = x.shape[2] / x.shape[3]  # the grid is square, the image need not be
        zero = torch.zeros_like(c)
        rows = [torch.stack([c, -s * aspect, zero], 1), torch.stack([s / aspect, c, zero], 1)]
        matrix = torch.stack(rows, 1).to(x.dtype)  # (B, 2, 3)
        grid = functional.affine_grid(matrix, list(x.shape), align_corners=False)
        return functional.grid_sample(x, grid, mode=self.mode, align_corners=False)


class Noise(Transform):
    """Add Gaussian noise of standard deviation ``sigma``."""

    def __init__(self, sigma: float = 0.1, p: float = 1.0, label_preserving: bool = True) -> None:
        super().__init__(p, label_preserving)
        self.sigma = sigma

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        return x + self.sigma * noise


class Each(Transform):
    """Any function of one example, such as a transform of torchvision, row by row."""

    def __init__(
        self, function: Callable[[Tensor], Tensor], p: float = 1.0, label_preserving: bool = True
    ) -> None:
        super().__init__(p, label_preserving)
        self.function = function

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        out = torch.stack([self.function(row) for row in x])
        if out.shape != x.shape:
            raise ValueError(
                f"an augmentation must keep the shape of an example, {tuple(x.shape[1:])}, but "
                f"{self.function} gave {tuple(out.shape[1:])}"
            )
        return out


class Mixup(nn.Module):
    r"""Mix examples with others of the batch, :math:`\tilde x = \lambda x + (1-\lambda)x'`, with
    :math:`\lambda \sim \mathrm{Beta}(\alpha, \alpha)`; the loss is mixed with the same λ.

    Parameters
    ----------
    alpha : 0 mixes nothing

    Examples
    --------
    >>> x = torch.eye(4)
    >>> mixed, partner, share = Mixup(1.0)(x, torch.Generator().manual_seed(0))
    >>> torch.allclose(mixed, share[:, None] * x + (1 - share[:, None]) * x[partner])
    True
    """

    label_preserving = False

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        if alpha < 0:
            raise ValueError(f"alpha must be at least 0, got {alpha}")
        self.alpha = alpha

    def forward(self, x: Tensor, generator: Rng = None) -> tuple[Tensor, Tensor, Tensor]:
        """The mixed examples, the partners ``(B,)`` and the shares λ ``(B,)`` of the first."""
        rows = len(x)
        if not self.training or self.alpha == 0:
            return x, torch.arange(rows, device=x.device), x.new_ones(rows)
        partner = torch.randperm(rows, generator=generator, device=x.device)
        both = torch.full((2, rows), self.alpha, device=x.device)
        drawn = standard_gamma(both, generator=generator)  # Beta by two gammas
        share = drawn[0] / drawn.sum(0).clamp_min(torch.finfo(drawn.dtype).tiny)
        share = torch.maximum(share, 1 - share).to(x.dtype)  # the example itself dominates
        s = _column(share, x)
        return s * x + (1 - s) * x[partner], partner, share


class Augment(nn.Module):
    r"""Several transforms one after the other, each example by its own draws.

    Parameters
    ----------
    transforms : ``Transform`` s, or functions of one example (also of torchvision), in order
    mixup : :math:`\alpha` of ``Mixup``; 0 is none
    generator : source of the draws; None is torch's own stream, set by the trainer

    Attributes
    ----------
    label_preserving : bool

    Examples
    --------
    >>> augment = Augment([Flip(), Shift(1)], generator=torch.Generator().manual_seed(0))
    >>> x = torch.arange(32.0).view(2, 1, 4, 4)
    >>> augment(x).shape, torch.equal(augment.eval()(x), x)
    (torch.Size([2, 1, 4, 4]), True)
    """

    def __init__(
        self,
        transforms: Sequence[Transform | Callable[[Tensor], Tensor]],
        mixup: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(
            [t if isinstance(t, Transform) else Each(t) for t in transforms]
        )
        self.mixup = Mixup(mixup)
        self.generator = generator

    @property
    def label_preserving(self) -> bool:
        kept = (bool(t.label_preserving) for t in self.transforms)
        return all(kept) and self.mixup.alpha == 0

    def forward(self, x: Tensor, generator: Rng = None) -> Tensor:
        for transform in self.transforms:
            x = transform(x, generator or self.generator)
        return x


def _uniform(x: Tensor, generator: Rng) -> Tensor:
    return torch.rand(len(x), generator=generator, device=x.device)


def _column(v: Tensor, x: Tensor) -> Tensor:
    return v.view(-1, *[1] * (x.ndim - 1))
